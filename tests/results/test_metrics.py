"""The one home of reported figures."""

from __future__ import annotations

import pytest

from simulator.errors import UnknownName
from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.reading.shipped import set_folder
from simulator.results.metrics import JOB_METRICS, METRICS, select


def test_names_are_unique_and_documented() -> None:
    """No two metrics of a kind share a name, and each says what it is."""
    names = [(metric.kind, metric.name) for metric in METRICS]
    assert len(set(names)) == len(names)
    assert all(metric.doc.endswith(".") for metric in METRICS)


def test_names_tell_the_unit() -> None:
    """A name that ends in a unit has that unit, so that a column head is enough."""
    wanted = {
        "_s": "s",
        "_bytes": "B",
        "usd_per_step": "$",
        "usd_to_train": "$",
        "_j_per_step": "J",
    }
    for metric in METRICS:
        part = metric.name.split(".")
        unit = next((u for end, u in wanted.items() if any(p.endswith(end) for p in part)), None)
        if unit is not None and "per_s" not in metric.name:
            assert metric.unit is not None, metric.name
            assert metric.unit.symbol == unit, metric.name


def test_times_and_money_are_better_low() -> None:
    """The direction of better is stated where it is beyond uncertainty."""
    better = {metric.name: metric.better for metric in JOB_METRICS}
    assert better["step_time_s.mean"] == "low"
    assert better["cost.usd_to_train"] == "low"
    assert better["throughput_samples_per_s"] == "high"
    assert better["cost.samples_per_usd"] == "high"
    assert better["host_ram_bytes.capacity"] is None


def test_a_path_selects_what_lies_below() -> None:
    """The start of a name stands for all metrics under it, never for half a word."""
    names = ["fits.gpu", "fits.gpu_probability", "fits.host"]
    assert [m.name for m in select("fits")] == names
    with pytest.raises(UnknownName):
        select("fit")


def test_a_misspelt_name_is_answered_with_the_nearest() -> None:
    """The message offers what was probably meant."""
    with pytest.raises(UnknownName, match=r"unknown metric 'cost\.usd_to_trian'.*usd_to_train"):
        select("cost.usd_to_trian")


def test_bytes_from_the_store_leave_out_what_memory_answers() -> None:
    """Two servers that hold 75 of 146 parts each read 44 of their 73; a full memory reads none."""
    base = set_folder() / "bases" / "loader-cache.toml"
    size = ("data.samples=1000", "data.bytes_per_sample=146 MiB", "train.batch_size=8")
    size = (*size, 'model.step_times=[{batch_size = 8, time = "1 ns"}]')
    (metric,) = select("store_bytes_per_epoch")

    def read(*overrides: str) -> float:
        prediction = predict(load_scenario(str(base), overrides=(*size, *overrides)))
        value = metric.get(prediction)
        assert isinstance(value, float)
        return value / (1000 * 2**20)

    assert read("hardware.count=2", "memory.page_cache=73.2421875 GiB") == pytest.approx(
        44.1, abs=0.1
    )
    assert read("memory.page_cache=73 GiB", "data.cache=ideal") == pytest.approx(
        146 - 74.752, abs=0.1
    )
    assert read("data.cache=none") == pytest.approx(146.0)
    assert read("data.cache=preloaded") == 0.0


def test_helpers_count_for_the_ratio_of_processors_to_accelerators() -> None:
    """96 + 2 x 72 vCPUs for eight GPUs are 30 to 1; alone the machine has 12 for each."""
    (ratio,) = select("vcpus_per_gpu")
    ours = {
        name: ratio.get(predict(load_scenario(name), intervals=False))
        for name in ("cpu-starved-p4d", "cpu-fed-heterogeneous", "svm-cpu-only")
    }
    assert ours == {
        "cpu-starved-p4d": 12.0,
        "cpu-fed-heterogeneous": 30.0,
        "svm-cpu-only": None,
    }


def test_the_rule_of_thumb_is_a_figure() -> None:
    """Eight A100s of 40 GB, the system, and eight processes: it stands beside what is needed."""
    (rule,) = select("host_ram_bytes.rule_of_thumb")
    prediction = predict(load_scenario("cpu-starved-p4d"), intervals=False)
    gpu = prediction.scenario.cluster.trainers.host.gpu
    assert gpu is not None
    items = prediction.host_ram.items
    own = items["operating_system"] + items["application"]
    assert rule.get(prediction) == pytest.approx(8 * gpu.memory + own)
