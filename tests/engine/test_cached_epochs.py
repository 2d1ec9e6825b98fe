"""Epochs that were simulated before are found again, and no others."""

from __future__ import annotations

from dataclasses import replace

from support.scenarios import scenario

from simulator.engine.recorder import Epoch
from simulator.engine.run import EpochCacheKey, Options, cached_epoch, plan_of, solve
from simulator.engine.symmetry import SymmetryReduction
from simulator.pipeline.stages.base import Phase
from simulator.predict import simulation_input
from simulator.reading.search.candidates import CandidateReader
from simulator.schema.scenario import CostPlan, Scenario


def asked_of(job: Scenario, seed: int = 0) -> EpochCacheKey:
    """Return the inputs of a scenario's first epoch."""
    inputs = simulation_input(job)
    plan = plan_of(inputs, Phase.COLD, Options(seed=seed))
    stages = inputs.demands[Phase.COLD]
    return EpochCacheKey.of(job, inputs.topology, stages, plan, seed)


def test_prices_and_names_ask_for_the_same_epoch() -> None:
    """What a machine costs, and what a scenario is called, is nothing that is simulated."""
    job = scenario()
    other = replace(job, name="another", cost=CostPlan(price=1.0))
    assert asked_of(job) == asked_of(other)


def test_another_batch_or_seed_is_another_epoch() -> None:
    """What changes an epoch changes the inputs."""
    job = scenario()
    train = replace(job.job.train, batch_size=job.job.train.batch_size * 2)
    other = replace(job, jobs=(replace(job.job, train=train),))
    assert asked_of(job) != asked_of(other)
    assert asked_of(job) != asked_of(job, seed=1)


def test_a_question_is_simulated_once() -> None:
    """The second who asks is given what the first one was."""
    times: list[EpochCacheKey] = []
    job = replace(scenario(), memory_log_sd=0.123)  # no other test asks for this one

    def simulate(asked: EpochCacheKey) -> Epoch:
        times.append(asked)
        return Epoch(
            end=1.0,
            first=0,
            last=1,
            half_width=0.0,
            settled=False,
            snapshots=(),
            reduction=SymmetryReduction(ranks=(0,), counts=(1.0,), units={}),
        )

    first = cached_epoch(asked_of(job), simulate)
    assert cached_epoch(asked_of(job), simulate) is first
    assert len(times) == 1


def test_a_store_that_nobody_reads_from_is_no_part_of_the_question() -> None:
    """Once all data is in RAM, it does not matter from which store it came."""
    reader = CandidateReader("resnet50-imagenet-p4d")
    jobs = [
        reader.read({"hardware.storage": f"storage/{name}"}).scenario for name in ("s3", "ebs-st1")
    ]
    warm, cold = ([_phase(job, phase) for job in jobs] for phase in (Phase.WARM, Phase.COLD))
    assert warm[0] == warm[1]
    assert cold[0] != cold[1]


def test_a_store_that_helpers_no_longer_read_from_is_no_part_of_the_question() -> None:
    """Nor does it matter from which store the RAM of machines was filled that only make batches."""
    reader = CandidateReader("resnet50-imagenet-p4d")
    helped = {"remote.machine": "instance/aws/c6i.32xlarge", "remote.count": 2}
    jobs = [
        reader.read({**helped, "remote.storage": f"storage/{name}"}).scenario
        for name in ("s3", "ebs-st1", "efs-one-zone")
    ]
    warm, cold = ([_phase(job, phase) for job in jobs] for phase in (Phase.WARM, Phase.COLD))
    assert warm[0] == warm[1] == warm[2]
    assert cold[0] != cold[1]


def _phase(job: Scenario, phase: Phase) -> EpochCacheKey:
    inputs = simulation_input(job)
    plan = plan_of(inputs, phase, Options())
    return EpochCacheKey.of(job, inputs.topology, inputs.demands[phase], plan, 0)


def test_what_was_simulated_before_gives_the_same_answer() -> None:
    """A run that others were like is as one that stood alone."""
    job = scenario()
    before = solve(simulation_input(job), Options())
    after = solve(simulation_input(replace(job, name="another")), Options())
    assert after.total_time == before.total_time
    assert after.split == before.split
