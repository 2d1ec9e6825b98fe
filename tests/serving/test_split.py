"""Prompts on some replicas, answers on others: a tandem of queues with a line between."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from simulator.predict import layout_of, predict_service
from simulator.reading.merge_documents import chain_of
from simulator.reading.service.scenario import ServiceReader
from simulator.schema.machines import LinkKind
from simulator.schema.serving import Routing, Service
from simulator.serving.engine import Counts
from simulator.serving.fleet import Line, run_split
from simulator.serving.layout import Transfer
from simulator.serving.load import Requests
from simulator.serving.run import half_width
from simulator.serving.scheduler import Reuse
from tests.support.serving import MadePass, fleet, poisson, settings

PROMPT = 0.1
"""Time of a prompt [s]."""
STEP = 0.001
"""Time of an iteration of decoding [s]."""


def tandem(
    requests: Requests, transfer: Transfer, replicas: Sequence[int] = (1, 1)
) -> tuple[Counts, Counts, Line]:
    """One prompt after the other on the first replicas, answers that do not slow each other."""
    before = Requests(requests.prompts, [1] * len(requests), requests.arrivals)
    one = settings(sequences=1)
    first = fleet(before, MadePass(fixed=PROMPT), one, replicas[0], Routing.LEAST)
    held = Reuse(hit_rate=1.0)
    second = fleet(requests, MadePass(fixed=STEP), settings(), replicas[1], reuse=held)
    line = Line(transfer)
    counts = run_split(first, before, line, second, requests)
    return (*counts, line)


def test_alone_a_request_takes_the_sum() -> None:
    """Prompt, transfer, an iteration until the first token, and one for each other."""
    requests = Requests([160], [11], [5.0])
    tandem(requests, Transfer(link=LinkKind.NVLINK, senders=1, token=0.001, latency=0.02))
    assert requests.scheduled[0] == 5.0
    assert requests.first[0] == pytest.approx(5.0 + PROMPT + 0.16 + 0.02 + STEP)
    assert requests.last[0] - requests.first[0] == pytest.approx(10 * STEP)


def test_the_first_stage_is_a_queue_of_its_own() -> None:
    """Poisson arrivals at equal prompts are M/D/1, and what follows adds its time."""
    load, count = 0.8, 20_000
    requests = poisson(load / PROMPT, np.full(count, 5))
    _, _, line = tandem(
        requests, Transfer(link=LinkKind.NVLINK, senders=1, token=0.0, latency=0.05)
    )
    first = (np.asarray(requests.first) - np.asarray(requests.arrivals))[count // 10 :]
    expected = PROMPT + load * PROMPT / (2.0 * (1.0 - load)) + 0.05
    assert abs(first.mean() - expected) < half_width(first) + 2 * STEP
    assert line.travelled / count == pytest.approx(0.05)


def test_a_line_sends_one_after_the_other() -> None:
    """Eight prompts that end together on eight replicas take turns where one sends for all."""
    found = []
    for senders in (1, 8):
        requests = Requests([100] * 8, [1] * 8, [0.0] * 8)
        tandem(requests, Transfer(link=LinkKind.NVLINK, senders=senders, token=0.01), (8, 1))
        found.append(sorted(requests.first))
    assert found[0] == pytest.approx([PROMPT + n + STEP for n in range(1, 9)])
    assert found[1] == pytest.approx([PROMPT + 1.0 + STEP] * 8)


def test_tokens_are_computed_once() -> None:
    """Prompts on the first, all other tokens on the second, all requests answered in order."""
    requests = poisson(5.0, np.random.default_rng(1).integers(1, 40, 500))
    requests.prompts = np.random.default_rng(2).integers(1, 300, 500).tolist()
    prompts, answers, _ = tandem(requests, Transfer(link=LinkKind.NVLINK, senders=1, token=1e-5))
    assert prompts.prefilled == sum(requests.prompts)
    assert answers.decoded == sum(requests.outputs) - 500
    # Of a block that is not full the tokens are computed anew, one at least for the first answer.
    assert answers.prefilled == sum(max(1, prompt % 16) for prompt in requests.prompts)
    assert not np.isnan(requests.last).any()


def test_clients_wait_for_the_answers_of_the_second_stage() -> None:
    """A closed loop of one client goes round both stages, again and again."""
    requests = Requests([16] * 20, [3] * 20, [0.0], clients=1)
    _, answers, _ = tandem(requests, Transfer(link=LinkKind.NVLINK, senders=1, token=0.0))
    assert len(requests.arrivals) == 20
    assert answers.end == pytest.approx(20 * (PROMPT + 3 * STEP))


SPLIT = "qwen3-235b-h200-split"


def service(*overrides: str) -> Service:
    """The shipped service with some settings changed."""
    return ServiceReader(chain_of(SPLIT), SPLIT, overrides=overrides).read({})


def test_keys_and_values_take_the_link_there_is() -> None:
    """Within a machine each accelerator has its own link; between machines all share a network."""
    inside, two = service(), service("hardware.count=2", "serving.prefill.tensor=8")
    whole = layout_of(two).transfer
    link, network = inside.group.host.peer_link, inside.group.host.network
    part = layout_of(inside)
    assert part.transfer is not None
    assert part.prompts is not None
    assert whole is not None
    assert link is not None
    assert network is not None
    token = part.prompts.work.kv_bytes_per_token
    assert part.transfer.token == pytest.approx(token / link.rate)
    # Of four heads of keys eight devices keep one each, so that half of them hold copies.
    assert whole.token == pytest.approx(8 * token / network.bandwidth)


@pytest.mark.slow
def test_the_slowest_stage_bounds_what_is_completed() -> None:
    """With ever more replicas for answers the prompts bind, and the other way round."""
    wide = ("hardware.count=4", "load.output.tokens=2000")
    rates = []
    for answers in (1, 2, 3, 4):
        asked = service(*wide, f"serving.replicas={answers}", "serving.prefill.replicas=1")
        found = predict_service(asked, intervals=False).saturation
        assert found is not None
        rates.append(found.request_rate)
    assert rates == sorted(rates)
    assert rates[-1] == pytest.approx(rates[-2], rel=1e-9)
    assert rates[0] < 0.95 * rates[-1]


def test_no_prompt_holds_up_a_token() -> None:
    """Answers on replicas of their own have a steadier time per token than together."""
    split = predict_service(service(), intervals=False).answered
    together = ServiceReader(chain_of("qwen3-235b-h200"), "x").read({})
    plain = predict_service(together, intervals=False).answered
    assert split is not None
    assert plain is not None
    spread = [told.per_token.p99 / told.per_token.p50 for told in (split, plain)]
    assert spread[0] < spread[1]
    assert split.busy_of.keys() == {"prompts", "answers"}
    assert plain.busy_of == {}
    assert split.transfer > 0.0
    assert math.isclose(plain.transfer, 0.0)
