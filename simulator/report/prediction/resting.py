"""Which assumptions a figure hangs on: those of the parts of a prediction that it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from simulator.results.metrics import Metric
from simulator.results.prediction import Prediction
from simulator.uncertainty.provenance import Assumption, Part

SHOWS: Final = 1e-3
"""Share of a step from which a part of it is said to make the step."""

_ENTRIES: Final = {
    "data_stall": (Part.INPUT,),
    "h2d": (Part.COPY, Part.INPUT),
    "compute": (Part.DEVICE,),
    "communication": (Part.EXCHANGE,),
    "bubble": (Part.DEVICE, Part.EXCHANGE),
    "checkpoint": (Part.CHECKPOINT,),
    "other": (Part.DEVICE, Part.EXCHANGE),
}
"""What an exposed part of a step bears witness of."""

_OF_STEP: Final = ("step_time_s", "throughput", "mfu", "hfu", "flops", "tokens")
"""How metrics begin that follow from the mean step alone."""
_MEMORY: Final = {
    "host_ram": frozenset({Part.HOST_RAM}),
    "gpu_memory": frozenset({Part.GPU_MEMORY}),
    "fits": frozenset({Part.HOST_RAM, Part.GPU_MEMORY}),
}
_BILL: Final = ("cost", "energy", "samples_per_usd")
_OF_MEMORY: Final = frozenset({Part.HOST_RAM, Part.GPU_MEMORY})


def resting(prediction: Prediction, metrics: Sequence[Metric]) -> tuple[Assumption, ...]:
    """The assumptions that at least one of the metrics hangs on, in their order."""
    parts = frozenset[Part]().union(*(_parts(prediction, metric.name) for metric in metrics))
    return tuple(one for one in prediction.assumptions if not one.bears_on or one.bears_on & parts)


def _parts(prediction: Prediction, name: str) -> frozenset[Part]:
    """The parts of a prediction that a metric is made of."""
    for start, parts in _MEMORY.items():
        if name.startswith(start):
            return parts
    if name.startswith(_OF_STEP):
        return _exposed(prediction)
    beside = _OF_MEMORY if name.startswith(_BILL) else _OF_MEMORY | {Part.BILL}
    return frozenset(Part) - beside


def _exposed(prediction: Prediction) -> frozenset[Part]:
    """What the mean step is made of: hidden work could be half as much, and it stays as it is."""
    split, step = prediction.timing.split, prediction.timing.step_time.mean
    return frozenset(
        part
        for entry, parts in _ENTRIES.items()
        if getattr(split, entry) > SHOWS * step
        for part in parts
    )
