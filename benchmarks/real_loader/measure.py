"""Measure the pieces first, then the grid, on files of another seed.  See README.md."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import grid
import pieces
from images import prepare

RESULTS = Path(__file__).parent / "results"
FILES = 2000
PROBE_SEED, GRID_SEED = 2, 1


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["pieces", "memory", "grid", "all"])
    folder = Path(tempfile.gettempdir()) / "real_loader"
    parser.add_argument("--folder", type=Path, default=folder, help="where the files are made")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where tables are written")
    parser.add_argument("--repeats", type=int, default=3, help="runs of everything")
    parser.add_argument(
        "--patience",
        type=float,
        default=1800.0,
        help="seconds to go on if the machine is not quiet",
    )
    given = parser.parse_args()
    given.results.mkdir(parents=True, exist_ok=True)
    seeds = [7000 + 100 * repeat for repeat in range(given.repeats)]
    if given.what != "grid":
        probe = prepare(given.folder / "probe", FILES, PROBE_SEED)
    if given.what in {"pieces", "all"}:
        found = [pieces.time_pieces(probe, seed) for seed in seeds]
        pieces.write(given.results / "pieces.toml", found)
    if given.what in {"memory", "all"}:
        found = [pieces.memory_pieces(probe, seed) for seed in seeds]
        pieces.write(given.results / "memory.toml", found)
    if given.what in {"grid", "all"}:
        files = prepare(given.folder / "grid", FILES, GRID_SEED)
        grid.measure(files, given.results / "grid.csv", given.repeats, given.patience)


if __name__ == "__main__":
    main()
