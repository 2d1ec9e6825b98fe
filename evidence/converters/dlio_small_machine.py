"""Runs of DLIO on a machine with two cores, with an accelerator that sleeps.

What a sample, a batch and a ready batch cost was measured piece by piece on the same machine and
is in the base scenarios. A row adds ranks, batch, processes that read (none: the main process
does), batches ahead, compute time, and whether files come from the page cache, the drive, or the
drive past the cache.

Two constants are fitted to three runs, and to nothing else: how much slower work goes inside the
loader than in a loop of its own, and what a step takes in addition to loading and computing. Files
of another kind, and reading by the main process, make groups of their own.

Families say what should limit a row, by the pieces: compute or the cores. Runs that read the drive
are apart, and so are those whose repeats differ by more than 8%.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from converters import Columns, TableRow, is_whole

SHIPPED: Final = "dlio_small_machine"

COLUMNS: Final = Columns(
    required=(
        "id",
        "workload",
        "cache",
        "ranks",
        "batch",
        "read_threads",
        "prefetch_size",
        "compute_ms",
        "bytes_per_sample",
        "step_ms",
    ),
    filled=("id", "workload", "cache"),
    numbers=(
        "ranks",
        "batch",
        "read_threads",
        "prefetch_size",
        "compute_ms",
        "bytes_per_sample",
        "step_ms",
        "quiet_spread_pct",
    ),
    measured=("au_*", "step_*", "load_*", "steady_*", "first_*"),
)

_BASES: Final = {"npz4": "dlio-small-machine-npz", "jpg": "dlio-small-machine-jpg"}
_WORK: Final = {"npz4": (2.256e-3, 1.143e-3), "jpg": (1.949e-3, 3.448e-3)}
"""Work on a sample and on a batch [s], as the base scenarios have it."""
_WARM: Final = "warm"
_DRIVE: Final = {
    # np.load took 9.851 ms from the drive, 2.162 ms from the cache: one reader's 545 MB/s.
    "cold": {"data.cache": "none", "hardware.storage_request_rate": "545 MB/s"},
    # 4.12 ms a file past the cache; np.load from memory without its CRC32: 0.02 ms.
    "odirect": {
        "data.cache": "none",
        "hardware.storage_request_rate": "1018 MB/s",
        "input.decode": "0.114 ms",
    },
}
_WHOLE: Final = ("ranks", "batch", "read_threads", "prefetch_size")
_CORES: Final = 2.0
_NOISY: Final = 8.0
"""Spread of a row's repeats beyond which it is reported apart [%]."""
_DEFAULT_AHEAD: Final = 2
"""DataLoader's prefetch_factor, which holds where DLIO's prefetch_size is 0."""
_MILLI: Final = 1e-3
_PER_CENT: Final = 100.0
_ANCHORS: Final = ((1, 50.0), (1, 5.0), (0, 20.0))
"""Processes that read and compute time [ms] of the runs that constants are fitted to."""
_ANCHOR_BATCH: Final = 4.0
_ANCHOR_AHEAD: Final = 2.0


def convert(rows: Sequence[TableRow]) -> list[dict[str, str]]:
    """The rows as cells of the set."""
    return [_cells(row) for row in rows]


def _cells(row: TableRow) -> dict[str, str]:
    reason = _excluded(row)
    labels = {
        "id": row.text("id"),
        "workload": row.text("workload"),
        "cache": row.text("cache"),
        "reader": "main" if row.number("read_threads") == 0.0 else "workers",
        "run": row.text("id"),
    }
    if reason:
        return {**labels, "exclude": reason}
    return {
        **labels,
        "family": _family(row),
        "base": _BASES[row.text("workload")],
        **_overrides(row),
        **_measured(row),
        "anchor": "yes" if _is_anchor(row) else "",
    }


def _excluded(row: TableRow) -> str:
    """Why a row cannot be predicted; empty if it can."""
    workload, cache = row.text("workload"), row.text("cache")
    if workload not in _BASES:
        return f"no pieces were measured for '{workload}'"
    if cache != _WARM and cache not in _DRIVE:
        return f"no pieces were measured for the cache '{cache}'"
    if cache != _WARM and workload != "npz4":
        return f"no pieces were measured for {workload} read from the drive"
    missing = [
        column
        for column in ("ranks", "batch", "read_threads", "compute_ms", "bytes_per_sample")
        if not row.number(column) and not (column == "read_threads" and row.text(column))
    ]
    if missing:
        return f"{', '.join(missing)} not stated"
    parted = [column for column in _WHOLE if not is_whole(row.number(column))]
    if parted:
        found = ", ".join(f"{column} {row.text(column)}" for column in parted)
        return f"not a whole number: {found}"
    return "" if row.number("step_ms") is not None else "nothing was measured"


def _number(row: TableRow, column: str) -> float:
    return row.number(column) or 0.0


def _family(row: TableRow) -> str:
    """What the row is counted under: what should limit it, unless it is apart."""
    if row.text("cache") == "cold":
        return "cold"
    if _number(row, "quiet_spread_pct") > _NOISY:
        return "repeats differ"
    return "cpu-bound" if _making(row) > _number(row, "compute_ms") * _MILLI else "compute-bound"


def _making(row: TableRow) -> float:
    """Time between two batches by the pieces, if nothing but making them took any [s]."""
    sample, batch = _WORK[row.text("workload")]
    if row.text("cache") == "odirect":
        sample = 0.0
    own = _number(row, "batch") * sample + batch
    threads, ranks = _number(row, "read_threads"), _number(row, "ranks")
    if threads == 0.0:
        # The main process computes only when it has read.
        return own + _number(row, "compute_ms") * _MILLI
    return max(own / threads, own * ranks / _CORES)


def _overrides(row: TableRow) -> dict[str, str]:
    threads, batch = int(_number(row, "read_threads")), int(_number(row, "batch"))
    compute = _number(row, "compute_ms")
    drive = _DRIVE.get(row.text("cache"), {})
    return {
        "hardware.emulated": f"{_number(row, 'ranks'):g}",
        "data.bytes_per_sample": f"{_number(row, 'bytes_per_sample'):g} B",
        "data.cache": drive.get("data.cache", ""),
        "hardware.storage_request_rate": drive.get("hardware.storage_request_rate", ""),
        "input.decode": drive.get("input.decode", ""),
        "input.workers": f"{threads}",
        "input.prefetch": _ahead(row, threads),
        "input.persistent_workers": "true" if threads else "",
        # Nothing is handed over where the main process reads.
        "input.receive_per_batch": "" if threads else "0 s",
        "train.batch_size": f"{batch}",
        "model.step_times": f'[{{batch_size = {batch}, time = "{compute:g} ms"}}]',
    }


def _ahead(row: TableRow, threads: int) -> str:
    """Batches made ahead by each process: DLIO divides its own figure among them."""
    size = row.number("prefetch_size")
    stated = _DEFAULT_AHEAD if size is None else int(size)
    if not threads:
        return ""
    return f"{-(-stated // threads) if stated else _DEFAULT_AHEAD}"


def _measured(row: TableRow) -> dict[str, str]:
    metric = "mlperf_storage.step_time_s"
    step, spread = row.number("step_ms"), row.number("quiet_spread_pct")
    return {
        f"measured.{metric}": "" if step is None else f"{step * _MILLI:.7g}",
        f"spread.{metric}": "" if spread is None else f"{spread / _PER_CENT:.6g}",
    }


def _is_anchor(row: TableRow) -> bool:
    """One rank, four npz files a batch from the page cache, the threads and compute time above."""
    described = (int(_number(row, "read_threads")), _number(row, "compute_ms"))
    usual = row.text("workload") == "npz4" and row.text("cache") == _WARM
    alone = _number(row, "ranks") == 1.0 and _number(row, "batch") == _ANCHOR_BATCH
    ahead = _number(row, "prefetch_size") == _ANCHOR_AHEAD
    return usual and alone and ahead and described in _ANCHORS
