"""Main figures of every shipped scenario and service, and their comparison with a committed table.

    python benchmarks/figures.py            # compare all cases to 1e-9
    python benchmarks/figures.py --exact    # compare all cases to 1e-12
    python benchmarks/figures.py --quick    # compare a few cheap cases to 1e-9
    python benchmarks/figures.py --write    # write tests/figures.csv
    python benchmarks/figures.py --write NAME ...  # write these cases only

Figures come from `plan simulate NAME --json --actions`, so that the file runs on any version of the
package. Texts that may be reworded are left out; numbers, verdicts, names of resources and keys of
settings are kept in full precision.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from simulator.cli.main import main as plan

ROOT: Final = Path(__file__).parents[1]
TABLE: Final = ROOT / "tests" / "figures.csv"

QUICK: Final = (
    "svm-cpu-only",
    "resnet18-imagenet-serial",
    "resnet50-imagenet-p4d",
    "heterogeneous-tfdata",
    "two-nodes-cpu-starved",
    "rl-actors",
    "dlrm-criteo-dgx-a100",
    "llama3-8b-fsdp",
    "mixtral-8x7b-megatron",
    "bloom-176b",
    "image-classifier-t4",
    "llama3-8b-chat-h100",
)
"""Cases of `--quick`: CPU only, CNNs, several groups and nodes, language models, two services."""

TOLERANCE: Final = 1e-9
EXACT: Final = 1e-12

LEFT_OUT: Final = ("schema", "version", "scenario", "seed", "solver", "mode", "engine")
BANDS: Final = (
    "step_time_s.mean",
    "total_time_s",
    "throughput_samples_per_s",
    "gpu_memory_bytes.total",
    "cost.usd_to_train",
    "first_token_s.p99",
    "per_token_s.p99",
    "end_to_end_s.p99",
    "saturation.requests_per_s",
    "slo.attainment",
)
"""Metrics whose 80% interval is in the table."""

KEY: Final = re.compile(r"\(([a-z_]+(?:\.[a-z_]+)+)\b")

Figures = dict[str, str]
"""Values by figure, as `repr` writes them."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A figure of a case that differs from the table; None: missing there."""

    case: str
    figure: str
    was: str | None
    now: str | None

    def __str__(self) -> str:
        return f"{self.case:34} {self.figure:44} was {self.was}, is {self.now}{self._change()}"

    def _change(self) -> str:
        was, now = _number(self.was), _number(self.now)
        if was is None or now is None or not was:
            return ""
        return f" ({now / was - 1:+.3g})"


def cases() -> list[str]:
    """Return the names of all shipped scenarios and services."""
    return [
        path.stem
        for folder in ("scenarios", "services")
        for path in sorted((ROOT / folder).glob("*.toml"))
    ]


def figures_of(case: str) -> Figures:
    """Predict a shipped case through the command line, and return its figures."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        code = plan(["simulate", case, "--json", "--actions"])
    tree = json.loads(out.getvalue())
    figures = {"exit": repr(int(code))}
    figures.update(_flat(_main_part(tree)))
    assumptions = tree["assumptions"]
    guesses = [one for one in assumptions if not one["verified"]]
    figures["assumptions"] = repr(len(assumptions))
    figures["assumptions.unverified"] = repr(len(guesses))
    figures["assumptions.keys"] = _keys(assumptions)
    figures["assumptions.unverified_keys"] = _keys(guesses)
    figures["warnings"] = repr(len(tree["warnings"]))
    figures["actions"] = repr(len(tree["actions"]))
    for rank, action in enumerate(tree["actions"], start=1):
        kept = {name: value for name, value in action.items() if name not in {"what", "kind"}}
        kept.pop("note", None)
        figures.update(_flat(kept, f"action{rank}."))
    return figures


def differences(
    case: str, was: Mapping[str, str], now: Mapping[str, str], tolerance: float
) -> Iterator[Difference]:
    """Yield the figures of a case that differ by more than a relative tolerance."""
    for figure in [*was, *(name for name in now if name not in was)]:
        before, after = was.get(figure), now.get(figure)
        if not _same(before, after, tolerance):
            yield Difference(case, figure, before, after)


def read_table(path: Path = TABLE) -> dict[str, Figures]:
    """Return the committed figures by case."""
    table: dict[str, Figures] = {}
    with path.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            table.setdefault(row["case"], {})[row["figure"]] = row["value"]
    return table


def write_table(table: Mapping[str, Figures], path: Path = TABLE) -> None:
    """Write figures by case as rows of case, figure and value."""
    with path.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(("case", "figure", "value"))
        for case, figures in table.items():
            writer.writerows((case, figure, value) for figure, value in figures.items())


def _main_part(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tree of a prediction without texts, and with the main intervals only."""
    texts = {*LEFT_OUT, "interval", "assumptions", "warnings", "actions"}
    kept = {name: value for name, value in tree.items() if name not in texts}
    bands = tree.get("interval", {})
    kept["interval"] = {name: bands[name] for name in BANDS if name in bands}
    return kept


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the leaves of a tree by dotted path; nulls are left out."""
    for name, value in tree.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}.")
        elif isinstance(value, list):
            yield from _flat({str(i): item for i, item in enumerate(value)}, f"{path}.")
        elif value is not None:
            yield path, value if isinstance(value, str) else repr(value)


def _keys(assumptions: Iterable[Mapping[str, Any]]) -> str:
    """Return the keys that assumptions name, as of those that a file leaves out."""
    return " ".join(sorted({key for one in assumptions for key in KEY.findall(one["what"])}))


def _same(was: str | None, now: str | None, tolerance: float) -> bool:
    if was == now:
        return True
    before, after = _number(was), _number(now)
    if before is None or after is None:
        return False
    return math.isclose(before, after, rel_tol=tolerance, abs_tol=tolerance * 1e-3)


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def main() -> int:
    """Compare or write; return 1 where something differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--write", action="store_true", help="write the table")
    mode.add_argument("--exact", action="store_true", help=f"all cases, to {EXACT:g}")
    mode.add_argument("--quick", action="store_true", help=f"{len(QUICK)} cheap cases")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes")
    parser.add_argument("--table", type=Path, default=TABLE, metavar="FILE")
    parser.add_argument("cases", nargs="*", help="only these")
    arguments = parser.parse_args()
    names = arguments.cases or (list(QUICK) if arguments.quick else cases())
    if arguments.jobs > 1:
        with ProcessPoolExecutor(arguments.jobs) as pool:
            table = dict(zip(names, pool.map(figures_of, names), strict=True))
    else:
        table = {name: figures_of(name) for name in names}
    committed = read_table(arguments.table) if arguments.table.exists() else {}
    if arguments.write:
        merged = committed | table
        write_table({name: merged[name] for name in cases()}, arguments.table)
        return 0
    tolerance = EXACT if arguments.exact else TOLERANCE
    found = [
        difference
        for name, figures in table.items()
        for difference in differences(name, committed.get(name, {}), figures, tolerance)
    ]
    for difference in found:
        print(difference)
    number = sum(map(len, table.values()))
    print(
        f"{number:,} figures of {len(table)} cases: {len(found)} differ by more than {tolerance:g}"
    )
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
