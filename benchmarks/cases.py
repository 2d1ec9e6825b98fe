"""Public questions and files with a measured answer, against what `plan` says of them.

    python benchmarks/cases.py            # print all rows
    python benchmarks/cases.py C01 C02    # print the rows of these inputs

The inputs are in `benchmarks/cases`, written from the public text before `plan` answered. A row
holds where the measured value lies inside the 80% interval (`interval`), where the value lies
within the stated range (`value`), or where the answer says so (`text`). Nothing is fitted to them.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, Final

from simulator.cli.main import main as plan

INPUTS: Final = Path(__file__).parent / "cases"
WIDTH: Final = 28
"""Most characters of an answer in the printed table."""
STEP: Final = "step_time_s.mean"
RATE: Final = "throughput_samples_per_s"
CHECKPOINT: Final = "step_split_s.checkpoint"
STEPS_BETWEEN: Final = 10
"""Steps between two checkpoints of C12 and C13."""


@dataclass(frozen=True)
class Said:
    """What `plan` says of a quantity: a value and its 80% interval, or a text."""

    value: float | str
    low: float = float("nan")
    high: float = float("nan")

    def half_width(self) -> float:
        """Return half the width of the interval over the value."""
        return (self.high - self.low) / 2 / float(self.value)

    def __str__(self) -> str:
        """Return the value and the interval to three digits, or the text."""
        if isinstance(self.value, str):
            return self.value
        interval = "" if self.low != self.low else f" ({self.low:.3g} to {self.high:.3g})"
        return f"{self.value:.3g}{interval}"


@dataclass(frozen=True)
class Row:
    """One measured quantity of a public question."""

    name: str
    quantity: str
    said: Callable[[], Said]
    kind: str
    """`interval` meets the range `right`, `value` lies in it, or `text` holds it."""
    right: tuple[float, float] | str
    before: str
    """The answer of the commit of 26 November 2026."""
    source: str

    def holds(self, said: Said) -> bool:
        """Return whether what is said agrees with what was measured."""
        if isinstance(self.right, str):
            return self.right in str(said.value)
        low, high = self.right
        if self.kind == "interval":
            return said.low <= high and low <= said.high
        return isinstance(said.value, float | int) and low <= said.value <= high


def run(*arguments: str) -> str:
    """Return what a command of `plan` prints, errors included."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        plan(list(arguments))
    return output.getvalue()


@cache
def answer(command: str, name: str, *options: str) -> dict[str, Any]:
    """Return the JSON of a command on an input."""
    quick = ("--no-actions",) if command == "simulate" else ()
    shown = run(*command.split(), str(INPUTS / name), "--json", *quick, *options)
    found: dict[str, Any] = json.loads(shown[shown.index("{") :])
    return found


def at(document: dict[str, Any], path: str) -> Any:  # noqa: ANN401 - a leaf of JSON
    """Return the value of a dotted path, which `document` may hold as a key with dots."""
    if path in document:
        return document[path]
    head, _, rest = path.partition(".")
    return at(document[head], rest)


def figure(path: str, name: str, *options: str, times: float = 1.0) -> Callable[[], Said]:
    """Return how to ask `plan simulate` for a figure of its JSON and the 80% interval."""

    def said() -> Said:
        found = answer("simulate", f"{name}.toml", *options)
        band = (found["interval"] or {}).get(path)
        value = at(found, path)
        if band is None:
            return Said(value * times)
        return Said(value * times, band["p10"] * times, band["p90"] * times)

    return said


def printed(command: str, name: str) -> Callable[[], Said]:
    """Return how to ask for the text of a command on an input, in one line."""
    return lambda: Said(" ".join(run(*command.split(), str(INPUTS / f"{name}.toml")).split()))


def set_(*settings: str) -> tuple[str, ...]:
    """Return options that set keys of the scenario."""
    return tuple(part for setting in settings for part in ("--set", setting))


def waits_without_workers() -> Said:
    """Return the share of the time that GPUs wait for data without workers, in percent."""
    return Said(100 * answer("advise input", "C01-tr0.toml")["now"]["data_stall_share"])


def ratio_of_steps() -> Said:
    """Return the step of two cards over that of one."""
    two = figure(STEP, "C02-gpt2ddp")()
    one = figure(STEP, "C02-gpt2ddp", *set_("hardware.gpus=1"))()
    single = float(one.value)
    return Said(float(two.value) / single, two.low / single, two.high / single)


def explained() -> Said:
    """Return the keys that explain the observed step of two cards."""
    found = answer("simulate", "C02-gpt2ddp.toml", "--observed", "step=655 ms")["observed"]
    return Said(json.dumps(found["explanations"]))


def run_time_of_both_commands() -> Said:
    """Return the time of the run in `goodput` over that in `simulate`, without interruptions."""
    simulated = answer("simulate", "C12-ck8b.toml")["total_time_s"]
    found = answer("goodput", "C12-ck8b.toml")
    return Said(found["work_s"] / simulated)


def bus_bandwidth() -> Said:
    """Return the bus bandwidth of an all-reduce of 1 GiB over four cards, in GB/s."""
    cards = set_(
        *("hardware.machine=node/workstation", "hardware.count=1", "hardware.gpus=4"),
        "hardware.peer_link=p2p",  # as measured, with a changed driver
    )
    seconds = answer("simulate", "C19-ar.toml", *cards)["communication_s"]["exposed"]
    return Said(2 * 3 / 4 * 2**30 / seconds / 1e9)


def imported(name: str, *options: str) -> Callable[[], Said]:
    """Return how to import a foreign file, and what is printed and written."""

    def said() -> Said:
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / "x.toml"
            file = str(INPUTS / name)
            output = [] if options[0] == "utilization" else ["-o", str(target)]
            shown = run("import", options[0], file, *options[1:], *output)
            written = target.read_text(encoding="utf-8") if target.exists() else ""
        return Said(" ".join((shown + written).split()))

    return said


def achievable() -> Said:
    """Return the fitted bus bandwidth of a log of nccl-tests, in GB/s."""
    words = imported("I01-nccl-gh200-two-hosts.txt", "nccl-tests", "--over", "infiniband-hdr")()
    shown = str(words.value)
    rate = shown.partition('achievable = { value = "')[2].partition(" GB/s")[0]
    return Said(float(rate) if "in_switch" not in shown else float("nan"))


SHARDS: Final = set_("data.layout=shards", "data.shard_size=256 MB")
SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - a word of the answer
TRACES: Final = "kineto tb_plugin samples, 2021"
ROWS: Final = (
    Row("C01", "step, s", figure(STEP, "C01-tr0"), "interval", (0.1513, 0.1758), "0.120", TRACES),
    Row(
        "C01", "verdict", printed("simulate", "C01-tr0"),
        "text", "the main process delivers", "GPU-bound", TRACES,
    ),
    Row(
        "C01", "step with 4 workers, s", figure(STEP, "C01-tr0", *set_("input.workers=4")),
        "value", (0.121 * 0.85, 0.136 * 1.15), "0.120", TRACES,
    ),
    Row(
        "C01", "GPUs wait without workers, %", waits_without_workers,
        "value", (12, 43), "0", TRACES,
    ),
    Row(
        "C02", "step of 2 cards over 1", ratio_of_steps,
        "interval", (1.284, 1.284), "1.002", "transformers#9371, 2021",
    ),
    Row(
        "C02", "explanation of 655 ms", explained,
        "text", "collective", "none", "transformers#9371, 2021",
    ),
    *(
        Row(
            "C04", f"images/s, {workers} workers",
            figure(RATE, "C04-rikai", *set_(f"input.workers={workers}")),
            "interval", (rate, rate), before, "rikai#468, 2022",
        )
        for workers, rate, before in ((8, 10, "267"), (16, 21, "444"), (32, 34, "481"))
    ),
    Row(
        "C04", "images/s from shards", figure(RATE, "C04-rikai", *SHARDS),
        "value", (400, 600), "479", "rikai#468, 2022",
    ),
    Row(
        "C06", "samples/s (GPU 70 to 88% busy)", figure(RATE, "C06-s3dlio"),
        "interval", (28.9, 36.2), "41.2", "mlcommons/storage#701, 2026",
    ),
    Row(
        "C12", "run in goodput over simulate", run_time_of_both_commands,
        "value", (1 - 1e-9, 1 + 1e-9), "0.57", "law",
    ),
    Row(
        "C12", "blocked by a checkpoint, s", figure(CHECKPOINT, "C12-ck8b", times=STEPS_BETWEEN),
        "interval", (27.3, 27.3), "21", "Automodel#635, 2025",
    ),
    Row(
        "C13", "blocked in the background, s", figure(CHECKPOINT, "C13-ck8c", times=STEPS_BETWEEN),
        "value", (0.27, 1.08), "21", "Automodel#635, 2025",
    ),
    Row(
        "C14", "RAM, GB", figure("host_ram_bytes.total", "C14-z33", times=1e-9),
        "value", (675, 880), "797", "DeepSpeed#3448, 2023",
    ),
    Row(
        "C16", "shared memory is named", printed("simulate", "C16-dlio165"),
        "text", SHARED_MEMORY, "no word of it", "dlio_benchmark#165, 2024",
    ),
    Row(
        "C16", "batches in flight, GB",
        figure("host_ram_bytes.items.batches_in_flight", "C16-dlio165", times=1e-9),
        "value", (354 * 0.9, 365 * 1.1), "327", "dlio_benchmark#165, 2024",
    ),
    Row(
        "C17", "first batch, s", figure("first_step_s", "C17-wds267"),
        "value", (718 * 0.9, 718 * 1.1), "779", "webdataset#267, 2023",
    ),
    Row(
        "C18", "samples/s", figure(RATE, "C18-hdd"),
        "interval", (28, 68), "110 (77 to 164)", "pytorch/examples#164, 2017",
    ),
    Row(
        "C19", "communication, s", figure("communication_s.exposed", "C19-ar"),
        "interval", (0.134, 0.134), "0.107", "nccl-tests#22, 2019",
    ),
    Row(
        "C19", "bus bandwidth of 4 cards, GB/s", bus_bandwidth,
        "value", (12.7 / 1.5, 12.7 * 1.5), "25", "open-gpu-kernel-modules#22",
    ),
    *(
        Row(
            "C25", f"objects/s, {readers} threads a worker",
            figure(RATE, "C25-gcs", *set_(f"data.readers={readers}")),
            "value", (rate / 2, rate * 2), before, "gcs-connector-for-pytorch#44, 2024",
        )
        for readers, rate, before in ((16, 16059, "5000"), (1, 1218, "320"))
    ),
    Row("I01", "achievable, GB/s", achievable, "value", (22.4, 22.9), "26.19", "the log"),
    Row(
        "I02", "bridge of two cards",
        imported(
            "I02-topo-h100-pcie-pair.txt", "nvidia-smi", "--ram", "512 GB",
            "--gpu", "h100-pcie-80gb",
        ),
        "text", "300 GB/s", "exit 2", "public notes of a DL380 Gen11",
    ),
    Row(
        "I03", "cores of two EPYC 7763",
        imported(
            "I03-topo-hgx-a100-nps4.txt", "nvidia-smi", "--ram", "2 TiB",
            "--gpu", "a100-sxm4-80gb", "--network", "200 Gb/s",
        ),
        "text", "--threads", "64 cores, 4 sockets", "public cluster guide",
    ),
    Row(
        "I04", "nvidia-smi dmon", imported("I04-nvidia-smi-dmon.txt", "utilization"),
        "text", "45.0%", "is not a log of utilization", "usual output, figures made up",
    ),
    Row(
        "straggler", "samples/s of a disk of 550",
        figure(RATE, "physics_straggler", *set_("input.straggler=[{factor=3.0,every=4}]")),
        "value", (544, 556), "367", "bytes are conserved",
    ),
    Row(
        "overlap", "step with copies in line, s", figure(STEP, "physics_overlap"),
        "value", (0.0131, 0.0145), "0.0100", "10 ms of compute and 96 MB over PCIe",
    ),
)  # fmt: skip


def table(names: Iterable[str] = ()) -> list[tuple[Row, Said, bool]]:
    """Return the rows of some inputs, all by default, with the answers and whether they hold."""
    chosen = [row for row in ROWS if not names or row.name in names]
    answers = [(row, _asked(row)) for row in chosen]
    return [(row, said, row.holds(said)) for row, said in answers]


def _asked(row: Row) -> Said:
    try:
        return row.said()
    except (KeyError, ValueError, TypeError, ZeroDivisionError) as error:
        return Said(f"no answer: {error!r}")


def main() -> None:
    """Print the table."""
    rows = table(sys.argv[1:])
    print(f"{'case':5} {'quantity':32} {'26 Nov':>18} {'now':>28} {'measured':>18}  holds")
    for row, said, holds in rows:
        right = row.right if isinstance(row.right, str) else "{:.4g} to {:.4g}".format(*row.right)
        now = str(said) if len(str(said)) <= WIDTH else str(said)[: WIDTH - 3] + "..."
        mark = "yes" if holds else "NO"
        print(f"{row.name:5} {row.quantity:32} {row.before:>18} {now:>{WIDTH}} {right:>18}  {mark}")
    print(f"{sum(holds for _, _, holds in rows)} of {len(rows)} rows hold")
    widths = [said.half_width() for _, said, _ in rows if said.low == said.low]
    if widths:
        print(f"median half-width of the intervals: {median(widths):.0%} of the value")


if __name__ == "__main__":
    main()
