"""What more of a resource may do to a service: no more than the time in which it is exposed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.physics.forward_pass import ForwardPass, Iteration
from simulator.predict import pass_of, predict_service
from simulator.reading.merge_documents import chain_of
from simulator.reading.service.scenario import ServiceReader
from simulator.reading.shipped import service_names
from simulator.schema.machines import LinkKind
from simulator.schema.serving import OpenLoop, Service
from simulator.studies.levers import service as levers

Faster = Callable[[Service], Iterator[tuple[str, Service]]]
TWICE = 2.0
IDLE = 0.05
"""Load of a resource below which twice of it may change latencies by 1% at most."""
SEVERAL = "llama3-70b-service"
"""A model on four accelerators, which wait for their links."""
MANY = settings(max_examples=200, deadline=None, derandomize=True)

works = st.builds(
    Iteration,
    prefill_tokens=st.integers(0, 100_000),
    prefill_pairs=st.floats(0.0, 1e9),
    first_tokens=st.integers(0, 50),
    decoding=st.integers(0, 500),
    context_tokens=st.floats(0.0, 5e5),
)


@cache
def shipped(name: str) -> Service:
    """A shipped service."""
    return ServiceReader(chain_of(name), name).read({})


@cache
def passes(faster: Faster) -> tuple[ForwardPass, ForwardPass]:
    """The forward pass of a service, and that with twice a rate."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(levers, "FASTER", TWICE)
        ((_, changed),) = faster(shipped(SEVERAL))
    return pass_of(shipped(SEVERAL)), pass_of(changed)


@pytest.mark.parametrize(
    "faster", [levers.faster_memory, levers.faster_arithmetic, levers.faster_links]
)
@MANY
@given(works)
def test_twice_a_rate_saves_at_most_half_of_an_iteration(faster: Faster, work: Iteration) -> None:
    """And never makes one longer."""
    before, after = (each.seconds(work) for each in passes(faster))
    assert 0.5 * before * (1.0 - 1e-9) <= after <= before * (1.0 + 1e-9)


@MANY
@given(works)
def test_twice_the_links_save_half_of_the_time_for_which_they_are_busy(work: Iteration) -> None:
    """All-reduces of four accelerators are exposed, but for launches that take longer."""
    slow, fast = passes(levers.faster_links)
    busy = slow.link_seconds(work.prefill_tokens, work.decoding)[LinkKind.NVLINK]
    # The grid of tokens is interpolated, up to which an all-reduce is in proportion to them.
    assert slow.seconds(work) - fast.seconds(work) <= 0.5 * busy * (1.0 + 1e-6) + 1e-12


def open_services() -> list[str]:
    """Shipped services with a constant rate of arrivals and a network."""
    found = list[str]()
    for name in service_names():
        ways, host = shipped(name).load.arrivals, shipped(name).group.host
        if isinstance(ways, OpenLoop) and ways.rate < 1e9 and host.network is not None:
            found.append(name)
    return found


@pytest.mark.parametrize("name", open_services())
def test_twice_an_idle_network_changes_nothing(name: str) -> None:
    """Latencies differ by less than 1% and the half-width where the network is below 5% busy."""
    service = shipped(name)
    host = service.group.host
    assert host.network is not None
    network = replace(host.network, bandwidth=TWICE * host.network.bandwidth)
    faster = replace(service, group=replace(service.group, host=replace(host, network=network)))
    before, after = (predict_service(one, intervals=False).answered for one in (service, faster))
    assert before is not None
    assert after is not None
    half_width = max(before.half_width, after.half_width)
    change = abs(after.end_to_end.mean - before.end_to_end.mean)
    if before.links.get(LinkKind.NETWORK, 0.0) < IDLE:
        assert change <= 0.01 * before.end_to_end.mean + half_width
    assert after.end_to_end.mean <= before.end_to_end.mean * 1.01 + half_width
