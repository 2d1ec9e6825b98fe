"""Machines that may be taken away: lost work and restarts, in time and in cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from simulator.equations.reliability import best_checkpoint_interval, time_with_interruptions
from simulator.pipeline.program import CHECKPOINTING
from simulator.pipeline.run_length import checkpoint_time as time_to_write
from simulator.pipeline.run_length import lengths
from simulator.pipeline.stages.base import Phase, ask
from simulator.pipeline.topology import build
from simulator.results.metrics import Value
from simulator.schema.goal import Spot
from simulator.schema.hardware.price import Purchase
from simulator.schema.scenario import Scenario
from simulator.schema.workload.train import Checkpointing
from simulator.studies.recommend.choice import MONEY, TIME, number
from simulator.units import HOUR, Seconds

_HELD = ("cost.storage.rent_usd", "cost.storage.provisioned_usd")
"""What is paid as long as the run lasts."""
_GROWS = ("cost.usd_per_step", "cost.time_to_train_s", *_HELD)
_SHRINKS = ("cost.samples_per_usd",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """A run on machines that are taken away, as it goes in the mean.

    `interval` is the work between two checkpoints and `write` the time of one [s], `losses` how
    often the run is interrupted; `stretch` how many times as long it takes for all that.
    """

    interval: Seconds
    write: Seconds
    losses: float
    stretch: float


def interrupted(
    scenario: Scenario, spot: Spot, total: Seconds, step: Seconds
) -> Interrupted | None:
    """What interruptions do to a run; None for machines bought on demand.

    Parameters
    ----------
    scenario : Scenario
        The run; its own checkpoints count if it writes any, else the best interval is taken.
    spot : Spot
        How often one machine is taken away, and what a restart takes. Machines are taken away
        independently, and the run stops if any of them is.
    total, step : float
        The run and its mean step without interruptions [s].
    """
    if scenario.cost.purchase is not Purchase.SPOT:
        return None
    rate = spot.rate * sum(group.count for group in scenario.cluster.groups)
    write = checkpoint_time(scenario)
    given = scenario.job.train.checkpointing
    if given is None:
        work, interval = total, max(step, float(best_checkpoint_interval(rate, write)))
    else:
        written = lengths(scenario).total_steps // given.every_steps
        work, interval = total - written * write, given.every_steps * step
    interval = min(interval, work)
    took = float(time_with_interruptions(work, rate, interval, write, spot.restart))
    return Interrupted(interval=interval, write=write, losses=rate * took, stretch=took / total)


def checkpoint_time(scenario: Scenario) -> Seconds:
    """Time in which all copy and write their shares of the state [s]; 0 without a model."""
    job = scenario.job
    train = replace(job.train, checkpointing=Checkpointing(every_steps=1.0))
    writing = replace(scenario, jobs=(replace(job, train=train),))
    return float(time_to_write(build(scenario), ask(CHECKPOINTING, writing, Phase.WARM)))


def with_losses(figures: Mapping[str, Value], lost: Interrupted) -> dict[str, Value]:
    """The figures of a run with what interruptions cost in them; step times stay as they are."""
    changed = dict(figures)
    total, money = number(figures, TIME), number(figures, MONEY)
    if total is None:
        return changed
    changed[TIME] = total * lost.stretch
    for name, factor in (
        *((name, lost.stretch) for name in _GROWS),
        *((name, 1.0 / lost.stretch) for name in _SHRINKS),
    ):
        value = number(figures, name)
        if value is not None:
            changed[name] = value * factor
    rent, longer = number(figures, "cost.usd_per_h"), lost.stretch - 1.0
    if money is not None and rent is not None:
        held = sum(number(figures, name) or 0.0 for name in _HELD)
        changed[MONEY] = money + (rent / HOUR * total + held) * longer
    return changed
