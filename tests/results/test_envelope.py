"""What lies outside of the evidence is named, and known less well."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.confidence.doubts import Axis, Rate, Reach
from simulator.files.scenario import load_scenario
from simulator.results.envelope import (
    ERA,
    FRAMEWORK,
    GPU,
    PRECISION,
    Envelope,
    Listed,
    Span,
    named,
    outside,
    placed,
)
from simulator.scenario.scenario import Scenario
from tests.support.scenarios import SOURCE, scenario

COMPUTED = "gpt2-tokens-h100"
"""A shipped scenario whose device time is computed."""


def listed(kind: str, *names: str) -> Envelope:
    """An envelope of one kind of thing."""
    one = Listed(kind=kind, names=frozenset(names), rate=Rate.DEVICE, log_sd=0.1, source=SOURCE)
    return Envelope(listed=(one,), spans=())


def spans(axis: Axis, low: float, high: float) -> Envelope:
    """An envelope of one range."""
    reach = Reach(axis=axis, low=low, high=high, per_doubling=0.05)
    return Envelope(listed=(), spans=(Span(reach=reach, rate=Rate.STEP, source=SOURCE),))


@pytest.fixture(scope="module")
def computed() -> Scenario:
    """A job whose device time nobody measured, on several devices and with workers."""
    base = load_scenario(COMPUTED, overrides=["software.version=2.4", "input.workers=8"])
    assert placed(base)[Axis.RANKS] > 1.0
    return base


@pytest.mark.parametrize("kind", [GPU, PRECISION, FRAMEWORK, ERA])
def test_an_unknown_thing_is_named(computed: Scenario, kind: str) -> None:
    """What was never measured is a warning that says what was, and a doubt."""
    name = named(computed)[kind]
    (doubt,) = outside(computed, listed(kind, "another"))
    assert doubt.warning == f"outside the evidence: {kind} {name} (measured: another)"
    assert (doubt.rate, doubt.log_sd) == (Rate.DEVICE, 0.1)
    assert outside(computed, listed(kind, "another", name)) == ()


@pytest.mark.parametrize("axis", [Axis.RANKS, Axis.WORKERS, Axis.BATCH, Axis.PARAMETERS])
def test_beyond_a_range_is_named(computed: Scenario, axis: Axis) -> None:
    """Two doublings above the range widen by two steps; below it counts as well."""
    at = placed(computed)[axis]
    (above,) = outside(computed, spans(axis, at / 8, at / 4))
    (below,) = outside(computed, spans(axis, at * 2, at * 3))
    assert above.log_sd == pytest.approx(0.1)
    assert below.log_sd == pytest.approx(0.05)
    assert above.warning.startswith(f"outside the evidence: {axis} {at:,.4g} (measured: ")
    assert outside(computed, spans(axis, at, at)) == ()


def test_machines_count_when_there_are_several() -> None:
    """One machine is never outside; two may be."""
    base = load_scenario("two-nodes-cpu-starved")
    (doubt,) = outside(base, spans(Axis.MACHINES, 1.0, 1.0))
    assert "machines 2 (measured: 1 to 1)" in doubt.warning
    assert Axis.MACHINES not in placed(scenario())


@pytest.mark.parametrize(("axis", "degree"), [(Axis.TENSOR, "tensor"), (Axis.PIPELINE, "pipeline")])
def test_degrees_of_parallelism_have_an_end(axis: Axis, degree: str) -> None:
    """A model spread wider than any that was measured is named."""
    base = load_scenario("megatron-1t")
    at = getattr(base.job.parallelism, degree)
    (doubt,) = outside(base, spans(axis, 2.0, at / 2.0))
    assert doubt.warning.startswith(f"outside the evidence: {axis} {at:,.4g} (measured: ")
    assert outside(base, spans(axis, 2.0, at)) == ()


def test_scale_widens_the_whole_step_by_the_least_known_rate() -> None:
    """Beyond the most machines measured any rate may rule; on other axes none more than before."""
    base = load_scenario("two-nodes-cpu-starved", overrides=["hardware.count=8"])
    (doubt,) = outside(base, spans(Axis.MACHINES, 2.0, 4.0), widest=0.3)
    (workers,) = outside(base, spans(Axis.WORKERS, 0.25, 0.5), widest=0.3)
    assert doubt.least == pytest.approx(0.35)
    assert workers.least == 0.0


def test_a_measured_step_needs_no_accelerator_in_the_evidence() -> None:
    """With a step time from the device itself, neither its kind nor precision is in question."""
    assert named(scenario()) == {}
    assert {Axis.BATCH, Axis.PARAMETERS}.isdisjoint(placed(scenario()))


def test_an_unversioned_framework_has_no_era(computed: Scenario) -> None:
    """What the scenario doesn't say is not held against it."""
    job = computed.job
    plain = replace(computed, jobs=(replace(job, software=replace(job.software, version="")),))
    assert ERA in named(computed)
    assert ERA not in named(plain)
