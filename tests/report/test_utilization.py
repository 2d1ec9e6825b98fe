"""Observed utilization beside the predicted one."""

from __future__ import annotations

import json

import numpy as np
import pytest

from simulator.importers.utilization import Quantity, Series, Utilization
from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.report.document import Format, render
from simulator.report.utilization import document, observed, predicted
from simulator.results.prediction import Prediction


def as_text(found: Utilization, prediction: Prediction | None = None) -> str:
    """Return the report as text."""
    return render(document(found, prediction), Format.TABLE)


def as_json(found: Utilization) -> str:
    """Return the report as JSON."""
    return render(document(found), Format.JSON)


NAN = float("nan")


def series(quantity: Quantity, device: str, *values: float) -> Series:
    """Samples of one device."""
    return Series(quantity=quantity, device=device, values=np.array(values))


FOUND = Utilization(
    series=(
        series(Quantity.GPU_BUSY, "GPU 0", 0.5, 0.7, NAN),
        series(Quantity.GPU_BUSY, "GPU 1", 0.9, 0.9, 0.9),
        series(Quantity.DEVICE_MEMORY, "GPU 0", 1e9, 3e9),
        series(Quantity.POWER, "GPU 0", 200.0, 300.0),
    ),
    interval=1.0,
)


def test_means_over_devices() -> None:
    """The mean of the devices' means; the peak of any; missing samples count for nothing."""
    busy, memory, power = observed(FOUND)
    assert (busy.mean, busy.peak, busy.devices) == (pytest.approx(0.75), 0.9, 2)
    assert (busy.least, busy.most) == (pytest.approx(0.6), pytest.approx(0.9))
    assert (memory.mean, memory.peak) == (2e9, 3e9)
    assert power.quantity is Quantity.POWER


def test_devices_that_differ_are_listed() -> None:
    """Means that lie further apart than a twentieth."""
    text = as_text(FOUND)
    assert "GPU: a kernel runs: GPU 0 60.0%, GPU 1 90.0%" in text
    assert text.endswith("3 samples per device, one every 1 s")


def test_beside_a_prediction() -> None:
    """What is predicted stands beside; memory against the peak; power is not predicted."""
    prediction = predict(load_scenario("resnet50-imagenet-p4d"))
    memory = prediction.memory
    assert memory is not None
    table = as_text(FOUND, prediction).partition("\n\n")[0]
    rows = {line[:20].strip(): line.split() for line in table.splitlines()}
    assert rows["GPU: power"][-2:] == ["-", "-"]
    assert rows["GPU: memory used"][-1] == f"{memory.total / 3e9 - 1.0:+.1%}"
    split, step = prediction.timing.split, prediction.timing.step_time.mean
    running = (split.compute + split.communication) / step
    assert predicted(Quantity.GPU_BUSY, prediction) == pytest.approx(running)
    assert rows["GPU: a kernel runs"][-2] == f"{100.0 * (running - 0.75):+.1f}"


def test_json_is_the_same() -> None:
    """Names in lower case, SI units, null where nothing is predicted."""
    tree = json.loads(as_json(FOUND))
    assert tree["interval_s"] == 1.0
    assert tree["utilization"]["gpu_busy"]["mean"] == pytest.approx(0.75)
    assert tree["utilization"]["power"]["predicted"] is None
