"""Watching what is asked of a draft: every way to look at a setting is noticed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from simulator.files.base import base_of
from simulator.files.merge_documents import gather
from simulator.files.questions import Notes, Settings, watched
from simulator.files.resolved import Draft
from simulator.files.sections import HardwareSection, ScenarioFile
from simulator.scenario.hardware.host import Host

KEYS = {
    "hardware.count": "2",
    "train.batch_size": "4",
    "train.evaluation.samples": "100",
    "parallelism.tensor": "2",
    "hardware.machine": "node/dgx-a100-80gb",
}
NUMBERS = {key: number for number, key in enumerate(KEYS)}


def asked(look: Callable[[Draft], object]) -> set[str]:
    """The settings that a function of a draft looks at."""
    document, _ = gather("resnet18-imagenet-one-worker", model=ScenarioFile)
    base = base_of(document)
    assert base is not None
    texts = [f"{key}={value}" for key, value in KEYS.items()]
    draft = base.with_options(texts)
    assert draft is not None
    sections = {name: getattr(draft, name) for name in base.checked}
    notes = Notes(
        settings=Settings([tuple(key.split(".")) for key in KEYS]),
        names=frozenset({NUMBERS["hardware.machine"]}),
        plain=sections,
        asked=set(),
    )
    answer, plain = look(watched(draft, notes)), look(draft)
    if isinstance(plain, str | int | tuple | bool):
        assert answer == plain
    return {key for key, number in NUMBERS.items() if number in notes.asked}


TRAIN = {"train.batch_size", "train.evaluation.samples"}
HARDWARE = {"hardware.count", "hardware.machine"}


@pytest.mark.parametrize(
    ("look", "about"),
    [
        (lambda d: d.train.batch_size, {"train.batch_size"}),
        (lambda d: d.train.evaluation.samples, {"train.evaluation.samples"}),
        (lambda d: d.train.optimizer, set()),
        (lambda d: d.data.samples, set()),
        (lambda d: d.train.model_fields_set, TRAIN),
        (lambda d: len(vars(d.train)), TRAIN),
        (lambda d: isinstance(d.hardware, HardwareSection), set()),
        (lambda d: d.host, {"hardware.machine"}),
        (lambda d: d.gpus, {"hardware.machine"}),
        (lambda d: d.ranks, {"hardware.machine", "hardware.count", "parallelism.tensor"}),
        (lambda d: d.is_sound("train.batch_size"), set()),
        (lambda d: d.document.place(("train", "batch_size")), {"train.batch_size"}),
        (lambda d: d.document.place(("data", "samples")), set()),
        (lambda d: d.document.place(("train", "no_such_key")), TRAIN),
        (lambda d: d.document.place(("parallelism",)), {"parallelism.tensor"}),
        (lambda d: d.document.place(("parallelism", "pipeline")), {"parallelism.tensor"}),
        (lambda d: d.document.says(("train", "evaluation")), {"train.evaluation.samples"}),
        (lambda d: str(d.document.problem(("train", "batch_size"), "x")), {"train.batch_size"}),
        (lambda d: d.document.origin, set()),
        (lambda d: len(d.document.data), set(KEYS)),
        (lambda d: len(d.document.lines), set(KEYS)),
        (lambda d: type(replace(d.document, origin="x")).__name__, set(KEYS)),
    ],
)
def test_what_an_answer_depends_on(look: Callable[[Any], object], about: set[str]) -> None:
    """A field, a table, a whole section, a derived figure, a place in a file."""
    assert asked(look) == about


def test_a_section_that_follows_from_others_depends_on_everything() -> None:
    """Its one step time stands at the batch size of another section."""

    def look(draft: Draft) -> object:
        return draft.model

    document, _ = gather("resnet50-m40", model=ScenarioFile)
    base = base_of(document)
    assert base is not None
    draft = base.with_options(["model.step_time=30 ms", "train.batch_size=8"])
    assert draft is not None
    assert draft.model is not None
    plain = base.section(["model.step_time=30 ms"])
    assert draft.model is not plain
    settings = Settings([("model", "step_time"), ("train", "batch_size")])
    notes = Notes(settings=settings, names=frozenset(), plain={"model": plain}, asked=set())
    look(watched(draft, notes))
    assert notes.asked == {0, 1}


def test_the_host_is_the_one_looked_up() -> None:
    """A watched draft hands out the objects of its own draft."""
    document, _ = gather("resnet50-m40", model=ScenarioFile)
    base = base_of(document)
    assert base is not None
    draft = base.with_options([])
    assert draft is not None
    notes = Notes(settings=Settings([]), names=frozenset(), plain=base.checked, asked=set())
    assert watched(draft, notes).host is None
    assert not isinstance(watched(draft, notes).host, Host)
    assert watched(draft, notes).hardware is draft.hardware
