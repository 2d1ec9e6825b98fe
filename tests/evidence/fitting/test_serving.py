"""The fit of the forward pass: expectations, and the mean time of a token of a closed loop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fitting import serving
from simulator.physics.forward_pass import Iteration
from simulator.reading.service.figures import serving_file
from tests.support.serving_rows import ROW


def test_every_expectation_names_a_figure_of_the_file() -> None:
    """Deviations of zero give what is expected of each figure."""
    file = serving.with_figures(np.zeros(len(serving.expected().figure)))
    for entry in serving.expected().figure:
        for name in entry.names:
            table, *_, last = name.split(".")
            own = file.figures if table == "figures" else file.engine[name.split(".")[1]]
            assert own[last].value == pytest.approx(entry.prior, rel=1e-4)


def test_fitted_figures_are_marked_so_and_the_others_are_not() -> None:
    """A figure with an expectation rests on measured rows or stays where it is expected."""
    names = {name for entry in serving.expected().figure for name in entry.names}
    names |= {"figures.prompt_token"}
    file = serving_file()
    for name, one in file.figures.items():
        assert (one.source == "measured") <= (f"figures.{name}" in names)


def test_runs_keep_the_cache_that_their_engine_does() -> None:
    """On Hopper TensorRT-LLM alone stores keys and values in 8 bit; on Blackwell scripts ask it."""
    assert serving.setup(ROW).spread.cache == "bf16"
    assert serving.setup(replace(ROW, engine="tensorrt-llm")).spread.cache == "fp8"
    assert serving.setup(replace(ROW, gpu="gpu/b200-sxm-180gb")).spread.cache == "fp8"


def test_a_token_takes_an_iteration_and_its_part_of_prompts() -> None:
    """16 requests of 500 tokens compute a prompt in every 31st iteration."""
    setup = serving.setup(ROW)
    one = serving.passes([setup], serving_file())[setup]
    context = 16.0 * (1000.0 + 250.0)
    alone = one.seconds(Iteration(decoding=16, context_tokens=context))
    mixed = one.seconds(
        Iteration(
            prefill_tokens=1000,
            prefill_pairs=500_500.0,
            first_tokens=1,
            decoding=16,
            context_tokens=context,
        )
    )
    expected = alone + 16 / 500 * (mixed - alone)
    assert serving.token_time(ROW, one) == pytest.approx(expected)


def test_figures_that_made_the_rows_are_found_again() -> None:
    """Times made with other figures lead the fit back to them where rows say enough."""
    true = np.zeros(len(serving.expected().figure))
    true[0] = 1.0
    made = serving.with_figures(true)
    rows = [
        replace(ROW, concurrency=count, output=output)
        for count in (1, 4, 16, 64)
        for output in (200, 1000)
    ]
    errors = serving.log_errors(rows, made)
    rows = [
        replace(row, per_token=row.per_token * float(np.exp(error)))
        for row, error in zip(rows, errors, strict=True)
    ]
    assert abs(serving.log_errors(rows, made)).max() < 1e-9
    best = serving.fit(rows)
    assert abs(serving.log_errors(rows, serving.with_figures(best.x))).max() < 0.03
