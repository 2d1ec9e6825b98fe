"""The one door: a scenario in, a prediction out.

Asks every stage of the pipeline what it demands, has the engine simulate and `bounds` add up, and
joins time, memory, cost and what they rest on.
"""

from __future__ import annotations

from collections.abc import Callable

from simulator.assumptions import assumptions, warnings
from simulator.bill import bill, cpu_need
from simulator.bounds import bounds
from simulator.engine.run import Options, Question, solve
from simulator.footprint import host_ram, memory_fit, page_cache_bytes
from simulator.limits import check_modelled
from simulator.plant import build
from simulator.results import Prediction
from simulator.run_length import extras, lengths
from simulator.scenario import Scenario
from simulator.stages import demand_table
from simulator.stages.base import Phase
from simulator.stages.read import hit_ratio

MOST_STEPS = 600
"""Steps of an epoch that are simulated if it never gets steady."""


def predict(
    scenario: Scenario,
    *,
    seed: int = 0,
    trace: bool = False,
    progress: Callable[[float], None] | None = None,
    max_steps: int | None = None,
) -> Prediction:
    """Predict what a scenario's job takes.

    Parameters
    ----------
    scenario : Scenario
        One job on one machine.
    seed : int
        Of all random draws; the same seed gives the same prediction.
    trace : bool
        Keep a timeline of the simulated steps.
    progress : callable, optional
        Told how far the simulation is, 0 to 1.
    max_steps : int, optional
        Most steps of an epoch to simulate.

    Raises
    ------
    NotModelled
        If the scenario asks for something the model doesn't cover.
    """
    check_modelled(scenario)
    plant = build(scenario)
    demands = {phase: demand_table(scenario, phase) for phase in Phase}
    length, beside = lengths(scenario), extras(scenario, plant, demands[Phase.WARM])
    most = max_steps or MOST_STEPS
    options = Options(
        seed=seed,
        most_steps=most,
        trace=trace,
        progress=None if progress is None else lambda steps: progress(min(1.0, steps / most)),
    )
    question = Question(
        scenario=scenario, plant=plant, demands=demands, lengths=length, extras=beside
    )
    timing = solve(question, options)
    ram, memory = host_ram(scenario), memory_fit(scenario)
    return Prediction(
        scenario=scenario,
        seed=seed,
        timing=timing,
        steps_per_epoch=length.steps,
        total_steps=length.total_steps,
        memory=memory,
        host_ram=ram,
        cpu_need=cpu_need(scenario, plant, demands[Phase.WARM]),
        cost=bill(scenario, timing, length.total_steps),
        bounds=bounds(scenario, plant, demands, length, beside),
        demands=demands[Phase.WARM if length.epochs > 1.0 else Phase.COLD],
        page_cache_bytes=float(page_cache_bytes(scenario)),
        cache_hit_ratio=float(hit_ratio(scenario, Phase.WARM)),
        assumptions=assumptions(scenario),
        warnings=warnings(scenario, timing, ram, memory),
    )
