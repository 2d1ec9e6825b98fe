"""Row B9: latency first at a batch of 1 to 4, throughput first at 32 and more."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mission.machines import in_memory, in_pytorch, job, rented, scenario, trainers

from simulator.predict import predict
from simulator.reading.model_library import load_model
from simulator.results.prediction import Prediction
from simulator.schema.accelerators import Precision
from simulator.schema.data_loading import InputPipeline
from simulator.schema.machines import Role
from simulator.schema.training import Mode


def inference(batch: float, name: str = "vit-b16", gpus: int = 1) -> Prediction:
    """A closed loop on one A10G: the next batch is asked for when this one is done."""
    host, model = rented("g5.xlarge"), load_model(name)
    group = replace(trainers(host, gpus=gpus), role=Role.SERVE)
    made = job(
        dataset=in_memory(1e5, 1e5),
        batch=batch,
        pipeline=InputPipeline(
            workers=3,
            pin_memory=True,
            persistent_workers=True,
            output_bytes_per_sample=model.input_bytes,
        ),
        mode=Mode.INFER,
        train={"precision": Precision.FP16, "sync_every_step": True},
        model=model,
        software=in_pytorch(host),
    )
    return predict(scenario("inference", made, group))


def test_b9_both_objectives_come_out() -> None:
    """Latency rises with the batch, throughput too, and a thousand samples get cheaper."""
    found = [inference(batch) for batch in (1, 2, 4, 32, 128)]
    latency = [p.timing.step_time.mean for p in found]
    rate = [p.timing.throughput for p in found]
    price = [1000.0 / p.cost.samples_per_usd for p in found if p.cost.samples_per_usd]
    assert latency == sorted(latency)
    assert rate == sorted(rate)
    assert price == sorted(price, reverse=True)
    assert len(set(price)) == len(price) == 5


def test_b9_a_pass_without_backward() -> None:
    """Latency is copy in, forward pass and copy back; nothing is reduced or updated."""
    found = inference(4)
    split = found.timing.split
    assert {stage.stage for stage in found.demands if stage.demands}.isdisjoint({"all-reduce"})
    assert split.compute + split.h2d + split.other == pytest.approx(found.timing.step_time.mean)
    assert found.timing.throughput == pytest.approx(4 / found.timing.step_time.mean)


def test_b9_a_convolutional_network() -> None:
    """ResNet-50 runs forward only."""
    assert inference(1, "resnet50").timing.step_time.mean > 0.0
