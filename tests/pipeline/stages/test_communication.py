"""What exchanging gradients costs beside the bytes, worked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.scenarios import host, scenario, simulate

from simulator.pipeline.stages.base import Phase
from simulator.pipeline.stages.communication import GradientNegotiation, SmContention
from simulator.reading.scenario import load_scenario
from simulator.schema.models import CustomModel
from simulator.schema.scenario import Scenario
from simulator.schema.training import Mode

MODEL = CustomModel(
    name="25 M parameters",
    parameters=25e6,
    forward_flops=0.0,
    traffic=0.0,
    activation=0.0,
    input_bytes=0.0,
    output_bytes=0.0,
)


def exchanging(  # noqa: PLR0913 - each figure of an exchange
    ranks: int = 8,
    delay: float = 0.0,
    contention: float = 0.0,
    compute: float = 0.3,
    mode: Mode = Mode.TRAIN,
    *,
    gradients: bool = True,
) -> Scenario:
    """A job of 100 MB of gradients in four buckets, over links of 1 GB/s."""
    job = scenario(machine=host(gpus=ranks, nvlink=1e9), compute=compute, workers=2)
    train = replace(
        job.job.train, bucket_size=25e6, exchange_delay=delay, exchange_contention=contention
    )
    model = MODEL if gradients else None
    return replace(job, jobs=(replace(job.job, train=train, mode=mode, model=model),))


def test_agreement_takes_its_time_once_a_step() -> None:
    """10 ms in which devices stand idle."""
    with_delay, without = simulate(exchanging(delay=0.010)), simulate(exchanging())
    longer = with_delay.step_time.mean - without.step_time.mean
    assert longer == pytest.approx(0.010, rel=1e-6)
    assert with_delay.split.other - without.split.other == pytest.approx(0.010, rel=1e-6)


def test_compute_makes_up_for_half_of_the_hidden_communication() -> None:
    """Of 175 ms on the wire three quarters hide, so compute takes 65.6 ms longer at a half."""
    shared, alone = simulate(exchanging(contention=0.5)), simulate(exchanging())
    longer = shared.split.compute - alone.split.compute
    assert longer == pytest.approx(0.5 * 0.75 * 2 * 7 / 8 * 0.100, rel=1e-6)


def test_no_more_is_hidden_than_there_is_compute() -> None:
    """Under a backward pass of 20 ms no more than 20 ms of communication hide."""
    (demand,) = SmContention().demands(exchanging(contention=0.5, compute=0.030), Phase.WARM)
    assert demand.amount == pytest.approx(0.5 * 0.020, rel=1e-9)


@pytest.mark.parametrize(
    "job",
    [
        exchanging(ranks=1, delay=0.01, contention=0.5),
        exchanging(delay=0.01, contention=0.5, mode=Mode.INFER),
        exchanging(delay=0.01, contention=0.5, gradients=False),
    ],
    ids=["one rank", "no backward pass", "no gradients"],
)
def test_nothing_is_exchanged(job: Scenario) -> None:
    """Alone, in inference and without gradients nothing is asked for."""
    assert GradientNegotiation().demands(job, Phase.WARM) == ()
    assert SmContention().demands(job, Phase.WARM) == ()


def test_a_step_time_alone_is_that_of_the_batch_size() -> None:
    """model.step_time counts for train.batch_size, as the list of step times does."""
    base = "resnet50-imagenet-p4d"
    one = load_scenario(base, overrides=("model.step_time=80 ms", "train.batch_size=128"))
    several = load_scenario(
        base,
        overrides=(
            "model.step_times=[{ batch_size = 128, time = '80 ms' }]",
            "train.batch_size=128",
        ),
    )
    assert one.job.step_times is not None
    assert several.job.step_times is not None
    assert one.job.step_times.seconds == several.job.step_times.seconds == (0.08,)
    assert one.job.step_times.batch_sizes == several.job.step_times.batch_sizes == (128.0,)
