"""The listing of the model library."""

from __future__ import annotations

import csv
import io
import json

from simulator.reading.model_library import model_names
from simulator.report.document import Format, render
from simulator.report.library import models_document

NAMES = model_names()


def test_the_listing_names_every_model() -> None:
    """One line a model, with parameters and operations."""
    lines = render(models_document(), Format.TABLE).splitlines()
    assert len(lines) == len(NAMES) + 1
    assert all(line.startswith(name) for line, name in zip(lines[1:], NAMES, strict=True))
    row = next(line for line in lines if line.startswith("resnet50 "))
    assert "25,557,032" in row
    assert "8.178 GFLOP" in row


def test_every_form_says_the_same() -> None:
    """CSV and JSON hold exact counts, Markdown what the listing shows."""
    rows = {
        row["model"]: row
        for row in csv.DictReader(io.StringIO(render(models_document(), Format.CSV)))
    }
    told = {
        one["model"]: one for one in json.loads(render(models_document(), Format.JSON))["models"]
    }
    assert tuple(rows) == tuple(told) == NAMES
    assert float(rows["resnet50"]["parameters"]) == told["resnet50"]["parameters"] == 25557032
    assert "| resnet50 | 25,557,032 | 8.178 GFLOP |" in render(models_document(), Format.MARKDOWN)
