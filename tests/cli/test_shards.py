"""``plan sweep --shard`` and ``--merge``, as the jobs of an array use them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
SWEEP = (
    *("sweep", "resnet18-imagenet-one-worker", "--over", "input.workers=1..4"),
    *("--set", "data.samples=4096", "--jobs", "1", "--exhaustive"),
)


def test_shards_and_the_whole_agree(plan: Run, tmp_path: Path) -> None:
    """Two shards, then --merge: the answer of one sweep, without another prediction."""
    store = str(tmp_path / "all.sqlite")
    for number in (1, 2):
        outcome = plan(*SWEEP, "--store", store, "--shard", f"{number}/2")
        assert outcome.code == 0
        assert f"shard {number} of 2: 2 of 4 candidates" in outcome.err
    merged = plan(*SWEEP, "--store", store, "--merge", "--json")
    assert "took 4 results of 2 shards" in merged.err
    alone = plan(*SWEEP, "--store", str(tmp_path / "one.sqlite"), "--json")
    assert json.loads(merged.out) == json.loads(alone.out)


def test_a_shard_as_data_says_that_it_is_one(plan: Run, tmp_path: Path) -> None:
    """Its number, and candidates by their numbers among all; all of them are no shard."""
    store = ("--store", str(tmp_path / "all.sqlite"))
    found = json.loads(plan(*SWEEP, *store, "--shard", "2/2", "--json").out)
    assert found["shard"] == {"number": 2, "of": 2}
    assert [one["candidate"] for one in found["candidates"]] == [1, 3]
    assert "shard 2 of 2 alone" in plan(*SWEEP, *store, "--shard", "2/2").out
    assert "shard" not in json.loads(plan(*SWEEP, *store, "--json").out)


@pytest.mark.parametrize("option", [("--shard", "1/2"), ("--merge",), ("--exhaustive",)])
def test_services_are_swept_whole(plan: Run, option: tuple[str, ...]) -> None:
    """Each job of an array would size all of them: the option is refused."""
    outcome = plan("sweep", "image-classifier-t4", "--over", "serving.replicas=1,2", *option)
    assert outcome.code == 2
    assert f"{option[0]} means nothing for a service" in outcome.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--shard", "1/2"), "need --store"),
        (("--shard", "3/2", "--store", "s.sqlite"), "is no part of a whole"),
        (("--shard", "0/2", "--store", "s.sqlite"), "is no part of a whole"),
        (("--shard", "9/9", "--store", "s.sqlite"), "there are only 4 candidates"),
        (("--shard", "1/2", "--merge", "--store", "s.sqlite"), "exclude each other"),
        (("--merge", "--store", "s.sqlite"), "there are no shards beside"),
    ],
)
def test_mistakes(
    plan: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    message: str,
) -> None:
    """One clear message, and exit code 2."""
    monkeypatch.chdir(tmp_path)
    outcome = plan(*SWEEP, *options)
    assert outcome.code == 2
    assert message in outcome.err
