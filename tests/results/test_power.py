"""What machines draw: every machine that is billed, at rest and at work."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.results.energy import (
    CPU_IDLE,
    REST_FULL,
    REST_IDLE,
    VCPU_FULL,
    VCPU_IDLE,
    draws,
    joules_per_step,
)
from simulator.results.prediction import Prediction
from simulator.schema.machines import Group, Role
from simulator.schema.scenario import Scenario
from tests.support.scenarios import host, scenario, store


def of(name: str, *overrides: str) -> Prediction:
    """What is predicted for a shipped scenario."""
    return predict(load_scenario(name, overrides=overrides), intervals=False)


def parts(found: Prediction) -> dict[str, tuple[float, float]]:
    """Power at rest and at work of each part [W]."""
    drawn = draws(found.scenario, found.timing)
    assert drawn is not None
    return {draw.part: (draw.idle, draw.full) for draw in drawn}


def test_a_whole_machine_at_rest_and_at_work() -> None:
    """A p4d.24xlarge draws 744.8 W at rest and 5,245 W at work (Teads data set, 2021-2023)."""
    found = parts(of("cpu-starved-p4d"))
    idle, full = (sum(each) for each in zip(*found.values(), strict=True))
    assert idle == pytest.approx(744.8, rel=0.03)
    assert full == pytest.approx(5245.0, rel=0.03)


def test_a_node_in_training() -> None:
    """A DGX H100 in training draws 76% of its 10.2 kW (arXiv 2506.14551), 8.48 kW at most."""
    found = of("llama3-70b-megatron")
    drawn = draws(found.scenario, found.timing)
    assert drawn is not None
    each = sum(draw.mean for draw in drawn) / found.scenario.cluster.trainers.count
    assert each == pytest.approx(0.76 * 10_200.0, rel=0.1)
    assert each < 8480.0


def test_starving_is_not_cheap() -> None:
    """A GPU that waits draws its idle power, its machine too: the same samples take more energy."""
    starved, fed = (
        of("cpu-starved-p4d", f"input.decode={time}").cost.energy_per_step or 0.0
        for time in ("20 ms", "2 ms")
    )
    assert starved > 1.2 * fed


def test_machines_that_help_are_counted() -> None:
    """Two c5.18xlarge are billed, and draw: 144 vCPUs at rest and at work."""
    found = parts(of("cpu-fed-heterogeneous"))
    assert found["data: processors"] == pytest.approx((144 * VCPU_IDLE, 144 * VCPU_FULL))


def test_accelerators_that_stand_idle_draw_power() -> None:
    """With one of eight GPUs in use seven draw what they do at rest."""
    found = parts(of("cpu-starved-p4d", "hardware.gpus=1"))
    assert found["accelerators"] == pytest.approx((50.0, 400.0))
    assert found["idle accelerators"][0] == pytest.approx(7 * 50.0)
    assert found["rest of the machines"] == pytest.approx((REST_IDLE * 3200.0, REST_FULL * 3200.0))


def test_processors_alone_draw_power() -> None:
    """A job without accelerator has a bill of energy too."""
    found = of("svm-cpu-only")
    assert found.timing.accelerator_utilization is None
    assert (found.cost.energy_per_step or 0.0) > 0.0


def helped(job: Scenario) -> Scenario:
    """The scenario with an idle machine beside it, of processors alone."""
    helper = Group(name="help", role=Role.PREPROCESS, host=host(gpus=0), storage=store(), count=3)
    return replace(job, cluster=replace(job.cluster, groups=(*job.cluster.groups, helper)))


def test_a_machine_without_load_draws_what_it_does_at_rest() -> None:
    """Three machines of 64 vCPUs that nobody uses add their idle power over the step."""
    job = scenario(compute=0.1)
    timing = predict(job).timing
    drawn = [joules_per_step(each, timing) for each in (job, helped(job))]
    alone, more = (0.0 if one is None else one.value for one in drawn)
    assert more - alone == pytest.approx(3 * 64 * VCPU_IDLE * timing.step_time.mean)


def test_an_unknown_power_is_unknown_energy() -> None:
    """An accelerator whose power no profile states leaves no figure, not a small one."""
    job = scenario()
    machine = job.cluster.groups[0].host
    assert machine.gpu is not None
    dark = replace(machine, gpu=replace(machine.gpu, power=None))
    group = replace(job.cluster.groups[0], host=dark)
    assert (
        predict(replace(job, cluster=replace(job.cluster, groups=(group,)))).cost.energy_per_step
        is None
    )


def test_sockets_with_a_design_power_draw_that() -> None:
    """Owned machines whose processors are known draw their design power at work."""
    job = scenario()
    machine = job.cluster.groups[0].host
    known = replace(machine, cpu=replace(machine.cpu, power=300.0))
    group = replace(job.cluster.groups[0], host=known)
    found = parts(predict(replace(job, cluster=replace(job.cluster, groups=(group,)))))
    assert found["processors"] == pytest.approx((CPU_IDLE * 300.0, 300.0))
