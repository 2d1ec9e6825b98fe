"""SimulatedRuns of a run against closed forms, and what more failures or longer waits may do."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.stages import sampled

from simulator.equations.reliability import best_checkpoint_interval, time_with_interruptions
from simulator.long_run import attempts
from simulator.long_run.attempts import GAPS_AT_ONCE as GAPS
from simulator.long_run.attempts import goes_on, kept_work, simulate_runs
from simulator.results.prediction import BLOCKED, CAPACITY, FEWER, LOST, REPAIR, USEFUL, Cause
from simulator.schema.long_run import (
    Failures,
    Lemons,
    LongRun,
    Outages,
    Restart,
    Saving,
    Spares,
)

HOUR, DAY = 3600.0, 86400.0
INSTANT_RESTART = Restart(detection=0.0, replacement=0.0, start=0.0, load=0.0)
RESTART = Restart(detection=60.0, replacement=0.0, start=300.0, load=60.0)


def failing(  # noqa: PLR0913 - what a case varies
    mean: float,
    *,
    write: float = 300.0,
    restart: float = 600.0,
    interval: float | None = None,
    work: float = 2000.0 * HOUR,
    durable: float | None = None,
) -> LongRun:
    """A job that fails as a whole, `mean` apart, with Daly's interval by default."""
    best = float(best_checkpoint_interval(1.0 / mean, write)) if interval is None else interval
    return LongRun(
        work=work,
        machines=1,
        saving=Saving(interval=best, blocking=write, durable=write if durable is None else durable),
        failures=Failures(
            per_machine=0.0,
            per_job=1.0 / mean,
            restart=replace(INSTANT_RESTART, start=restart),
            doubt=0.0,
        ),
    )


@pytest.mark.parametrize(
    ("mean", "write", "restart", "stretch"),
    [
        (3.093 * HOUR, 300.0, 600.0, 1.3436),
        (3.093 * HOUR, 60.0, 600.0, 1.1730),
        (3.093 * HOUR, 0.6, 600.0, 1.0664),
        (24.0 * HOUR, 300.0, 600.0, 1.0958),
        (7.9 * HOUR, 300.0, 300.0, 1.1728),
        (2.0 * HOUR, 120.0, 300.0, 1.2586),
    ],
)
def test_daly(mean: float, write: float, restart: float, stretch: float) -> None:
    """The expected time of a run with exponential failures, those during restarts included."""
    run = failing(mean, write=write, restart=restart)
    drawn = simulate_runs(run, draws=250)
    assert drawn.finish.mean() / run.work == pytest.approx(stretch, rel=0.005)
    interval = run.saving.interval
    closed = time_with_interruptions(run.work, 1.0 / mean, interval, write, restart)
    assert drawn.finish.mean() == pytest.approx(closed, rel=0.005)


def test_without_checkpoints_it_begins_anew() -> None:
    """An interval without end: M exp(R/M) (exp(T/M) - 1)."""
    mean, work, restart = 10.0 * HOUR, 5.0 * HOUR, 600.0
    run = failing(mean, write=0.0, restart=restart, interval=math.inf, work=work)
    closed = mean * math.exp(restart / mean) * math.expm1(work / mean)
    assert simulate_runs(run, draws=20_000).finish.mean() == pytest.approx(closed, rel=0.02)


def test_nothing_happens() -> None:
    """Without failures every life takes the work and its checkpoints, to the last bit."""
    run = replace(failing(HOUR, interval=HOUR, work=10.5 * HOUR), failures=None)
    assert (simulate_runs(run, draws=3).finish == 10.5 * HOUR + 10 * 300.0).all()
    never = replace(run, saving=replace(run.saving, interval=math.inf))
    assert (simulate_runs(never, draws=3).finish == 10.5 * HOUR).all()


@pytest.mark.parametrize(
    ("spares", "technicians", "share"),
    sampled(
        [
            (4, None, 0.990),
            (0, None, 0.280),
            (1, None, 0.635),
            (2, None, 0.862),
            (0, 2, 0.226),
            (2, 2, 0.688),
            (4, 2, 0.873),
        ],
        2,
    ),
)
def test_spares(spares: int, technicians: int | None, share: float) -> None:
    """128 machines, 5 failures per 1,000 days of one, 2 days of repair: a birth-death chain."""
    failures = Failures(
        per_machine=5e-3 / DAY,
        per_job=0.0,
        restart=INSTANT_RESTART,
        doubt=0.0,
        spares=Spares(count=spares, repair=2.0 * DAY, technicians=technicians),
    )
    saving = Saving(interval=600.0, blocking=0.0, durable=0.0)
    run = LongRun(work=2000.0 * DAY, machines=128, saving=saving, failures=failures)
    drawn = simulate_runs(run, draws=60)
    running = 1.0 - drawn.parts[REPAIR].sum() / drawn.finish.sum()
    assert running == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize(
    ("write", "durable", "restart", "least", "most"),
    [
        (300.0, 300.0, 600.0, 0.72, 0.78),
        (300.0, 300.0, 180.0, 0.75, 0.78),
        (0.6, 51.0, 300.0, 0.90, 0.97),
    ],
)
def test_a_large_published_run(
    write: float, durable: float, restart: float, least: float, most: float
) -> None:
    """419 interruptions in 54 days: over 0.9 implies asynchronous checkpoints and fast restarts.

    Llama 3 on 16,384 H100, arXiv 2407.21783 table 5: over 0.90 was reached.
    """
    mean = 54.0 * DAY / 419.0
    interval = max(durable, float(best_checkpoint_interval(1.0 / mean, write)))
    run = failing(mean, write=write, durable=durable, restart=restart, interval=interval)
    drawn = simulate_runs(run, draws=300)
    assert least < run.work / drawn.finish.mean() < most


def test_what_is_not_durable_yet_is_lost() -> None:
    """A checkpoint that becomes safe later loses its delay with each failure."""
    early, late = (
        simulate_runs(
            failing(2 * HOUR, write=1.0, durable=d, interval=120.0, restart=0.0), draws=200
        )
        for d in (1.0, 61.0)
    )
    failures = late.interruptions[Cause.JOB].sum()
    more = late.parts[LOST].sum() / failures - early.parts[LOST].sum() / failures
    assert more == pytest.approx(60.0, rel=0.05)


def test_a_write_that_takes_longer_than_the_interval_leaves_one_out() -> None:
    """One every 100 s takes 150 s: of 200, 400, ... only, and the first is safe after 350 s."""
    saving = Saving(interval=100.0, blocking=0.0, durable=150.0)
    run = LongRun(work=HOUR, machines=1, saving=saving)
    passed = np.array([340.0, 360.0, 460.0, 560.0])
    progress, held = kept_work(run, passed, np.full(4, int(Cause.JOB)))
    np.testing.assert_allclose(progress, passed)
    np.testing.assert_allclose(held, [0.0, 200.0, 200.0, 400.0])


def test_parts_add_up() -> None:
    """All time is accounted for, whatever happens."""
    run = failing(3 * HOUR)
    assert run.failures is not None
    failures = replace(
        run.failures,
        per_machine=0.01 / DAY,
        planned=1.0 / DAY,
        doubt=0.5,
        lemons=Lemons(share=0.1, factor=10.0, excluded=True),
        spares=Spares(count=1, repair=DAY, technicians=1),
    )
    outages = Outages(up=(20 * HOUR, 5 * HOUR), down=(HOUR, 3 * HOUR), notice=400.0)
    drawn = simulate_runs(replace(run, machines=16, failures=failures, outages=outages), draws=50)
    np.testing.assert_allclose(sum(drawn.parts.values()), drawn.finish, rtol=1e-9)
    np.testing.assert_allclose(drawn.parts[USEFUL], run.work, rtol=1e-9)


def away(spares: Spares, *, mean: float, machines: int = 1, **more: object) -> LongRun:
    """Machines that fail `mean` apart each and are away for some time; nothing else is lost."""
    failures = Failures(
        per_machine=1.0 / mean, per_job=0.0, restart=INSTANT_RESTART, doubt=0.0, spares=spares
    )
    saving = Saving(interval=1.0, blocking=0.0, durable=0.0)
    run = LongRun(work=500.0 * HOUR, machines=machines, saving=saving, failures=failures)
    return replace(run, **more)


def test_a_wait_of_known_length_adds_exactly_that() -> None:
    """One machine, and another one to be had after 5 h: each failure adds these 5 h."""
    run = away(Spares(count=0, repair=5.0 * HOUR, variation=0.0), mean=50.0 * HOUR)
    drawn = simulate_runs(run, draws=50)
    failed = drawn.interruptions[Cause.MACHINE]
    assert failed.sum() > 400
    np.testing.assert_allclose(drawn.parts[REPAIR], failed * 5.0 * HOUR, rtol=1e-12)
    np.testing.assert_allclose(
        drawn.finish, run.work + drawn.parts[LOST] + failed * 5.0 * HOUR, rtol=1e-12
    )


@pytest.mark.parametrize("variation", [0.0, 1.0, 3.0])
def test_waits_have_their_mean_and_variation(variation: float) -> None:
    """A single failure a life, so that its wait is one draw."""
    run = away(Spares(count=0, repair=HOUR, variation=variation), mean=50.0 * HOUR)
    drawn = simulate_runs(replace(run, work=5.0 * HOUR), draws=60_000)
    once = drawn.parts[REPAIR][drawn.interruptions[Cause.MACHINE] == 1]
    assert once.mean() == pytest.approx(HOUR, rel=0.1)
    assert once.std() / once.mean() == pytest.approx(variation, rel=0.25, abs=1e-9)


def test_a_job_that_goes_on_with_fewer() -> None:
    """Four machines that fail and return on their own: each is there 1 / (1 + rate x time away)."""
    run = away(
        Spares(count=0, repair=5.0 * HOUR),
        mean=100.0 * HOUR,
        machines=4,
        rates_with_fewer=(0.75, 0.5, 0.25),
    )
    drawn = simulate_runs(run, draws=400)
    assert drawn.parts[USEFUL].sum() / drawn.finish.sum() == pytest.approx(1 / 1.05, rel=0.002)
    assert drawn.parts[FEWER].sum() / drawn.finish.sum() == pytest.approx(0.05 / 1.05, rel=0.03)
    # All four are away for (0.05 / 1.05)^4 of the time.
    assert drawn.parts[REPAIR].sum() < 3e-5 * drawn.finish.sum()
    waiting = simulate_runs(replace(run, rates_with_fewer=()), draws=400)
    assert waiting.finish.mean() > 1.1 * drawn.finish.mean()


def test_one_machine_of_n_away_for_good() -> None:
    """What fails first never returns: from then on 1 of n is lost, no more."""
    run = away(
        Spares(count=0, repair=1e6 * HOUR, variation=0.0),
        mean=1e5 * HOUR,
        machines=8,
        rates_with_fewer=tuple(1.0 - k / 8 for k in range(1, 8)),
    )
    drawn = simulate_runs(run, draws=2000)
    once = drawn.interruptions[Cause.MACHINE] == 1
    slow = drawn.parts[FEWER][once] * 8.0
    fast = drawn.finish[once] - slow
    assert once.sum() > 50
    np.testing.assert_allclose(fast + slow * 7 / 8, run.work + drawn.parts[LOST][once], rtol=1e-3)


def test_time_away_is_that_of_all_machines() -> None:
    """A machine that fails is away for its repair, cut at the end: counted by hand."""
    run = away(Spares(count=0, repair=5.0 * HOUR, variation=0.0), mean=50.0 * HOUR)
    drawn = simulate_runs(run, draws=50)
    failed = drawn.interruptions[Cause.MACHINE]
    np.testing.assert_allclose(drawn.away, failed * 5.0 * HOUR, rtol=1e-12)
    fewer = tuple(1.0 - k / 8 for k in range(1, 8))
    gone = replace(run, machines=8, rates_with_fewer=fewer)
    lost = simulate_runs(gone, draws=50)
    # Nothing else than the machines that are away makes it slower.
    slower = 8.0 * (lost.parts[FEWER] + lost.parts[REPAIR])
    np.testing.assert_allclose(lost.away, slower, rtol=1e-3)


def test_machines_in_repair_are_not_missed_while_none_can_be_had() -> None:
    """All spot machines are gone for an hour after each: what is away is away between those."""
    run = away(Spares(count=0, repair=1e9 * HOUR, variation=0.0), mean=300.0 * HOUR)
    outages = Outages(up=(10 * HOUR,), down=(HOUR,), notice=0.0)
    drawn = simulate_runs(
        replace(run, rates_with_fewer=(0.5,), machines=2, outages=outages), draws=200
    )
    once = drawn.interruptions[Cause.MACHINE] == 1
    assert once.sum() > 20
    np.testing.assert_allclose(drawn.away[once], 2.0 * drawn.parts[FEWER][once], rtol=0.01)


def test_a_rate_of_zero_is_the_plain_run() -> None:
    """Machines that never fail, whatever would happen then: the plain run to the last bit."""
    run = away(Spares(count=0, repair=HOUR), mean=math.inf, rates_with_fewer=(0.5,), machines=2)
    plain = simulate_runs(replace(run, failures=None), draws=4)
    np.testing.assert_array_equal(simulate_runs(run, draws=4).finish, plain.finish)


def test_excluded_lemons_fail_once() -> None:
    """With few machines that fail for all, their exclusion ends the failures."""
    failures = Failures(
        per_machine=0.1 / DAY,
        per_job=0.0,
        restart=INSTANT_RESTART,
        doubt=0.0,
        lemons=Lemons(share=0.05, factor=1e9, excluded=True),
    )
    saving = Saving(interval=600.0, blocking=0.0, durable=0.0)
    run = LongRun(work=200.0 * DAY, machines=100, saving=saving, failures=failures)
    assert (simulate_runs(run, draws=20).interruptions[Cause.MACHINE] == 5.0).all()


def test_a_run_that_cannot_get_on_never_ends() -> None:
    """An interval of ten mean times between failures: infinite, not a loop without end."""
    run = failing(60.0, write=10.0, restart=10.0, interval=600.0, work=HOUR)
    assert np.isinf(simulate_runs(run, draws=20).finish).mean() > 0.9


@pytest.mark.parametrize("spares", [None, Spares(count=1, repair=HOUR)])
def test_ten_failures_a_second_are_given_up_early(spares: Spares | None) -> None:
    """No work is done between failures: a run is given up after 1,000 events and one more draw."""
    failures = Failures(
        per_machine=10.0, per_job=0.0, restart=INSTANT_RESTART, doubt=0.0, spares=spares
    )
    saving = Saving(interval=600.0, blocking=1.0, durable=1.0)
    run = LongRun(work=1000.0 * DAY, machines=1_000, saving=saving, failures=failures)
    simulated = simulate_runs(run, draws=3)
    assert np.isinf(simulated.finish).all()
    assert sum(simulated.interruptions.values()).max() < 1_100


def test_a_run_that_waits_for_repairs_most_of_the_time_is_given_up() -> None:
    """Machines fail each day and are away for four: no life is followed to its latest end."""
    spares = Spares(count=1, repair=4.0 * DAY)
    failures = Failures(
        per_machine=1.0 / DAY, per_job=0.0, restart=INSTANT_RESTART, doubt=0.0, spares=spares
    )
    saving = Saving(interval=600.0, blocking=1.0, durable=1.0)
    run = LongRun(work=1000.0 * DAY, machines=16, saving=saving, failures=failures)
    found = simulate_runs(run, draws=3)
    assert np.isinf(found.finish).all()
    assert sum(found.parts.values()).max() < 2000.0 * DAY


def test_a_trace_is_replayed_in_its_order() -> None:
    """Ten periods counted by hand: 5 h of work through periods of 2 h, with 1 h between them."""
    outages = Outages(up=(2 * HOUR,) * 5, down=(HOUR,) * 5, notice=0.0, in_order=True)
    saving = Saving(interval=60.0, blocking=0.0, durable=0.0)
    run = LongRun(work=5 * HOUR, machines=1, saving=saving, outages=outages)
    drawn = simulate_runs(run, draws=250)
    # Begun in a period: two or three gaps, by how much of the first period is left.
    assert drawn.finish.min() >= 7 * HOUR - 1.0
    assert drawn.finish.max() <= 8 * HOUR + 1.0
    assert set(np.round(drawn.interruptions[Cause.CAPACITY])) <= {2.0, 3.0}
    assert drawn.parts[CAPACITY].max() <= 3 * HOUR + 1.0


@pytest.mark.parametrize("in_order", [True, False])
def test_a_life_stays_in_its_zone(in_order: bool) -> None:  # noqa: FBT001 - a parameter
    """Two zones, one with gaps of 1 h and one of 3 h: every other life has either, all through."""
    outages = Outages(
        up=(HOUR,) * 6,
        down=(HOUR,) * 3 + (3 * HOUR,) * 3,
        notice=0.0,
        in_order=in_order,
        zones=2,
    )
    saving = Saving(interval=60.0, blocking=0.0, durable=0.0)
    run = LongRun(work=50 * HOUR, machines=1, saving=saving, outages=outages)
    drawn = simulate_runs(run, draws=40)
    gaps = drawn.parts[CAPACITY] / drawn.interruptions[Cause.CAPACITY] / HOUR
    assert gaps[0::2] == pytest.approx(1.0, rel=0.05)
    assert gaps[1::2] == pytest.approx(3.0, rel=0.05)


def test_a_notice_saves_what_was_done() -> None:
    """Where the warning is longer than a checkpoint, hardly any work is lost."""
    outages = Outages(up=(HOUR,), down=(60.0,), notice=0.0)
    saving = Saving(interval=1800.0, blocking=30.0, durable=30.0)
    run = LongRun(work=20 * HOUR, machines=1, saving=saving, outages=outages)
    lost, saved = (
        simulate_runs(replace(run, outages=replace(outages, notice=notice)), draws=50)
        .parts[LOST]
        .mean()
        for notice in (20.0, 120.0)
    )
    assert saved < lost / 20.0


@settings(max_examples=25, deadline=None)
@given(
    scale=st.floats(0.1, 10.0),
    mean=st.floats(1.0, 50.0),
    write=st.floats(0.0, 600.0),
)
def test_all_times_scaled(scale: float, mean: float, write: float) -> None:
    """Times so many times as long end so many times as late, draw by draw."""
    run = failing(mean * HOUR, write=write, interval=HOUR, work=40 * HOUR)
    wide = failing(
        mean * HOUR * scale,
        write=write * scale,
        restart=600.0 * scale,
        interval=HOUR * scale,
        work=40 * HOUR * scale,
    )
    one, other = (simulate_runs(r, draws=20).finish for r in (run, wide))
    np.testing.assert_allclose(other, one * scale, rtol=1e-6)


@settings(max_examples=25, deadline=None)
@given(mean=st.floats(2.0, 50.0), more=st.floats(1.0, 3.0), write=st.floats(1.0, 300.0))
def test_more_failures_never_end_earlier(mean: float, more: float, write: float) -> None:
    """In the mean of draws that get the same random numbers."""
    rare, often = (
        simulate_runs(failing(m * HOUR, write=write, interval=HOUR, work=100 * HOUR), draws=400)
        for m in (mean, mean / more)
    )
    assert often.finish.mean() >= rare.finish.mean() * 0.97
    assert often.parts[BLOCKED].mean() >= rare.parts[BLOCKED].mean() * 0.97


def test_memoryless_lives_are_those_of_events() -> None:
    """All gaps at once give what going from event to event gives: spares that never lack."""
    run = replace(failing(3 * HOUR, work=300 * HOUR), machines=8)
    assert run.failures is not None
    failures = replace(run.failures, per_machine=0.1 / DAY, planned=0.5 / DAY, doubt=0.3)
    run = replace(run, failures=replace(failures, restart=replace(RESTART, detection=300.0)))
    assert run.failures is not None
    plenty = replace(run.failures, spares=Spares(count=1000, repair=HOUR))
    one, other = (
        simulate_runs(replace(run, failures=f), draws=1500) for f in (run.failures, plenty)
    )
    assert one.finish.mean() == pytest.approx(other.finish.mean(), rel=0.01)
    assert np.quantile(one.finish, 0.9) == pytest.approx(np.quantile(other.finish, 0.9), rel=0.02)
    for name in one.parts:
        assert one.parts[name].mean() == pytest.approx(
            other.parts[name].mean(), rel=0.04, abs=0.002 * one.finish.mean()
        )
    np.testing.assert_allclose(sum(one.parts.values()), one.finish, rtol=1e-9)


def year_of(failures: Failures) -> LongRun:
    """A year of work on 2,048 machines of 8 GPUs."""
    saving = Saving(interval=600.0, blocking=0.6, durable=51.0)
    return LongRun(work=365.0 * DAY, machines=2048, saving=saving, failures=failures)


def turns(run: LongRun, draws: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, float]:
    """How often all lives together are taken on, and the interruptions of the one with most."""
    asked: list[int] = []

    def counted(run: LongRun, **state: Any) -> Any:
        asked.append(len(state))
        return goes_on(run, **state)

    monkeypatch.setattr("simulator.long_run.attempts.goes_on", counted)
    drawn = simulate_runs(run, draws=draws)
    assert drawn.finish.min() > run.work
    return len(asked), float(np.sum(list(drawn.interruptions.values()), axis=0).max())


@pytest.mark.parametrize("draws", [10, 1000])
def test_a_year_of_many_gpus_is_taken_many_failures_at_once(
    draws: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the rates of rsc-1: as many turns as the longest life has gaps, over those of a turn.

    How long that takes is printed by benchmarks/run.py.
    """
    failures = Failures(per_machine=0.0065 / DAY, per_job=0.0917 / HOUR, restart=RESTART, doubt=0.5)
    made, most = turns(year_of(failures), draws, monkeypatch)
    assert most > 5_000.0
    assert made == math.ceil((most + 1.0) / GAPS)


def test_many_lives_take_fewer_failures_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that their memory is bounded; they fare as they do otherwise."""
    run = replace(failing(3 * HOUR, work=300 * HOUR), machines=8)
    usual = simulate_runs(run, draws=1500)
    monkeypatch.setattr("simulator.long_run.attempts.MAX_GAPS", 1500 * 7)
    fewer = simulate_runs(run, draws=1500)
    assert fewer.finish.mean() == pytest.approx(usual.finish.mean(), rel=0.01)
    np.testing.assert_allclose(sum(fewer.parts.values()), fewer.finish, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("draws", [10, 1000])
def test_a_year_of_many_gpus_with_spares_is_taken_all_lives_at_once(
    draws: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the rate of Llama 3 with 40 spares, away for 2 days: attempts, restarts, waits."""
    spares = Spares(count=40, repair=2.0 * DAY)
    failures = Failures(
        per_machine=0.00379 / DAY, per_job=0.0, restart=RESTART, doubt=0.3, spares=spares
    )
    made, most = turns(year_of(failures), draws, monkeypatch)
    assert most > 2_500.0
    assert made <= 3.0 * (most + 1.0)


@pytest.mark.parametrize(
    ("machines", "hours", "within"),
    [(2048, 1.8, 0.2), (16384, 0.23, 0.1), (128, 7.9, 0.01)],
)
def test_published_rates_of_a_research_cluster(machines: int, hours: float, within: float) -> None:
    """RSC-1: 1.8 and 0.23 h projected, 7.9 h measured at 1,024 GPUs; arXiv 2410.21680.

    128 machines are what the rate per job was set by.
    """
    rate = machines * 0.0065 / DAY + 0.0917 / HOUR
    assert 1.0 / rate / HOUR == pytest.approx(hours, rel=within)
    assert pytest.approx(28.8, rel=0.01) == 1.0 / (128 * 0.0065 / DAY) / HOUR


def on_spot(*, restart: float, fallback: bool) -> LongRun:
    """Thirty days of work on spot machines that are there for 5 h and away for 5 h, in turn."""
    failures = Failures(
        per_machine=0.0, per_job=0.0, restart=replace(INSTANT_RESTART, start=restart), doubt=0.0
    )
    return LongRun(
        work=30 * DAY,
        machines=1,
        saving=Saving(interval=HOUR / 10, blocking=0.0, durable=0.0),
        failures=failures,
        outages=Outages(up=(5 * HOUR,), down=(5 * HOUR,), notice=60.0, fallback=fallback),
    )


def test_machines_on_demand_stand_in_for_spot_ones() -> None:
    """Moves that take no time leave the run as long as it is; half of it is on demand."""
    found = simulate_runs(on_spot(restart=0.0, fallback=True), draws=100)
    assert found.finish == pytest.approx(30 * DAY)
    assert found.parts[CAPACITY].max() == 0.0
    assert found.elsewhere == pytest.approx(15 * DAY, abs=5 * HOUR)
    alone = simulate_runs(on_spot(restart=0.0, fallback=False), draws=100)
    assert alone.finish == pytest.approx(60 * DAY, abs=5 * HOUR)
    assert alone.elsewhere.max() == 0.0


def test_every_move_between_spot_and_demand_takes_a_restart() -> None:
    """Of each 5 h, half an hour goes to starting anew."""
    found = simulate_runs(on_spot(restart=HOUR / 2, fallback=True), draws=100)
    assert found.finish == pytest.approx(30 * DAY / 0.9, abs=5 * HOUR)
    there, back = found.interruptions[Cause.CAPACITY], found.interruptions[Cause.MOVED]
    assert np.abs(there - back).max() <= 1.0


@pytest.mark.parametrize("spares", [None, Spares(count=4, repair=60.0)])
def test_a_run_of_very_many_failures_goes_on_at_its_pace(
    spares: Spares | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenth of the failures one by one gives the ends and shares of all within 2%."""
    run = failing(mean=600.0, write=5.0, restart=40.0, work=3e5)
    assert run.failures is not None
    run = replace(run, failures=replace(run.failures, spares=spares))
    whole = simulate_runs(run, draws=50, seed=3)
    monkeypatch.setattr(attempts, "MAX_ROUNDS", 100)
    monkeypatch.setattr(attempts, "MAX_DRAWN", 1)
    monkeypatch.setattr(attempts, "GAPS_AT_ONCE", 50)
    part = simulate_runs(run, draws=50, seed=3)
    assert part.finish.mean() == pytest.approx(whole.finish.mean(), rel=0.02)
    for cause in Cause:
        many, few = (float(each.interruptions[cause].mean()) for each in (whole, part))
        assert few == pytest.approx(many, rel=0.05)
    assert sum(part.parts.values()) == pytest.approx(part.finish)


def test_no_run_takes_more_rounds_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred thousand failures are not simulated one by one."""
    run = failing(mean=100.0, write=1.0, restart=10.0, work=1e7)
    assert run.failures is not None
    run = replace(run, failures=replace(run.failures, spares=Spares(count=4, repair=10.0)))
    monkeypatch.setattr(attempts, "MAX_ROUNDS", 300)
    rounds: list[int] = []
    real = attempts.goes_on

    def counted(run: LongRun, **state: Any) -> Any:
        rounds.append(1)
        return real(run, **state)

    monkeypatch.setattr(attempts, "goes_on", counted)
    found = simulate_runs(run, draws=10, seed=0)
    assert len(rounds) == 300
    assert np.isfinite(found.finish).all()
    assert (found.finish > 1e7).all()


def test_a_run_waits_for_long_repairs() -> None:
    """A day of work with a failure about every day and repairs of 60 days, without a spare.

    A repair is longer than ten times the work: a run that waits for it still ends.
    """
    run = away(Spares(count=0, repair=60 * DAY), mean=DAY, work=DAY)
    finish = simulate_runs(run, draws=200, seed=1).finish
    assert np.isfinite(finish).all()
    assert (finish > 20 * DAY).mean() > 0.3


def test_lemons_that_stay_leave_the_number_of_failures() -> None:
    """One machine in ten that fails ten times as often: the mean rate of all is the stated one."""
    plain = away(Spares(count=10, repair=1.0), mean=1000 * HOUR, machines=10, work=2000 * HOUR)
    assert plain.failures is not None
    lemons = Lemons(share=0.1, factor=10.0, excluded=False)
    with_them = replace(plain, failures=replace(plain.failures, lemons=lemons))
    many = [
        sum(float(count.mean()) for count in simulate_runs(run, draws=200).interruptions.values())
        for run in (plain, with_them)
    ]
    assert many[0] == pytest.approx(20.0, rel=0.05)
    assert many[1] == pytest.approx(20.0, rel=0.05)


@pytest.mark.parametrize(("notice", "saved"), [(4.0, 0.0), (9.0, 0.0), (10.0, 90.0)])
def test_a_notice_has_to_cover_the_whole_write(notice: float, saved: float) -> None:
    """A checkpoint that blocks for 5 s and is durable after 10 s is saved by a notice of 10 s.

    Of 100 s before the machines go, the last 10 go into writing it.
    """
    outages = Outages(up=(5 * HOUR,), down=(5 * HOUR,), notice=notice, fallback=False)
    saving = Saving(interval=1000.0, blocking=5.0, durable=10.0)
    run = replace(on_spot(restart=0.0, fallback=False), saving=saving, outages=outages)
    _, kept = kept_work(run, np.array([100.0]), np.array([int(Cause.CAPACITY)]))
    assert kept == pytest.approx([saved])
