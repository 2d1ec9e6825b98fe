"""What a first scenario holds where nobody said anything."""

from __future__ import annotations

from simulator.files.starter import defaults


def test_a_model_of_a_table_reads_small_rows_front_to_back() -> None:
    """Nobody decodes pictures for a boosted tree: rows are small and shards are read whole."""
    found = defaults(model="gradient-boosted-trees")
    assert found["data.access"] == "sequential"
    assert found["input.decode"] == "2 us"
