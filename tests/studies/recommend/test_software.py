"""Where a program runs as it is, and where only after a port that the user names."""

from __future__ import annotations

import pytest

from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.search.candidates import CandidateReader
from simulator.schema.goal import Goal, Limits, Plain
from simulator.studies.baseline import baseline_of
from simulator.studies.levers import MACHINE
from simulator.studies.recommend.limits import PORTING, program_of
from simulator.studies.recommend.search_problem import define_problem
from tests.studies.recommend.made import CHEAPEST, machine

HERE = machine("here", gpu="a", stack="cuda")
THERE = machine("there", gpu="b-16gb", stack="neuron")


def wanted(pins: dict[str, Plain] | None = None, **limits: tuple[str, ...]) -> Goal:
    """A goal with some limits."""
    return Goal(objective=CHEAPEST, limits=Limits(**limits), pins=pins or {})


@pytest.mark.parametrize(
    ("goal", "runs"),
    [
        (wanted(), False),
        (wanted(gpus=("gpu/*",)), False),
        (wanted(porting=("rocm",)), False),
        (wanted(porting=("rocm", "neuron")), True),
        (wanted(requires=("neuron",)), True),
        (wanted(gpus=("gpu/b",)), True),
        (wanted(pins={"hardware.gpu": "b"}), True),
    ],
)
def test_a_port_is_allowed_by_name(goal: Goal, *, runs: bool) -> None:
    """A wildcard names nothing; the software, or the accelerator itself, does."""
    program = program_of("pytorch", HERE, goal)
    assert program.may_run_on(THERE) is runs
    assert program.may_run_on(HERE)
    assert not program.runs_on(THERE)


def test_a_program_runs_where_it_is_at_home() -> None:
    """Written for the scenario's own accelerator; JAX runs on TPUs too; CPUs need no port."""
    assert program_of("pytorch", THERE, wanted()).runs_on(THERE)
    assert program_of("JAX", HERE, wanted()).runs_on(machine("t", stack="tpu"))
    assert not program_of("pytorch", HERE, wanted()).runs_on(machine("t", stack="tpu"))
    assert program_of("pytorch", HERE, wanted()).runs_on(machine("cpu", gpu="", stack=""))


@pytest.mark.slow
def test_an_ordinary_job_is_offered_no_other_accelerators() -> None:
    """A PyTorch job on A100s: nothing but CUDA is searched, and the others are counted."""
    reader = CandidateReader("resnet50-imagenet-p4d")
    baseline = baseline_of(reader, Catalogue.default())
    others = [one for one in baseline.machines if one.stack not in ("", "cuda")]
    assert others
    problem = define_problem(baseline, wanted())
    stacks = {problem.machine(one).stack for one in problem.settings}
    assert stacks <= {"", "cuda"}
    assert problem.excluded[PORTING] == len(others)
    ported = define_problem(baseline, wanted(porting=("neuron",)))
    assert "instance/aws/trn1.32xlarge" in {one[MACHINE] for one in ported.settings}
