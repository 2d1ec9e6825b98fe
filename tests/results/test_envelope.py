"""What lies outside of the evidence is named, and known less well."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.reading.scenario import load_scenario
from simulator.results.envelope import (
    ARCHITECTURE,
    FRAMEWORK,
    GPU,
    NAMED,
    PLACED,
    PRECISION,
    SHARDING,
    Apart,
    Envelope,
    Measured,
    Span,
    compared,
    distance,
    named,
    nearest,
    outside,
    placed,
)
from simulator.schema.scenario import Scenario
from simulator.schema.uncertainty import Axis, Rate, Reach
from simulator.units import show_count
from tests.support.scenarios import SOURCE, scenario

COMPUTED = "gpt2-tokens-h100"
"""A shipped scenario whose device time is computed."""
APART = {
    str(kind): Apart(kind=str(kind), log_sd=0.1, source="a test", date="undated")
    for kind in (*NAMED, *PLACED)
}


def like(job: Scenario, series: str = "mine", **others: str) -> Measured:
    """Runs measured just like a job, but for some names."""
    spans = {axis: (value, value) for axis, value in compared(job).items()}
    return Measured(series=series, names={**named(job), **others}, spans=spans)


def measured(*runs: Measured) -> Envelope:
    """An envelope of some runs, where each difference adds 0.1."""
    return Envelope(measured=runs, apart=APART)


def spans(axis: Axis, low: float, high: float) -> Envelope:
    """An envelope of one range."""
    reach = Reach(axis=axis, low=low, high=high, per_doubling=0.05)
    return Envelope(spans=(Span(reach=reach, rate=Rate.STEP, source=SOURCE),))


@pytest.fixture(scope="module")
def computed() -> Scenario:
    """A job whose device time nobody measured, on several devices and with workers."""
    base = load_scenario(COMPUTED, overrides=["software.version=2.4", "input.workers=8"])
    assert placed(base)[Axis.RANKS] > 1.0
    return base


def test_what_was_measured_is_inside(computed: Scenario) -> None:
    """A job like a measured run is no further uncertain, and nobody is warned."""
    assert outside(computed, measured(like(computed))) == ()


@pytest.mark.parametrize("kind", [GPU, PRECISION, FRAMEWORK, ARCHITECTURE])
def test_an_unknown_thing_is_named(computed: Scenario, kind: str) -> None:
    """What was never measured is a warning that says what was, and an uncertainty."""
    name = named(computed)[kind]
    (component,) = outside(computed, measured(like(computed, **{kind: "another"})))
    assert component.warning == (
        f"outside the evidence: {kind} {name} (measured: another); nearest runs: mine"
    )
    assert (component.rate, component.log_sd, component.outside) == (
        Rate.STEP,
        pytest.approx(0.1),
        True,
    )


def test_a_combination_nobody_measured_is_outside(computed: Scenario) -> None:
    """Each part was measured, the two of them never together."""
    one = like(computed, **{FRAMEWORK: "another"})
    other = like(computed, "theirs", **{SHARDING: "another", PRECISION: "another"})
    (component,) = outside(computed, measured(one, other))
    assert component.log_sd == pytest.approx(0.1)
    assert "measured like this: another); nearest runs: mine" in component.warning


def test_a_small_difference_is_warned_of_where_nobody_measured_the_thing(
    computed: Scenario,
) -> None:
    """A sister card that was measured elsewhere is no warning; one that never was is."""
    small = {**APART, GPU: replace(APART[GPU], log_sd=0.02)}
    own = like(computed, **{GPU: "another"})
    elsewhere = like(computed, "theirs", **{PRECISION: "another", SHARDING: "another"})
    (never,) = outside(computed, Envelope(measured=(own,), apart=small))
    (once,) = outside(computed, Envelope(measured=(own, elsewhere), apart=small))
    assert "accelerator" in never.warning
    assert once.warning == ""


def test_differences_add_up_to_the_nearest_run(computed: Scenario) -> None:
    """The run that differs least counts; its differences add as independent ones."""
    far = like(computed, **{FRAMEWORK: "another", GPU: "another", SHARDING: "another"})
    near = like(computed, "near", **{GPU: "another", PRECISION: "another"})
    one, differences = nearest(named(computed), compared(computed), measured(far, near))
    assert one == near
    assert set(differences) == {GPU, PRECISION}
    assert distance(differences) == pytest.approx(0.1 * 2**0.5)


@pytest.mark.parametrize("axis", [Axis.PARAMETERS, Axis.TOKENS, Axis.RANKS])
def test_each_doubling_beyond_measured_runs_adds(computed: Scenario, axis: Axis) -> None:
    """Two doublings above the range of the nearest runs are two steps of uncertainty."""
    at = compared(computed)[axis]
    own = like(computed)
    less = replace(own, spans={**own.spans, axis: (at / 8, at / 4)})
    (component,) = outside(computed, measured(less))
    assert component.log_sd == pytest.approx(0.2)
    assert f"{axis} {show_count(at)} (measured: " in component.warning


def test_a_series_that_is_left_out_is_no_evidence(computed: Scenario) -> None:
    """Without its series a job is as doubtful as the others make it."""
    envelope = measured(like(computed), like(computed, "others", **{GPU: "another"}))
    assert outside(computed, envelope) == ()
    (component,) = outside(computed, envelope.without(["mine"]))
    assert "nearest runs: others" in component.warning


@pytest.mark.parametrize("axis", [Axis.RANKS, Axis.WORKERS])
def test_beyond_a_range_is_named(computed: Scenario, axis: Axis) -> None:
    """Two doublings above the range widen by two steps; below it counts as well."""
    at = placed(computed)[axis]
    (above,) = outside(computed, spans(axis, at / 8, at / 4))
    (below,) = outside(computed, spans(axis, at * 2, at * 3))
    assert above.log_sd == pytest.approx(0.1)
    assert below.log_sd == pytest.approx(0.05)
    assert above.warning.startswith(f"outside the evidence: {axis} {show_count(at)} (measured: ")
    assert outside(computed, spans(axis, at, at)) == ()


def test_machines_count_when_there_are_several() -> None:
    """One machine is never outside; two may be."""
    base = load_scenario("two-nodes-cpu-starved")
    (component,) = outside(base, spans(Axis.MACHINES, 1.0, 1.0))
    assert "machines 2 (measured: 1 to 1)" in component.warning
    assert Axis.MACHINES not in placed(scenario())


def test_scale_widens_the_whole_step_by_the_least_known_rate() -> None:
    """Beyond the most machines measured any rate may rule; on other axes none more than before."""
    base = load_scenario("two-nodes-cpu-starved", overrides=["hardware.count=8"])
    (component,) = outside(base, spans(Axis.MACHINES, 2.0, 4.0), widest=0.3)
    (workers,) = outside(base, spans(Axis.WORKERS, 0.25, 0.5), widest=0.3)
    assert component.least == pytest.approx(0.35)
    assert workers.least == 0.0


def test_a_measured_step_needs_no_accelerator_in_the_evidence() -> None:
    """With a step time from the device itself, neither its kind nor precision is in question."""
    assert named(scenario()) == {}
    assert outside(scenario(), measured()) == ()
