"""Time of requests outside iterations: found again from times that it made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fitting import serving_replies
from fitting.serving_replies import Simulated
from simulator.reading.service.figures import engines, serving_file, with_values
from tests.support.serving_rows import ROW


def test_figures_that_made_the_times_are_found_again() -> None:
    """Ten milliseconds a request, 20 us a token and five iterations show in enough rows."""
    rows, found = [], []
    for engine in engines():
        for prompt in (200, 1000, 4000, 16000):
            for step in (0.005, 0.02, 0.06):
                own = Simulated(first_token=1e-5 * prompt + step, per_token=step)
                time = own.first_token + 0.01 + 2e-5 * prompt + 5.0 * step
                rows.append(replace(ROW, engine=engine, prompt=prompt, first_token=time))
                found.append(own)
    figures = serving_replies.fit(rows, found)
    assert abs(serving_replies.log_errors(rows, found, figures)).max() < 0.06
    assert figures["figures.prompt_token"] == pytest.approx(2e-5, rel=0.1)
    assert figures["engine.vllm.lag"] == pytest.approx(5.0, rel=0.1)


def test_figures_go_where_they_belong_in_the_file() -> None:
    """Those of all engines and those of one."""
    values = {"figures.prompt_token": 1.5e-5, "engine.sglang.lag": 7.0}
    file = with_values(serving_file(), values)
    assert file.figures["prompt_token"].value == 1.5e-5
    assert file.engine["sglang"]["lag"].value == 7.0
    assert np.isclose(file.engine["vllm"]["lag"].value, serving_file().engine["vllm"]["lag"].value)
