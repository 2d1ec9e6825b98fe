"""Jobs without randomness: a watched run, and pipelines whose times are known by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.scenarios import host, inputs_of, scenario, store

from simulator.engine.run import Options, solve
from simulator.schema.data_loading import CachePolicy, LoaderKind
from simulator.schema.fields import CONSTANT, Shape, Spread
from simulator.schema.models import CustomModel
from simulator.schema.scenario import Scenario

VARIES = Spread(shape=Shape.EXPONENTIAL, relative_deviation=1.0)
ROUND = st.sampled_from([0.0, 0.001, 0.01, 0.02, 0.04, 0.08])
"""Round times: they meet at one instant again and again."""
CROOKED = st.floats(1e-4, 0.2)
TIMES = ROUND | CROOKED


@st.composite
def jobs(draw: st.DrawFn) -> Scenario:
    """Draw jobs without randomness."""
    kind = draw(st.sampled_from([LoaderKind.PYTORCH] * 3 + [LoaderKind.DALI, LoaderKind.TF_DATA]))
    workers = draw(st.integers(0 if kind is LoaderKind.PYTORCH else 1, 5))
    gpus = draw(st.sampled_from([1, 1, 2, 4]))
    node = host(
        gpus=gpus,
        cores=draw(st.sampled_from([64.0, 64.0, 4.0])),
        contention=draw(st.sampled_from([0.0, 0.0, 0.0, 0.5])),
        nvlink=draw(st.sampled_from([235e9, None])),
        memory_bandwidth=draw(st.sampled_from([None, None, 1e11])),
        pcie=draw(st.sampled_from([16e9, 1e8])),
    )
    return scenario(
        batches=draw(st.integers(1, 160)),
        batch_cpu=draw(TIMES),
        compute=draw(st.sampled_from([0.01, 0.02, 0.04]) | CROOKED),
        workers=workers,
        prefetch=draw(st.integers(1, 4)),
        epochs=draw(st.sampled_from([1.0, 3.0])),
        machine=node,
        storage=store(rate=draw(st.sampled_from([1e9, 1e8])), latency=draw(ROUND) / 32.0),
        read_time=draw(st.none() | TIMES.map(lambda time: time / 32.0)),
        cache=draw(
            st.sampled_from([CachePolicy.PRELOADED, CachePolicy.PRELOADED, CachePolicy.NONE])
        ),
        output_bytes=draw(st.sampled_from([0.0, 1e4, 333333.3])),
        sync=draw(st.booleans()),
        accumulation=draw(st.sampled_from([1, 1, 2, 3])),
        last_share=draw(st.sampled_from([1.0, 0.5, 0.25, 3.0 / 32.0])),
        loader=kind,
        pin_memory=draw(st.booleans()),
        overlap_copies=draw(st.booleans()),
        drop_last=draw(st.booleans()),
        in_step=draw(st.booleans()),
        persistent_workers=draw(st.booleans()),
        receive_per_batch=draw(TIMES),
        worker_start=draw(ROUND),
        epoch_start=draw(ROUND),
        device_spread=draw(st.sampled_from([CONSTANT, CONSTANT, VARIES])),
    )


@settings(max_examples=25, deadline=None)
@given(job=jobs())
def test_the_trace_changes_nothing(job: Scenario) -> None:
    """A traced run gives the same figures as one that is not traced."""
    asked = inputs_of(job)
    plain = solve(asked, Options(most_steps=40))
    watched = solve(asked, Options(most_steps=40, trace=True))
    assert watched.trace is not None
    assert replace(watched, trace=None) == plain


def test_a_pipeline_by_hand() -> None:
    """Two workers of 0.1 s a batch feed a step of 0.02 s: batches come in pairs every 0.1 s."""
    timing = solve(inputs_of(scenario(workers=2, batch_cpu=0.1, in_step=True)), Options())
    assert timing.step_times[:4] == pytest.approx((0.12, 0.02, 0.08, 0.02))
    assert timing.step_time.mean == pytest.approx(0.05)
    assert timing.split.data_stall == pytest.approx(0.03)
    assert timing.usage["cpu"].total == pytest.approx(2.0)


def with_gradients(job: Scenario, bucket: float = 25e6) -> Scenario:
    """The same job with gradients to exchange, in buckets."""
    model = CustomModel(name="model/test", parameters=25e6, forward_flops=1e9)
    own = job.jobs[0]
    train = replace(own.train, bucket_size=bucket)
    return replace(job, jobs=(replace(own, model=model, train=train),))


def test_gradients_are_hidden_and_exposed() -> None:
    """Four devices with links of their own exchange gradients, and nothing of it is shared."""
    job = with_gradients(scenario(machine=host(gpus=4), workers=2, batch_cpu=0.01))
    timing = solve(inputs_of(job), Options())
    assert timing.split.communication > 0.0
    assert timing.hidden_communication > 0.0
