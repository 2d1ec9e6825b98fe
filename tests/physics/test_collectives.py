"""Collectives against published bus bandwidths, and in limits that need no measurement."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.physics.collectives import (
    EFFICIENCY,
    HOP_REMOTE,
    Team,
    crossing_bytes,
    in_machine,
    pace_between,
    pace_inside,
    reachable,
    wire_bytes,
)
from simulator.reading.hardware.catalogue import Catalogue
from simulator.schema.machines import Collective, Host
from simulator.units import BYTE, parse

REDUCE = Collective.ALL_REDUCE
TWO_NODES = Team(ranks=16, machines=2)
# awslabs/awsome-distributed-ai@95b939cdc5b2 micro-benchmarks/nccl-tests/README.md L158-290:
# all-reduce over 2 nodes, size [B] and time out of place [us].
EFA_V1 = {
    8: 164.3,
    65536: 227.4,
    262144: 238.2,
    1048576: 309.4,
    4194304: 533.9,
    16777216: 1191.8,
    67108864: 2644.6,
    134217728: 3912.9,
    268435456: 7201.7,
    536870912: 13552.0,
    1073741824: 26217.0,
    2147483648: 51406.0,
}
EFA_V2 = {
    8: 69.12,
    65536: 135.1,
    262144: 128.0,
    1048576: 123.2,
    4194304: 168.6,
    16777216: 298.1,
    33554432: 439.7,
    67108864: 601.5,
    134217728: 870.3,
    268435456: 1468.2,
    536870912: 2559.2,
    1073741824: 4607.6,
    2147483648: 9074.5,
    4294967296: 17286.0,
    8589934592: 33605.0,
    17179869184: 66132.0,
}
CURVES = [
    *(("instance/aws/p4de.24xlarge", size, time) for size, time in EFA_V1.items()),
    *(("instance/aws/p5.48xlarge", size, time) for size, time in EFA_V2.items()),
]


def machine(name: str) -> Host:
    """A machine of the catalogue."""
    return Catalogue.default(()).host(name)


def collective_time(operation: Collective, size: float, members: Team, host: Host) -> float:
    """What passes the network and what passes links inside the machines go on at once [s]."""
    latency, rate = 0.0, math.inf
    if members.machines > 1:
        latency, rate = map(float, pace_between(operation, size, members, host))
    between = latency + crossing_bytes(operation, size, members.machines) / rate
    local = members.ranks // members.machines
    if local == 1:
        return float(between)
    latency, rate = map(float, pace_inside(operation, size, local, host))
    return float(max(between, latency + wire_bytes(operation, size, local) / rate))


def bus_bandwidth(operation: Collective, size: str, members: Team, host: Host) -> float:
    """What nccl-tests would print as busbw [GB/s]."""
    amount = parse(size, BYTE)
    time = collective_time(operation, amount, members, host)
    return float(wire_bytes(operation, amount, members.ranks)) / time / parse("1 GB", BYTE)


@pytest.mark.parametrize(("name", "size", "time_us"), CURVES)
def test_an_all_reduce_over_two_machines_takes_what_was_measured(
    name: str, size: int, time_us: float
) -> None:
    """Within 10% at every size of both published sweeps, the empty message included."""
    predicted = float(collective_time(REDUCE, float(size), TWO_NODES, machine(name)))
    assert predicted * 1e6 == pytest.approx(time_us, rel=0.10)


@pytest.mark.parametrize(
    ("name", "operation", "ranks", "size", "measured"),
    [
        ("node/dgx-a100-80gb", REDUCE, 8, "8 GiB", 235.0),
        ("node/dgx-h200", REDUCE, 4, "8 GiB", 363.3),
        ("node/dgx-h200", REDUCE, 5, "8 GiB", 414.2),
        ("node/dgx-h200", REDUCE, 6, "8 GiB", 435.6),
        ("node/dgx-h200", REDUCE, 7, "8 GiB", 460.0),
        ("node/dgx-h200", REDUCE, 8, "8 GiB", 473.1),
        ("node/dgx-b200", REDUCE, 4, "8 GiB", 673.2),
        ("node/dgx-b200", REDUCE, 5, "8 GiB", 677.8),
        ("node/dgx-b200", REDUCE, 8, "8 GiB", 838.0),
        ("node/dgx-h200", Collective.ALL_GATHER, 8, "16 GiB", 361.4),
        ("node/dgx-h200", Collective.REDUCE_SCATTER, 8, "16 GiB", 362.9),
    ],
)
def test_bus_bandwidth_inside_a_machine_is_as_published(
    name: str, operation: Collective, ranks: int, size: str, measured: float
) -> None:
    """Ring and in-switch, stas00/ml-engineering@744d01e network/README.md L82, L923-976."""
    reached = bus_bandwidth(operation, size, Team(ranks=ranks), machine(name))
    assert reached == pytest.approx(measured, rel=0.10)


@pytest.mark.parametrize(
    ("machines", "size", "measured"),
    [(4, "64 MiB", 45.1), (4, "16 GiB", 53.9), (8, "64 MiB", 40.4), (8, "16 GiB", 51.1)],
)
def test_all_to_all_over_machines_is_as_published(
    machines: int, size: str, measured: float
) -> None:
    """p5 nodes, awslabs/awsome-distributed-ai, ep-backend-comparison/RESULTS-p5.md."""
    members = Team(ranks=8 * machines, machines=machines)
    host = machine("instance/aws/p5.48xlarge")
    reached = bus_bandwidth(Collective.ALL_TO_ALL, size, members, host)
    assert reached == pytest.approx(measured, rel=0.10)


@given(st.sampled_from(list(Collective)), st.floats(1e3, 1e11), st.integers(1, 6))
def test_more_bytes_never_take_less_time(operation: Collective, size: float, machines: int) -> None:
    """Whatever the regime, time rises with the message."""
    host = machine("instance/aws/p5.48xlarge")
    members = Team(ranks=8 * machines, machines=machines)
    smaller = collective_time(operation, size, members, host)
    assert smaller <= collective_time(operation, 2.0 * size, members, host)


@pytest.mark.parametrize(("ranks", "links"), [(2, 1), (4, 4), (8, 6)])
def test_few_devices_of_a_mesh_share_few_links(ranks: int, links: int) -> None:
    """The first 2 devices of a hybrid cube mesh share 1 link of 6, the first 4 have 4 each."""
    host = machine("node/dgx-1v")
    assert reachable(ranks, host) == pytest.approx(links / 6)
    size = parse("10 GB", BYTE)
    time = float(collective_time(REDUCE, size, Team(ranks=ranks), host))
    rate = EFFICIENCY * 150e9 * links / 6
    assert time == pytest.approx(2 * (ranks - 1) / ranks * size / rate, rel=1e-3)


def test_all_links_lead_through_a_switch() -> None:
    """Two devices behind switches talk as fast as sixteen."""
    assert reachable(2, machine("node/dgx-2")) == 1.0


@pytest.mark.parametrize("machines", [2, 8, 64])
def test_empty_gathers_over_machines_take_the_hops_of_a_ring_and_all_reduces_those_of_a_tree(
    machines: int,
) -> None:
    """Without bytes: m - 1 hops one after the other, or twice the depth of a tree."""
    members = Team(ranks=machines, machines=machines)
    host = machine("node/dgx-a100-80gb")
    gathered = collective_time(Collective.ALL_GATHER, 0.0, members, host)
    assert gathered == pytest.approx((machines - 1) * HOP_REMOTE)
    reduced = float(collective_time(REDUCE, 0.0, members, host))
    assert reduced == pytest.approx(2.0 * math.log2(machines) * HOP_REMOTE)


def test_a_measured_gather_is_carried_over_by_the_hops_of_its_ring() -> None:
    """A latency measured over 2 machines is 15 times as long over 16, not four times."""
    host = machine("instance/aws/p5.48xlarge")
    assert host.network is not None
    assert host.network.link is not None
    curve = next(c for c in host.network.link.collective if c.machines == 2)
    gather = replace(curve, operation=Collective.ALL_GATHER)
    link = replace(host.network.link, collective=(gather,))
    alone = replace(host, network=replace(host.network, link=link), peer_link=None, host_link=None)
    near = float(collective_time(Collective.ALL_GATHER, 0.0, Team(ranks=2, machines=2), alone))
    far = float(collective_time(Collective.ALL_GATHER, 0.0, Team(ranks=16, machines=16), alone))
    assert far == pytest.approx(15.0 * near)


@pytest.mark.parametrize(("asked", "measured"), [(2, 4), (16, 8)])
def test_beyond_the_measured_ranks_the_nearest_count(asked: int, measured: int) -> None:
    """Of curves of 4 to 8 devices, 2 take those of 4 and 16 those of 8, for as many bytes moved."""
    host = machine("instance/aws/p5.48xlarge")
    link = host.peer_link
    assert link is not None
    curves = tuple(
        c for c in link.collective if c.ranks >= 4 and c.machines == 1 and not c.in_switch
    )
    alone = replace(host, peer_link=replace(link, collective=curves))
    paces = {
        ranks: pace_inside(REDUCE, 1e9 / wire_bytes(REDUCE, 1.0, ranks), ranks, alone)
        for ranks in (asked, 4, 8)
    }
    found = {ranks: [float(part) for part in pace] for ranks, pace in paces.items()}
    assert found[asked] == pytest.approx(found[measured])
    assert found[asked] != pytest.approx(found[12 - measured])


def test_a_machine_without_links_has_no_odd_rates() -> None:
    """Links of no machine are never waited for, over any number of ranks."""
    bare = Catalogue.default().host("node/apple-m1-max")
    for ranks in (1, 2, 3, 4, 6, 8, 16):
        found = in_machine(Collective.ALL_REDUCE, bare).over(ranks)
        assert found.large_rate == np.inf
        assert found.large_latency == 0.0
