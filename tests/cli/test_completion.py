"""Completion by the shell, as click does it, with the names of scenarios and profiles."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.stages import sampled

Run = Callable[..., Any]
"""A fixture that runs ``plan``, or starts it."""


@pytest.mark.parametrize(
    ("words", "wanted", "unwanted"),
    sampled(
        [
            ("plan re", "recommend", "simulate"),
            ("plan simulate resnet50-i", "resnet50-imagenet-p4d", "resnet50-m40"),
            (
                "plan compare bert-large-dgx-a100 resnet50-m",
                "resnet50-m40",
                "resnet50-imagenet-p4d",
            ),
            ("plan sweep resnet50-m40 --exh", "--exhaustive", "--points"),
            ("plan simulate resnet50-m40 --format ", "markdown", "yaml"),
            ("plan explain resnet50-m40 step_time_s.m", "step_time_s.mean", "step_time_s.p50"),
            ("plan validate published", "published_cases", "imread_benchmark"),
            ("plan hardware sh", "show", "list"),
            ("plan hardware show gpu/t", "gpu/t4", "gpu/a10"),
            ("plan import flu", "", "fio"),
            ("plan import fi", "fio", "dlio"),
            ("plan init --model resnet5", "resnet50", "resnet18"),
            ("plan init --machine node/dgx-a100", "node/dgx-a100-80gb", "gpu/t4"),
        ],
        5,
    ),
)
def test_names_are_completed(spawn: Run, words: str, wanted: str, unwanted: str) -> None:
    """A shell that asks gets what begins as typed, and nothing else."""
    place = str(len(words.split(" ")) - 1)
    asked = {"_PLAN_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": place}
    out, err = spawn(env=asked).communicate(timeout=60)
    found = [line.partition(",")[2] for line in out.split()]
    assert err == ""
    assert wanted in found if wanted else not found
    assert unwanted not in found


def test_a_file_may_stand_where_a_scenario_does(spawn: Run) -> None:
    """The shell is asked to complete files too."""
    asked = {"_PLAN_COMPLETE": "bash_complete", "COMP_WORDS": "plan simulate m", "COMP_CWORD": "2"}
    out, _ = spawn(env=asked).communicate(timeout=60)
    assert "file,m" in out.splitlines()


def test_profiles_that_cannot_be_found_complete_to_nothing(spawn: Run, tmp_path: Path) -> None:
    """While somebody types is no time for messages."""
    asked = {
        "_PLAN_COMPLETE": "bash_complete",
        "COMP_WORDS": "plan hardware show g",
        "COMP_CWORD": "3",
        "PLAN_PROFILES": str(tmp_path / "none"),
    }
    out, err = spawn(env=asked).communicate(timeout=60)
    assert (out.strip(), err) == ("", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_click_prints_the_script(spawn: Run, shell: str) -> None:
    """The line of the README makes each shell call plan with the variable that click answers."""
    out, err = spawn(env={"_PLAN_COMPLETE": f"{shell}_source"}).communicate(timeout=60)
    assert err == ""
    assert f"_PLAN_COMPLETE={shell}_complete" in out


def test_completing_a_verb_imports_no_verb(root: Path) -> None:
    """Names of verbs come from the table, whatever the verbs would load."""
    code = (
        "import sys; from simulator.cli.main import LateGroup;"
        "from simulator.cli.main import plan;"
        "context = plan.make_context('plan', [], resilient_parsing=True);"
        "print(len(plan.shell_complete(context, '')));"
        "print([m for m in sys.modules if m in ('simulator.cli.sweep', 'numpy')])"
    )
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    number, loaded = done.stdout.splitlines()
    assert int(number) > 12
    assert loaded == "[]"
