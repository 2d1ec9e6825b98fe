"""Check the invariants and rules on many generated scenarios and on all shipped ones.

Run from the root of the repository:
``python benchmarks/invariants.py --scenarios 20000 --state DIR``.
A killed run goes on where it stopped when it is started again with the same folder.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # to find the tests

from simulator.invariants import INTERVAL_INVARIANTS, INVARIANTS
from tests.support.campaign import Record, campaign, of_seed, of_shipped, shipped
from tests.support.rules import RULES


def main() -> int:
    """Count, print, and end with 1 where something broke."""
    options = _options()
    started = time.monotonic()
    parts = [partial(_part, number, options) for number in range(options.jobs)]
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        answers = [pool.apply_async(part) for part in parts]
        records = [record for answer in answers for record in answer.get()]
    if not options.generated_only:
        records += campaign("shipped", shipped(), of_shipped, options.state)
    _print(records, options.every)
    print(f"took {time.monotonic() - started:.0f} s")
    return 1 if any(record.broken for record in records) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenarios", type=int, default=500, help="how many are generated")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--every", type=int, default=4, help="rules for every how manieth")
    parser.add_argument("--state", type=Path, required=True, help="folder to go on from")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--generated-only", action="store_true", help="no shipped scenarios")
    return parser.parse_args()


def _part(number: int, options: argparse.Namespace) -> list[Record]:
    """Every `jobs`-th seed."""
    seeds = range(options.first + number, options.first + options.scenarios, options.jobs)
    look = partial(_look, options.every)
    name = f"generated-{number}-of-{options.jobs}-rules-{options.every}"
    return list(campaign(name, map(str, seeds), look, options.state))


def _look(every: int, seed: str) -> Record:
    return of_seed(int(seed), rules=int(seed) % every == 0)


def _print(records: Iterable[Record], every: int) -> None:
    outcomes: Counter[str] = Counter()
    compared: Counter[str] = Counter()
    broken: Counter[str] = Counter()
    refused = 0
    for record in records:
        outcomes[record.outcome] += 1
        refused += record.refused
        compared.update(record.compared)
        for law, told in record.broken:
            broken[law] += 1
            print(f"{record.name}: {law}: {told}")
    print(f"scenarios: {dict(outcomes)}; texts refused as invalid before them: {refused:,}")
    predicted = sum(outcomes[name] for name in ("predicted", "broken invariant"))
    for law in (*INVARIANTS, *INTERVAL_INVARIANTS):
        print(f"law   {law.name:55s} {predicted:7,d} looked at, {broken[law.name]:5,d} broken")
    print(f"law   {'no crash':55s} {predicted:7,d} looked at, {broken['no crash']:5,d} broken")
    for rule in RULES:
        told = f"{compared[rule.name]:7,d} compared,  {broken[rule.name]:5,d} broken"
        print(f"rule  {rule.name:55s} {told} (every {every}th)")


if __name__ == "__main__":
    sys.exit(main())
