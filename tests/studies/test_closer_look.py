"""A closer look at a candidate: its later epochs simulated, the rest at its best."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from simulator.engine.run import Options, later_epoch
from simulator.predict import predict, simulation_input
from simulator.reading.search.candidates import CandidateReader
from simulator.studies.search.evaluate import (
    Bounded,
    Chunk,
    closer_key,
    evaluate,
    look_closer,
)
from simulator.studies.search.explore import Request, alike_together, explore
from simulator.studies.search.outcome import Candidate, Status
from simulator.studies.search.store import Store
from simulator.studies.search.workers import local_workers

SCENARIO = "resnet50-imagenet-p4d"
WORKERS = tuple(
    Candidate(index=number, settings={"input.workers": workers, "data.samples": 128_000})
    for number, workers in enumerate((8, 9, 10))
)


def test_a_run_takes_no_less_than_its_later_epochs_let_it() -> None:
    """The best case with later epochs known is near the prediction, and never better."""
    scenario = CandidateReader(SCENARIO).read({"input.workers": 8}).scenario
    prediction = predict(scenario, intervals=False)
    assert later_epoch(simulation_input(scenario), Options()) == prediction.timing.epoch_time
    chunk = Chunk.of(CandidateReader(SCENARIO), seed=0, intervals=False)
    eight = (Candidate(index=0, settings={"input.workers": 8}),)
    chunk = replace(chunk, candidates=eight)
    (closer,), (known,) = look_closer(chunk), evaluate(chunk)
    assert (closer.status, closer.key) == (Status.SCREENED, closer_key(known.key))
    time = float(str(closer.figures["total_time_s"]))
    assert 0.99 < time / prediction.timing.total_time <= 1.0
    assert float(str(closer.figures["cost.usd_to_train"])) <= prediction.in_all


def test_what_cannot_be_predicted_has_no_closer_look() -> None:
    """It has no figures, and its prediction says why."""
    chunk = Chunk.of(CandidateReader(SCENARIO), seed=0, intervals=False)
    none = (Candidate(index=0, settings={"input.workers": "many"}),)
    (closer,) = look_closer(replace(chunk, candidates=none))
    assert closer.status is Status.REFUSED
    assert not closer.figures


def test_closer_looks_are_stored(tmp_path: Path) -> None:
    """A search that is run again finds them, and ends the same."""
    request = Request(reader=CandidateReader(SCENARIO), candidates=WORKERS, first=1)
    with Store(tmp_path / "s.sqlite") as store, local_workers(1) as workers:
        first = explore(request, workers=workers, store=store)
        keys = [closer_key(one.key) for one in first if one.status is Status.SCREENED]
        assert keys
        assert set(store.found(keys)) == set(keys)
        assert explore(request, workers=workers, store=store) == first


def test_candidates_that_seem_alike_are_looked_at_by_one_worker() -> None:
    """Equal epochs at best are likely to be one question, which only one process should ask."""
    epochs = [2.0, 1.0, 2.0, 3.0, 2.0]
    chosen = [
        Bounded(
            candidate=Candidate(index=index, settings={}), key=str(index), best={"epoch_time_s": it}
        )
        for index, it in enumerate(epochs)
    ]
    tasks = [tuple(one.index for one in task) for task in alike_together(chosen)]
    assert tasks == [(0, 2, 4), (1,), (3,)]
