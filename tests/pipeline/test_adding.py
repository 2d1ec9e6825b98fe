"""The recipe for a stage in docs/adding.md, followed on a copy of the package."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CLIP = 0.05
SHOW = """
import json, sys
from simulator import load
from simulator.engine.estimate import estimate
from simulator.predict import predict
from simulator.report.explain import as_explanation
from simulator.results.prediction import Solver
from simulator.studies.screening import best_cases

found = {}
for name, solver in json.loads(sys.argv[1]).items():
    job = load(name)
    prediction = predict(job.scenario, doubts=False)
    assert prediction.timing.solver == solver
    found[name] = {
        "simulation": prediction.timing.step_time.mean,
        "lower bound": prediction.bounds.lower,
        "upper bound": prediction.bounds.upper,
        "ledger": prediction.timing.ledger.get("clip", 0.0),
        "compute": prediction.timing.split.compute,
        "floor": best_cases([job.scenario])[0].figures["step_time_s.mean"],
        "explained": "clip (by" in as_explanation(prediction, "step_time_s.mean"),
    }
    if solver == "event engine":
        found[name]["estimate"] = estimate(job.scenario).step_time
print(json.dumps(found))
"""
JOBS = {
    "bert-large-dgx-a100": "event engine",
    "resnet18-imagenet-hidden": "event engine",
    "inference-batch1-gpu": "recursion",
}


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


def recipe(root: Path) -> list[str]:
    """The blocks of code in the section on stages: the stage, its import, its slot."""
    text = (root / "docs" / "adding.md").read_text(encoding="utf-8")
    section = text.partition("## A stage\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^    ```\w+\n(.*?)^    ```", section, flags=re.MULTILINE | re.DOTALL)
    return [re.sub(r"^    ", "", block, flags=re.MULTILINE) for block in blocks]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Path:
    """A copy of the package, with its scenarios and profiles."""
    folder = tmp_path_factory.mktemp("adding")
    for name in ("simulator", "scenarios", "hardware_profiles"):
        source = pytestconfig.rootpath / name
        shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_a_stage_by_the_recipe_is_in_every_solver(copy: Path, root: Path) -> None:
    """Without its slot nothing starts; with it, 50 ms more in all that reads the step program."""
    stage, imported, slot = recipe(root)
    before = figures(copy)
    (copy / "simulator" / "pipeline" / "stages" / "clip.py").write_text(stage, encoding="utf-8")
    refused = run(copy, "import simulator.predict")
    assert refused.returncode != 0
    assert (
        "no slot in simulator/pipeline/program.py for simulator.pipeline.stages.clip"
        in refused.stderr
    )

    table = copy / "simulator" / "pipeline" / "program.py"
    text = table.read_text(encoding="utf-8")
    for place, line in (
        ("from simulator.pipeline.stages.collate", imported),
        ("    Slot(Update()", slot),
    ):
        text = text.replace(place, line + place, 1)
    table.write_text(text, encoding="utf-8")
    after = figures(copy)
    for name in JOBS:
        more = {key: after[name][key] - before[name][key] for key in before[name]}
        assert after[name]["explained"]
        assert not before[name]["explained"]
        assert more.pop("upper bound") >= CLIP * (1.0 - 1e-9)
        # less by what another unit needed longer than the device before
        assert more.pop("lower bound") == pytest.approx(CLIP, rel=0.01)
        for where in set(more) - {"explained"}:
            assert more[where] == pytest.approx(CLIP, rel=1e-4), (name, where)
