"""Language models on the cores of machines without accelerators."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.errors import InputError
from simulator.physics.forward_pass import Iteration, serving_cores
from simulator.predict import pass_of, predict_service
from simulator.reading.merge_documents import chain_of
from simulator.reading.service.scenario import ServiceReader
from simulator.results.metrics import service_figures
from simulator.schema.accelerators import Precision
from simulator.schema.serving import Service

CORES = "hardware.machine=instance/aws/c7i.48xlarge"
"""Two sockets whose cores have matrix units."""


def reader(*overrides: str) -> ServiceReader:
    """The chat service with some settings."""
    return ServiceReader(chain_of("llama3-8b-chat-h100"), "chat", overrides=overrides)


def service(*overrides: str) -> Service:
    """The same on cores, with a load that they carry."""
    few = ("load.rate=0.2 /s", "slo.first_token=5 s", "slo.per_token=200 ms")
    return reader(CORES, *few, *overrides).read({})


def token(one: Service) -> float:
    """Seconds of a token of one sequence with a short context."""
    return pass_of(one).seconds(Iteration(decoding=1, context_tokens=10.0))


def test_a_token_reads_every_weight_at_the_memory_s_share() -> None:
    """The time of one sequence is that of reading the weights, and little more."""
    one = service()
    host, units = one.group.host, one.group.host.cpu.vector
    assert units is not None
    assert host.memory_bandwidth is not None
    least = pass_of(one).weights_bytes / (units.memory_share * host.memory_bandwidth)
    assert 0.9 * least < token(one) < 1.3 * least


def test_narrow_weights_are_read_faster() -> None:
    """Half the bytes take about half the time."""
    assert token(service("serving.weights=fp8")) < 0.65 * token(service())


def test_a_prompt_is_bound_by_arithmetic() -> None:
    """2 operations a parameter and token, at the share of the peak that cores reach."""
    one = service()
    device, units = serving_cores(one.group.host, Precision.BF16), one.group.host.cpu.vector
    assert device is not None
    assert units is not None
    prompt = pass_of(one).seconds(Iteration(prefill_tokens=2048, first_tokens=1))
    # The tables of tokens, an eighth of the parameters, are not computed for each of them.
    ideal = 2.0 * 7.0e9 * 2048 / (units.share * device.peak16)
    assert prompt == pytest.approx(ideal, rel=0.25)


def test_matrix_units_compute_16_bit() -> None:
    """fp32 takes vector units, a sixteenth as fast; older cores widen 16 bit."""
    host = service().group.host
    wide, narrow = (serving_cores(host, each) for each in (Precision.FP32, Precision.BF16))
    assert wide is not None
    assert narrow is not None
    assert narrow.peak16 == pytest.approx(16.0 * wide.peak16)
    units = host.cpu.vector
    assert units is not None
    plain = replace(host.cpu, vector=replace(units, matrix_per_cycle=None))
    older = serving_cores(replace(host, cpu=plain), Precision.BF16)
    assert older is not None
    assert older.peak16 == wide.peak16
    unknown = replace(host, cpu=replace(host.cpu, vector=None))
    assert serving_cores(unknown, Precision.BF16) is None


def test_the_answer_says_what_it_rests_on() -> None:
    """A wide interval, and the shares that nobody measured."""
    found = predict_service(service())
    band = found.interval["per_token_s.mean"]
    assert found.keeps_limits
    assert (band["p90"] or 0.0) > 4.0 * (band["p10"] or 0.0)
    told = [one.what for one in found.assumptions]
    assert "share of the memory's rate that cores reach" in told
    assert found.memory.capacity == found.service.group.host.ram
    assert found.memory.items["graphs"] == 0.0
    assert service_figures(found)["energy.power_w"]


def test_cores_are_candidates_where_machines_are_named_by_pattern() -> None:
    """`plan recommend` holds cores beside accelerators."""
    found = reader('goal.machines=["instance/aws/c7i.*", "instance/aws/g6.xlarge"]').candidates()
    names = {str(one["hardware.machine"]).rpartition("/")[2] for one in found}
    assert {"c7i.48xlarge", "g6.xlarge"} <= names


def test_decoding_on_vector_units_is_bound_by_memory_until_rows_fill_them() -> None:
    """A row costs its own operations: one alone waits for the memory, in any format of weights.

    96 cores of 2 sockets at 2.6 GHz with 32 operations a cycle compute 1 row of 7.0 G weights in
    1.3 ms at 70% of 16 TFLOP/s, and read 16 GB at 70% of 922 GB/s in 22 ms (an eighth of the
    parameters is a table of tokens). 64 rows take 64 x 1.3 ms of arithmetic.
    """
    machine = "hardware.machine=instance/aws/c7a.48xlarge"
    wide, narrow = (reader(machine, f"serving.weights={w}").read({}) for w in ("bf16", "fp8"))
    one, eight = token(wide), token(narrow)
    assert eight < 0.7 * one
    host, units = wide.group.host, wide.group.host.cpu.vector
    assert units is not None
    assert host.memory_bandwidth is not None
    read = (pass_of(wide).weights_bytes - 1.05e9) / (units.memory_share * host.memory_bandwidth)
    assert one == pytest.approx(read, rel=0.3)
    device = serving_cores(host, Precision.BF16)
    assert device is not None
    many = pass_of(wide).seconds(Iteration(decoding=64, context_tokens=640.0))
    assert many == pytest.approx(64 * 2.0 * 7.5e9 / (units.share * device.peak), rel=0.25)


def test_fp64_has_half_the_lanes_of_fp32() -> None:
    """Vectors of 512 bit hold 8 values, not 16, and matrix units take neither."""
    host = service().group.host
    single, double = (serving_cores(host, each) for each in (Precision.FP32, Precision.FP64))
    assert single is not None
    assert double is not None
    assert double.peak == pytest.approx(0.5 * single.peak)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("serving.engine=tensorrt-llm", "runs on accelerators alone"),
        ("serving.tensor=2", "is more than the accelerators of a machine"),
        ("serving.version=new", "is not a version of an engine"),
    ],
)
def test_what_cores_cannot_do_is_told(setting: str, said: str) -> None:
    """Each mistake names its key."""
    with pytest.raises(InputError, match=said):
        service(setting)
