"""Choices made up for tests."""

from __future__ import annotations

from collections.abc import Mapping

from simulator.results.metrics import Value
from simulator.schema.goal import Objective, Plain, Sense
from simulator.studies.baseline import Machine
from simulator.studies.recommend.ranking import Choice
from simulator.studies.search.outcome import Candidate, Outcome, Status

CHEAPEST = Objective(metric="cost.usd_to_train", sense=Sense.MINIMIZE)


def machine(name: str, gpu: str = "x1", **changes: object) -> Machine:
    """A machine with one accelerator."""
    return Machine(**{"name": name, "gpu": gpu, "gpus": 1, "family": name, **changes})  # type: ignore[arg-type] # fields of Machine


def choice(  # noqa: PLR0913 - what a test may want to say
    index: int,
    time: float,
    money: float,
    *,
    band: float = 1.0,
    on: Machine | None = None,
    settings: Mapping[str, Plain] | None = None,
    **figures: Value,
) -> Choice:
    """A predicted choice whose time and cost are known to a factor of `band` either way."""
    told: dict[str, Value] = {"total_time_s": time, "cost.usd_to_train": money}
    told |= {"bottleneck": "gpu", "accelerator_utilization": 0.9, **figures}
    intervals = {
        name: {"p10": value / band, "p50": value, "p90": value * band}
        for name, value in (("total_time_s", time), ("cost.usd_to_train", money))
    }
    outcome = Outcome(
        candidate=Candidate(index=index, settings=settings or {}),
        status=Status.PREDICTED,
        figures=told,
        intervals=intervals if band > 1.0 else {},
    )
    return Choice(
        machine=on or machine(f"m{index}", gpu=f"x{index}"),
        outcome=outcome,
        figures=told,
        value=money,
    )
