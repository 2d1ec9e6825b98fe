"""Fits every figure of ``simulator/data`` that is fitted, from the shipped measurement sets.

    python evidence/fit.py [PARTS...] [--tables DIR] [--write] [--fresh]

Parts run in this order, and a later one uses what ships of an earlier one: write it first.

products
    ``[product_share]`` of hardware profiles, from timed matrix products; only with --tables.
kernels
    ``data/kernels``: what kernels, launches and links reach, from steps and memory of language
    models.
unseen
    ``data/unseen.toml``: the same figures fitted without each series and its siblings, and how
    wrong that series is predicted by them.
loader
    What decoding threads cost each other: ``hardware.contention`` of the default profile.
shares
    ``data/kernels``: shares of the data sheet that no language model tells, from steps measured on
    one device.
data-parallel
    ``data/measured/bases/data-parallel*.toml``: cost of ranks in addition to the bytes they
    exchange.
serving
    ``data/forward_pass.toml``: what engines that serve language models reach; only with --tables.
earlier
    ``data/forward_pass_earlier.toml``: what older versions of them reached; only with --tables.
envelope
    ``data/envelope.toml``: what measured runs cover.
distance
    ``data/uncertainty.toml``: how far steps of fitted kernels may be off, the less they are like
    measured ones, from language models predicted without their series. Quick.
uncertainty
    ``data/uncertainty.toml``: how far all other rates may be off, from the errors of other sets.

Each part prints its figures, how well the rows determine them, and which of them differ from those
that ship in four significant digits; ``--write`` puts them into the package. With ``--tables`` rows
come from the tables of a folder, converted again.
Parts that are done are kept in a file next to this one, by what they were made from, and not done
again unless ``--fresh``. Nothing is drawn by chance: searches begin where figures are expected, and
need no seed. Exit code 1 says that a figure differs from the shipped one.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from fitting import (
    data_parallel,
    deviations,
    distance,
    earlier,
    envelope,
    kernels,
    loader,
    products,
    serving,
    shares,
    unseen,
)
from fitting.part import DATA, Outcome, Say
from fitting.state import State, made_from
from fitting.tables import converted

Part = Callable[[Path | None, Say], Outcome]
PARTS: Final[Mapping[str, Part]] = {
    "products": products.part,
    "kernels": kernels.part,
    "unseen": unseen.part,
    "loader": loader.part,
    "shares": shares.part,
    "data-parallel": data_parallel.part,
    "serving": serving.part,
    "earlier": earlier.part,
    "envelope": envelope.part,
    "distance": distance.part,
    "uncertainty": deviations.part,
}
STATE: Final = Path(__file__).resolve().parent / ".fit-state.json"
_NICE: Final = 10
_TOLD: Final = 100
"""Differing figures that are printed one by one."""


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(argv: Sequence[str] | None = None) -> int:
    """Fit what is asked for; 1 where a figure is not the one that ships, 0 otherwise."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PARTS", help=", ".join(PARTS))
    parser.add_argument("--tables", type=Path, metavar="DIR")
    parser.add_argument("--write", action="store_true", help="put figures into the package")
    parser.add_argument("--fresh", action="store_true", help="do again what is done")
    given = parser.parse_args(argv)
    unknown = [name for name in given.parts if name not in PARTS]
    if unknown:
        parser.error(f"there is no part '{unknown[0]}'; there are {', '.join(PARTS)}")
    os.nice(_NICE)
    folder = None if given.tables is None else converted(given.tables, say)
    state, moved = State(STATE), 0
    for name in given.parts or PARTS:
        outcome = _done(name, folder, state, fresh=given.fresh)
        moved += _told(name, outcome)
        if given.write:
            _write(outcome)
    return 1 if moved and not given.write else 0


def _done(name: str, folder: Path | None, state: State, *, fresh: bool) -> Outcome:
    """What a part finds, from the state where it was made from the same."""
    key = made_from(folder)
    known = None if fresh else state.read(name, key)
    if known is not None:
        say(f"{name}: as found before")
        return known
    say(f"{name}: begins")
    start = time.monotonic()
    found = PARTS[name](folder, lambda text: say(f"  {text}"))
    say(f"{name}: done in {time.monotonic() - start:.0f} s")
    state.write(name, key, found)
    return found


def _told(name: str, outcome: Outcome) -> int:
    """Print what a part found; how many of its figures differ from the shipped ones."""
    for line in outcome.lines:
        say(f"  {line}")
    for figure, (old, new) in list(outcome.moved.items())[:_TOLD]:
        say(f"  {figure}: {old:.6g} ships, {new:.6g} fitted")
    say(
        f"{name}: {len(outcome.figures)} figures, {len(outcome.moved)} differ from the shipped ones"
    )
    return len(outcome.moved)


def _write(outcome: Outcome) -> None:
    for name, text in outcome.files.items():
        path = DATA / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            say(f"  wrote {path}")


if __name__ == "__main__":
    sys.exit(main())
