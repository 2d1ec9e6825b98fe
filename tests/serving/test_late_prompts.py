"""Engines that keep prompts back beside answers, and that look for requests now and then only."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.schema.serving import Held
from simulator.serving.load import Requests
from tests.support.serving import MadePass, run, settings

SECOND = MadePass(fixed=1.0)
"""Every iteration takes a second."""


@pytest.mark.parametrize(
    ("rule", "arrivals", "expected"),
    [
        (Held(iterations=4), [0.5], [6.0]),
        (Held(iterations=4, share=0.2), [0.5], [2.0]),
        (Held(iterations=4, prompts=2), [0.5, 2.5], [4.0, 4.0]),
        (Held(iterations=4), [0.5, 5.5], [6.0, 11.0]),
        (None, [0.5], [2.0]),
    ],
)
def test_prompts_are_kept_back_beside_answers(
    rule: Held | None, arrivals: list[float], expected: list[float]
) -> None:
    """They start when they fill a share, when there are enough, or after so many iterations."""
    count = len(arrivals)
    requests = Requests([1, *[30] * count], [100, *[50] * count], [0.0, *arrivals])
    run(requests, SECOND, replace(settings(tokens=100), held_prompts=rule))
    assert requests.first == pytest.approx([1.0, *expected])


@pytest.mark.parametrize(
    ("interval", "arrival", "expected"), [(4, 0.5, 2.0), (4, 1.5, 6.0), (4, 5.5, 10.0), (1, 1.5, 3)]
)
def test_an_engine_looks_for_requests_every_so_many_iterations(
    interval: int, arrival: float, expected: float
) -> None:
    """It looks after every prompt, too, and at once when nothing runs."""
    requests = Requests([1, 1], [100, 1], [0.0, arrival])
    run(requests, SECOND, replace(settings(), poll_interval=interval))
    assert requests.first == pytest.approx([1.0, expected])
