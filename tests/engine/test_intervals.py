"""Intervals: quantiles known in closed form, and simulations at other rates."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
from support.stages import sampled

from simulator.engine.intervals import draw, figures, slowdown, uncertainty_components
from simulator.engine.run import Options, SimulationInput, solve
from simulator.pipeline.run_length import extras
from simulator.pipeline.stages.base import Phase
from simulator.pipeline.topology import Speeds, scale_stage, scale_topology
from simulator.predict import predict, simulation_input
from simulator.reading.scenario import load_scenario
from simulator.results.cost import bill
from simulator.results.energy import LOG_SD, draws
from simulator.results.prediction import Prediction
from simulator.schema.fields import Shape, Spread
from simulator.schema.scenario import CostPlan, Scenario
from simulator.schema.uncertainty import Rate, UncertaintyComponent
from simulator.units import HOUR
from tests.support.scenarios import SOURCE, host, inputs_of, scenario

NORMAL = NormalDist()
DEVIATION = 0.1
POINTS_ERROR = 0.02
"""Share of an interval's width that its ends may be off because the points are finitely many."""
ENDS = {"p10": NORMAL.inv_cdf(0.1), "p50": 0.0, "p90": NORMAL.inv_cdf(0.9)}


def component(
    rate: Rate, log_sd: float = DEVIATION, name: str = "", **shared: float
) -> UncertaintyComponent:
    """An uncertainty from nowhere."""
    return UncertaintyComponent(
        name=name or str(rate), rate=rate, log_sd=log_sd, source=SOURCE, shared=shared
    )


def step_interval(
    job: Scenario, *uncertainties: UncertaintyComponent, seed: int = 0
) -> dict[str, float]:
    """Quantiles of the mean step over the step as figured."""
    prediction = predict(replace(job, uncertainties=uncertainties), seed=seed)
    mean = prediction.timing.step_time.mean
    return {key: at / mean for key, at in prediction.interval["step_time_s.mean"].items()}


def cpu_bound(**changes: object) -> Scenario:
    """Two workers that take 0.1 s a batch feed a device that takes 0.02 s."""
    return scenario(batch_cpu=0.1, workers=2, machine=host(gpus=1), **changes)  # type: ignore[arg-type]


def test_nothing_in_doubt_is_no_interval() -> None:
    """Known rates and a simulation without chance leave nothing to say."""
    assert predict(cpu_bound()).interval == {}


def test_the_step_is_known_no_better_than_the_least_deviation() -> None:
    """What rates leave below the floor is made up for, what is above it stays."""
    own = component(Rate.WORKERS)
    for least, wide in ((0.05, DEVIATION), (0.3, 0.3), (0.6, 0.6)):
        found = step_interval(cpu_bound(), replace(own, least=least))
        width = math.log(found["p90"] / found["p10"]) / (ENDS["p90"] - ENDS["p10"])
        assert width == pytest.approx(wide, rel=POINTS_ERROR)


def test_no_deviation_is_beyond_reason() -> None:
    """An uncertainty of many times the figure means unknown, not that it takes ages."""
    found = step_interval(cpu_bound(), component(Rate.WORKERS, 27.0), component(Rate.DEVICE, 27.0))
    assert 10.0 < found["p90"] / found["p10"] < 100.0


def test_one_rate_gives_its_own_quantiles() -> None:
    """A step that the workers set has the quantiles of their rate, to a thousandth."""
    found = step_interval(cpu_bound(), component(Rate.WORKERS))
    for key, z in ENDS.items():
        assert found[key] == pytest.approx(math.exp(DEVIATION * z), rel=1e-3)


def test_all_figures_follow_the_step() -> None:
    """Throughput, epoch and utilization lie where the step's quantiles put them."""
    prediction = predict(replace(cpu_bound(), uncertainties=(component(Rate.WORKERS),)))
    timing, found = prediction.timing, prediction.interval
    long, short = (math.exp(DEVIATION * ENDS[key]) for key in ("p90", "p10"))
    rate = found["throughput_samples_per_s"]
    assert rate["p10"] == pytest.approx(timing.throughput / long, rel=1e-3)
    assert rate["p90"] == pytest.approx(timing.throughput / short, rel=1e-3)
    assert found["epoch_time_s"]["p90"] == pytest.approx(timing.epoch_time * long, rel=1e-3)
    busy = timing.accelerator_utilization or 0.0
    assert found["accelerator_utilization"]["p10"] == pytest.approx(busy / long, rel=1e-3)


def test_a_rate_that_does_not_matter_adds_nothing() -> None:
    """With the workers as the limit the device may be 10% slower for all the step cares."""
    found = step_interval(cpu_bound(), component(Rate.DEVICE))
    assert list(found.values()) == pytest.approx([1.0, 1.0, 1.0], rel=1e-6)


def test_a_device_in_doubt_is_as_busy_as_it_is_slow() -> None:
    """Where the workers are the limit, the device's utilization is as uncertain as its rate."""
    prediction = predict(replace(cpu_bound(), uncertainties=(component(Rate.DEVICE),)))
    busy = prediction.timing.accelerator_utilization or 0.0
    found = prediction.interval["accelerator_utilization"]
    assert found["p90"] == pytest.approx(busy * math.exp(DEVIATION * ENDS["p90"]), rel=1e-3)


def test_two_equal_limits() -> None:
    """The longer of two equally long ones: a quantile is where each has its square root."""
    job = scenario(batch_cpu=0.1, workers=2, compute=0.05, machine=host(gpus=1), sync=False)
    found = step_interval(job, component(Rate.WORKERS), component(Rate.DEVICE))
    for key, q in (("p10", 0.1), ("p50", 0.5), ("p90", 0.9)):
        exact = math.exp(DEVIATION * NORMAL.inv_cdf(math.sqrt(q)))
        assert found[key] == pytest.approx(exact, abs=0.006)


def test_one_after_another_adds() -> None:
    """Without workers making and computing add up, each with its own rate."""
    job = scenario(batch_cpu=0.03, workers=0, compute=0.02, machine=host(gpus=1))
    found = step_interval(job, component(Rate.WORKERS), component(Rate.DEVICE))
    rng = np.random.default_rng(0)
    times = 0.03 * np.exp(DEVIATION * rng.standard_normal(200_000))
    times += 0.02 * np.exp(DEVIATION * rng.standard_normal(200_000))
    for key, q in (("p10", 0.1), ("p90", 0.9)):
        assert found[key] == pytest.approx(float(np.quantile(times, q)) / 0.05, abs=0.003)


def test_the_whole_step_in_doubt_moves_everything() -> None:
    """An uncertainty about the step is one about every time, whatever the limit."""
    found = predict(replace(cpu_bound(), uncertainties=(component(Rate.STEP),)))
    for name in ("step_time_s.mean", "first_step_s", "total_time_s"):
        band = found.interval[name]
        assert band["p90"] / band["p10"] == pytest.approx(
            math.exp(DEVIATION * (ENDS["p90"] - ENDS["p10"])), rel=1e-3
        )


def test_a_deviation_in_seconds_matters_to_short_steps() -> None:
    """Half a millisecond is 1% of a step of 50 ms, and a tenth of that of one of half a second."""
    fixed = UncertaintyComponent(
        name="loop", rate=Rate.STEP, log_sd=0.0, seconds=0.0005, source=SOURCE
    )
    short = step_interval(cpu_bound(), fixed)
    long = step_interval(scenario(batch_cpu=1.0, workers=2, machine=host(gpus=1)), fixed)
    assert short["p90"] == pytest.approx(math.exp(0.01 * ENDS["p90"]), rel=1e-4)
    assert long["p90"] == pytest.approx(math.exp(0.001 * ENDS["p90"]), rel=1e-4)


def test_the_same_seed_gives_the_same_interval() -> None:
    """Predictions are reproducible, intervals included."""
    job = scenario(batch_cpu=0.1, workers=2, compute=0.05, machine=host(gpus=1), sync=False)
    uncertainties = (component(Rate.WORKERS), component(Rate.DEVICE))
    assert step_interval(job, *uncertainties, seed=3) == step_interval(job, *uncertainties, seed=3)
    assert step_interval(job, *uncertainties, seed=3) != step_interval(job, *uncertainties, seed=4)


@pytest.mark.parametrize("rate", list(Rate))
def test_more_doubt_never_narrows(rate: Rate) -> None:
    """Whatever rate gets less certain, an interval of a step gets no narrower."""
    job = scenario(
        batch_cpu=0.1,
        workers=2,
        compute=0.048,
        machine=host(gpus=2, memory_bandwidth=1e10),
        sync=False,
        output_bytes=1e5,
    )
    base = [component(one, 0.03) for one in Rate]
    widths = []
    for extra in (0.0, 0.05, 0.1, 0.3):
        found = step_interval(job, *base, component(rate, extra, name="more"))
        widths.append(found["p90"] - found["p10"])
    assert np.all(np.diff(widths) >= -POINTS_ERROR * np.array(widths[1:]))


@pytest.mark.parametrize("name", ["llama3-70b-megatron", "gpt3-175b-megatron", "llama3-8b-fsdp"])
def test_a_first_step_computes_a_whole_step(name: str) -> None:
    """However little is known of how a program begins, its first step takes what devices compute.

    The compute of a step is as uncertain as the step.
    """
    found = predict(load_scenario(name))
    step, first = found.interval["step_time_s.mean"], found.interval["first_step_s"]
    share = found.timing.split.compute / found.timing.step_time.mean
    assert first["p10"] >= share * step["p10"]
    assert first["p10"] <= found.timing.first_step <= first["p90"]


def test_a_first_step_is_no_shorter_than_later_ones_without_their_checkpoints() -> None:
    """It computes and exchanges as they do, without the uncertainty about a slow store."""
    slow = ("train.checkpoint_every_steps=100", "hardware.storage=storage/nfs-10gbe")
    found = predict(load_scenario("llama3-70b-megatron", overrides=slow))
    without = predict(load_scenario("llama3-70b-megatron"))
    assert found.interval["first_step_s"]["p10"] > found.timing.split.compute
    assert found.interval["first_step_s"]["p10"] == pytest.approx(
        without.interval["first_step_s"]["p10"], rel=0.02
    )


def test_a_first_step_that_waits_for_data_is_as_uncertain_as_before() -> None:
    """Compute of 20 ms in a first step of 100 ms bounds nothing."""
    job = replace(cpu_bound(), uncertainties=(component(Rate.START, 0.3),))
    found = predict(job)
    ends = {k: v / found.timing.first_step for k, v in found.interval["first_step_s"].items()}
    assert ends["p10"] == pytest.approx(math.exp(0.3 * ENDS["p10"]), rel=POINTS_ERROR)


def test_correlated_rates_move_together() -> None:
    """Two equal limits that rise and fall as one behave like a single one."""
    job = scenario(batch_cpu=0.1, workers=2, compute=0.05, machine=host(gpus=1), sync=False)
    pair = (component(Rate.WORKERS, name="a", b=1.0), component(Rate.DEVICE, name="b"))
    found = step_interval(job, *pair)
    for key, z in ENDS.items():
        assert found[key] == pytest.approx(math.exp(DEVIATION * z), rel=2e-3)


def test_chance_alone_is_an_interval() -> None:
    """A random simulation without uncertainties says how well it knows its mean."""
    job = cpu_bound(cost_spread=Spread(shape=Shape.GAMMA, relative_deviation=0.5))
    prediction = predict(job, max_steps=60)
    timing = prediction.timing
    assert timing.half_width > 0.0
    band = prediction.interval["step_time_s.mean"]
    upper = ENDS["p90"] * timing.half_width / 1.96
    assert band["p90"] - band["p50"] == pytest.approx(upper, rel=0.02)


def test_chance_takes_no_step_below_its_certain_bound() -> None:
    """Two workers cannot make a batch of 0.1 s in less than 0.05 s each, however unsure the run."""
    job = cpu_bound(cost_spread=Spread(shape=Shape.GAMMA, relative_deviation=0.5))
    prediction = predict(job, max_steps=60)
    band = prediction.interval["step_time_s.mean"]
    assert band["p10"] >= min(prediction.bounds.lower, prediction.timing.step_time.mean)
    assert band["p90"] > prediction.bounds.lower


def test_doubts_take_chance_below_a_bound_that_is_in_doubt() -> None:
    """Workers that may be faster than figured move the bound with them."""
    job = cpu_bound(cost_spread=Spread(shape=Shape.GAMMA, relative_deviation=0.5))
    prediction = predict(replace(job, uncertainties=(component(Rate.WORKERS),)), max_steps=60)
    assert prediction.interval["step_time_s.mean"]["p10"] < 0.95 * prediction.bounds.lower


def test_speeds_have_the_stated_deviations() -> None:
    """The logarithms of drawn speeds have zero mean and the uncertainties' deviations."""
    speeds = draw((component(Rate.STORAGE, 0.2), component(Rate.PCIE, 0.1)), seed=0)
    for rate, deviation in ((Rate.STORAGE, 0.2), (Rate.PCIE, 0.1)):
        logs = np.log(speeds[rate])
        assert float(np.mean(logs)) == pytest.approx(0.0, abs=1e-9)
        assert float(np.std(logs)) == pytest.approx(deviation, rel=0.01)


def high_end(prediction: Prediction, name: str) -> float:
    """The 90% quantile of a figure by the uncertainties of rates alone."""
    inputs = simulation_input(prediction.scenario)
    speeds = draw(uncertainty_components(inputs, prediction), 0)
    return float(np.quantile(figures(inputs, prediction, speeds)[name], 0.9, method="hazen"))


def test_energy_goes_with_busy_and_idle_time() -> None:
    """A longer wait draws power at rest, longer work the power at work in its place."""
    of_workers = predict(replace(cpu_bound(), uncertainties=(component(Rate.WORKERS),)))
    of_device = predict(replace(cpu_bound(), uncertainties=(component(Rate.DEVICE),)))
    drawn = draws(of_device.scenario, of_device.timing) or ()
    name, longer = "cost.energy_j_per_step", math.exp(DEVIATION * ENDS["p90"]) - 1.0
    step = of_workers.timing.step_time.mean
    resting = sum(draw.idle for draw in drawn) * step * longer
    more = high_end(of_workers, name) - (of_workers.cost.energy_per_step or 0.0)
    assert more == pytest.approx(resting, rel=0.02)
    gpu = [draw for draw in drawn if draw.part in {"accelerators", "rest of the machines"}]
    working = sum((draw.full - draw.idle) * draw.busy for draw in gpu) * step * longer
    more = high_end(of_device, name) - (of_device.cost.energy_per_step or 0.0)
    assert more == pytest.approx(working, rel=0.02)


def test_the_interval_of_energy_has_the_doubt_of_power() -> None:
    """A step that is nearly sure has energy from a third less to half more, and a sure bill."""
    job = cpu_bound()
    found = predict(replace(job, uncertainties=(component(Rate.PCIE, 0.01),)))
    energy = found.cost.energy_per_step or 0.0
    for key, deviations in ENDS.items():
        expected = energy * math.exp(LOG_SD * deviations)
        assert found.interval["cost.energy_j_per_step"][key] == pytest.approx(expected, rel=0.02)


def test_the_bill_is_as_uncertain_as_the_time() -> None:
    """Prices are certain: dollars follow seconds."""
    base = load_scenario("resnet50-imagenet-p4d")
    prediction = predict(replace(base, uncertainties=(component(Rate.WORKERS),)))
    cost, timing, found = prediction.cost, prediction.timing, prediction.interval
    for key in ENDS:
        longer = found["step_time_s.mean"][key] / timing.step_time.mean
        assert found["cost.usd_per_step"][key] == pytest.approx((cost.per_step or 0.0) * longer)
        later = replace(timing, total_time=found["total_time_s"][key])
        assert found["cost.usd_to_train"][key] == pytest.approx(bill(base, later).for_machines)


AT_OTHER_RATES = (
    ("resnet50-imagenet-p4d", 0.01),
    ("cpu-starved-p4d", 0.01),
    ("resnet18-imagenet-one-worker", 0.01),
    ("resnet18-imagenet-serial", 0.02),  # launching is hidden in part, and by more on slow GPUs
    ("device-on-remote-socket", 0.01),
    ("imagenet-object-store-g5", 0.01),
    ("heterogeneous-tfdata", 0.02),
    ("imagenet-page-cache-g4dn", 0.05),
    ("reads-and-allreduce-one-nic", 0.08),
)
"""Scenario, and how far the closed-form ratio may be from the simulated one, as a log."""


@pytest.mark.parametrize(("name", "tolerance"), sampled(AT_OTHER_RATES, 3))
def test_ratios_are_those_of_simulations(name: str, tolerance: float) -> None:
    """The step at rates 10% off, all at once, is what a simulation at these rates gives."""
    asked = inputs_of(load_scenario(name))
    timing = solve(asked, Options())
    drawn = draw(tuple(component(rate) for rate in Rate), seed=1)
    for point in (7, 70, 170):
        speeds: Speeds = {
            rate: float(np.asarray(speed)[point])
            for rate, speed in drawn.items()
            if rate != Rate.STEP
        }
        there = solve(at_speeds(asked, speeds), Options())
        closed = timing.step_time.mean * float(np.squeeze(slowdown(asked, timing, speeds).step))
        assert abs(math.log(closed / there.step_time.mean)) < tolerance


def test_exposed_time_without_a_demand_goes_with_its_rate() -> None:
    """Communication that no stage asks for is as long as collectives are slow."""
    asked = inputs_of(scenario(compute=0.06, workers=2, machine=host(gpus=1)))
    timing = solve(asked, Options())
    mean = timing.step_time.mean + 0.04
    exposed = replace(
        timing,
        step_time=replace(timing.step_time, mean=mean),
        split=replace(timing.split, communication=0.04),
    )
    longer = slowdown(asked, exposed, {Rate.COLLECTIVES: np.array([0.5, 1.0, 2.0])}).step
    expected = [(mean + 0.04) / mean, 1.0, (mean - 0.02) / mean]
    np.testing.assert_allclose(longer, expected, rtol=1e-6)


def at_speeds(asked: SimulationInput, speeds: Speeds) -> SimulationInput:
    """The same job on machines whose rates are `speeds` times as high."""
    topology = scale_topology(asked.topology, speeds)
    demands = {
        phase: tuple(scale_stage(stage, speeds) for stage in asked.demands[phase])
        for phase in Phase
    }
    beside = extras(asked.scenario, topology, demands[Phase.WARM])
    return replace(asked, topology=topology, demands=demands, extras=beside)


def test_chance_is_in_every_figure_that_rests_on_the_step() -> None:
    """Where nothing else is uncertain, intervals are as wide as the mean step is badly known."""
    wild = Spread(shape=Shape.LOGNORMAL, relative_deviation=20.0)
    job = cpu_bound(batches=100_000, cost_spread=wild, cost=CostPlan(price=36.0 / HOUR), epochs=3.0)
    prediction = predict(job, max_steps=300)
    timing = prediction.timing
    deviation = timing.half_width / 1.96 / timing.step_time.mean
    assert deviation > 0.01
    named = ("step_time_s.mean", "throughput_samples_per_s", "epoch_time_s", "total_time_s")
    for name in (*named, "cost.usd_to_train", "cost.usd_per_step"):
        band = prediction.interval[name]
        width = math.log(band["p90"] / band["p10"]) / (ENDS["p90"] - ENDS["p10"])
        assert width == pytest.approx(deviation, rel=2 * POINTS_ERROR)
