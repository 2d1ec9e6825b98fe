"""Rows that may be runs of a job, found without reading their scenarios."""

from __future__ import annotations

from simulator.reading.measured.measurement_set import load_set, rows_alike
from simulator.reading.scenario import load_scenario


def test_a_row_is_alike_the_scenario_it_describes() -> None:
    """One row of each of three sets is found by the scenario that its own keys make."""
    for name, place in (("published_cases", 0), ("llm_training", 5), ("mlperf_storage", 7)):
        rows = [row for row in load_set(name).rows if not row.excluded]
        row = rows[place]
        scenario = load_scenario(row.base, overrides=row.overrides)
        assert (name, row.id) in {(of, one.id) for of, one in rows_alike(scenario)}


def test_another_batch_is_not_alike() -> None:
    """What a row's base says of it counts as what the row says."""
    other = ("train.batch_size=37",)
    assert rows_alike(load_scenario("resnet50-imagenet-p4d"))
    assert not rows_alike(load_scenario("resnet50-imagenet-p4d", overrides=other))


def test_rows_come_as_their_set_has_them() -> None:
    """Measured values, source and keys of a row that was read alone are those of the whole set."""
    found = dict(rows_alike(load_scenario("bloom-176b")))
    whole = {row.id: row for row in load_set("published_cases").rows}
    assert found["published_cases"] == whole[found["published_cases"].id]
