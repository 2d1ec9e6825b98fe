"""The fit of older versions of an engine: what a batch takes, and the shipped figures."""

from __future__ import annotations

import numpy as np
import pytest

from fitting import earlier
from simulator.equations.serving import causal_pairs
from simulator.physics.forward_pass import Iteration
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.service.figures import earlier_file

RUN = earlier.Run("meta-llama/Llama-2-7b-hf", "llama-2-7b", 1, 512, 4, 8.0)


def test_a_batch_takes_its_prompts_and_then_its_answers() -> None:
    """Two prompts fit into an iteration: two of them, and 511 iterations of four sequences."""
    gpu = Catalogue.default(()).gpu("gpu/a100-sxm4-40gb")
    (one,) = earlier.passes([RUN], gpu, np.zeros(len(earlier.EXPECTED)), shared=True)
    pairs = 2 * float(causal_pairs(512, 0))
    prompts = one.seconds(Iteration(prefill_tokens=1024, prefill_pairs=pairs, first_tokens=2))
    expected = 2 * prompts + one.decode_seconds(4, 4 * 512.0, 511)
    assert earlier.seconds(RUN, one, 1024) == pytest.approx(expected)


def test_shipped_figures_are_those_of_the_fit() -> None:
    """Each table has every figure that is fitted or guessed, shares of at most 1, and sources."""
    file = earlier_file()
    for table in file.earlier:
        assert set(table.figures) == {*earlier.EXPECTED, *earlier.KNOWN}
        for name, each in earlier.EXPECTED.items():
            assert 0.0 < float(table.figures[name].value) <= each.most
        assert {one.source for one in table.figures.values()} <= set(file.sources)


def test_runs_that_the_cache_does_not_hold_are_left_out() -> None:
    """64 requests of 2,048 tokens of Llama 2 7B take twice the memory of an A100 of 40 GB."""
    gpu = Catalogue.default(()).gpu("gpu/a100-sxm4-40gb")
    many = earlier.Run(RUN.model, RUN.name, 1, 1024, 64, 100.0)
    assert earlier.fitting_runs([RUN, many], gpu) == [RUN]
