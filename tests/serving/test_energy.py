"""What the machines of a service draw, and the energy of what it answers, by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from simulator.predict import predict_service
from simulator.reading.merge_documents import chain_of
from simulator.reading.service.scenario import ServiceReader
from simulator.results.energy import (
    GPU_IDLE,
    LOG_SD,
    REST_FULL,
    REST_IDLE,
    VCPU_FULL,
    VCPU_IDLE,
    service_energy,
)
from simulator.results.metrics import service_figures
from simulator.schema.serving import Service
from simulator.schema.uncertainty import P90


def read(name: str, **settings: Any) -> Service:
    """A shipped service with some settings, double underscores for dots."""
    given = {key.replace("__", "."): value for key, value in settings.items()}
    return ServiceReader(chain_of(name), "x").read(given)


def ran(**given: Any) -> Any:
    """What is read of a run: half of the time busy, one replica, 10 requests a second."""
    found = {"busy": 0.5, "busy_of": {}, "host_busy": 0.0, "replicas": 1.0, "request_rate": 10.0}
    return SimpleNamespace(**{**found, "output_rate": 2000.0, "prompt_rate": 6000.0, **given})


def test_a_machine_draws_between_rest_and_work() -> None:
    """Half busy: half way for its accelerator and what surrounds it, and its vCPUs at rest."""
    service = read("llama3-8b-chat-h100")
    host = service.group.host
    assert host.gpu is not None
    assert host.gpu.power is not None
    around = 0.5 * (REST_IDLE + REST_FULL) * host.gpu.power
    idle = host.gpu.idle_power or GPU_IDLE * host.gpu.power
    watts = 0.5 * (idle + host.gpu.power) + around + host.cpu.threads * VCPU_IDLE
    found = service_energy(service, ran(), None)
    assert found.power == pytest.approx(watts)
    assert found.per_million_output_tokens == pytest.approx(500.0 * watts)
    assert found.per_million_tokens == pytest.approx(125.0 * watts)
    assert found.per_thousand_requests == pytest.approx(100.0 * watts)


def test_accelerators_without_a_replica_stand_idle() -> None:
    """One replica of two on eight: as if all were busy for a quarter of its share."""
    service = read("llama3-70b-service")
    one = replace(service, serving=replace(service.serving, replicas=1, tensor=2))
    assert one.group.gpus_per_host * one.group.count == 8
    all_of_them = replace(one, serving=replace(one.serving, tensor=8))
    found, less = (
        service_energy(one, ran(busy=0.8), None),
        service_energy(all_of_them, ran(busy=0.2), None),
    )
    assert found.power == pytest.approx(less.power)


def test_both_kinds_of_replicas_draw_by_how_busy_they_are() -> None:
    """Prompts on half of the accelerators: what all would draw at the mean of both shares."""
    split = read("qwen3-235b-h200-split")
    before = split.serving.prefill
    assert before is not None
    assert before.replicas * before.tensor == split.serving.replicas * split.serving.tensor
    whole = replace(split, serving=replace(split.serving, prefill=None, tensor=8, replicas=1))
    shares = {"prompts": 0.2, "answers": 0.6}
    both = service_energy(split, ran(busy=0.6, busy_of=shares), None)
    assert both.power == pytest.approx(service_energy(whole, ran(busy=0.4), None).power)


def test_cores_that_compute_draw_what_processors_do() -> None:
    """Without accelerators a busy device is busy processors."""
    service = read("image-classifier-cpu", hardware__machine="instance/aws/c5.24xlarge")
    found = service_energy(service, ran(replicas=float(service.serving.replicas)), None)
    assert found.power == pytest.approx(96 * 0.5 * (VCPU_IDLE + VCPU_FULL))


def test_machines_that_were_there_on_average_draw() -> None:
    """Half of the replicas there: half of the power of all."""
    service = read("llama3-8b-office-autoscaled")
    count = service.serving.replicas
    few, many = (service_energy(service, ran(replicas=share * count), None) for share in (0.5, 1.0))
    assert few.power is not None
    assert few.power * 2.0 == pytest.approx(many.power)


def test_an_accelerator_of_unknown_power_has_no_energy() -> None:
    """None, not a guess."""
    service = read("llama3-8b-chat-h100")
    gpu = service.group.host.gpu
    assert gpu is not None
    host = replace(service.group.host, gpu=replace(gpu, power=None))
    assert (
        service_energy(replace(service, group=replace(service.group, host=host)), ran(), None).power
        is None
    )


def test_the_interval_holds_the_doubt_of_power() -> None:
    """Where the rate is certain, what a request takes is as uncertain as the power."""
    prediction = predict_service(read("llama3-8b-chat-h100", load__requests=300))
    band = prediction.interval["energy.power_w"]
    assert band["p10"] is not None
    assert band["p90"] is not None
    wide = 2.718281828 ** (P90 * LOG_SD)
    assert band["p90"] >= wide * 0.999 * band["p50"]
    assert band["p10"] <= band["p50"] / wide * 1.001
    per = service_figures(prediction)["energy.kwh_per_thousand_requests"]
    assert per == prediction.interval["energy.kwh_per_thousand_requests"]["p50"]


def test_more_load_takes_less_energy_a_token() -> None:
    """Machines draw at rest, too: the more they answer, the less each token takes."""
    few, many = (
        predict_service(read("llama3-8b-chat-h100", load__rate=rate), intervals=False)
        for rate in ("1 /s", "15 /s")
    )
    name = "energy.kwh_per_million_output_tokens"
    least, most = service_figures(many)[name], service_figures(few)[name]
    assert least is not None
    assert most is not None
    assert least < most
