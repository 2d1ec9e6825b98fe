"""Parameters in log space, and errors of rows as a function of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from support.made_up import CPU, STEP, STORE, made_up, model

from simulator.calibration.calibrate import calibrate
from simulator.calibration.fitting import Errors, Predictor, box, knob, observations
from simulator.errors import InputError, NotModelled
from simulator.schema.measurement import Parameter, Row

ROWS = made_up(noise=0.0).rows


def errors_of(
    *parameters: Parameter, predictor: Predictor = model, rows: tuple[Row, ...] = ROWS
) -> Errors:
    """Errors of the made-up rows."""
    return Errors(
        rows=rows,
        knobs=tuple(knob(parameter) for parameter in parameters),
        seen=observations(rows, [STEP]),
        predictor=predictor,
    )


def test_a_parameter_in_log_space() -> None:
    """Start and bounds are logarithms; values come back in the start's unit."""
    one = knob(Parameter(key="input.decode", start="5 ms", low="100 us", high="1 s"))
    assert (one.start, one.low, one.high) == pytest.approx((math.log(0.005), math.log(0.0001), 0.0))
    assert one.override(math.log(0.0125)) == "input.decode=12.5 ms"
    assert one.override(99.0) == "input.decode=1000 ms"


def test_a_lower_bound_of_zero_is_written_as_zero() -> None:
    """It stands a millionth of the upper bound away from where the logarithm ends."""
    one = knob(Parameter(key="input.decode", start="0 s", low="0 s", high="1 s"))
    assert (one.start, one.low) == pytest.approx((math.log(1e-6), math.log(1e-6)))
    assert one.override(one.low) == "input.decode=0 s"
    assert one.override(math.log(0.5)) == "input.decode=0.5 s"


@pytest.mark.parametrize(
    ("start", "low", "high"), [("1", "2", "3"), ("4", "2", "3"), ("1", "3", "1"), ("2", "2", "2")]
)
def test_a_start_outside_its_bounds_is_refused(start: str, low: str, high: str) -> None:
    """The message shows the bounds."""
    with pytest.raises(InputError, match=r"calibration\.cpu: does not lie between its bounds"):
        knob(Parameter(key="calibration.cpu", start=start, low=low, high=high))


def test_what_was_predicted_is_remembered() -> None:
    """A point asked for again, as a whole or in part, costs nothing."""
    calls = []

    def counted(
        row: Row, overrides: tuple[str, ...], metrics: Sequence[str]
    ) -> Mapping[str, float | None]:
        calls.append((row.id, overrides))
        return model(row, overrides, metrics)

    errors = errors_of(CPU, predictor=counted)
    x = np.array([0.3])
    whole = errors(x)
    assert errors.subset([2, 3])(x) == pytest.approx(whole[2:4])
    assert errors(x) == pytest.approx(whole)
    assert len(calls) == len(ROWS) == errors.evaluations


def test_errors_are_logarithms_of_ratios() -> None:
    """Nothing predicted is an error of finite size."""
    errors = errors_of(CPU, STORE)
    truth = np.log([0.5, 0.4])
    assert errors(truth) == pytest.approx(np.zeros(len(ROWS)), abs=1e-5)

    def nothing(
        row: Row, overrides: tuple[str, ...], metrics: Sequence[str]
    ) -> Mapping[str, float | None]:
        del row, overrides
        return dict.fromkeys(metrics, 0.0)

    assert np.all(errors_of(CPU, predictor=nothing)(np.zeros(1)) == pytest.approx(math.log(1e-4)))


def test_slopes_at_a_kink_are_the_mean_of_both_sides() -> None:
    """One worker: as slow as the store to one side, as the cores to the other."""
    row = replace(ROWS[0], overrides=("input.workers=5", "train.batch_size=100"))
    errors = errors_of(CPU, rows=(row,))
    assert errors.jacobian(np.zeros(1)) == pytest.approx(0.0)
    assert errors.jacobian(np.zeros(1), both_sides=True)[0, 0] == pytest.approx(-0.5, abs=0.01)
    _, _, high = box(errors.knobs)
    assert errors.jacobian(high).shape == (1, 1)


def test_all_rows_that_cannot_be_predicted_are_named() -> None:
    """One problem for each of them."""

    def refused(
        row: Row, overrides: tuple[str, ...], metrics: Sequence[str]
    ) -> Mapping[str, float | None]:
        if row.id.startswith("w1"):
            msg = "ten jobs at once"
            raise NotModelled(msg)
        return model(row, overrides, metrics)

    with pytest.raises(InputError) as caught:
        errors_of(CPU, predictor=refused)(np.zeros(1))
    assert [str(p) for p in caught.value.problems] == [
        "row w1-b32: ten jobs at once",
        "row w1-b64: ten jobs at once",
    ]


@pytest.mark.slow
def test_several_processes_find_the_same() -> None:
    """Who predicts the rows changes nothing."""
    alone, together = (
        calibrate([made_up()], [CPU, STORE], predictor=model, processes=count) for count in (1, 2)
    )
    assert together.estimates == alone.estimates
    assert together.residuals == alone.residuals
