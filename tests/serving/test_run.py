"""What a request takes that has the replicas of a service to itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.reading.merge_documents import chain_of
from simulator.reading.service.scenario import ServiceReader
from simulator.serving.layout import Layout, Side
from simulator.serving.replica import Pool
from simulator.serving.run import alone
from simulator.serving.scheduler import Reuse
from tests.support.serving import MadePass


def test_a_request_alone_waits_for_its_iterations_and_for_the_reply() -> None:
    """One iteration for the prompt, 50 for what follows, 3 until the client sees it: 10 ms each."""
    settings = {"load.prompt.tokens": 1, "load.output.tokens": 51}
    service = ServiceReader(chain_of("llama3-8b-chat-h100"), "x").read(settings)
    serving = replace(
        service.serving, request_overhead=0.0, prompt_overhead=0.0, reply_lag=3.0, speculation=None
    )
    pool = Pool(items={}, capacity=0.0, blocks=10**8, block=16)
    side = Side(serving=serving, work=MadePass(fixed=0.01), pool=pool, reuse=Reuse())
    found = alone(replace(service, serving=serving), Layout(main=side))
    assert found == pytest.approx(0.01 * (1 + 50 + 3))
