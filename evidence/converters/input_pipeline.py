"""Published measurements of input pipelines: how samples, bytes and cores of a loader add up.

The table holds figures of many kinds. Those are predicted whose rows say what was run:

- rates of a loader against its workers or threads: a *curve*. Its run with the fewest workers is
  its anchor, and what a sample costs is fitted to that and nothing else. Strategies of PRESTO that
  decode the same files share a curve: the one that opens each file tells what opening takes;
- shares of a data set that come from the store when memory holds a part of it: predicted from the
  description alone, but for reads front to back, whose hit ratios are a table made of these rows;
- rates of a drive that is read front to back.

Everything else comes out with its reason. Families are the sources.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from converters import Columns, TableRow
from converters.pipeline_sources import SourceTable, pipeline_sources
from simulator.units import BYTE, parse

SHIPPED: Final = "input_pipeline"

COLUMNS: Final = Columns(
    required=(
        "source",
        "source_ref",
        "hardware",
        "dataset",
        "sample_bytes",
        "model",
        "batch_per_gpu",
        "workers_or_cores",
        "cache",
        "loader",
        "metric",
        "value",
        "unit",
        "notes",
    ),
    filled=("source",),
    measured=("value",),
)

RATE: Final = "throughput_samples_per_s"
READ: Final = "store_bytes_per_epoch"
_SAMPLES: Final = 1281167.0
"""Samples that a data set of known size is divided into, where only its size matters."""
_IMAGE: Final = 114661.0
"""Bytes of an ImageNet image as stored: 146.9 GB over all."""
_PER_CENT: Final = 100.0
_NUMBER: Final = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_SIZE: Final = re.compile(r"\d+(?:\.\d+)? ?(?:GiB|GB)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a row tells: a curve it belongs to, its base and keys, and the scale of its value.

    `least` orders the runs of a curve: the least is the anchor; None: the row is not an anchor.
    With `always` it is one in any case.
    """

    base: str
    curve: str
    keys: Mapping[str, str]
    metric: str = RATE
    scale: float = 1.0
    least: float | None = None
    always: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)


def convert(rows: Sequence[TableRow]) -> list[dict[str, str]]:
    """The rows as cells of the set."""
    told = [_told(row) for row in rows]
    least: dict[str, float] = {}
    for one in told:
        if isinstance(one, Told) and one.least is not None:
            least[one.curve] = min(one.least, least.get(one.curve, one.least))
    runs = Counter(one.curve for one in told if isinstance(one, Told) and one.least is not None)
    told = [_alone(one, runs) for one in told]
    return [_cells(row, one, least) for row, one in zip(rows, told, strict=True)]


def _alone(told: Told | str, runs: Mapping[str, int]) -> Told | str:
    if isinstance(told, str) or told.least is None or told.always or runs[told.curve] > 1:
        return told
    return "the only run of its curve"


def _cells(row: TableRow, told: Told | str, least: Mapping[str, float]) -> dict[str, str]:
    labels = {
        "id": _id(row),
        "family": _family(row),
        "hardware": row.text("hardware"),
        "loader": row.text("loader"),
        "workers": row.text("workers_or_cores"),
        "source": f"{row.text('source')} {row.text('source_ref')}".strip(),
    }
    if isinstance(told, str):
        return {**labels, "exclude": told}
    value = _last_number(row.text("value"))
    anchor = told.always or (told.least is not None and told.least == least[told.curve])
    return {
        **labels,
        "curve": told.curve,
        "base": told.base,
        **told.keys,
        f"measured.{told.metric}": "" if value is None else f"{value * told.scale:.7g}",
        "anchor": "yes" if anchor else "",
    }


def _id(row: TableRow) -> str:
    parts = ("dataset", "model", "loader", "workers_or_cores", "cache", "metric")
    told = " ".join(row.text(part) for part in parts if row.text(part))
    return f"{_family(row)}: {told or row.text('source_ref')}"


def _family(row: TableRow) -> str:
    known = _source(row)
    return row.text("source") if known is None else known.family


def _source(row: TableRow) -> SourceTable | None:
    name = row.text("source")
    return next((one for one in pipeline_sources() if name.startswith(one.begins)), None)


def _last_number(text: str) -> float | None:
    found = _NUMBER.findall(text)
    return float(found[-1]) if found else None


def _told(row: TableRow) -> Told | str:
    """What a row tells, or why it is not predicted."""
    if not row.text("value"):
        return "nothing was measured"
    source = _source(row)
    if source is None:
        return _any_curve(row)
    if source.reader is None:
        return source.reason or "not read"
    return _READERS[source.reader](row)


def _any_curve(row: TableRow) -> Told | str:
    """Worker processes over images on a number of virtual CPUs, two to a core, from any source."""
    if row.text("metric") == "time to first batch":
        return "the times of listing the files and of starting a worker are not separated"
    workers, threads = _workers(row), re.search(r"(\d+) vCPU", row.text("hardware"))
    if "throughput" not in row.text("metric") or row.text("unit") not in _RATE_UNITS:
        return "no rate of a loader against its workers"
    if workers is None or threads is None or "DataLoader" not in row.text("loader"):
        return "workers, virtual CPUs or the loader are not stated"
    told = ("source", "hardware", "dataset", "cache", "loader", "model", "batch_per_gpu")
    return Told(
        base="loader-images",
        curve=" ".join(row.text(part) for part in told if row.text(part)),
        keys={
            "hardware.vcpus": threads.group(1),
            "hardware.cores": f"{float(threads.group(1)) / 2.0:g}",
            "input.workers": f"{workers:g}",
        },
        least=workers,
    )


_RATE_UNITS: Final = frozenset({"img/s", "samples/s"})


def _workers(row: TableRow) -> float | None:
    text = row.text("workers_or_cores")
    return float(text) if text.isdigit() and int(text) else None


def _strategies(row: TableRow) -> Told | str:
    """Threads of tf.data over what four strategies have prepared, on eight virtual CPUs."""
    threads, reference = _workers(row), row.text("source_ref")
    strategy = re.search(r"strategy (\d\S*)", row.text("loader"))
    samples = re.search(r"(\d+) samples", row.text("dataset"))
    if "CEPH" in row.text("hardware") or "old-notebooks" in reference:
        return "what the Ceph cluster of hard disks delivers at random is not stated"
    if strategy is None or samples is None or threads is None:
        return "strategy, samples or threads are not stated"
    name, count = strategy.group(1), float(samples.group(1))
    data = row.text("dataset").removesuffix(samples.group()).strip()
    stored = re.search(r"materialised (\d+ MB)", row.text("notes"))
    size = parse(stored.group(1), BYTE) / count if stored else 0.0
    online = "online" in name
    raw = online or _STILL_ENCODED.search(name) is not None
    return Told(
        base="loader-presto-online" if online else "loader-presto",
        # The whole set is read at the costs of the larger part of it.
        curve=f"presto {data} {'as encoded' if raw else name} {min(count, _LARGER_PART):g}",
        keys={
            "data.samples": f"{count:.0f}",
            "data.bytes_per_sample": f"{size or _stored(row):.6g} B",
            "input.workers": f"{threads:g}",
        },
        least=threads,
    )


def _stored(row: TableRow) -> float:
    return _last_number(row.text("sample_bytes")) or _IMAGE


_STILL_ENCODED: Final = re.compile(r"read-|concatenat")
"""Strategies of PRESTO that leave decoding to the run: they only put files together."""
_LARGER_PART: Final = 8000.0


def _loaders(row: TableRow) -> Told | str:
    """Threads and workers of loaders on a machine that the source names."""
    name, workers, source = row.text("loader"), _workers(row), _source(row)
    reason = _METRICS_LEFT_OUT.get(row.text("metric"), "")
    if row.text("metric").startswith("train_time"):
        reason = "a training run whose input pipeline is not described"
    if not reason and row.text("cache") != "RAM":
        reason = "which volume was read, and how fast it was provisioned, is not stated"
    if reason:
        return reason
    known = () if source is None else source.loader
    loader = next((one for one in known if name.startswith(one.begins)), None)
    if loader is None or workers is None:
        return "workers, or how this loader shares its work, are not stated"
    return Told(
        base=loader.base,
        curve=f"{_family(row)} {name}",
        keys={"input.workers": f"{workers:g}"},
        least=workers,
        always=loader.fitted,
    )


_METRICS_LEFT_OUT: Final = {
    "dataset_size": "the size of a file, not a run",
    "epoch_load_time": "workers, image size and batch are not stated",
}


def _cores(row: TableRow) -> Told | str:
    """Cores of one accelerator's DALI, as rates relative to those of three cores."""
    cores = _workers(row)
    time = re.search(r"iter_time (\d+(?:\.\d+)?) s", row.text("notes"))
    memory, batch = row.text("cache"), _last_number(row.text("batch_per_gpu"))
    if cores is None or time is None or batch is None:
        return "cores, batch or the step they are relative to are not stated"
    if memory.startswith("20.83 GB"):
        return "a placeholder of the source"
    if cores > _FAIR_SHARE:
        return "device, data set and store, which may limit it beyond 3 cores, are not stated"
    return Told(
        base="loader-dali",
        curve=f"synergy {row.text('model')} {memory}",
        keys={
            "input.workers": f"{cores:g}",
            "train.batch_size": f"{batch:g}",
            "model.step_times": f'[{{batch_size = {batch:g}, time = "1 ns"}}]',
        },
        scale=batch / float(time.group(1)),
        least=cores,
    )


_FAIR_SHARE: Final = 3.0
"""Cores of each of eight accelerators on 24 cores: what the rates are relative to."""


def _cached_shares(row: TableRow) -> Told | str:
    """Shares of a data set, or bytes of it, that an epoch takes from the store."""
    metric, loader, cache = row.text("metric"), row.text("loader"), row.text("cache")
    size = _SIZE.search(row.text("dataset"))
    if "prep stall" in metric or "cores/GPU" in metric:
        return "what the device and the cores take for a sample is not stated"
    if metric not in _READS:
        return "depends on rates of stores, networks or devices that are not stated"
    if size is None:
        return "the size of the data set is not stated"
    total = parse(size.group(), BYTE)
    held = _held(cache, total)
    if held is None:
        return "what memory holds is not stated"
    scans = loader in {"TF TFRecord", "DALI-seq"}
    kept = "ideal" if "MinIO" in loader else "random"
    servers = re.search(r"(\d+) servers", row.text("model"))
    return Told(
        base="loader-cache",
        curve="coordl front to back" if scans else "coordl",
        keys={
            "data.bytes_per_sample": f"{total / _SAMPLES:.10g} B",
            "data.access": "sequential" if scans else "",
            "data.cache": "scan" if scans else kept,
            "memory.page_cache": f"{held:.10g} B",
            "hardware.count": servers.group(1) if servers else "",
        },
        metric=READ,
        scale=parse("1 GiB", BYTE) if row.text("unit") == "GiB" else total / _PER_CENT,
        # The hit ratios of scans are a table in the model, made of these rows.
        always=scans,
    )


_READS: Final = frozenset(
    {
        "share of dataset read from storage per epoch",
        "cache miss",
        "storage read per server per epoch",
    }
)


def _held(cache: str, total: float) -> float | None:
    """Bytes that memory holds: a share of the data set, or an amount for each server."""
    share, amount = re.fullmatch(r"(\d+(?:\.\d+)?)%", cache), _SIZE.match(cache)
    if share is not None:
        return float(share.group(1)) / _PER_CENT * total
    return None if amount is None else parse(amount.group(), BYTE)


def _tensors(row: TableRow) -> Told | str:
    """Worker processes that hand over 114 tensors a batch."""
    workers = _workers(row)
    if row.text("metric") != "loader throughput" or workers is None:
        return "a whole run, or a ratio of two whose rates are not stated"
    if "114 tensors" not in row.text("sample_bytes"):
        return "how many tensors a batch has is not stated"
    keys = {"input.workers": f"{workers:g}"}
    if "pin_memory=True" in row.text("loader"):
        keys["input.receive_per_sample"] = "1.45 ms"
    return Told(base="loader-coco", curve="roboflow", keys=keys, least=workers)


def _drive(row: TableRow) -> Told | str:
    """A disk read front to back."""
    rate = re.search(r"HDD (\d+) ?MB/s", row.text("hardware"))
    if rate is None or row.text("unit") != "minibatch/s":
        return "a rate of one core or a limit that is an input of a prediction, not its result"
    return Told(
        base="loader-hdd",
        curve="plumber disk",
        keys={"hardware.storage_bandwidth": f"{rate.group(1)} MB/s"},
        scale=128.0,
    )


_READERS: Final[Mapping[str, Callable[[TableRow], Told | str]]] = {
    "loaders": _loaders,
    "strategies": _strategies,
    "cores": _cores,
    "cached shares": _cached_shares,
    "drive": _drive,
    "tensors": _tensors,
    "any curve": _any_curve,
}
"""Who reads the rows of a source, by the names in pipeline_sources.toml."""
