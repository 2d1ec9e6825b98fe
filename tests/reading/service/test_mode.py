"""A file is a service's by its key ``mode``, unless that names a way to train."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.errors import InputError
from simulator.reading.document import parse_document
from simulator.reading.merge_documents import describes_service
from simulator.reading.scenario import load_scenario


@pytest.mark.parametrize(("text", "serves"), [("serve", True), ("srve", True), ("prepare", False)])
def test_a_mode_of_training_is_no_service(text: str, serves: bool) -> None:  # noqa: FBT001
    """A slip in ``serve`` stays a service's; ``prepare`` belongs to a job."""
    document = parse_document(f'schema = 1\nmode = "{text}"\n'.encode(), "mine.toml")
    assert describes_service([document]) is serves


def test_a_mode_of_training_at_the_top_is_told_its_place(tmp_path: Path) -> None:
    """A new user who puts ``mode = "prepare"`` at the top is sent to ``train.mode``."""
    file = tmp_path / "mine.toml"
    file.write_text('schema = 1\nmode = "prepare"\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"train\.mode"):
        load_scenario(str(file))
