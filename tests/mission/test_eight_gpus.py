"""Eight GPUs and four machines next to them, fed and starved."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mission.clusters import A6, tensorflow

from simulator.predict import predict
from simulator.schema.scenario import Scenario


def with_machines(count: int, *, shares_batches: bool) -> Scenario:
    """The first published pair with `count` machines next to the one that trains."""
    plan = tensorflow(2.2e-3, A6.device_time, together=True)
    own, other = plan.cluster.groups
    assert plan.job.remote is not None
    remote = replace(plan.job.remote, shares_batches=shares_batches)
    cluster = replace(plan.cluster, groups=(own, replace(other, count=count)))
    return replace(plan, cluster=cluster, jobs=(replace(plan.job, remote=remote),))


@pytest.mark.parametrize("shares_batches", [True, False], ids=["a service", "workers"])
@pytest.mark.parametrize("cost", [2.2e-3, 6e-3], ids=["fed", "starved"])
def test_eight_gpus_and_four_machines(cost: float, *, shares_batches: bool) -> None:
    """A step takes what the slower of device and all vCPUs needs."""
    plan = with_machines(4, shares_batches=shares_batches)
    work = replace(plan.job.input, augment=cost)
    plan = replace(plan, jobs=(replace(plan.job, input=work),))
    found = predict(plan)
    per_vcpu = 8192 * cost / (96 + 4 * 72)
    slowest = max(A6.device_time, per_vcpu)
    assert found.timing.step_time.mean == pytest.approx(slowest, rel=0.12)
