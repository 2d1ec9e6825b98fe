"""Writes the shipped set of logged requests, a row for each run of a table of requests.

    python evidence/request_logs.py vllm_request_logs.csv

What arrived when, and how long it was, becomes a trace next to the set; the row holds what the
engine's clocks showed of all requests of the run. Nothing is fitted to these runs.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from simulator.reading.shipped import set_folder

Run = Sequence[Mapping[str, str]]

GPUS: Final = {"RTXPRO6000": "gpu/rtx-pro-6000-server"}
ENGINE: Final = "vllm"
TRACE: Final = ("arrival_s", "prompt_tokens", "output_tokens")
READ: Final = ("arrival_s", "input_tokens", "output_tokens")
BASE: Final = """\
# A log of requests to {model}, replayed; evidence/request_logs.py writes this file.
schema = 1
mode = "serve"
name = "{name}"

[hardware]
machine = "node/dgx-h100"
gpus = 1

[model]
name = "llama-3.1-8b"

[serving]
engine = "vllm"
replicas = 1

[load]
arrivals = "trace"
trace = "../traces/{name}.csv"
"""


def run_of(requests: Run) -> dict[str, str]:
    """What describes a run, and what was measured of its requests, as cells of the set."""
    one = requests[0]
    arrived, first, last = (
        np.array([float(request[column]) for request in requests])
        for column in ("arrival_s", "first_token_s", "last_token_s")
    )
    written = np.array([float(request["output_tokens"]) for request in requests])
    whole = last - arrived
    return {
        "id": name_of(one),
        "base": name_of(one),
        "family": "request log",
        "hardware.gpu": GPUS[one["gpu"]],
        "hardware.gpus": one["tp"],
        "model.name": one["model"].rpartition("/")[2].lower(),
        "serving.engine": ENGINE,
        "serving.version": one[ENGINE],
        "serving.tensor": one["tp"],
        "serving.max_sequences": one["max_num_seqs"],
        "serving.max_batched_tokens": one["max_num_batched_tokens"],
        "measured.end_to_end_s.mean": f"{whole.mean():.6g}",
        "measured.end_to_end_s.p99": f"{np.quantile(whole, 0.99):.6g}",
        "measured.first_token_s.mean": f"{(first - arrived).mean():.6g}",
        "measured.per_token_s.p50": f"{np.median((last - first) / (written - 1.0)):.6g}",
        "source": one["source"],
    }


def name_of(request: Mapping[str, str]) -> str:
    """The name of a run's files."""
    model = request["model"].rpartition("/")[2].lower()
    return f"request-log-{model}-{request['gpu'].lower()}-tp{request['tp']}"


def write(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    """A CSV file of equal rows."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> int:
    """Write the set, its bases and its traces."""
    runs: dict[str, list[Mapping[str, str]]] = defaultdict(list)
    with Path(sys.argv[1]).open(encoding="utf-8", newline="") as file:
        for request in csv.DictReader(file):
            runs[name_of(request)].append(request)
    folder = set_folder()
    (folder / "traces").mkdir(exist_ok=True)
    for name, requests in runs.items():
        text = BASE.format(model=requests[0]["model"], name=name)
        (folder / "bases" / f"{name}.toml").write_text(text, encoding="utf-8")
        lengths = [
            {own: request[given] for own, given in zip(TRACE, READ, strict=True)}
            for request in sorted(requests, key=lambda request: float(request["arrival_s"]))
        ]
        write(folder / "traces" / f"{name}.csv", lengths)
    write(folder / "request_logs.csv", [run_of(requests) for requests in runs.values()])
    return 0


if __name__ == "__main__":
    sys.exit(main())
