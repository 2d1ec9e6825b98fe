"""A search in shards: jobs of an array that know nothing of each other, joined by their stores.

A shard takes every n-th candidate and writes a store file of its own, so that no two machines write
one file: what is on the front of all candidates is on the front of its shard. The search over all
of them, with the stores joined, finds nearly all of its predictions made.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from simulator.studies.search.outcome import Candidate


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """Part `number`, from 1, of `of` equal parts."""

    number: int
    of: int

    def candidates(self, every: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """Those of all candidates that are this shard's: neighbours go to different shards.

        Examples
        --------
        >>> every = [Candidate(index=i, settings={}) for i in range(5)]
        >>> [one.index for one in Shard(number=2, of=2).candidates(every)]
        [1, 3]
        """
        return tuple(every[self.number - 1 :: self.of])

    def store(self, path: Path) -> Path:
        """Its own file beside the store of the whole.

        Examples
        --------
        >>> Shard(number=3, of=8).store(Path("results.sqlite")).name
        'results.3-of-8.sqlite'
        """
        return path.with_name(f"{path.stem}.{self.number}-of-{self.of}{path.suffix}")


def shards_beside(path: Path) -> dict[Shard, Path]:
    """Stores that shards of a search have left beside the store of the whole, in their order."""
    named = re.compile(rf"{re.escape(path.stem)}\.(\d+)-of-(\d+){re.escape(path.suffix)}")
    found = {
        Shard(number=int(match[1]), of=int(match[2])): file
        for file in sorted(path.parent.glob(f"*{path.suffix}"))
        if (match := named.fullmatch(file.name))
    }
    return dict(sorted(found.items(), key=lambda entry: (entry[0].of, entry[0].number)))


def missing(found: Sequence[Shard]) -> tuple[Shard, ...]:
    """Shards of the same searches that have left no store.

    Examples
    --------
    >>> missing([Shard(number=1, of=2)])
    (Shard(number=2, of=2),)
    """
    known = set(found)
    return tuple(
        one
        for of in sorted({shard.of for shard in known})
        for number in range(1, of + 1)
        if (one := Shard(number=number, of=of)) not in known
    )
