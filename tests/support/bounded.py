"""What is predicted held against the best it can be."""

from __future__ import annotations

from simulator.results.metrics import JOB_METRICS
from simulator.results.prediction import Prediction
from simulator.studies.screening import BestCase

BY_NAME = {metric.name: metric for metric in JOB_METRICS}


def better(best: BestCase, prediction: Prediction) -> list[str]:
    """Metrics that were predicted better than they can be at best."""
    wrong = []
    for name, least in best.figures.items():
        metric = BY_NAME[name]
        value = metric.get(prediction)
        assert isinstance(value, float | int)
        high = metric.better == "high"
        beyond = value > least * (1 + 1e-9) if high else value < least * (1 - 1e-9)
        wrong += [f"{name}: {value} {least}"] if beyond else []
    return wrong
