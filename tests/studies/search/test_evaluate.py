"""All ways to spread a published model, read and bounded in one go."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.reading.search.candidates import CandidateReader
from simulator.studies.search.candidates import expand
from simulator.studies.search.evaluate import Bounded, Chunk, bound
from simulator.studies.search.outcome import Candidate, Status

PUBLISHED = {
    "train.batch_size": 1,
    "train.recompute": "selective",
    "parallelism.tensor": 8,
    "parallelism.sequence": True,
    "parallelism.pipeline": 35,
    "parallelism.interleave": 3,
}
"""Korthikanti et al., the run of 530 billion parameters on 2,240 accelerators."""
LEAST = 8000
"""Candidates that the search has to look at."""
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found() -> tuple[Bounded, ...]:
    """What is known of every candidate of the shipped search."""
    reader = CandidateReader("turing-nlg-530b")
    axes = reader.axes
    assert axes is not None
    chunk = Chunk.of(reader, seed=0, intervals=False)
    return bound(replace(chunk, candidates=expand(axes, reader)))


def test_the_published_way_is_among_the_best(found: tuple[Bounded, ...]) -> None:
    """No step that fits into memory is shorter by more than a twentieth, in thousands of ways."""
    assert len(found) >= LEAST
    steps = {
        one.candidate.index: one.best["step_time_s.mean"] for one in found if one.outcome is None
    }
    (own,) = (one for one in found if one.candidate.settings == PUBLISHED)
    assert steps[own.candidate.index] <= 1.05 * min(steps.values())


def test_every_candidate_has_a_reason_or_a_best_case(found: tuple[Bounded, ...]) -> None:
    """In their order; what cannot run says why, as reading it alone does."""
    assert [one.candidate.index for one in found] == list(range(len(found)))
    reader = CandidateReader("turing-nlg-530b")
    refused = [one for one in found if one.outcome and one.outcome.status is Status.REFUSED]
    assert all(one.best or one.outcome for one in found)
    for one in refused[:: len(refused) // 5]:
        alone = bound(_alone(reader, one.candidate))[0]
        assert alone.outcome == one.outcome
        assert one.outcome is not None
        assert "is not a multiple of batch_size x ranks" in one.outcome.reason


def test_a_candidate_is_bounded_as_alone(found: tuple[Bounded, ...]) -> None:
    """Whatever stands beside it."""
    reader = CandidateReader("turing-nlg-530b")
    open_ = [one for one in found if one.outcome is None]
    for one in open_[:: len(open_) // 5]:
        alone = bound(_alone(reader, one.candidate))[0]
        assert alone.key == one.key
        assert dict(alone.best) == pytest.approx(dict(one.best), rel=1e-9)


def _alone(reader: CandidateReader, candidate: Candidate) -> Chunk:
    chunk = Chunk.of(reader, seed=0, intervals=False)
    return replace(chunk, candidates=(candidate,))
