"""Importer of utilization logs of nvidia-smi, DCGM and CloudWatch.

nvidia-smi (``--query-gpu=... --format=csv -l 1``): units are in the header, and behind each value
unless ``nounits`` was given. Unsupported values are [N/A] or another text in brackets.

nvidia-smi ``dmon``: a table whose two header lines (names, units) repeat; ``-o T`` puts the time in
front. sm and mem are the share of time in which a kernel ran and in which memory was accessed, fb
is MiB, rxpci what the GPU receives. A value that the GPU doesn't report is a dash. NVIDIA,
nvidia-smi(1), section dmon.

DCGM: the table of ``dcgmi dmon`` repeats its header and has no time; its first sample may be N/A.
The text of dcgm-exporter is one scrape after another; a missing value is a huge number.
Fields and units: NVIDIA/DCGM, dcgmlib/dcgm_fields.h: 203 GPU_UTIL %, 252 FB_USED MiB, 155
POWER_USAGE W, ratios from 0 to 1 for 1001 GR_ENGINE_ACTIVE, 1004 PIPE_TENSOR_ACTIVE and 1005
DRAM_ACTIVE, B/s for 1009 PCIE_TX_BYTES (the GPU sends) and 1010 PCIE_RX_BYTES. DCGM 4.6 calls
ratios ..._UTIL_RATIO.

``aws cloudwatch get-metric-data`` of a training job: points come newest first, times as ISO text or
seconds, gaps as absent points. The metrics of a SageMaker training job sum over units:
CPUUtilization over cores, GPUUtilization and GPUMemoryUtilization over GPUs, so that 8 GPUs reach
800 %; MemoryUtilization ends at 100, and DiskUtilization is space. Period and statistic are not in
the file. AWS documentation, API_MetricDataResult and sagemaker/latest/dg/monitoring-cloudwatch.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simulator import units
from simulator.importers.foreign import Entry, Problems, parse_json, read_text, refuse
from simulator.reading.reading import fail
from simulator.records import dataclass
from simulator.units import Seconds


class Quantity(StrEnum):
    """Quantity of a sample; the text is its label in reports."""

    GPU_BUSY = "GPU: a kernel runs"
    GPU_ENGINE = "GPU: compute engine active"
    TENSOR = "GPU: tensor cores active"
    DEVICE_MEMORY_BUSY = "GPU: memory busy"
    DEVICE_MEMORY = "GPU: memory used"
    DEVICE_MEMORY_SHARE = "GPU: share of memory used"
    POWER = "GPU: power"
    TO_DEVICE = "PCIe: to the GPU"
    FROM_DEVICE = "PCIe: from the GPU"
    CPU_BUSY = "CPU: busy"
    HOST_MEMORY_SHARE = "host: share of RAM used"


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Samples of one quantity on one device, in order of time.

    `values` is in SI units, shares from 0 to 1; NaN is a missing sample. All series of one device
    in one file have the same length: samples at one index were taken together.
    """

    quantity: Quantity
    device: str
    values: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilization:
    """Utilization of devices while a job ran; `interval`: time between samples, if known [s]."""

    series: tuple[Series, ...]
    interval: Seconds | None = None
    warnings: tuple[str, ...] = ()


PERCENT: Final = 0.01
MEBIBYTE: Final = units.parse("1 MiB", units.BYTE)
MEGABYTE: Final = units.parse("1 MB", units.BYTE)
_ROUNDING_ROOM: Final = 1.02
"""Maximum share, with a margin for rounding."""
_SHARES: Final = frozenset(
    {
        Quantity.GPU_BUSY,
        Quantity.GPU_ENGINE,
        Quantity.TENSOR,
        Quantity.DEVICE_MEMORY_BUSY,
        Quantity.DEVICE_MEMORY_SHARE,
        Quantity.CPU_BUSY,
        Quantity.HOST_MEMORY_SHARE,
    }
)
_LARGEST_COUNTER: Final = units.parse("1 PB", units.BYTE)
"""Larger byte counts or rates are missing samples."""


@dataclass(slots=True)
class Samples:
    """Samples of one file: for each device a list of rows, which map quantities to values."""

    problems: Problems
    warnings: list[str] = field(default_factory=list)
    rows: dict[str, list[dict[Quantity, float]]] = field(default_factory=dict)
    interval: float | None = None

    def checked(
        self, quantity: Quantity, text: str, factor: float, *, line: int, name: str
    ) -> float:
        """Return a sample in SI units; report a problem and return NaN if it is invalid.

        `factor` converts to SI units; `name` and `line` locate the sample in the file.
        """
        value = self.problems.number(text, name, line=line)
        if value is None or not math.isfinite(value):
            return math.nan
        value *= factor
        if quantity in _SHARES and value > _ROUNDING_ROOM:
            hint = "is it in percent?" if factor == 1.0 else None
            message = f"has {name} above {1.0 / factor:g}, the whole"
            self.problems.note(message, line=line, found=text, hint=hint)
            return math.nan
        return math.nan if value > _LARGEST_COUNTER else value

    def add(self, device: str, row: Mapping[Quantity, float]) -> None:
        """Append the values of a device at one time."""
        self.rows.setdefault(device, []).append(dict(row))

    def utilization(self) -> Utilization:
        """Convert the samples to series; quantities without any finite value are left out."""
        found = []
        for device, rows in self.rows.items():
            seen = dict.fromkeys(quantity for row in rows for quantity in row)
            for quantity in seen:
                values = np.array([row.get(quantity, math.nan) for row in rows])
                if np.isfinite(values).any():
                    found.append(Series(quantity=quantity, device=device, values=values))
        return Utilization(
            series=tuple(found), interval=self.interval, warnings=tuple(self.warnings)
        )


def typical_step(times: Iterable[float]) -> float | None:
    """Return the median time between samples [s]; None for fewer than two samples."""
    found: NDArray[np.float64] = np.diff(np.array(list(times)))
    steps = found[found > 0.0]
    return float(np.median(steps)) if len(steps) else None


_COLUMNS: Final = {
    "utilization.gpu": Quantity.GPU_BUSY,
    "utilization.memory": Quantity.DEVICE_MEMORY_BUSY,
    "memory.used": Quantity.DEVICE_MEMORY,
    "power.draw": Quantity.POWER,
    "power.draw.average": Quantity.POWER,
    "power.draw.instant": Quantity.POWER,
}
"""Quantity of each column; of several columns with one quantity the first is used."""
_DEVICE_COLUMNS: Final = ("index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id")
_UNITS: Final = {"%": PERCENT, "MiB": MEBIBYTE, "W": 1.0}
_UNIT_OF: Final = {Quantity.DEVICE_MEMORY: "MiB", Quantity.POWER: "W"}
_CSV_HEADING: Final = re.compile(r"\s*([a-z_.0-9]+)\s*(?:\[(.+)\])?\s*")
_CSV_VALUE: Final = re.compile(r"(-?[\d.]+(?:[eE][+-]?\d+)?)\s*(\S*)")
MAX_TIMES: Final = 100
"""Maximum number of samples used for the sampling interval."""
_CSV_HINT: Final = "record with nvidia-smi --query-gpu=timestamp,index,utilization.gpu --format=csv"


def is_csv(text: str) -> bool:
    """Return True if the first line is a header or a row of nvidia-smi's CSV."""
    first = text.lstrip().split("\n", 1)[0]
    return "," in first and (
        any(name in first for name in _COLUMNS)
        or re.match(r"\d{4}/\d\d/\d\d ", first) is not None
        or first.startswith("timestamp")
    )


def parse_csv(text: str, origin: str) -> Utilization:
    """Parse nvidia-smi's CSV to utilization samples of all GPUs.

    Raises
    ------
    InputError
        If there is no header, no known column, or rows are cut off or hold impossible values.
    """
    samples = Samples(Problems(origin))
    lines = text.lstrip("\n").rstrip().split("\n")
    header = [_CSV_HEADING.fullmatch(cell) for cell in lines[0].split(",")]
    names = [match[1] if match else "" for match in header]
    # Of several columns with the same quantity the first one is used.
    known = {
        i: _COLUMNS[name]
        for i, name in enumerate(names)
        if name in _COLUMNS and _COLUMNS[name] not in map(_COLUMNS.get, names[:i])
    }
    if not known:
        named = any(name[:1].isalpha() for name in names)
        hint = _CSV_HINT if named else f"record without noheader; {_CSV_HINT}"
        samples.problems.note("has no column that says how busy a GPU is", line=1, hint=hint)
    for i, quantity in known.items():
        match, wanted = header[i], _UNIT_OF.get(quantity, "%")
        if match is not None and match[2] not in (None, wanted):
            message = f"has {names[i]} in {match[2]}, which is always in {wanted}"
            samples.problems.note(message, line=1)
    refuse(samples.problems)
    label = next((names.index(name) for name in _DEVICE_COLUMNS if name in names), None)
    stamp = names.index("timestamp") if "timestamp" in names else None
    times: dict[str, list[float]] = {}
    for number, line in enumerate(lines[1:], start=2):
        cells = [cell.strip() for cell in line.split(",")]
        if line == lines[0]:
            continue
        if len(cells) != len(names):
            message = f"has {len(cells)} columns where the header has {len(names)}"
            samples.problems.note(message, line=number, hint="is the file cut off here?")
            continue
        device = "GPU 0" if label is None else f"GPU {cells[label]}"
        row = {
            quantity: _csv_sample(samples, quantity, cells[i], line=number, name=names[i])
            for i, quantity in known.items()
            if not (cells[i].startswith("[") or cells[i] == "N/A")
        }
        samples.add(device, row)
        seen = times.setdefault(device, [])
        seconds = None if stamp is None or len(seen) >= MAX_TIMES else _time_of_row(cells[stamp])
        if seconds is not None:
            seen.append(seconds)
    if not samples.rows and not samples.problems:
        samples.problems.note("holds no sample, only a header")
    refuse(samples.problems)
    samples.interval = next((typical_step(seen) for seen in times.values()), None)
    return samples.utilization()


def _csv_sample(samples: Samples, quantity: Quantity, cell: str, *, line: int, name: str) -> float:
    unit, match = _UNIT_OF.get(quantity, "%"), _CSV_VALUE.fullmatch(cell)
    if match is None or match[2] not in ("", unit):
        message = f"has no value in {unit} under {name}"
        samples.problems.note(message, line=line, found=repr(cell[:40]))
        return math.nan
    return samples.checked(quantity, match[1], _UNITS[unit], line=line, name=name)


def _time_of_row(stamp: str) -> float | None:
    for form in ("%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S"):
        try:
            return datetime.strptime(stamp, form).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
    return None


_FIELDS: Final = {
    "GPU_UTIL": (Quantity.GPU_BUSY, PERCENT),
    "FB_USED": (Quantity.DEVICE_MEMORY, MEBIBYTE),
    "POWER_USAGE": (Quantity.POWER, 1.0),
    "GR_ENGINE": (Quantity.GPU_ENGINE, 1.0),
    "PIPE_TENSOR": (Quantity.TENSOR, 1.0),
    "DRAM": (Quantity.DEVICE_MEMORY_BUSY, 1.0),
    "PCIE_TX_BYTES": (Quantity.FROM_DEVICE, 1.0),
    "PCIE_RX_BYTES": (Quantity.TO_DEVICE, 1.0),
}
"""Quantity and SI factor of each field, by name without prefix and ratio suffix."""
_SHORT_NAMES: Final = {
    "GPUTL": "GPU_UTIL",
    "FBUSD": "FB_USED",
    "POWER": "POWER_USAGE",
    "GRACT": "GR_ENGINE",
    "TENSO": "PIPE_TENSOR",
    "DRAMA": "DRAM",
    "PCITX": "PCIE_TX_BYTES",
    "PCIRX": "PCIE_RX_BYTES",
}
"""Fields by their heading in dmon."""
_BLANK: Final = 140737488355328.0
"""Numbers from here on are missing values (32-bit blank; the 64-bit one is larger)."""
_TABLE_HEADER: Final = re.compile(r"\s*#\s*Entity\s+(.*)")
_TABLE_ROW: Final = re.compile(r"\s*(GPU(?:-C?I)?|CPU|Switch|Core)\s+(\S+)\s*(.*)")
_SCRAPE_LINE: Final = re.compile(r"(DCGM_FI_\w+)\{(.*)\}\s+(\S+)(?:\s+-?\d+)?")
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_PREFIX: Final = re.compile(r"DCGM_FI_(?:DEV|PROF)_")
_RATIO: Final = re.compile(r"_(?:ACTIVE|UTIL_RATIO)$")


_DMON_FIELDS: Final = {
    "sm": (Quantity.GPU_BUSY, PERCENT, "%"),
    "mem": (Quantity.DEVICE_MEMORY_BUSY, PERCENT, "%"),
    "pwr": (Quantity.POWER, 1.0, "W"),
    "fb": (Quantity.DEVICE_MEMORY, MEBIBYTE, "MB"),
    "rxpci": (Quantity.TO_DEVICE, MEGABYTE, "MB/s"),
    "txpci": (Quantity.FROM_DEVICE, MEGABYTE, "MB/s"),
}
"""Quantity, SI factor and unit of each column of ``nvidia-smi dmon``."""
_DMON_HEADER: Final = re.compile(r"\s*#.*\bgpu\s+\S")
_DMON_HINT: Final = "record with nvidia-smi dmon -s pum -o T"


def is_dmon(text: str) -> bool:
    """Return True if a text contains the table of ``nvidia-smi dmon``."""
    return any(_DMON_HEADER.match(line) for line in text.split("\n", 200)[:200])


def parse_dmon(text: str, origin: str) -> Utilization:
    """Parse the table of ``nvidia-smi dmon`` to utilization samples of all GPUs.

    Raises
    ------
    InputError
        If it has no known column, or rows are truncated or hold impossible values.
    """
    samples = Samples(Problems(origin))
    names: list[str] = []
    times: dict[str, list[float]] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        cells = (
            line.replace("#", " # ", 1).split() if line.lstrip().startswith("#") else line.split()
        )
        if _DMON_HEADER.match(line):
            names = [name.lower() for name in cells[1:]]
        elif cells[:1] == ["#"]:
            _check_units(samples, number, names, cells[1:])
        elif cells and len(cells) != len(names):
            message = f"has {len(cells)} values where the header has {len(names)}"
            samples.problems.note(message, line=number, hint="is the file cut off here?")
        elif cells:
            _take_dmon_row(samples, number, dict(zip(names, cells, strict=True)), times)
    if not _DMON_FIELDS.keys() & set(names):
        samples.problems.note("has no column that says how busy a GPU is", hint=_DMON_HINT)
    elif not samples.rows and not samples.problems:
        samples.problems.note("holds no sample, only a header")
    refuse(samples.problems)
    samples.interval = next((typical_step(seen) for seen in times.values()), None)
    return samples.utilization()


def _check_units(
    samples: Samples, number: int, names: Sequence[str], units_of: Sequence[str]
) -> None:
    for name, unit in zip(names, units_of, strict=False):
        field = _DMON_FIELDS.get(name)
        if field is not None and unit != field[2]:
            message = f"has {name} in {unit[:20]}, which is always in {field[2]}"
            samples.problems.note(message, line=number)


def _take_dmon_row(
    samples: Samples, number: int, cells: Mapping[str, str], times: dict[str, list[float]]
) -> None:
    device = f"GPU {cells['gpu']}"
    row = {
        quantity: samples.checked(quantity, cells[name], factor, line=number, name=name)
        for name, (quantity, factor, _) in _DMON_FIELDS.items()
        if cells.get(name, "-") != "-"
    }
    samples.add(device, row)
    clock = re.fullmatch(r"(\d\d):(\d\d):(\d\d)", cells.get("time", ""))
    seen = times.setdefault(device, [])
    if clock is not None and len(seen) < MAX_TIMES:
        seen.append(units.HOUR * int(clock[1]) + units.MINUTE * int(clock[2]) + int(clock[3]))


def is_table(text: str) -> bool:
    """Return True if a text contains the table of ``dcgmi dmon``."""
    return any(_TABLE_HEADER.match(line) for line in text.split("\n", 200)[:200])


def is_scrape(text: str) -> bool:
    """Return True if a text contains a scrape of dcgm-exporter."""
    return "DCGM_FI_" in text


def parse_table(text: str, origin: str) -> Utilization:
    """Parse the table of ``dcgmi dmon`` to utilization samples.

    Raises
    ------
    InputError
        If it has no known field, or rows are truncated or hold impossible values.
    """
    samples = Samples(Problems(origin))
    names: list[str] = []
    known = False
    for number, line in enumerate(text.split("\n"), start=1):
        header, row = _TABLE_HEADER.match(line), _TABLE_ROW.fullmatch(line)
        if header is not None:
            names = header[1].split()
            known = known or any(_field(name) is not None for name in names)
        elif row is not None and names and row[1] == "GPU":
            _take_table_row(samples, number, f"GPU {row[2]}", names, row[3].split())
        elif row is not None and row[1] != "GPU":
            note = f"samples of {row[1]} entities (parts of a GPU, or other devices) are left out"
            samples.warnings = list(dict.fromkeys([*samples.warnings, note]))
        elif line.strip() and not line.strip().upper().startswith("ID"):
            samples.problems.note(
                "is not a row of the table", line=number, found=repr(line.strip()[:40])
            )
    if not known:
        hint = "record with dcgmi dmon -e 203,252,155,1001,1004,1005"
        samples.problems.note("has no field that says how busy a GPU is", hint=hint)
    elif not samples.rows and not samples.problems:
        samples.problems.note("holds no sample of a whole GPU", hint="record without -i of a part")
    refuse(samples.problems)
    return samples.utilization()


def _take_table_row(
    samples: Samples, number: int, device: str, names: Sequence[str], values: Sequence[str]
) -> None:
    if len(values) != len(names):
        message = f"has {len(values)} values where the header has {len(names)}"
        samples.problems.note(message, line=number, hint="is the file cut off here?")
        return
    row = {}
    for name, value in zip(names, values, strict=True):
        field = _field(name)
        if field is not None:
            row[field[0]] = _sample(samples, field, value, number, name)
    samples.add(device, row)


def parse_scrape(text: str, origin: str) -> Utilization:
    """Parse one or more scrapes of dcgm-exporter to utilization samples.

    Raises
    ------
    InputError
        As `parse_table`.
    """
    samples = Samples(Problems(origin))
    scrape: dict[str, dict[Quantity, float]] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.lstrip().startswith("DCGM_FI_"):
            continue
        match = _SCRAPE_LINE.fullmatch(line.strip())
        if match is None:
            hint = "is the file cut off here?"
            samples.problems.note(
                "is not a sample", line=number, found=repr(line.strip()[:60]), hint=hint
            )
            continue
        field = _field(match[1])
        labels = dict(_LABEL.findall(match[2]))
        if field is None or "GPU_I_ID" in labels:
            continue
        device = " ".join(filter(None, [labels.get("Hostname"), f"GPU {labels.get('gpu', '?')}"]))
        if field[0] in scrape.get(device, {}):
            _flush(samples, scrape)
        value = _sample(samples, field, match[3], number, match[1])
        scrape.setdefault(device, {})[field[0]] = value
    _flush(samples, scrape)
    if not samples.rows and not samples.problems:
        hint = "serve DCGM_FI_PROF_GR_ENGINE_ACTIVE or DCGM_FI_DEV_GPU_UTIL"
        samples.problems.note("has no sample that says how busy a GPU is", hint=hint)
    refuse(samples.problems)
    return samples.utilization()


def _flush(samples: Samples, scrape: dict[str, dict[Quantity, float]]) -> None:
    for device, row in scrape.items():
        samples.add(device, row)
    scrape.clear()


def _field(name: str) -> tuple[Quantity, float] | None:
    """Return quantity and SI factor of a field, by its short or long name in any DCGM version."""
    plain = _RATIO.sub("", _PREFIX.sub("", name))
    return _FIELDS.get(_SHORT_NAMES.get(name, plain))


def _sample(
    samples: Samples, field: tuple[Quantity, float], text: str, line: int, name: str
) -> float:
    with contextlib.suppress(ValueError):
        if float(text) >= _BLANK:
            return math.nan
    if text == "N/A":
        return math.nan
    return samples.checked(field[0], text, field[1], line=line, name=name)


METRIC_DATA: Final = "the JSON of aws cloudwatch get-metric-data"

_METRICS: Final = {
    "GPUUtilization": (Quantity.GPU_BUSY, "gpus"),
    "GPUMemoryUtilization": (Quantity.DEVICE_MEMORY_SHARE, "gpus"),
    "CPUUtilization": (Quantity.CPU_BUSY, "vcpus"),
    "MemoryUtilization": (Quantity.HOST_MEMORY_SHARE, ""),
}
"""Quantity of each metric, and the units that it is a sum over."""
_NAME: Final = re.compile(r"\b(" + "|".join(_METRICS) + r")\b")
_SPACE: Final = "DiskUtilization"


def is_metric_data(text: str) -> bool:
    """Return True if a text starts as JSON, as ``aws cloudwatch get-metric-data`` does."""
    return text.lstrip().startswith("{")


def parse_metric_data(
    text: str, origin: str, *, gpus: int | None, vcpus: int | None
) -> Utilization:
    """Parse the JSON of ``aws cloudwatch get-metric-data`` to utilization samples of each host.

    Parameters
    ----------
    text : str
        The JSON.
    origin : str
        Name of the file, for messages.
    gpus, vcpus : int or None
        GPUs and hardware threads of a host; metrics are sums over them.

    Raises
    ------
    InputError
        For incomplete results, points without times, sums above the host's number of units, and
        sums over an unknown number of units.
    """
    problems = Problems(origin)
    top = Entry(parse_json(text, origin), origin, problems=problems)
    samples = Samples(problems)
    if top.get("NextToken") is not None:
        top.fault("is incomplete: it has a NextToken", hint="ask for the next page, and join them")
    results = top.need("MetricDataResults", f"it should be {METRIC_DATA}")
    counts = {"gpus": gpus, "vcpus": vcpus, "": 1}
    points: dict[str, dict[float, dict[Quantity, float]]] = {}
    for result in () if results is None else results.entries():
        for device, quantity, time, value in _points(result, samples, counts):
            points.setdefault(device, {}).setdefault(time, {})[quantity] = value
    if not points and not problems:
        known = ", ".join(_METRICS)
        top.fault("holds no metric that says how busy a host is", hint=f"known: {known}")
    refuse(problems)
    for device, by_time in points.items():
        for time in sorted(by_time):
            samples.add(device, by_time[time])
    samples.interval = next((typical_step(sorted(seen)) for seen in points.values()), None)
    samples.warnings.append("the file doesn't say the statistic: averages are assumed")
    return samples.utilization()


def _points(
    result: Entry, samples: Samples, counts: dict[str, int | None]
) -> Iterator[tuple[str, Quantity, float, float]]:
    """Yield device, quantity, time and value of each point of one metric."""
    label = result.text_at("Label") or ""
    name = _NAME.search(label) or _NAME.search(result.text_at("Id") or "")
    status = result.text_at("StatusCode") or "Complete"
    if status != "Complete":
        result.fault("is incomplete", found=status, hint="ask again with NextToken, and join them")
        return
    if name is None:
        if _SPACE not in label:
            samples.warnings.append(f"'{label}' is left out: no metric of a training job")
        return
    quantity, over = _METRICS[name[1]]
    count = counts[over]
    if count is None:
        hint = f"give --{over} N, or --beside a scenario"
        result.fault(f"is a sum over {over} of unknown number", found=name[1], hint=hint)
        return
    times, values = result.need("Timestamps"), result.need("Values")
    if times is None or values is None:
        return
    moments, amounts = list(times.entries()), list(values.entries())
    if len(moments) != len(amounts):
        result.fault(f"has {len(moments)} Timestamps, but {len(amounts)} Values")
        return
    device = _NAME.sub("", label).strip(" -_:/") or "host"
    for moment, amount in zip(moments, amounts, strict=True):
        value = amount.number()
        time = _time_of_point(moment)
        if value is not None and time is not None:
            if value * PERCENT > count * 1.02:
                amount.fault(f"is above {100 * count} %, all of {count} {over}", found=value)
            else:
                yield device, quantity, time, value * PERCENT / count


def _time_of_point(moment: Entry) -> float | None:
    """Return a time in seconds since 1970; report a problem and return None if it is invalid."""
    value = moment.value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return moment.number()
    try:
        time = datetime.fromisoformat(str(value))
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        moment.fault("is not a time", found=value)
        return None


WANTED: Final = "a log of utilization"

_BUSY_GPU: Final = (Quantity.GPU_BUSY, Quantity.GPU_ENGINE)
IDLE_SHARE: Final = 0.01
"""Utilization below which a device counts as idle."""


def read(
    paths: Sequence[Path],
    *,
    gpus: int | None = None,
    vcpus: int | None = None,
    whole: bool = False,
) -> Utilization:
    """Read utilization samples from one or more logs of one run.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        nvidia-smi CSV or ``dmon``, ``dcgmi dmon`` table, dcgm-exporter text, or CloudWatch JSON.
    gpus, vcpus : int, optional
        GPUs and hardware threads of a host; required if a metric is a sum over them.
    whole : bool
        Keep the samples before the first and after the last in which the device's GPU was busy.

    Raises
    ------
    InputError
        For other or truncated logs, and impossible values.
    """
    found = [_of_file(path, gpus, vcpus) for path in paths]
    if not whole:
        found = [_trimmed(each) for each in found]
    series = tuple(s for each in found for s in each.series if np.isfinite(s.values).any())
    if not series:
        fail(", ".join(map(str, paths)), "holds missing samples only")
    steps = [each.interval for each in found if each.interval is not None]
    return Utilization(
        series=series,
        interval=steps[0] if steps else None,
        warnings=tuple(dict.fromkeys(warning for each in found for warning in each.warnings)),
    )


def _of_file(path: Path, gpus: int | None, vcpus: int | None) -> Utilization:
    text, origin = read_text(path, WANTED), str(path)
    if is_metric_data(text):
        return parse_metric_data(text, origin, gpus=gpus, vcpus=vcpus)
    if is_dmon(text):
        return parse_dmon(text, origin)
    if is_table(text):
        return parse_table(text, origin)
    if is_scrape(text):
        return parse_scrape(text, origin)
    if not is_csv(text):
        hint = f"known: nvidia-smi CSV or dmon, dcgmi dmon, dcgm-exporter, {METRIC_DATA}"
        fail(origin, f"is not {WANTED}", hint=hint)
    return parse_csv(text, origin)


def _trimmed(found: Utilization) -> Utilization:
    """Drop samples of each device before its first and after its last busy sample."""
    spans = {
        series.device: (int(busy[0]), int(busy[-1]) + 1)
        for series in found.series
        if series.quantity in _BUSY_GPU and len(busy := np.flatnonzero(series.values > IDLE_SHARE))
    }
    kept = tuple(
        replace(s, values=s.values[slice(*spans.get(s.device, (None,)))]) for s in found.series
    )
    dropped = sum(len(old.values) for old in found.series) - sum(len(new.values) for new in kept)
    if not dropped:
        return found
    rows = max(len(o.values) - len(n.values) for o, n in zip(found.series, kept, strict=True))
    note = f"{rows} samples of a device before the first and after the last busy one are left out"
    return replace(found, series=kept, warnings=(*found.warnings, note))
