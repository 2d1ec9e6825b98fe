"""Predictions of measured runs of services, each as if its model had not been measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from simulator.predict import predict_service
from simulator.reading.merge_documents import chain_of
from simulator.reading.service.figures import unseen
from simulator.reading.service.mode import describes_service
from simulator.reading.service.scenario import ServiceReader
from simulator.results.serving import metrics
from simulator.schema.serving import ClosedLoop, Service
from simulator.validation.facts import Facts

Figures = Mapping[str, float]
Intervals = Mapping[str, tuple[float, float]]


def is_service(base: str) -> bool:
    """Whether a base describes a service."""
    return _reader(base, ()) is not None


@cache
def _reader(base: str, profiles: tuple[Path, ...]) -> ServiceReader | None:
    chain = chain_of(base)
    return ServiceReader(chain, base, profiles=profiles) if describes_service(chain) else None


def forecast_service(
    base: str,
    overrides: Sequence[str],
    wanted: Sequence[str],
    profiles: tuple[Path, ...] = (),
    *,
    intervals: bool = True,
) -> tuple[Figures, Intervals, Facts]:
    """What is predicted of a service: figures, their P10 and P90, and what describes it.

    Parameters
    ----------
    base : str
        File of the service.
    overrides : sequence of str
        ``section.key=value`` over it.
    wanted : sequence of str
        Names of figures.
    profiles : tuple of pathlib.Path
        Folders of hardware profiles that come before the usual ones.
    intervals : bool
        Whether to work out intervals.

    Raises
    ------
    InputError, NotModelled, PlanError
        As `ServiceReader.read` does; TypeError if the base is no service.
    """
    reader = _reader(base, profiles)
    if reader is None:
        raise TypeError(base)
    pairs = (override.partition("=") for override in overrides)
    settings = {key: value for key, _, value in pairs}
    service = unseen(reader.read(settings), settings.get("model.name", ""))
    prediction = predict_service(service, intervals=intervals)
    every = metrics(prediction)
    figures = {name: value for name in wanted if (value := every.get(name)) is not None}
    bands = {name: prediction.interval.get(name, {}) for name in wanted}
    intervals = {
        name: (low, high)
        for name, band in bands.items()
        if (low := band.get("p10")) is not None and (high := band.get("p90")) is not None
    }
    return figures, intervals, _facts(service)


def _facts(service: Service) -> Facts:
    """What describes a service in a few numbers and words."""
    serving, load = service.serving, service.load
    ways = load.arrivals
    at_once = ways.concurrency if isinstance(ways, ClosedLoop) else load.requests or 1
    gpu = service.group.host.gpu
    return Facts(
        devices=serving.tensor * serving.replicas,
        samples=float(at_once),
        operations=None,
        peak=None,
        numbers={
            "requests at once": float(at_once),
            "prompt": load.prompt.mean,
            "output": load.output.mean,
            "devices": float(serving.tensor * serving.replicas),
        },
        words={
            "engine": serving.engine.name,
            "weights": str(serving.weights),
            "accelerator": "" if gpu is None else gpu.name,
        },
    )
