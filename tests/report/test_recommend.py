"""The best choice in words: trades, uncertainties, and what is not counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.reading.scenario import load_scenario
from simulator.report.document import Format, render
from simulator.report.recommend import about_texts, best_title, caveats, one_document
from simulator.schema.goal import Goal
from simulator.studies.data_migration import Move
from simulator.studies.recommend.limits import Program
from simulator.studies.recommend.ranking import Confidence, Tradeoff
from simulator.studies.recommend.recommendation import Recommendation
from tests.studies.recommend.made import CHEAPEST, choice, machine


@pytest.fixture
def answer() -> Recommendation:
    """Three choices, the cheapest one taken."""
    choices = tuple(choice(i, 7200.0, 100.0 + i, band=1.1) for i in range(3))
    return Recommendation(
        scenario=load_scenario("resnet18-imagenet-hidden"),
        goal=Goal(objective=CHEAPEST),
        looked_at=3,
        predicted=3,
        ranked=choices,
        front=choices[:1],
        contenders=choices,
        sure=Confidence(best=(0.6, 0.3, 0.1)),
    )


def test_half_the_time_for_a_little_more(answer: Recommendation) -> None:
    """The trade stands there as a sentence."""
    faster = Tradeoff(choice=choice(7, 3600.0, 123.0), time=0.5, money=23.0)
    told = "\n".join(about_texts(replace(answer, trades=(faster,))))
    assert "+$23: 60 min, 2x faster, with 1 x m7 (1 x x7)" in told


def test_equal_choices_are_said_to_be_equal(answer: Recommendation) -> None:
    """By name, and not once more as the runner-up."""
    told = "\n".join(about_texts(replace(answer, equals=(answer.ranked[1],))))
    assert "equal within" in told
    assert "1 x m1 (1 x x1)" in told


def test_a_best_that_is_rarely_best_says_so(answer: Recommendation) -> None:
    """Below one half it is not called best with a probability, but not told apart."""
    unsure = replace(answer, sure=Confidence(best=(0.2, 0.45, 0.35)))
    told = "\n".join(about_texts(unsure))
    assert "best of 3" not in told
    assert best_title(unsure) == "Best estimate; tied with 2 others"
    assert "best with 20% probability, others with 45%: m1 (1 x x1); 35%: m2 (1 x x2)" in told
    assert "with 60% probability" in "\n".join(about_texts(answer))
    assert best_title(answer) == "Best"


def test_a_safer_choice_is_told_with_its_chance(answer: Recommendation) -> None:
    """Where the best may well miss the deadline, one that hardly can is named."""
    told = "\n".join(about_texts(replace(answer, safer=(choice(7, 3600.0, 123.0), 0.97))))
    assert "to meet deadline and budget with 97% probability: 1 x m7 (1 x x7) ($123" in told
    assert "to meet" not in "\n".join(about_texts(answer))


def test_outside_of_the_evidence_stands_in_the_title(answer: Recommendation) -> None:
    """The warning that simulate gives stands with the best, and a mark on the front."""
    best = answer.ranked[0]
    text = "outside the evidence: accelerator gpu/x (measured: gpu/y)"
    far = replace(best, outcome=replace(best.outcome, warnings=(text,)))
    found = replace(answer, ranked=(far, *answer.ranked[1:]), front=(far,))
    whole = render(one_document(found, None), Format.TABLE)
    assert "Best (nothing similar was measured)" in whole
    assert text in caveats(found)
    assert "best*" in whole


def test_what_is_not_counted_is_said(answer: Recommendation) -> None:
    """Copies, ports, and what no bill has."""
    port = Program(stacks=frozenset({"cuda"}), ported=frozenset({"neuron"}))
    first = answer.ranked[0]
    paid = {**first.figures, "cost.usd_per_h": 4.0}
    there = replace(first, machine=machine("t", stack="neuron"), figures=paid)
    found = replace(
        answer,
        ranked=(there, *answer.ranked[1:]),
        program=port,
        moves=(
            Move(source="storage/a", target="storage/b", size=1e12, least=1800.0, per_month=80.0),
        ),
    )
    lines = "\n".join(caveats(found))
    assert "port the program from cuda to neuron" in lines
    assert "copy the data once: 1 TB from a to b; at least 30 min" in lines
    told = (
        "$2.05 for waiting machines, requests and traffic (included above); storage costs $80 per"
    )
    assert told in lines
    dear = replace(found.moves[0], requests=None, leaves=True)
    lines = "\n".join(caveats(replace(found, moves=(dear,))))
    assert "unknown and not included: requests, egress from a" in lines
    assert "the cost covers machines and storage" in lines
    assert "ported" not in "\n".join(caveats(answer))


def test_a_scenario_that_is_better_but_not_allowed(answer: Recommendation) -> None:
    """A reader who sees the better figure is told why it is not taken."""
    now = replace(choice(9, 7200.0, 50.0), broken=("gpu_memory_margin",))
    told = "\n".join(about_texts(replace(answer, now=now)))
    assert "2x better, but it may not fit into GPU memory" in told
    off = replace(answer, now=replace(now, broken=()), off_axes=True)
    assert "is not on the axes of [goal.search]" in "\n".join(about_texts(off))
