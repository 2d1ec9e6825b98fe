"""How many machines finish a bulk job by its deadline."""

from __future__ import annotations

import json
import math

import pytest

from simulator.errors import InputError, NotModelled
from simulator.predict import predict_service
from simulator.reading.merge_documents import chain_of
from simulator.reading.service.scenario import ServiceReader
from simulator.report.document import Format, render
from simulator.report.service_sizing import document as sized_document
from simulator.schema.serving import Service
from simulator.studies import service_sizing as bulk
from simulator.studies.service_sizing import BulkSizing, ServiceChoices, cheapest_machines

NAME = "nightly-summaries"
SHORT = ("load.requests=600", "load.prompt.tokens=600", "load.output.tokens=40")
BOTH = 'goal.machines=["instance/aws/g6.xlarge", "instance/lambda/gpu_1x_h100_sxm5"]'


def reader(*overrides: str) -> ServiceReader:
    """Few short documents, with some settings."""
    given = (*SHORT, 'goal.weights=["bf16"]', BOTH, *overrides)
    return ServiceReader(chain_of(NAME), NAME, overrides=given)


def sized(*overrides: str) -> ServiceChoices:
    """The machines for them."""
    asked = reader(*overrides)
    return cheapest_machines(asked.read, asked.candidates())


def service(*overrides: str) -> Service:
    """The job on one L4."""
    return reader("hardware.machine=instance/aws/g6.xlarge", *overrides).read({})


def duration(machines: int, *overrides: str) -> float:
    """How long so many L4 take [s]."""
    told = predict_service(
        service(f"hardware.count={machines}", *overrides), intervals=False
    ).answered
    assert told is not None
    return told.duration


@pytest.mark.parametrize("deadline", ["1 min", "20 s"])
def test_what_is_chosen_is_done_in_time_and_one_machine_less_is_not(deadline: str) -> None:
    """The choice, simulated as it is told to be, keeps the deadline."""
    found = sized(f"goal.deadline={deadline}", 'goal.machines=["instance/aws/g6.xlarge"]')
    limit = service(f"goal.deadline={deadline}").deadline or 0.0
    best = found.choices[0]
    told = predict_service(reader().read(best.settings), intervals=False)
    assert told.answered is not None
    assert told.answered.duration == pytest.approx(best.answered.duration)
    assert told.answered.duration <= limit
    assert best.machines > 1
    assert duration(best.machines) <= limit < duration(best.machines - 1)


def test_choices_are_ordered_by_what_all_of_it_costs() -> None:
    """Of machines by the hour the dearer ones may be the cheaper ones."""
    found = sized("goal.deadline=20 s")
    totals = [one.total for one in found.choices]
    assert all(each is not None for each in totals)
    assert totals == sorted(totals, key=lambda each: each or math.inf)
    best = found.choices[0]
    assert best.total == pytest.approx(best.price * best.answered.duration)


def test_a_tighter_deadline_never_takes_fewer_machines() -> None:
    """And sure in nine of ten cases are no fewer than expected."""
    counts = [
        BulkSizing(service=service(f"goal.deadline={seconds} s")).machines()
        for seconds in (80, 40, 20)
    ]
    assert None not in counts
    assert counts == sorted(counts, key=lambda each: each or 0)
    tight = BulkSizing(service=service("goal.deadline=20 s"))
    assert (tight.slow(1.28).machines() or 0) >= (tight.machines() or 0)


def test_without_a_deadline_the_limit_from_end_to_end_is_one() -> None:
    """The same time said twice is the same number of machines."""
    said, limit = service("goal.deadline=20 s"), service("slo.end_to_end=20 s")
    assert limit.deadline is None
    assert BulkSizing(service=said).machines() == BulkSizing(service=limit).machines()


def test_long_jobs_are_told_from_a_part_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests beyond those of a part take what they do at saturation, to a few per cent."""
    whole = duration(2, "load.requests=1600")
    monkeypatch.setattr(bulk, "SINGLE_REQUESTS", 500)
    monkeypatch.setattr(bulk, "TOTAL_REQUESTS", 1000)
    told = BulkSizing(service=service("load.requests=1600")).answered(2)
    assert told is not None
    assert told.duration == pytest.approx(whole, rel=0.03)
    assert told.requests == 1600
    assert told.request_rate == pytest.approx(1600 / told.duration)
    assert told.replicas == 2.0


def test_what_no_number_of_machines_keeps_is_named() -> None:
    """A deadline below the time of one request, or a limit that one alone misses."""
    soon = sized("goal.deadline=100 ms")
    assert not soon.choices
    assert all("no number of machines finishes in 100 ms" in one.reason for one in soon.refused)
    slow = sized("goal.deadline=1 h", "slo.per_token=1 ms")
    assert not slow.choices
    assert all("the limit per token is kept by" in one.reason for one in slow.refused)


def test_a_store_that_is_read_too_slowly_asks_for_more_machines() -> None:
    """Each machine reads its share: with one reader and long waits more of them are needed."""
    slow = (
        "load.inputs.store=s3",
        "load.inputs.bytes=50 MB",
        "load.inputs.readers=1",
        "goal.deadline=15 s",
    )
    machines = BulkSizing(service=service(*slow)).machines()
    assert (machines or 0) > (BulkSizing(service=service("goal.deadline=15 s")).machines() or 0)


def test_the_report_says_what_all_of_it_costs_and_when_it_is_done() -> None:
    """In words, as JSON and as a table."""
    found = sized("goal.deadline=1 min")
    answer = sized_document(found)
    text, tree = render(answer, Format.TABLE), json.loads(render(answer, Format.JSON))
    assert "all requests within" in text
    assert "in total at" in text
    assert "done after" in text
    assert tree["choices"][0]["usd_in_all"] == found.choices[0].total
    assert tree["choices"][0]["duration_s"] <= 60.0


def test_mistakes() -> None:
    """A deadline of requests that never end, and a job without any."""
    chat = "llama3-8b-chat-h100"
    with pytest.raises(InputError, match="means nothing with poisson arrivals"):
        ServiceReader(chain_of(chat), chat, overrides=("goal.deadline=1 h",)).read({})
    endless = ServiceReader(chain_of(chat), chat, overrides=("load.arrivals=at-once",))
    asked = endless.over({"load.requests": 10, "slo.first_token": "1 h"})
    with pytest.raises(NotModelled, match="needs a deadline"):
        BulkSizing(service=asked.read({})).machines()
