"""The search: nothing that matters is lost, and the answer is the same whoever worked on it."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from support.search import BASE, SHORT, Buggy, Changing, Deadly, grid, reader

from simulator.errors import PlanError
from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.reading.search.candidates import CandidateReader
from simulator.results.metrics import JOB_METRICS, Value
from simulator.schema.goal import Objective, Sense
from simulator.studies.search import store as store_module
from simulator.studies.search.evaluate import plain
from simulator.studies.search.explore import TIME_AND_COST, Request, Standing, bounds_of, explore
from simulator.studies.search.findings import findings
from simulator.studies.search.outcome import Candidate, Outcome, Status
from simulator.studies.search.store import Store, StoreError
from simulator.studies.search.workers import local_workers

CANDIDATES = grid(input_workers=(1, 2, 3, 4, 6, 8), train_batch_size=(32, 64, 128))
TIME = Objective(metric="total_time_s", sense=Sense.MINIMIZE)
RAM = Objective(metric="host_ram_bytes.total", sense=Sense.MINIMIZE)


def request(**changes: object) -> Request:
    """A small search for time against memory: no price is known of the machine."""
    usual = Request(reader=reader(), candidates=CANDIDATES, objectives=(TIME, RAM))
    return replace(usual, **changes)  # type: ignore[arg-type] # fields by name


def run(asked: Request, processes: int = 1, store: Store | None = None) -> tuple[Outcome, ...]:
    """Explore with so many processes, however little there is to do."""
    with local_workers(processes, worth=0.0) as workers:
        return explore(asked, workers=workers, store=store)


def test_a_predicted_candidate_is_what_predict_says() -> None:
    """Settings are those of --set, and figures are all metrics as built-in types."""
    outcome = run(request(exhaustive=True))[7]
    given = tuple(f"{key}={value}" for key, value in outcome.candidate.settings.items())
    prediction = predict(load_scenario(BASE, overrides=(*SHORT, *given)), intervals=False)
    assert outcome.status is Status.PREDICTED
    assert outcome.figures == {m.name: plain(m.get(prediction)) for m in JOB_METRICS}


def test_screening_loses_nothing_of_the_front() -> None:
    """The front of a screened search is that of an exhaustive one, and it predicted less."""
    full, screened = run(request(exhaustive=True)), run(request())
    one, other = (findings(found, (TIME, RAM)).front for found in (full, screened))
    assert one == other
    assert len(one) > 1
    counted = Counter(outcome.status for outcome in screened)
    assert Counter(outcome.status for outcome in full) == {Status.PREDICTED: len(CANDIDATES)}
    assert counted[Status.SCREENED] + counted[Status.PREDICTED] == len(CANDIDATES)
    for mine, theirs in zip(screened, full, strict=True):
        assert mine == theirs or mine.status is Status.SCREENED


@pytest.mark.slow
def test_screening_loses_nothing_on_machines_to_rent() -> None:
    """Busy cores and busy devices, near ties among workers and batches: the same front."""
    machines = ("g4dn.2xlarge", "g5.12xlarge", "g6e.48xlarge", "p5.48xlarge")
    rows = grid(
        hardware_machine=tuple(f"instance/aws/{name}" for name in machines),
        input_workers=(8, 16, 24),
        train_batch_size=(96, 160, 256),
    )
    light = CandidateReader("resnet50-imagenet-p4d", overrides=("input.receive_per_sample=36 us",))
    usual = Request(reader=light, candidates=rows)
    full, screened = run(replace(usual, exhaustive=True)), run(usual)
    one, other = (findings(found, TIME_AND_COST).front for found in (full, screened))
    assert one == other
    assert len(one) > 1
    counted = Counter(outcome.status for outcome in screened)
    assert counted[Status.SCREENED] > counted[Status.PREDICTED]


def test_what_is_screened_out_says_what_beats_it() -> None:
    """The named candidate was predicted to be faster than this one truly is."""
    full = run(request(exhaustive=True, objectives=(TIME,)))
    found = [o for o in run(request(objectives=(TIME,))) if o.status is Status.SCREENED]
    assert found
    for outcome in found:
        beater = full[int(outcome.reason.rsplit(" ", maxsplit=1)[1])]
        truth = full[outcome.candidate.index]
        assert float(str(beater.figures["total_time_s"])) < float(
            str(truth.figures["total_time_s"])
        )


@pytest.mark.slow
def test_the_same_at_one_two_and_three_workers() -> None:
    """The outcomes are equal to the last bit."""
    assert run(request(), 1) == run(request(), 2) == run(request(), 3)


def test_a_stored_search_is_not_worked_out_again(tmp_path: Path) -> None:
    """The second run takes all from the store and says the same as the first."""
    told: list[Standing] = []
    with Store(tmp_path / "s.sqlite") as store:
        first = run(request(), store=store)
        with local_workers(1) as workers:
            second = explore(request(), workers=workers, store=store, progress=told.append)
        assert run(request(seed=1), store=store) != ()
    assert first == second
    assert told[-1].predicted == 0


def test_a_changed_scenario_is_worked_out_anew(tmp_path: Path) -> None:
    """Rows of other contents stay; what changed gets rows of its own."""
    path = tmp_path / "s.sqlite"
    with Store(path) as store:
        few = CANDIDATES[:3]
        one = run(request(candidates=few, exhaustive=True), store=store)
        faster = reader("input.decode=1 ms")
        other = run(request(candidates=few, exhaustive=True, reader=faster), store=store)
        assert run(request(candidates=few, exhaustive=True), store=store) == one
    assert {o.key for o in one}.isdisjoint(o.key for o in other)
    with sqlite3.connect(path) as rows:
        assert rows.execute("SELECT count(*) FROM outcomes").fetchone() == (6,)
    rows.close()


def test_equal_contents_are_predicted_once(tmp_path: Path) -> None:
    """Two candidates with the same settings share a prediction, and each has an outcome."""
    twice = grid(input_workers=(2, 2, 3))
    with Store(tmp_path / "s.sqlite") as store, local_workers(1) as workers:
        told: list[Standing] = []
        found = explore(
            request(candidates=twice, exhaustive=True),
            workers=workers,
            store=store,
            progress=told.append,
        )
    assert told[-1].predicted == 2
    assert found[0].figures == found[1].figures
    assert [outcome.candidate.index for outcome in found] == [0, 1, 2]


def test_a_condition_leaves_figures_and_a_reason() -> None:
    """It may name metrics and keys; who misses it is neither on the front nor beats anybody."""
    where = "input.workers < 4 and total_time_s > 0"
    found = run(request(where=where))
    missed = [o for o in found if o.status is Status.INFEASIBLE]
    assert missed
    assert all(o.reason == f"does not meet: {where}" for o in missed)
    assert all(o.figures for o in missed)
    met = [o for o in found if o.status is Status.PREDICTED]
    assert met
    assert all(int(str(o.candidate.settings["input.workers"])) < 4 for o in met)


def test_a_condition_on_keys_alone_needs_no_prediction() -> None:
    """It is decided before anything is simulated."""
    told: list[Standing] = []
    with local_workers(1) as workers:
        found = explore(request(where="input.workers > 99"), workers=workers, progress=told.append)
    assert {outcome.status for outcome in found} == {Status.INFEASIBLE}
    assert told[-1].predicted == 0


def test_who_cannot_meet_a_condition_at_best_is_not_predicted() -> None:
    """A deadline only the quickest can keep leaves the same front, for fewer predictions."""
    full = run(request(exhaustive=True))
    times = sorted(float(str(o.figures["total_time_s"])) for o in full)
    where = f"total_time_s <= {times[3]!r}"
    told: list[Standing] = []
    with local_workers(1) as workers:
        found = explore(request(where=where), workers=workers, progress=told.append)
    exhaustive = run(request(where=where, exhaustive=True))
    one, other = (findings(outcomes, (TIME, RAM)).front for outcomes in (exhaustive, found))
    assert one == other
    assert one
    assert told[-1].predicted < len(CANDIDATES) / 2
    assert sum(o.status is Status.INFEASIBLE for o in found) == len(CANDIDATES) - 4


def test_a_weighted_objective_is_screened() -> None:
    """Best cases of its metrics bound a sum of them: the same best, for fewer predictions."""
    both = Objective(metric="total_time_s / 60 + host_ram_bytes.total / 1e9", sense=Sense.MINIMIZE)
    full, found = (
        run(request(objectives=(both,), top=1, first=2, exhaustive=all_)) for all_ in (True, False)
    )
    one, other = (findings(outcomes, (both,), top=1).best for outcomes in (full, found))
    assert one == other
    assert sum(o.status is Status.SCREENED for o in found) > 0


def test_figures_count_as_they_are_judged() -> None:
    """Who counts with a stretch that the quickest alone have loses, and misses a deadline too."""
    quickest = min(
        run(request(exhaustive=True)), key=lambda o: float(str(o.figures["total_time_s"]))
    )
    workers = quickest.candidate.settings["input.workers"]

    def judge(candidate: Candidate, figures: Mapping[str, Value]) -> Mapping[str, Value]:
        slow = candidate.settings["input.workers"] == workers
        time = float(str(figures["total_time_s"]))
        return {**figures, "total_time_s": time * (10.0 if slow else 1.0)}

    asked = request(objectives=(TIME,), top=1, first=1, judge=judge)
    found = run(asked)
    known = [o for o in found if o.status is Status.PREDICTED]
    best = min(known, key=lambda o: float(str(judge(o.candidate, o.figures)["total_time_s"])))
    full = run(replace(asked, exhaustive=True))
    wanted = min(full, key=lambda o: float(str(judge(o.candidate, o.figures)["total_time_s"])))
    assert best.candidate == wanted.candidate
    assert best.candidate.settings["input.workers"] != workers
    late = run(replace(asked, where=f"total_time_s <= {quickest.figures['total_time_s']!r}"))
    assert Status.PREDICTED not in {o.status for o in late}


def test_what_is_bounded_already_is_not_read_again() -> None:
    """The same outcomes, though the reader given with the bounds reads nothing."""
    with local_workers(1) as workers:
        known = bounds_of(request(), workers=workers)
    part = CANDIDATES[3:9]
    assert run(request(candidates=part, bounded=known)) == run(request(candidates=part))


def test_a_margin_below_zero_spares_what_is_hardly_better() -> None:
    """Nothing is better than the best that was predicted by more than that."""

    def judge(_: Candidate, figures: Mapping[str, Value]) -> Mapping[str, Value]:
        return {**figures, "total_time_s": 1.5 * float(str(figures["total_time_s"]))}

    asked = request(objectives=(TIME,), top=1, first=1, margin=-0.5, judge=judge)
    found = run(asked)
    known = [float(str(o.figures["total_time_s"])) for o in found if o.status is Status.PREDICTED]
    full = run(replace(asked, exhaustive=True))
    best = min(float(str(o.figures["total_time_s"])) for o in full)
    assert best <= min(known) <= best / 0.5
    assert len(known) < sum(o.status is Status.PREDICTED for o in run(replace(asked, margin=0.0)))


def test_candidates_that_cannot_be_predicted_say_why() -> None:
    """A refusal, a bug of ours and a prediction stand side by side."""
    few = grid(input_workers=(1, 2, 3))
    found = run(request(reader=Buggy(), candidates=few))
    assert [o.status for o in found] == [Status.REFUSED, Status.BUG, Status.PREDICTED]
    assert found[0].reason == "one worker is not modelled today"
    assert found[1].reason == "a bug of ours: ZeroDivisionError: division by zero"


def test_what_does_not_fit_is_infeasible_with_and_without_screening() -> None:
    """It is not simulated, and says how much is missing."""
    few = grid(train_batch_size=(32, 4_000_000))
    one, other = run(request(candidates=few)), run(request(candidates=few, exhaustive=True))
    assert one[1] == other[1]
    assert one[1].status is Status.INFEASIBLE
    assert "needed" in one[1].reason


@pytest.mark.slow
def test_killed_workers_are_replaced(tmp_path: Path) -> None:
    """A candidate that kills once is predicted after all, one that always kills has failed."""
    few = grid(input_workers=(1, 2, 3, 4, 5, 6))
    once = Deadly(folder=tmp_path, workers=(3,), times=1, parent=os.getpid())
    found = run(request(reader=once, candidates=few, exhaustive=True), 2)
    assert found == run(request(candidates=few, exhaustive=True))
    always = Deadly(folder=tmp_path, workers=(5,), times=99, parent=os.getpid())
    found = run(request(reader=always, candidates=few, exhaustive=True), 2)
    assert [o.status for o in found if o.candidate.index != 4] == [Status.PREDICTED] * 5
    assert found[4].status is Status.FAILED
    assert found[4].reason == "3 processes died over it, one after another"


def test_a_store_that_fails_in_the_middle_keeps_what_was_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fills up; with room again the search goes on and ends as if nothing had been."""
    path = tmp_path / "s.sqlite"
    calm = run(request(exhaustive=True))
    add: Callable[..., None] = Store.add
    written: list[int] = []

    def full(self: Store, outcomes: list[Outcome]) -> None:
        if len(written) == 2:
            raise StoreError(store_module.__name__)
        written.append(len(outcomes))
        add(self, outcomes)

    with monkeypatch.context() as patched, Store(path) as store:
        patched.setattr(Store, "add", full)
        with pytest.raises(StoreError):
            run(request(exhaustive=True), store=store)
    with Store(path) as store, local_workers(1) as workers:
        told: list[Standing] = []
        again = explore(
            request(exhaustive=True), workers=workers, store=store, progress=told.append
        )
    assert again == calm
    assert told[-1].stored == sum(written)
    assert told[-1].stored + told[-1].predicted == len(CANDIDATES)


def test_a_search_that_is_stopped_while_it_reads_has_stored_predictions(tmp_path: Path) -> None:
    """It keeps those of what seemed best; started again it goes on, and the end is the same."""
    path = tmp_path / "s.sqlite"
    all_keys = [one.key for one in run(request(exhaustive=True))]
    kept: list[int] = []

    def stop(standing: Standing) -> None:
        if standing.predicted:
            raise KeyboardInterrupt

    for _ in range(2):
        with Store(path) as store, local_workers(1) as workers:
            with pytest.raises(KeyboardInterrupt):
                bounds_of(request(), workers=workers, store=store, progress=stop)
            kept.append(len(store.found(all_keys)))
    assert kept == [1, 2]
    with Store(path) as store:
        assert run(request(), store=store) == run(request())


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"objectives": (Objective(metric="cost.usd", sense=Sense.MINIMIZE),)}, "cost.usd"),
        ({"objectives": (Objective(metric="bottleneck", sense=Sense.MINIMIZE),)}, "not a number"),
        ({"where": "total_time_s"}, "not a condition"),
        ({"where": "total_time < 3"}, "total_time"),
    ],
)
def test_bad_requests_are_refused_before_any_work(changes: dict[str, object], told: str) -> None:
    """A metric that does not exist is named."""
    with pytest.raises(PlanError, match=told):
        run(request(**changes))


def test_a_file_that_changes_meanwhile_is_noticed(tmp_path: Path) -> None:
    """Figures of a changed profile are stored under no key: not the old one's, and it is told."""
    path = tmp_path / "s.sqlite"
    with (
        Store(path) as store,
        pytest.raises(PlanError, match="was changed during the search"),
    ):
        run(request(reader=Changing(), exhaustive=True), store=store)
    with sqlite3.connect(path) as rows:
        assert rows.execute("select count(*) from outcomes").fetchone() == (0,)


def test_any_executor_gives_the_same(tmp_path: Path) -> None:
    """Threads of somebody's own: the outcomes of this process, and the executor stays usable."""
    asked = request(exhaustive=True, candidates=CANDIDATES[:6])
    with ThreadPoolExecutor(2) as pool, Store(tmp_path / "store.sqlite") as store:
        assert explore(asked, executor=pool) == run(asked)
        assert explore(asked, executor=pool, store=store) == run(asked)
        assert pool.submit(abs, -1).result() == 1
    assert explore(asked) == run(asked)


def test_what_is_expected_of_a_candidate_rules_it_out_as_such() -> None:
    """More workers than pin-memory threads keep up with: by bounds alone each may be the best."""
    starved = {"hardware.machine": "instance/aws/g7e.12xlarge", "train.batch_size": 256}
    asked = Request(
        reader=CandidateReader("resnet50-imagenet-p4d"),
        candidates=tuple(
            Candidate(index=place, settings={**starved, "input.workers": workers})
            for place, workers in enumerate((10, 12, 14, 32))
        ),
        first=2,
    )
    screened, full = run(asked), run(replace(asked, exhaustive=True))
    assert "expected to be" in {outcome.reason.split(" worse")[0] for outcome in screened}
    one, other = (findings(found, TIME_AND_COST).front for found in (screened, full))
    assert one == other
