"""``--shard`` and ``--merge``: a sweep as jobs of an array, each with a store of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from simulator.cli.output import complain
from simulator.cli.searching import Means, open_store

if TYPE_CHECKING:
    from simulator.studies.search.outcome import Candidate
    from simulator.studies.search.shards import Shard

Verb = TypeVar("Verb", bound=Callable[..., Any])


def shard_options(verb: Verb) -> Verb:
    """Add ``--shard`` and ``--merge`` to a verb, which gets `shard` and `merge`."""
    for add in (
        click.option(
            "--merge",
            "merge",
            is_flag=True,
            help="Take what the shards beside --store have found, then answer about all.",
        ),
        click.option(
            "--shard",
            "shard",
            metavar="I/N",
            help="Only the I-th of N parts of the candidates, for job arrays; each part writes a "
            "file of its own beside --store.",
        ),
    ):
        verb = add(verb)
    return verb


def shard_of(text: str | None, store: Path | None, *, merge: bool) -> Shard | None:
    """The shard that an option names; None: all candidates.

    Raises
    ------
    click.UsageError
        If it is none, or there is no file that the shards could be joined by.
    """
    from simulator.studies.search.shards import Shard

    if text is not None and merge:
        msg = "--shard and --merge exclude each other: merge once all shards have ended"
        raise click.UsageError(msg)
    if store is None and (text is not None or merge):
        msg = "--shard and --merge need --store FILE: each shard writes a file of its own beside it"
        raise click.UsageError(msg)
    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d+)\s*/\s*(\d+)\s*", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        msg = f"--shard {text}: is no part of a whole; write it like 3/8, from 1/8 to 8/8"
        raise click.UsageError(msg)
    return Shard(number=int(match[1]), of=int(match[2]))


def told_shard(
    shard: Shard, every: Sequence[Candidate], store: Path | None
) -> tuple[Candidate, ...]:
    """The shard's candidates; says how many there are and where their results go."""
    own = shard.candidates(every)
    if not own:
        msg = f"--shard {shard.number}/{shard.of}: there are only {len(every):,} candidates"
        raise click.UsageError(msg)
    where = "" if store is None else f"; results go to {shard.store(store)}"
    complain(
        f"shard {shard.number} of {shard.of}: {len(own):,} of {len(every):,} candidates{where}"
    )
    return own


def merge_shards(means: Means) -> None:
    """Put what the shards beside the store have found into it.

    Raises
    ------
    click.UsageError
        If there are none.
    """
    from simulator.studies.search.shards import missing, shards_beside

    path = means.store or Path()
    found = shards_beside(path)
    if not found:
        msg = f"--merge: there are no shards beside {path}, such as {path.stem}.1-of-8{path.suffix}"
        raise click.UsageError(msg)
    with open_store(means) as store:
        taken = sum(store.take(file) for file in found.values())
    complain(f"took {taken:,} results of {len(found):,} shards")
    lacking = ", ".join(f"{one.number}/{one.of}" for one in missing(tuple(found)))
    if lacking:
        complain(
            f"warning: no results of shards {lacking}; what is needed of them is predicted now"
        )
