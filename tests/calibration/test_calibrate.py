"""Fits of named parameters to rows: truth recovered, ignorance admitted, test rows untouched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.made_up import BASE, COMPUTE, CPU, NETWORK, STEP, STORE, made_up, model, values

from simulator.calibration.calibrate import (
    Calibrated,
    Estimate,
    calibrate,
    error_statistics,
    folds_of,
    held_out_errors,
    overlay_of,
)
from simulator.calibration.fitting import Errors, knob, predicted
from simulator.calibration.samples import anchored, samples_of
from simulator.errors import InputError
from simulator.schema.measurement import Parameter, Row, Split


def estimate(found: Calibrated, key: str) -> Estimate:
    """What was found for one key."""
    return next(one for one in found.estimates if one.parameter.key == key)


def test_a_made_up_truth_is_found_between_its_intervals() -> None:
    """Two parameters from noisy rows, each with an interval that is narrow and holds."""
    found = calibrate([made_up()], [CPU, STORE], predictor=model)
    for key, truth in (("calibration.cpu", 0.5), ("calibration.storage", 0.4)):
        one = estimate(found, key)
        assert one.p10 is not None
        assert one.p90 is not None
        assert float(one.value) == pytest.approx(truth, rel=0.04)
        assert float(one.p10) < truth < float(one.p90)
        assert float(one.p90) / float(one.p10) < 1.15
        assert (one.at_bound, one.identified) == (None, True)
    assert found.identifiability.correlated == ()
    assert found.folds == 5


def test_the_fit_is_better_than_the_start_and_honest_about_new_rows() -> None:
    """The error falls to the noise; held out it is not smaller than fitted."""
    found = calibrate([made_up()], [CPU, STORE], predictor=model)
    before, fitted, held = (
        error_statistics(found.residuals, which) for which in ("before", "fitted", "held_out")
    )
    assert before
    assert fitted
    assert held
    assert before["mean"] > 0.4
    assert fitted["mean"] < 0.03
    assert fitted["mean"] <= held["mean"] < 0.05


def test_an_outlier_does_not_drag_the_fit() -> None:
    """One row ten times too slow moves the value by less than the noise of plain squares."""
    clean = made_up(noise=0.0)
    first = clean.rows[0]
    slow = replace(first, measured={STEP: 10.0 * first.measured[STEP]})
    found = calibrate([replace(clean, rows=(slow, *clean.rows[1:]))], [CPU, STORE], predictor=model)
    assert float(estimate(found, "calibration.cpu").value) == pytest.approx(0.5, rel=0.12)


def test_two_parameters_that_only_count_together_are_named() -> None:
    """Their product is known, neither of them is, and the report says so."""
    found = calibrate([made_up()], [CPU, COMPUTE, STORE], predictor=model)
    pairs = [{first, second} for first, second, _ in found.identifiability.correlated]
    assert pairs == [{"calibration.cpu", "calibration.compute"}]
    assert found.identifiability.correlated[0][2] < -0.95
    product = float(estimate(found, "calibration.cpu").value) * float(
        estimate(found, "calibration.compute").value
    )
    assert product == pytest.approx(0.5, rel=0.05)


def test_what_rows_say_nothing_about_stays_at_its_start() -> None:
    """A network that no row uses keeps its value and gets no interval."""
    found = calibrate([made_up()], [CPU, NETWORK], predictor=model)
    one = estimate(found, "calibration.network")
    assert (one.value, one.identified, one.log_sd, one.p10) == ("1", False, None, None)
    assert all(c == 0.0 for c in found.covariance[1])
    assert "calibration.network" not in {p.key for p in overlay_of(found, "2026-11-21").parameter}


def test_a_value_at_a_bound_is_reported() -> None:
    """The rows ask for less than the bound allows."""
    tight = replace(CPU, low="0.8")
    found = calibrate([made_up()], [tight, STORE], predictor=model)
    one = estimate(found, "calibration.cpu")
    assert (float(one.value), one.at_bound, one.p10) == (pytest.approx(0.8, rel=1e-3), "low", None)


def test_a_lower_bound_of_zero_can_be_reached() -> None:
    """A time that isn't there is fitted to nothing, written in the unit it was given in."""
    overhead = Parameter(key="input.per_batch", start="10 ms", low="0 s", high="1 s")

    def with_overhead(
        row: Row, overrides: tuple[str, ...], metrics: Sequence[str]
    ) -> Mapping[str, float | None]:
        plain = model(row, (), (STEP,))[STEP] or 0.0
        said = values(row, overrides)["input.per_batch"] * 0.001
        return dict.fromkeys(metrics, plain + said)

    found = calibrate([made_up(truth=(), noise=0.0)], [overhead], predictor=with_overhead)
    one = estimate(found, "input.per_batch")
    # The prior asks for 10 ms, as weakly as an error of 1% of the shortest step, 64 ms.
    assert float(one.value.removesuffix(" ms")) < 0.2


def test_rows_held_out_for_testing_are_not_used() -> None:
    """Wrong test rows change nothing, unless they are asked for."""
    clean = made_up(noise=0.0)
    wrong = tuple(
        replace(row, id=f"{row.id}-test", split=Split.TEST, measured={STEP: 9.0})
        for row in clean.rows
    )
    both = replace(clean, rows=(*clean.rows, *wrong))
    found = calibrate([both], [CPU, STORE], predictor=model)
    assert float(estimate(found, "calibration.cpu").value) == pytest.approx(0.5, rel=0.01)
    assert len(found.samples.rows) == len(clean.rows)
    everything = calibrate([both], [CPU, STORE], use_all=True, predictor=model)
    assert len(everything.samples.rows) == 2 * len(clean.rows)
    assert "held out for testing" in overlay_of(everything, "2026-11-21").source


def test_excluded_rows_are_not_used() -> None:
    """A row with a reason not to be predicted is not fitted to."""
    clean = made_up(noise=0.0)
    odd = replace(clean.rows[0], id="odd", excluded="cold", measured={STEP: 99.0})
    found = calibrate([replace(clean, rows=(*clean.rows, odd))], [CPU], predictor=model)
    assert "odd" not in {row.id for row in found.samples.rows}


def test_too_few_configurations_give_no_interval() -> None:
    """With as many parameters as configurations the rows are met exactly in any case."""
    found = calibrate([made_up(workers=(1, 8))], [CPU, STORE], predictor=model)
    assert {one.log_sd for one in found.estimates} == {None}
    assert {one.p10 for one in found.estimates} == {None}


def test_one_configuration_is_not_cross_validated() -> None:
    """There is nothing to hold out."""
    found = calibrate([made_up(workers=(2,))], [CPU], predictor=model)
    assert found.folds == 0
    assert {one.held_out for one in found.residuals} == {None}


def test_a_row_that_sets_the_key_itself_is_refused() -> None:
    """A key that rows give cannot be fitted; the message says what can."""
    clean = made_up()
    own = replace(clean.rows[0], overrides=(*clean.rows[0].overrides, "calibration.cpu=1"))
    with pytest.raises(InputError, match=r"is set by 1 of 12 rows, such as w1-b32") as caught:
        calibrate([replace(clean, rows=(own, *clean.rows[1:]))], [CPU], predictor=model)
    assert "factor of [calibration]" in str(caught.value)


def test_sets_without_rows_to_fit_are_refused() -> None:
    """All rows are held out: say so, and how to use them."""
    clean = made_up()
    rows = tuple(replace(row, split=Split.TEST) for row in clean.rows)
    with pytest.raises(InputError, match="no row that may be fitted to"):
        calibrate([replace(clean, rows=rows)], [CPU], predictor=model)


def test_constants_of_groups_come_first() -> None:
    """Rows of a group are fitted with the constants that the group's anchor gives it."""
    fast, slow = (
        made_up(truth=("calibration.cpu=0.5", f"calibration.storage={rate}"), noise=0.0)
        for rate in (0.2, 0.05)
    )
    rows = []
    for one, name in ((fast, "fast"), (slow, "slow")):
        for row in one.rows:
            labels = {**row.labels, "system": name}
            anchor = row.id == "w8-b64"
            rows.append(replace(row, id=f"{name}-{row.id}", labels=labels, anchor=anchor))
    grouped = replace(fast, rows=tuple(rows), group_by=("system",), fit=(STORE,))
    found = calibrate([grouped], [CPU], predictor=model)
    fitted = error_statistics(found.residuals, "fitted")
    assert fitted
    assert float(estimate(found, "calibration.cpu").value) == pytest.approx(0.5, rel=0.01)
    assert fitted["largest"] < 0.01


@pytest.mark.slow
def test_the_real_model_gives_its_own_truth_back() -> None:
    """Rows predicted with known factors, 1% noise: a fit from elsewhere finds them."""
    truth = ("calibration.cpu=0.7",)
    rows = []
    for number, workers in enumerate((1, 2, 4)):
        row = Row(
            id=f"w{workers}",
            base=BASE,
            overrides=(f"input.workers={workers}", "train.epochs=1"),
            measured={},
            family="own",
            split=Split.FIT,
        )
        exact = predicted(row, truth, (STEP,))[STEP] or 0.0
        rows.append(replace(row, measured={STEP: exact * (1.01, 0.99, 1.0)[number]}))
    found = calibrate([made_up(rows=tuple(rows), configuration=())], [CPU], folds=3)
    one = estimate(found, "calibration.cpu")
    assert float(one.value) == pytest.approx(0.7, rel=0.01)
    assert one.p10 is not None
    assert one.p90 is not None
    assert float(one.p10) < 0.7 < float(one.p90)


def test_anchors_give_overrides() -> None:
    """One anchor, one parameter: the override that makes the row come out as measured."""
    row = made_up(noise=0.0).rows[0]
    (override,) = anchored([row], [CPU], [STEP], predictor=model)
    assert override.startswith("calibration.cpu=")
    assert model(row, (override,), [STEP])[STEP] == pytest.approx(row.measured[STEP], rel=0.002)


def test_few_predictions_are_made_for_an_anchor() -> None:
    """A group costs a handful of predictions, since a set has many."""
    calls = []

    def counted(
        row: Row, overrides: tuple[str, ...], metrics: Sequence[str]
    ) -> Mapping[str, float | None]:
        calls.append(overrides)
        return model(row, overrides, metrics)

    anchored([made_up(noise=0.0).rows[0]], [CPU, STORE], [STEP], predictor=counted)
    assert len(calls) <= 9
    assert len(set(calls)) == len(calls)


def test_an_anchor_that_says_nothing_leaves_the_start() -> None:
    """Nothing measured, nothing fitted; measured but not to blame: the start."""
    row = made_up(noise=0.0, truth=()).rows[0]
    assert anchored([], [CPU], [STEP], predictor=model) == ()
    assert anchored([row], [CPU], ["first_step_s"], predictor=model) == ()
    assert anchored([row], [NETWORK], [STEP], predictor=model) == ("calibration.network=1",)


def test_a_metric_that_does_not_apply_is_refused() -> None:
    """The message names the row and the column."""
    row = made_up().rows[0]

    def without(
        row: Row, overrides: tuple[str, ...], metrics: Sequence[str]
    ) -> Mapping[str, float | None]:
        del row, overrides
        return dict.fromkeys(metrics, None)

    with pytest.raises(
        InputError, match=r"row w1-b32: measured\.step_time_s\.mean: does not apply"
    ):
        anchored([row], [CPU], [STEP], predictor=without)


NAMES = st.lists(st.text(max_size=3), min_size=1, max_size=30)


@given(NAMES, st.integers(min_value=1, max_value=8))
def test_every_configuration_is_in_exactly_one_part(names: list[str], count: int) -> None:
    """None twice, none forgotten, parts of nearly equal size, the same every time."""
    parts = folds_of(names, count)
    assert sorted(name for part in parts for name in part) == sorted(set(names))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert folds_of(list(reversed(names)), count) == parts


def test_a_fold_is_fitted_without_its_rows() -> None:
    """Rows held out can say anything: the fit that predicts them does not change."""
    clean = made_up(noise=0.0, truth=("calibration.cpu=0.5",))
    samples = samples_of([clean], [CPU], model)
    held = frozenset({"made-up 1"})
    found = []
    for wrong in (1.0, 7.0):
        seen = tuple(
            type(o)(row=o.row, metric=STEP, measured=o.measured * (wrong if o.row < 2 else 1.0))
            for o in samples.seen
        )
        errors = Errors(rows=samples.rows, knobs=(knob(CPU),), seen=seen, predictor=model)
        out = held_out_errors(errors, samples.configurations, held, np.array([0.0]))
        assert set(out) == {0, 1}
        found.append(np.exp([out[0] + np.log(wrong), out[1] + np.log(wrong)]))
    assert found[0] == pytest.approx(found[1], rel=1e-6)


def test_a_group_with_nothing_but_fallbacks_is_refused() -> None:
    """Where the constant that its anchors show is fitted alone, what is left fits nothing."""
    rows = [row for row in made_up().rows if row.split is Split.FIT][:1]
    with pytest.raises(InputError, match=r"calibration\.cpu"):
        anchored(rows, [replace(CPU, fallback=True)], [STEP], predictor=model)
