"""Make tests/theory/data/simgrid_reference.csv: completion times of SimGrid for shared units.

Runs under a Python that has SimGrid's binding, not needed to run the tests::

    apt-get install python3-simgrid
    /usr/bin/python3 benchmarks/simgrid/make_reference.py

The engine of this project is a fluid model of the same class as SimGrid's, so both must give
the same times. To compare like with like, SimGrid runs its plain max-min model: CM02, no window
limit (TCP-gamma 0), no reverse traffic of acknowledgements (crosstraffic 0). CM02 weights flows
by their latency, so all routes of one case have one latency. Every case runs in a process of
its own, as SimGrid has one engine per process.

One row per flow: `units` is every unit of the case as name=capacity, `route` the units passed,
`ceiling` the fastest the flow may go (empty: no limit), `latency` the time before the first
byte, `finish` the time at which SimGrid completes it. In rows of kind host there is one unit,
its capacity is the speed of a core, `cores` says how many, and the amounts are work.
"""

from __future__ import annotations

import csv
import json
import random
import subprocess
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

OUTPUT = Path(__file__).parents[2] / "tests" / "theory" / "data" / "simgrid_reference.csv"
OPTIONS = (
    "network/model:CM02",
    "network/TCP-gamma:0",
    "network/crosstraffic:0",
    "network/loopback-lat:0",
    "surf/precision:1e-12",
    "maxmin/precision:1e-12",
)
COLUMNS = (
    "case", "kind", "units", "cores", "latency", "start", "amount", "route", "ceiling", "finish",
)  # fmt: skip


@dataclass
class Flow:
    """What to carry, where along, from when, how fast at most."""

    amount: float
    route: tuple[str, ...] = ()
    start: float = 0.0
    ceiling: float | None = None


@dataclass
class Case:
    """Units with their capacities and the flows over them."""

    name: str
    units: dict[str, float]
    flows: list[Flow]
    kind: str = "link"
    cores: int = 1
    latency: float = 0.0
    finish: list[float] = field(default_factory=list)


def link_cases() -> list[Case]:
    """Return cases of flows over links, from one link to trees and random meshes."""
    one = {"link": 1e9}
    via = ("link",)
    sizes = (1e9, 2e9, 5e8, 4e9, 1e9)
    return [
        Case("one link, equal flows", one, [Flow(1e9, via) for _ in range(8)]),
        Case("one link, different sizes", one, [Flow(size, via) for size in sizes]),
        Case(
            "one link, staggered starts",
            one,
            [Flow(size, via, start=0.7 * i) for i, size in enumerate(sizes)],
        ),
        Case(
            "one link, idle between",
            one,
            [Flow(1e9, via), Flow(3e8, via, start=5.0), Flow(3e8, via, start=5.1)],
        ),
        Case(
            "one link, rate limits",
            one,
            [Flow(1e9, via, ceiling=ceiling) for ceiling in (5e7, 1e8, 3e8, None, None)],
        ),
        Case(
            "object store, one request carries little",
            {"nic": 3.125e9},
            [
                Flow(2e7 + 1e6 * i, ("nic",), start=0.01 * i, ceiling=[3e7, 1e8, None][i % 3])
                for i in range(60)
            ],
        ),
        Case(
            "one link, latency",
            one,
            [Flow(size, via, start=0.3 * i) for i, size in enumerate(sizes)],
            latency=0.05,
        ),
        Case(
            "two links, three flows",
            {"a": 1e9, "b": 2e9},
            [Flow(1e9, ("a", "b")), Flow(1e9, ("a",)), Flow(1e9, ("b",))],
        ),
        Case(
            "parking lot",
            {"a": 1e9, "b": 6e8, "c": 3e9},
            [
                Flow(2e9, ("a", "b", "c")),
                Flow(1e9, ("a",)),
                Flow(1e9, ("b",), start=0.5),
                Flow(1e9, ("c",), start=0.25),
                Flow(1.5e9, ("b", "c")),
            ],
        ),
        pcie_tree(),
        pcie_tree_with_storage(),
        dumbbell(0.0),
        dumbbell(0.02),
        incast(),
        leaf_spine(),
        reads_and_all_reduce(readers=2),
        reads_and_all_reduce(readers=1),
        batches_and_ring(),
        random_mesh(7, rate_limits=False),
        random_mesh(8, rate_limits=True),
        random_mesh(9, rate_limits=True),
    ]


def pcie_tree() -> Case:
    """Return copies to eight devices behind four switches of two sockets."""
    units = {f"gpu{g}": 2.5e10 for g in range(8)}
    units |= {f"switch{s}": 2.5e10 for s in range(4)} | {"socket0": 6e10, "socket1": 4e10}
    flows = [
        Flow(1e9 * (1 + g % 3), (f"gpu{g}", f"switch{g // 2}", f"socket{g // 4}"), start=0.01 * g)
        for g in range(8)
    ]
    return Case("PCIe tree, copies to eight devices", units, flows)


def pcie_tree_with_storage() -> Case:
    """Return reads of local disks and copies to devices through the same switches."""
    units = {f"gpu{g}": 2.5e10 for g in range(4)} | {f"nvme{d}": 6.8e9 for d in range(2)}
    units |= {"switch0": 2.5e10, "switch1": 2.5e10, "memory": 3.8e10}
    copies = [Flow(2e9, (f"gpu{g}", f"switch{g // 2}", "memory")) for g in range(4)]
    reads = [
        Flow(1e9, (f"nvme{i % 2}", f"switch{i % 2}", "memory"), start=0.02 * i) for i in range(6)
    ]
    return Case("PCIe tree, disks and devices", units, copies + reads)


def dumbbell(latency: float) -> Case:
    """Return flows from edges of different widths through one narrow middle."""
    units = {"middle": 1.25e9} | {f"edge{i}": 2.5e8 * (1 + i) for i in range(6)}
    flows = [Flow(5e8 * (1 + i % 2), (f"edge{i}", "middle"), start=0.1 * i) for i in range(6)]
    return Case(f"dumbbell, latency {latency}", units, flows, latency=latency)


def incast() -> Case:
    """Return sixteen clients that read from three servers at once."""
    units = {f"server{s}": 1e10 for s in range(3)} | {f"client{c}": 1.25e9 for c in range(16)}
    flows = [Flow(4e9, (f"server{c % 3}", f"client{c}")) for c in range(16)]
    flows += [Flow(1e9, (f"server{c % 2}", f"client{c}"), start=1.0) for c in range(4)]
    return Case("incast of clients on servers", units, flows)


def leaf_spine() -> Case:
    """Return all-to-all between hosts of two leaves with a narrow spine."""
    units = {f"nic{h}": 2.5e9 for h in range(6)} | {"up0": 4e9, "up1": 5e9}
    flows = []
    for a in range(6):
        for b in range(6):
            if a != b:
                spine = ("up0", "up1") if a // 3 != b // 3 else ()
                flows.append(Flow(3e8 + 1e7 * (6 * a + b), (f"nic{a}", *spine, f"nic{b}")))
    return Case("leaf and spine, all to all", units, flows)


def reads_and_all_reduce(readers: int) -> Case:
    """Return one step of two machines of two devices that read samples and reduce over one card.

    Each device reads 100 MB and then sends 50 MB to the other machine: after 40 ms of compute and
    100 MB over a link of 235 GB/s within the machine. `readers` machines read, others have what
    they need.
    """
    units = {f"{way}{m}": 3.125e9 for m in range(2) for way in ("in", "out")} | {"store": 1e11}
    ready = 0.04 + 1e8 / 235e9
    reads = [Flow(1e8, ("store", f"in{m}")) for m in range(readers) for _ in range(2)]
    ring = [Flow(5e7, (f"out{m}", f"in{1 - m}"), start=ready) for m in range(2) for _ in range(2)]
    who = "one reads" if readers == 1 else "both read"
    return Case(f"reads and all-reduce on one card, {who}", units, reads + ring)


def batches_and_ring() -> Case:
    """Return copies to four devices and the ring between them over the same two switches."""
    units = {f"{way}{g}": 1.6e10 for g in range(4) for way in ("down", "up")}
    units |= {f"switch-{way}{s}": 1.6e10 for s in range(2) for way in ("down", "up")}
    copies = [Flow(3.2e8, (f"down{g}", f"switch-down{g // 2}")) for g in range(4)]
    ring = []
    for g, peer in ((0, 1), (1, 2), (2, 3), (3, 0)):
        above = () if g // 2 == peer // 2 else (f"switch-up{g // 2}", f"switch-down{peer // 2}")
        ring.append(Flow(3e8, (f"up{g}", *above, f"down{peer}"), start=0.01))
    return Case("PCIe tree, batches and ring", units, copies + ring)


def random_mesh(seed: int, *, rate_limits: bool) -> Case:
    """Return flows over random sets of links, starting at random times."""
    draw = random.Random(seed)  # noqa: S311 - no secrets
    units = {f"l{i}": round(draw.uniform(1e8, 2e9)) * 1.0 for i in range(8)}
    flows = [
        Flow(
            round(draw.uniform(1e8, 2e9)) * 1.0,
            tuple(draw.sample(sorted(units), draw.randint(1, 4))),
            start=round(draw.uniform(0.0, 10.0), 3),
            ceiling=draw.choice((None, 5e7, 2e8)) if rate_limits else None,
        )
        for _ in range(40)
    ]
    limits = ", rate limits" if rate_limits else ""
    return Case(f"random mesh {seed}{limits}", units, flows)


def host_cases() -> list[Case]:
    """Return cases of work on hosts of one and several cores."""
    core = {"core": 1e9}

    def work(count: int, apart: float, seed: int = 0) -> list[Flow]:
        draw = random.Random(seed)  # noqa: S311 - no secrets
        return [
            Flow(round(draw.uniform(1e8, 3e9)) * 1.0, start=round(apart * i, 6))
            for i in range(count)
        ]

    host = "host"
    return [
        Case("one core, equal work", core, [Flow(1e9) for _ in range(5)], host),
        Case("one core, staggered", core, work(8, 0.4), host),
        Case("four cores, fewer tasks than cores", core, work(3, 0.1, 1), host, 4),
        Case("four cores, ten tasks", core, work(10, 0.0, 2), host, 4),
        Case("four cores, staggered", core, work(20, 0.25, 3), host, 4),
        Case("sixteen cores, fifty tasks", core, work(50, 0.05, 4), host, 16),
    ]


def run(case: Case) -> list[float]:
    """Return the completion time of each flow according to SimGrid."""
    import simgrid  # noqa: PLC0415 - one engine per process

    engine = simgrid.Engine(
        [sys.argv[0], "--log=root.thresh:error", *map("--cfg={}".format, OPTIONS)]
    )
    zone = simgrid.NetZone.create_full_zone("zone")
    finish = [0.0] * len(case.flows)

    def send(number: int, flow: Flow) -> None:
        simgrid.this_actor.sleep_until(flow.start)
        comm = simgrid.Mailbox.by_name(str(number)).put_init(number, int(flow.amount))
        if flow.ceiling is not None:
            comm.set_rate(flow.ceiling)
        comm.start().wait()
        finish[number] = simgrid.Engine.clock

    def receive(number: int) -> None:
        simgrid.Mailbox.by_name(str(number)).get()

    def compute(number: int, flow: Flow) -> None:
        simgrid.this_actor.sleep_until(flow.start)
        simgrid.this_actor.execute(flow.amount)
        finish[number] = simgrid.Engine.clock

    if case.kind == "host":
        host = zone.create_host("host", case.units["core"])
        host.core_count = case.cores
        host.seal()
        actors = [(f"{i}", host, compute, i, flow) for i, flow in enumerate(case.flows)]
    else:
        links = {u: zone.create_link(u, c).seal() for u, c in case.units.items()}
        actors = []
        for i, flow in enumerate(case.flows):
            ends = [zone.create_host(f"{end}{i}", 1e9).seal() for end in ("from", "to")]
            first = zone.create_link(f"latency{i}", 1e15).set_latency(case.latency).seal()
            route = [simgrid.LinkInRoute(link) for link in (first, *map(links.get, flow.route))]
            add_route = partial(zone.add_route, ends[0].netpoint, ends[1].netpoint, None, None)
            add_route(route, False)  # noqa: FBT003 - the binding takes no names
            actors += [(f"from{i}", ends[0], send, i, flow), (f"to{i}", ends[1], receive, i)]
    zone.seal()
    for actor in actors:
        simgrid.Actor.create(*actor)
    engine.run()
    return finish


def rows(case: Case) -> list[dict[str, object]]:
    """Return the rows of the table for a case that has been run."""
    return [
        {
            "case": case.name,
            "kind": case.kind,
            "units": ";".join(f"{unit}={value:.10g}" for unit, value in case.units.items()),
            "cores": case.cores,
            "latency": case.latency,
            "start": flow.start,
            "amount": f"{flow.amount:.10g}",
            "route": " ".join(flow.route),
            "ceiling": "" if flow.ceiling is None else f"{flow.ceiling:.10g}",
            "finish": repr(finish),
        }
        for flow, finish in zip(case.flows, case.finish, strict=True)
    ]


def main() -> None:
    """Run every case in a process of its own, or the one numbered on the command line."""
    cases = link_cases() + host_cases()
    if len(sys.argv) > 1:
        print(json.dumps(run(cases[int(sys.argv[1])])))
        return
    table = []
    for number, case in enumerate(cases):
        command = [sys.executable, __file__, str(number)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
        case.finish = json.loads(done.stdout.splitlines()[-1])
        table += rows(case)
        print(f"{case.name}: {len(case.flows)} flows, last at {max(case.finish):.6g} s")
    with OUTPUT.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)


if __name__ == "__main__":
    main()
