"""The recipes of docs/adding.md, followed on a copy of the package."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

CLIP = 0.05
SHOW = """
import json, sys
from simulator import load
from simulator.engine.closed_form import estimate
from simulator.predict import predict
from simulator.report.prediction.explain import document
from simulator.report.document import Format, render
from simulator.studies.screening import best_cases

found = {}
for name, estimated in json.loads(sys.argv[1]).items():
    job = load(name)
    prediction = predict(job.scenario, intervals=False)
    found[name] = {
        "simulation": prediction.timing.step_time.mean,
        "lower bound": prediction.bounds.lower,
        "upper bound": prediction.bounds.upper,
        "ledger": prediction.timing.ledger.get("clip", 0.0),
        "compute": prediction.timing.split.compute,
        "floor": best_cases([job.scenario])[0].figures["step_time_s.mean"],
        "explained": "clip (by" in render(document(prediction, "step_time_s.mean"), Format.TABLE),
    }
    if estimated:
        found[name]["estimate"] = estimate(job.scenario).step_time
print(json.dumps(found))
"""
JOBS = {
    "bert-large-dgx-a100": True,
    "resnet18-imagenet-hidden": True,
    "inference-batch1-gpu": False,
}
"""Whether the closed-form estimate is compared, too."""


def run(folder: Path, code: str, *given: str) -> subprocess.CompletedProcess[str]:
    """Run Python where the copy of the package is found first."""
    return subprocess.run(  # noqa: S603 - our own interpreter and text
        [sys.executable, "-c", code, *given],
        cwd=folder,
        env={"PYTHONPATH": str(folder), "PATH": os.defpath},
        capture_output=True,
        text=True,
        check=False,
    )


def figures(folder: Path) -> dict[str, dict[str, Any]]:
    """What every solver says of a step, for each of the jobs."""
    done = run(folder, SHOW, json.dumps(JOBS))
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


def recipe(root: Path, title: str) -> tuple[str, list[str]]:
    """A section of the document, and its blocks of code."""
    text = (root / "docs" / "adding.md").read_text(encoding="utf-8")
    section = text.partition(f"## {title}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^ *```\w+\n(.*?)^ *```", section, flags=re.MULTILINE | re.DOTALL)
    return section, [textwrap.dedent(block) for block in blocks]


def insert(path: Path, place: str, added: str) -> None:
    """Put text before the first place of a file that reads so."""
    text = path.read_text(encoding="utf-8")
    assert place in text
    path.write_text(text.replace(place, added + place, 1), encoding="utf-8")


def plan(folder: Path, *words: str) -> str:
    """What `plan` of the copy prints."""
    code = "import sys; from simulator.cli.main import main; sys.exit(main(sys.argv[1:]))"
    done = run(folder, code, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Path:
    """A copy of the package, with its scenarios and profiles."""
    folder = tmp_path_factory.mktemp("adding")
    for name in ("simulator", "scenarios", "hardware_profiles"):
        source = pytestconfig.rootpath / name
        shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.mark.slow
def test_a_stage_by_the_recipe_is_in_every_solver(copy: Path, root: Path) -> None:
    """Without its slot nothing starts; with it, 50 ms more in all that reads the step program."""
    stage, imported, slot = recipe(root, "A stage")[1]
    before = figures(copy)
    module = copy / "simulator" / "pipeline" / "stages" / "compute.py"
    module.write_text(f"{module.read_text(encoding='utf-8')}\n\n{stage}", encoding="utf-8")
    refused = run(copy, "from simulator.cli.main import main; main(['simulate', 'rl-actors'])")
    assert "stage Clip has no slot in simulator/pipeline/program.py" in refused.stderr
    assert "bug in plan" not in refused.stderr

    table = copy / "simulator" / "pipeline" / "program.py"
    insert(table, "from simulator.pipeline.stages.input", imported)
    insert(table, '    Slot(DevicePass("optimizer")', textwrap.indent(slot, "    "))
    after = figures(copy)
    for name in JOBS:
        more = {key: after[name][key] - before[name][key] for key in before[name]}
        assert after[name]["explained"]
        assert not before[name]["explained"]
        assert more.pop("upper bound") >= CLIP * (1.0 - 1e-9)
        # less by what another unit needed longer than the device before, at most 3 ms in these jobs
        assert CLIP - 3e-3 < more.pop("lower bound") < CLIP * (1.0 + 1e-9)
        for where in set(more) - {"explained"}:
            assert more[where] == pytest.approx(CLIP, rel=1e-4), (name, where)


@pytest.mark.slow
def test_a_gpu_by_the_recipe_is_simulated(copy: Path, root: Path) -> None:
    """A profile alone: its steps take a time, by the kernels of a relative, which is said."""
    (profile,) = recipe(root, "A GPU")[1]
    path = copy / "hardware_profiles" / "gpu" / "example.toml"
    path.write_text(profile, encoding="utf-8")
    given = ("--set", "hardware.gpu=gpu/example", "--set", "train.precision=bf16", "--json")
    told = json.loads(plan(copy, "simulate", "bert-large-dgx-a100", *given))
    assert 0.01 < told["step_time_s"]["mean"] < 10.0
    assert any("kernels of example" in one["what"] for one in told["assumptions"])
    assert "gpu/example" in plan(copy, "hardware", "show", "gpu/example")


@pytest.mark.slow
def test_a_metric_by_the_recipe_is_everywhere(copy: Path, root: Path) -> None:
    """One entry: it is printed, explained and searched by."""
    assert "One row of name, path, meaning and unit" in recipe(root, "A metric")[0]
    entry = """    _low(
        "cost.usd_per_sample",
        lambda p: None if p.cost.samples_per_usd is None else 1.0 / p.cost.samples_per_usd,
        "Price of a sample.",
        USD,
    ),
"""
    metrics = copy / "simulator" / "results" / "metrics.py"
    insert(metrics, '    _low("cost.usd_per_step"', entry)
    job = "resnet18-imagenet-hidden"
    shown = json.loads(plan(copy, "simulate", job, "--json"))["cost"]
    assert shown["usd_per_sample"] == pytest.approx(1.0 / shown["samples_per_usd"])
    assert "Price of a sample." in plan(copy, "explain", job, "cost.usd_per_sample")
    swept = ("--over", "input.workers=4,8", "--by", "cost.usd_per_sample", "--json")
    assert plan(copy, "sweep", job, *swept)


@pytest.mark.slow
def test_a_lever_by_the_recipe_is_proposed(copy: Path, root: Path) -> None:
    """One entry and its name in a filter: it is among the changes of a job that trains."""
    (entry,) = recipe(root, "A lever")[1]
    catalogue = copy / "simulator" / "studies" / "levers" / "catalogue.py"
    insert(catalogue, "    # input pipeline\n", textwrap.indent(entry, "    "))
    insert(catalogue, '    *("workers", "prefetch", "copies ahead"', '    "gradient bucket",\n')
    code = """
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.search.candidates import CandidateReader
from simulator.studies.baseline import baseline_of
from simulator.studies.levers.catalogue import changes
from simulator.studies.levers.lever import Situation

baseline = baseline_of(CandidateReader("resnet50-imagenet-p4d"), Catalogue.default())
print([one.name for one in changes(Situation(baseline=baseline, starved=False))])
"""
    done = run(copy, code)
    assert "gradient buckets of 100 MB" in done.stdout, done.stderr


@pytest.mark.slow
def test_a_key_by_the_recipe_reaches_the_scenario(copy: Path, root: Path) -> None:
    """One place: it may be set with its unit, and is refused with a wrong one."""
    (given,) = recipe(root, "A key")[1]
    at = "    start_up: TimeOrZeroField = 0.0\n"
    module = copy / "simulator" / "schema" / "training.py"
    insert(module, at, textwrap.indent(given, "    "))
    code = """
import sys
from simulator.reading.scenario import load_scenario
job = load_scenario("resnet18-imagenet-hidden", overrides=sys.argv[1:]).job
print(job.train.clip_time)
"""
    assert float(run(copy, code, "train.clip_time=50 ms").stdout) == CLIP
    assert float(run(copy, code).stdout) == 0.0
    assert "train.clip_time" in run(copy, code, "train.clip_time=50 GB").stderr
    assert "Time of clipping gradients in each step." in plan(copy, "schema")


@pytest.mark.slow
def test_a_command_by_the_recipe_is_listed_and_runs(copy: Path, root: Path) -> None:
    """A module and its line in the table of sections."""
    assert "its line in `SECTIONS`" in recipe(root, "A command")[0]
    verb = copy / "simulator" / "cli" / "greet.py"
    verb.write_text(
        '''"""``plan greet``: say so."""

import click

from simulator.cli.output import emit


@click.command()
def greet() -> None:
    """Greet whoever asks."""
    emit("good day")
''',
        encoding="utf-8",
    )
    line = '        "greet": ("simulator.cli.greet", "A greeting."),\n'
    insert(copy / "simulator" / "cli" / "main.py", '        "explain": (', line)
    assert plan(copy, "greet") == "good day\n"
    assert "A greeting." in plan(copy, "--help")
    assert "Greet whoever asks." in plan(copy, "greet", "--help")
