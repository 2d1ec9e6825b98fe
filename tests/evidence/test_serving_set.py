"""Which rules of an engine the shipped set of services takes."""

from __future__ import annotations

from serving_set import released_by
from simulator.reading.service.engines import engine_file


def test_a_date_decides_where_no_version_is_named() -> None:
    """The newest rules that were out then; the oldest known ones before that."""
    file = engine_file("vllm")
    assert released_by(file, "2024-10") == "0.4"
    assert released_by(file, "2025-03") == "0.8"
    assert released_by(file, "2020-01") == "0.4"
