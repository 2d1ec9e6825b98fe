"""Where inputs come from."""

from __future__ import annotations

from simulator.reading.scenario import load_scenario
from simulator.report.prediction.origins import find, origins
from simulator.schema.scenario import Scenario
from simulator.units import BYTE, SECOND


def test_figures_carry_path_unit_and_source(scenario: Scenario) -> None:
    """A figure of a profile is listed with its unit and where it was read."""
    memory = next(o for o in origins(scenario) if o.owner == "gpu/test-40gb" and o.name == "memory")
    assert memory.path == "cluster.groups.host.gpu.memory"
    assert (memory.value, memory.unit) == (40e9, BYTE)
    assert memory.source is not None
    assert memory.source.date == "2020-05"


def test_rates_by_precision_share_the_source_of_their_table(scenario: Scenario) -> None:
    """Each rate of a table of rates is listed under its precision."""
    peak = next(o for o in origins(scenario) if o.path.endswith("gpu.peak.fp16"))
    assert peak.value == 312e12
    assert peak.source is not None


def test_an_input_is_found_by_name_and_value(scenario: Scenario) -> None:
    """The unit in brackets is no part of the name."""
    found = find(origins(scenario), "decode [s]", 0.0016)
    assert found is not None
    assert found.path == "jobs.input.decode"
    assert found.unit is SECOND


def test_an_equal_value_under_another_name_is_no_origin(scenario: Scenario) -> None:
    """Equal numbers alone prove nothing."""
    assert find(origins(scenario), "wheels", 256e9) is None


def test_a_derived_value_has_no_origin(scenario: Scenario) -> None:
    """A number that stands nowhere in the scenario was computed."""
    assert find(origins(scenario), "decode [s]", 0.0017) is None
    assert find(origins(scenario), "decode [s]", 0.0) is None


def test_a_factor_is_no_other_factor() -> None:
    """What any equation may call an input names no figure: launches have a factor of 1 as well."""
    known = origins(load_scenario("turing-nlg-530b"))
    same = [o for o in known if o.name == "factor" and o.value == 1.0]
    assert same
    assert find(known, "factor", 1.0) is None


def test_a_key_left_out_has_the_source_of_its_default() -> None:
    """The scenario does not state `input.receive_per_batch`; its default was measured."""
    known = origins(load_scenario("resnet50-imagenet-p4d"))
    found = find(known, "per_batch [s]", 0.00205)
    assert found is not None
    assert found.path == "jobs.input.receive_per_batch"
    assert found.source is not None
    assert "own measurement" in found.source.reference
