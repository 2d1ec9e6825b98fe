"""The JSON of ``aws cloudwatch get-metric-data`` for a training job: samples of hosts.

Points come newest first, times as ISO text or seconds, gaps as absent points. The metrics of a
SageMaker training job sum over units: CPUUtilization over cores, GPUUtilization and
GPUMemoryUtilization over GPUs, so that 8 GPUs reach 800 %; MemoryUtilization ends at 100, and
DiskUtilization is space. Period and statistic are not in the file. AWS documentation,
API_MetricDataResult and sagemaker/latest/dg/monitoring-cloudwatch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from simulator.importers.entries import Entry
from simulator.importers.reading import parse_json, refuse
from simulator.importers.result import Quantity, Utilization
from simulator.importers.utilization.samples import PERCENT, Samples, typical_step

WANTED: Final = "the JSON of aws cloudwatch get-metric-data"

_METRICS: Final = {
    "GPUUtilization": (Quantity.GPU_BUSY, "gpus"),
    "GPUMemoryUtilization": (Quantity.DEVICE_MEMORY_SHARE, "gpus"),
    "CPUUtilization": (Quantity.CPU_BUSY, "vcpus"),
    "MemoryUtilization": (Quantity.HOST_MEMORY_SHARE, ""),
}
"""Metric: what it says, and over what it is a sum."""
_NAME: Final = re.compile(r"\b(" + "|".join(_METRICS) + r")\b")
_SPACE: Final = "DiskUtilization"


def is_metric_data(text: str) -> bool:
    """Whether a text is such JSON, or the beginning of it."""
    return text.lstrip().startswith("{")


def parse(text: str, origin: str, *, gpus: int | None, vcpus: int | None) -> Utilization:
    """Samples of each host in the JSON.

    Parameters
    ----------
    text : str
        The JSON.
    origin : str
        The file's name.
    gpus, vcpus : int or None
        GPUs and hardware threads of a host, over which metrics are sums.

    Raises
    ------
    InputError
        For incomplete results, points without times, sums above what the host has, and sums
        over an unknown number of units.
    """
    top = Entry(parse_json(text, origin), origin)
    samples = Samples(origin=origin, problems=top.problems)
    if top.get("NextToken") is not None:
        top.fault("is incomplete: it has a NextToken", hint="ask for the next page, and join them")
    results = top.need("MetricDataResults", f"it should be {WANTED}")
    counts = {"gpus": gpus, "vcpus": vcpus, "": 1}
    points: dict[str, dict[float, dict[Quantity, float]]] = {}
    for result in () if results is None else results.entries():
        for device, quantity, time, value in _points(result, samples, counts):
            points.setdefault(device, {}).setdefault(time, {})[quantity] = value
    if not points and not top.problems:
        known = ", ".join(_METRICS)
        top.fault("holds no metric that says how busy a host is", hint=f"known: {known}")
    refuse(top.problems)
    for device, by_time in points.items():
        for time in sorted(by_time):
            samples.add(device, by_time[time])
    samples.interval = next((typical_step(sorted(seen)) for seen in points.values()), None)
    samples.warnings.append("the file doesn't say the statistic: averages are assumed")
    return samples.utilization()


def _points(
    result: Entry, samples: Samples, counts: dict[str, int | None]
) -> Iterator[tuple[str, Quantity, float, float]]:
    """Device, quantity, time and value of each point of one result."""
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
        time = _seconds(moment)
        if value is not None and time is not None:
            if value * PERCENT > count * 1.02:
                amount.fault(f"is above {100 * count} %, all of {count} {over}", found=value)
            else:
                yield device, quantity, time, value * PERCENT / count


def _seconds(moment: Entry) -> float | None:
    """A time as seconds since 1970; a problem if it is none."""
    value = moment.value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return moment.number()
    try:
        time = datetime.fromisoformat(str(value))
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        moment.fault("is no time", found=value)
        return None
