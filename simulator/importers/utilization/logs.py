"""Logs of how busy devices were, whatever tool wrote them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from simulator.importers.reading import read_text
from simulator.importers.result import Quantity, Utilization
from simulator.importers.utilization import cloudwatch, dcgm, nvidia_csv
from simulator.reading.reading import fail

WANTED: Final = "a log of utilization"

_BUSY: Final = (Quantity.GPU_BUSY, Quantity.GPU_ENGINE)
_IDLE: Final = 0.01
"""Share below which a device does nothing."""


def read(
    paths: Sequence[Path],
    *,
    gpus: int | None = None,
    vcpus: int | None = None,
    whole: bool = False,
) -> Utilization:
    """What was seen of devices, from one or more logs of one run.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        CSV of nvidia-smi, table of ``dcgmi dmon``, text of dcgm-exporter, JSON of CloudWatch.
    gpus, vcpus : int, optional
        GPUs and hardware threads of a host; needed where a metric is a sum over them.
    whole : bool
        Keep the samples before the first and after the last in which any GPU was busy.

    Raises
    ------
    InputError
        For logs of other kinds, cut off, or with impossible values.
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
    if cloudwatch.is_metric_data(text):
        return cloudwatch.parse(text, origin, gpus=gpus, vcpus=vcpus)
    if dcgm.is_table(text):
        return dcgm.parse_table(text, origin)
    if dcgm.is_scrape(text):
        return dcgm.parse_scrape(text, origin)
    if not nvidia_csv.is_csv(text):
        hint = "known: nvidia-smi CSV, dcgmi dmon, dcgm-exporter, aws cloudwatch get-metric-data"
        fail(origin, f"is not {WANTED}", hint=hint)
    return nvidia_csv.parse(text, origin)


def _trimmed(found: Utilization) -> Utilization:
    """Less what came before the first and after the last busy sample of each device's GPU."""
    spans = {
        series.device: (int(busy[0]), int(busy[-1]) + 1)
        for series in found.series
        if series.quantity in _BUSY and len(busy := np.flatnonzero(series.values > _IDLE))
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
