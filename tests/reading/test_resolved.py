"""A draft and its parts: each part sees what it says it reads, and nothing else."""

from __future__ import annotations

from dataclasses import fields

import pytest

from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.merge_documents import gather
from simulator.reading.resolved import (
    LOOKED_UP,
    SECTIONS,
    SETTLED,
    Draft,
    look_up,
    part,
    read_sections,
)
from simulator.reading.scenario import ModelLibrary
from simulator.reading.sections import ScenarioFile


@pytest.fixture(scope="module")
def draft() -> Draft:
    """A shipped scenario as a draft, everything looked up."""
    document, _ = gather("resnet50-imagenet-p4d", model=ScenarioFile)
    return look_up(read_sections(document)[0], Catalogue.default(), ModelLibrary())[0]


def test_a_draft_is_made_of_sections_and_what_follows_from_them() -> None:
    """No field is left out where candidates are compared field by field."""
    known = {*SECTIONS, *LOOKED_UP, *SETTLED, "document", "broken"}
    assert {field.name for field in fields(Draft)} == known


def test_a_part_reads_what_it_says(draft: Draft) -> None:
    """Its sections, and what the document says about them."""
    size = part(lambda d: d.data.samples * d.gpus, "data gpus")
    assert size(draft) == draft.data.samples * draft.gpus
    given = part(lambda d: d.document.says(("data", "samples")), "data")
    assert given(draft) is True


@pytest.mark.parametrize("name", [*SECTIONS, *LOOKED_UP, *SETTLED])
def test_a_part_cannot_read_another_field(draft: Draft, name: str) -> None:
    """Whichever it is: what has been made of one draft must hold for others that agree."""
    with pytest.raises(AttributeError, match=name):
        part(lambda d: getattr(d, name), "")(draft)


def test_a_part_cannot_ask_where_another_section_is_said(draft: Draft) -> None:
    """Neither for a value, nor for its place in the files, nor for a whole document."""
    for path in (("data", "samples"), ("data",), ()):
        with pytest.raises(LookupError, match="only train may be"):
            part(lambda d: d.document.value(path), "train")(draft)  # noqa: B023 - called at once
        with pytest.raises(LookupError, match="only train may be"):
            part(lambda d: d.document.place(path), "train")(draft)  # noqa: B023 - called at once


def test_what_sections_settle_together(draft: Draft) -> None:
    """Eight accelerators of the machine in use; a replica on each; no batches are added up."""
    assert draft.gpus == draft.ranks == draft.ranks_per_host == 8
    assert draft.accumulation == draft.copies == draft.replica == 1
    assert draft.gpu is not None
