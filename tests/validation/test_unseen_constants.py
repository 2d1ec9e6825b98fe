"""Constants of a system without measurements, from those of others."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from simulator.reading.measured.measurement_set import load_set
from simulator.reading.scenario import load_scenario
from simulator.schema.uncertainty import Rate, covariance
from simulator.uncertainty.scenario import known_elsewhere
from simulator.validation.unseen import carried, correlation, deviation

KEYS = ("input.collate", "input.receive_per_sample")
"""What a hand-over of the decoding benchmark takes in the worker and in the main process."""


def test_few_makers_tell_less_than_their_spread() -> None:
    """Two submitters 0.2 apart: 0.141, times sqrt(1 + 1/2) and 3.078 / 1.2816 (Student)."""
    found = deviation(np.array([0.0, 0.2]), np.array([0.5, 0.5]), 2)
    assert found == pytest.approx(
        0.2 / math.sqrt(2.0) * math.sqrt(1.5) * 3.07768 / 1.28155, rel=1e-4
    )


def test_a_maker_with_many_systems_counts_once() -> None:
    """Three equal systems of one submitter are no more evidence than one of them."""
    several = deviation(np.array([0.0, 0.0, 0.0, 0.3]), np.array([1, 1, 1, 3]) / 6.0, 2)
    assert several == pytest.approx(deviation(np.array([0.0, 0.3]), np.array([0.5, 0.5]), 2))


def test_constants_at_a_bound_lie_there_or_beyond() -> None:
    """A normal sample cut off at one deviation either way still shows a deviation of one."""
    sample = np.array([NormalDist().inv_cdf((i + 0.5) / 1000.0) for i in range(1000)])
    weights = np.full(1000, 1e-3)
    cut = np.clip(sample, -1.0, 1.0)
    whole = deviation(sample, weights, 1000)
    assert deviation(cut, weights, 1000) < 0.8 * whole
    assert deviation(cut, weights, 1000, (-1.0, 1.0)) == pytest.approx(whole, rel=0.01)


def test_one_maker_says_nothing_of_a_spread() -> None:
    """With a single submitter there is no spread to tell, and no error."""
    assert deviation(np.array([0.1]), np.array([1.0]), 1) == 0.0


def test_constants_that_rise_together_are_correlated() -> None:
    """Proportional constants have a correlation of one, a constant one none."""
    weights = np.array([0.25, 0.25, 0.5])
    logs = np.array([0.0, 1.0, 2.0])
    assert correlation(logs, 2.0 * logs, weights) == pytest.approx(1.0)
    assert correlation(logs, np.ones(3), weights) == 0.0


def test_a_constant_goes_with_the_pace_of_the_cores() -> None:
    """Where decoding takes twice as long as on another platform, so does handing over."""
    whole = load_set("imread_benchmark")
    mine = next(row for row in whole.rows if not row.excluded)
    slow = tuple(
        "input.decode=4 ms" if text.startswith("input.decode=") else text for text in mine.overrides
    )
    here = replace(mine, overrides=slow)
    fast = tuple(text.replace("=4 ms", "=2 ms") for text in slow)
    there = replace(mine, overrides=fast, labels={**mine.labels, "platform": "another"})
    two = replace(whole, rows=(here, there))
    measured = (("another",), {KEYS[0]: "0.1 ms", KEYS[1]: "0.3 ms"})
    overrides, _ = carried(two, here, [measured])
    assert overrides == ("input.collate=0.2 ms", "input.receive_per_sample=0.6 ms")
    plain = replace(two, fit=tuple(replace(one, pace="") for one in two.fit))
    assert carried(plain, here, [measured])[0] == (
        "input.collate=0.1 ms",
        "input.receive_per_sample=0.3 ms",
    )


def test_bounds_have_no_mean() -> None:
    """A store that limits no run has a rate known from below only: the median is taken."""
    whole = load_set("mlperf_storage")
    row = next(row for row in whole.rows if not row.excluded)
    rates = {"a": "1 GB/s", "b": "2 TB/s", "c": "2 TB/s"}
    others = [((name,), {"hardware.storage_bandwidth": rate}) for name, rate in rates.items()]
    assert "hardware.storage_bandwidth=2 TB/s" in carried(whole, row, others)[0]


def test_a_small_part_of_the_work_is_a_small_doubt() -> None:
    """Decoding takes 90% of a batch: an uncertainty about collating moves the workers a tenth."""
    whole = load_set("imread_benchmark")
    row = next(row for row in whole.rows if not row.excluded)
    text = (*row.overrides, "input.decode=0.9 ms", "input.collate=0.1 ms")
    scenario = load_scenario(row.base, overrides=text)
    _, wide = carried(whole, row, [])
    assert wide == ()
    values = {KEYS[0]: "0.1 ms", KEYS[1]: "0.1 ms"}
    others = [
        (("AMD-EPYC-9B14",), values),
        (("Neoverse-N1",), {**values, KEYS[0]: "0.2 ms"}),
    ]
    _, wide = carried(
        replace(whole, fit=tuple(replace(p, pace="") for p in whole.fit)), row, others
    )
    told = known_elsewhere(scenario, wide)
    own = [
        component
        for component in told.uncertainties
        if component.name == "input.collate of other systems"
    ]
    assert own[0].log_sd == pytest.approx(0.1 * wide[0].log_sd, rel=1e-6)
    table = covariance(own, [Rate.WORKERS])
    assert table[0, 0] == pytest.approx(own[0].log_sd ** 2)
