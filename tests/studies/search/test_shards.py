"""Shards of a search: together they are the whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.search import grid, reader

from simulator.studies.search.explore import Request, Standing, explore
from simulator.studies.search.shards import Shard, missing, shards_beside
from simulator.studies.search.store import Store, StoreError

CANDIDATES = grid(input_workers=(1, 2, 3, 4), train_batch_size=(32, 64, 128))


def test_shards_are_a_partition() -> None:
    """Every candidate is in exactly one of them, and none has two more than another."""
    parts = [Shard(number=number, of=5).candidates(CANDIDATES) for number in range(1, 6)]
    assert sorted(one.index for part in parts for one in part) == list(range(12))
    assert {len(part) for part in parts} == {2, 3}


def test_joined_shards_answer_for_the_whole(tmp_path: Path) -> None:
    """The search over joined stores predicts nothing, and says what one search would have said."""
    asked = Request(reader=reader(), candidates=CANDIDATES, exhaustive=True)
    whole = tmp_path / "all.sqlite"
    for number in (1, 2, 3):
        shard = Shard(number=number, of=3)
        part = Request(reader=reader(), candidates=shard.candidates(CANDIDATES), exhaustive=True)
        with Store(shard.store(whole), alone=True) as store:
            explore(part, store=store)
        assert not list(tmp_path.glob("*-wal"))
    assert [shard.number for shard in shards_beside(whole)] == [1, 2, 3]
    told: list[Standing] = []
    with Store(whole) as store:
        assert sum(store.take(file) for file in shards_beside(whole).values()) == len(CANDIDATES)
        assert sum(store.take(file) for file in shards_beside(whole).values()) == 0
        assert explore(asked, store=store, progress=told.append) == explore(asked)
    assert told[-1].predicted == 0


def test_what_is_missing(tmp_path: Path) -> None:
    """Shards without a store are named; files of other searches are not taken for shards."""
    for name in ("all.2-of-3.sqlite", "other.1-of-3.sqlite", "all.sqlite"):
        (tmp_path / name).touch()
    found = tuple(shards_beside(tmp_path / "all.sqlite"))
    assert found == (Shard(number=2, of=3),)
    assert [shard.number for shard in missing(found)] == [1, 3]


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    """What was there stays as it was."""
    bad = tmp_path / "all.1-of-2.sqlite"
    bad.write_text("this is no database, whatever its name may say", encoding="utf-8")
    with Store(tmp_path / "all.sqlite") as store, pytest.raises(StoreError, match=r"all\.1-of-2"):
        store.take(bad)
