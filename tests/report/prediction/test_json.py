"""The object that ``--json`` prints."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from simulator.pipeline.stages.base import Resource
from simulator.report.document import Format, render
from simulator.report.prediction.job import as_object, document
from simulator.results.metrics import JOB_METRICS
from simulator.results.prediction import Prediction


def as_json(prediction: Prediction) -> str:
    """Return the prediction as JSON text."""
    return render(document(prediction), Format.JSON)


KEYS = """
    schema version scenario seed step_time_s steps_per_epoch first_step_s epoch_time_s total_time_s
    break_even_epochs throughput_samples_per_s mfu hfu flops_per_s_per_gpu tokens_per_step
    tokens_per_s tokens_per_s_per_gpu time_per_trillion_tokens_s checkpoint_s step_split_s
    communication_s accelerator_utilization utilization bottleneck next_bottleneck solver
    vcpus_needed_per_gpu vcpus_per_gpu vcpus_short host_ram_bytes store_bytes_per_epoch
    gpu_memory_bytes fits cost energy bound_s run mlperf_storage interval assumptions warnings
"""
INNER = {
    "step_time_s": "mean p50 p95 p99",
    "step_split_s": "data_stall h2d compute communication bubble checkpoint other",
    "communication_s": "exposed hidden",
    "host_ram_bytes": "total capacity rule_of_thumb items",
    "gpu_memory_bytes": "total capacity items stages",
    "fits": "gpu gpu_probability host",
    "cost": "usd_per_h usd_per_step samples_per_usd usd_to_train usd_for_machines time_to_train_s "
    "energy_j_per_step storage usd_with_storage",
    "energy": "power_w machines_kwh kwh kg_co2e usd",
    "bound_s": "lower upper",
    "mlperf_storage": "accelerator_utilization throughput_v1_samples_per_s "
    "throughput_v2_samples_per_s first_step_s step_time_s",
}
ENVELOPE = {"schema", "version", "scenario", "seed", "interval", "assumptions", "warnings"}


def leaves(tree: dict[str, Any], path: str = "") -> set[str]:
    """Dotted paths of everything that is no dictionary; tables count as one."""
    found: set[str] = set()
    for key, value in tree.items():
        inner = f"{path}.{key}" if path else key
        deeper = isinstance(value, dict) and key not in {"items", "stages", "interval"}
        found |= leaves(value, inner) if deeper else {inner}
    return found


def test_keys_and_their_order(prediction: Prediction) -> None:
    """The documented keys come in the documented order, none missing, none more."""
    tree = as_object(prediction)
    assert list(tree) == KEYS.split()
    assert {name: list(tree[name]) for name in INNER} == {k: v.split() for k, v in INNER.items()}


def test_every_metric_has_its_path(prediction: Prediction) -> None:
    """A metric's name is its dotted path; nothing but identity and reasons stands beside."""
    tree = as_object(prediction)
    absent = {f"utilization.{r}." for r in Resource if str(r) not in tree["utilization"]}
    names = {m.name for m in JOB_METRICS if not m.name.startswith(tuple(absent))}
    assert leaves(tree) == names | ENVELOPE


def test_values_are_exact(prediction: Prediction) -> None:
    """Floats are printed in full and read back as the same number."""
    third = replace(prediction.timing, first_step=1.0 / 3.0)
    tree = json.loads(as_json(replace(prediction, timing=third)))
    assert tree["first_step_s"] == 1.0 / 3.0
    assert tree["step_time_s"]["mean"] == 0.040
    assert tree["seed"] == 7
    assert tree["cost"]["usd_per_h"] == pytest.approx(36.0)
    assert tree["utilization"]["gpu"] == {"mean": 0.6, "sum": 2.4, "units": 4}


def test_only_what_the_machine_has_is_listed(prediction: Prediction) -> None:
    """Utilization lists the resources of the scenario and no others."""
    assert set(as_object(prediction)["utilization"]) == {"gpu", "cpu", "storage"}


def test_what_does_not_apply_is_null(prediction: Prediction) -> None:
    """Without an accelerator its figures are null, and their keys stay."""
    timing = replace(
        prediction.timing,
        accelerator_utilization=None,
        next_bottleneck=None,
        usage={Resource.CPU: prediction.timing.usage[Resource.CPU]},
    )
    cost = replace(prediction.cost, per_second=None, per_step=None, for_machines=None)
    tree = as_object(
        replace(prediction, timing=timing, memory=None, cpu_need=None, cost=cost, seed=None)
    )
    assert tree["gpu_memory_bytes"] == dict.fromkeys(("total", "capacity", "items", "stages"))
    assert tree["fits"] == {"gpu": None, "gpu_probability": None, "host": "yes"}
    assert tree["vcpus_needed_per_gpu"] is None
    assert tree["accelerator_utilization"] is None
    assert tree["next_bottleneck"] is None
    assert tree["cost"]["usd_per_h"] is None
    assert tree["seed"] is None


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_no_infinity_and_no_nan(prediction: Prediction, number: float) -> None:
    """What JSON cannot say is null."""
    cost = replace(prediction.cost, samples_per_usd=number)
    tree = json.loads(as_json(replace(prediction, cost=cost)), parse_constant=pytest.fail)
    assert tree["cost"]["samples_per_usd"] is None


def test_numpy_numbers_are_numbers(prediction: Prediction) -> None:
    """A figure that numpy computed prints like any other."""
    cost = replace(prediction.cost, per_step=np.float64(0.25), energy_per_step=np.float32(0.5))
    tree = json.loads(as_json(replace(prediction, cost=cost)))
    assert tree["cost"]["usd_per_step"] == 0.25
    assert tree["cost"]["energy_j_per_step"] == 0.5


def test_assumptions_carry_their_source(prediction: Prediction) -> None:
    """Each assumption says who claims it, when, and whether it was checked."""
    assert as_object(prediction)["assumptions"][0] == {
        "what": "operating system RAM",
        "value": "2 GB",
        "source": "a guess",
        "date": "undated",
        "verified": False,
    }


def test_a_simulated_run_prints(simulated: Prediction) -> None:
    """A prediction of the model itself becomes JSON whose split adds up to the mean step."""
    tree = json.loads(as_json(simulated))
    assert sum(tree["step_split_s"].values()) == pytest.approx(tree["step_time_s"]["mean"])
    assert all(0.0 <= use["mean"] <= 1.0 + 1e-9 for use in tree["utilization"].values())
