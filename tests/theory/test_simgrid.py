"""The engine gives the times that SimGrid gives (benchmarks/simgrid/make_reference.py)."""

import csv
import math
from collections.abc import Generator
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import pytest
from simpy import Environment, Event

from simulator.engine.cpu_pool import CpuPool
from simulator.engine.flows import FlowNetwork

TABLE = Path(__file__).parent / "data" / "simgrid_reference.csv"
AGREEMENT = 1e-6
Row = dict[str, str]


def cases() -> dict[str, list[Row]]:
    """Return the rows of the table by case."""
    with TABLE.open(newline="") as file:
        return {
            name: list(rows) for name, rows in groupby(csv.DictReader(file), itemgetter("case"))
        }


def finish_times(rows: list[Row]) -> list[float]:
    """Return the completion times of a case according to the engine."""
    env = Environment()
    units = {
        name: float(value) for name, value in (u.split("=") for u in rows[0]["units"].split(";"))
    }
    network = FlowNetwork(env, units)
    cores = int(rows[0]["cores"])
    pool = CpuPool(env, cores=cores, threads=cores, smt_worth=0.0, speed=units.get("core", 1.0))
    finish = [math.nan] * len(rows)

    def ask(row: Row) -> Event:
        if row["kind"] == "host":
            return pool.run(float(row["amount"]))
        return network.transfer(
            float(row["amount"]),
            [(unit, 1.0) for unit in row["route"].split()],
            ceiling=float(row["ceiling"] or math.inf),
            latency=float(row["latency"]),
        )

    def flow(number: int, row: Row) -> Generator[Event, None, None]:
        yield env.timeout(float(row["start"]))
        yield ask(row)
        finish[number] = env.now

    for number, row in enumerate(rows):
        env.process(flow(number, row))
    env.run()
    return finish


@pytest.mark.parametrize("rows", cases().values(), ids=cases())
def test_completion_times_are_those_of_simgrid(rows: list[Row]) -> None:
    """Every flow of every case ends when SimGrid says."""
    expected = [float(row["finish"]) for row in rows]
    assert finish_times(rows) == pytest.approx(expected, rel=AGREEMENT, abs=0.0)


def test_reference_covers_links_and_hosts() -> None:
    """The table holds at least 12 cases of shared links and 4 of shared hosts."""
    kinds = [rows[0]["kind"] for rows in cases().values()]
    assert kinds.count("link") >= 12
    assert kinds.count("host") >= 4
