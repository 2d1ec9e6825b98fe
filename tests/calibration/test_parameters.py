"""From names to parameters with a start and bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.made_up import STORE, made_up

from simulator.calibration.fitting import parameters_of
from simulator.errors import InputError
from simulator.schema.measurement import MeasurementSet, Parameter


def found(
    *names: str, sets: tuple[MeasurementSet, ...] = (), **given: tuple[str, ...]
) -> tuple[Parameter, ...]:
    """Parameters of the made-up set."""
    return parameters_of(names, sets or (made_up(),), given)


def test_a_factor_brings_its_own_bounds() -> None:
    """By its bare name or in full, once."""
    (one,) = found("cpu", "calibration.cpu")
    assert (one.key, one.start, one.low, one.high) == ("calibration.cpu", "1", "0.1", "10")


def test_the_set_says_where_its_parameters_start() -> None:
    """Its [[fit]] table wins over the factor's own bounds."""
    given = replace(STORE, start="0.5", low="0.2", high="3", why="as the set says")
    assert found("storage", sets=(made_up(fit=(given,)),)) == (given,)


def test_options_win() -> None:
    """Each of the three texts on its own."""
    (one,) = found("cpu", start=("cpu=2",), low=("calibration.cpu=0.5",), high=("cpu=4",))
    assert (one.start, one.low, one.high) == ("2", "0.5", "4")


def test_a_key_starts_where_the_scenario_stands() -> None:
    """And is looked for within a factor of ten, which is said."""
    (one,) = found("input.decode")
    assert (one.start, one.low, one.high) == ("20 ms", "2 ms", "200 ms")
    assert "no bounds were given" in one.why


@pytest.mark.parametrize(
    ("names", "given", "said"),
    [
        (("hardware.storage_latency",), {}, "has no start"),
        (("input.receive_per_batch",), {}, "starts at zero"),
        (("cpus",), {}, "is not a key of a scenario"),
        (("cpu",), {"low": ("storage=1",)}, "is not fitted"),
        (("cpu",), {"low": ("cpu",)}, "has no value"),
        (("input.decode",), {"start": ("input.decode=20",)}, "has no unit"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    names: tuple[str, ...], given: dict[str, tuple[str, ...]], said: str
) -> None:
    """One message for each mistake."""
    with pytest.raises(InputError, match=said):
        found(*names, **given)


def test_all_mistakes_are_reported_at_once() -> None:
    """Two wrong names and a wrong option are three problems."""
    with pytest.raises(InputError) as caught:
        found("cpus", "input.workers", low=("storage=1",))
    assert len(caught.value.problems) == 3
