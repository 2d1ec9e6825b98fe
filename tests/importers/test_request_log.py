"""Logs of requests become a trace, a service with it, and what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.errors import InputError
from simulator.importers import request_log
from simulator.reading.measured.measurement_set import parse_set
from simulator.reading.merge_documents import chain_of
from simulator.reading.service.scenario import ServiceReader
from simulator.schema.serving import Trace

LOG = """arrival,input_tokens,output,latency,ttft
2.0,100,11,2.0,1.0
1.0,300,1,1.0,1.0
"""


def written(path: Path, text: str) -> Path:
    """A file with this text."""
    path.write_text(text, encoding="utf-8")
    return path


def test_a_log_is_read_in_the_order_of_arrivals(tmp_path: Path) -> None:
    """Arrivals begin at 0; tokens after the first have the rest of the latency."""
    log = request_log.read(written(tmp_path / "log.csv", LOG))
    assert (log.arrivals, log.prompts, log.outputs) == ((0.0, 1.0), (300, 100), (1, 11))
    assert log.measured["end_to_end_s.mean"] == 1.5
    assert log.measured["per_token_s.p50"] == pytest.approx(0.1)
    assert "end_to_end_s.p99" not in log.measured


def test_mistakes_of_a_log_are_told_at_once(tmp_path: Path) -> None:
    """Columns that are missing by their usual names; cells with their lines."""
    with pytest.raises(InputError, match="latency"):
        request_log.read(written(tmp_path / "a.csv", "arrival,input,output\n1,2,3\n"))
    text = "arrival,input,output,latency\nsoon,2,3,1\n1,-2,3,-1\n"
    with pytest.raises(InputError) as caught:
        request_log.read(written(tmp_path / "b.csv", text))
    assert [one.line for one in caught.value.problems] == [2, 3, 3]


def test_its_files_are_a_service_and_a_set(tmp_path: Path) -> None:
    """The service has the trace for its load, for any load of the one it extends."""
    log = request_log.read(written(tmp_path / "log.csv", LOG))
    files = request_log.service_files(log, "llama3-8b-chat-h100", "mine")
    for name, text in files.items():
        written(tmp_path / name, text)
    service = ServiceReader(chain_of(str(tmp_path / "mine-service.toml")), "x").read({})
    assert isinstance(service.load.arrivals, Trace)
    assert service.load.arrivals.prompts == (300, 100)
    found = parse_set(files["mine.toml"], files["mine.csv"], "mine.toml", tmp_path)
    assert found.metrics == tuple(log.measured)


def test_a_comma_alone_is_no_log(tmp_path: Path) -> None:
    """It has no columns."""
    path = tmp_path / "log.csv"
    path.write_text(",\n")
    with pytest.raises(InputError, match="has no columns; the first line names the columns"):
        request_log.read(path)
