"""What a search starts from."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.search.candidates import CandidateReader
from simulator.studies.baseline import baseline_of, with_full_name
from simulator.studies.levers import COUNT, MACHINE

JOB = """\
schema = 1
name = "mine"
[hardware]
machine = "dgx-a100-80gb"
[data]
samples = 1000
bytes_per_sample = "100 kB"
[input]
loader = "pytorch"
decode = "5 ms"
[model]
name = "resnet50"
[train]
batch_size = 64
epochs = 1
precision = "fp16"
"""


@pytest.mark.parametrize("name", ["dgx-a100-80gb", "node/dgx-a100-80gb"])
def test_a_machine_goes_by_any_of_its_names(tmp_path: Path, name: str) -> None:
    """A short name in the file and in a search is the machine on offer."""
    path = tmp_path / "mine.toml"
    path.write_text(JOB.replace("dgx-a100-80gb", name), encoding="utf-8")
    catalogue = Catalogue.default(())
    baseline = baseline_of(CandidateReader(str(path)), catalogue)
    assert baseline.machine(baseline.own.name) == baseline.own
    found = with_full_name({MACHINE: name, COUNT: 2}, catalogue)
    assert found == {MACHINE: "node/dgx-a100-80gb", COUNT: 2}
    assert with_full_name({COUNT: 2}, catalogue) == {COUNT: 2}
