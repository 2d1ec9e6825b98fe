"""What fields mean is read from the source, and only when somebody asks."""

from __future__ import annotations

import subprocess
import sys

from simulator.reading.json_schema import meaning
from simulator.reading.sections import ScenarioFile
from simulator.schema.storage import Storage


def test_the_text_under_a_field_is_its_meaning() -> None:
    """Own fields and those of the model that is extended have theirs."""
    assert meaning(ScenarioFile, "train") == "Training settings."
    assert meaning(Storage, "note")


def test_a_prediction_reads_no_sources() -> None:
    """Reading a scenario looks at no module's source: it takes longer than the prediction."""
    code = (
        "import inspect\n"
        "from simulator.reading.scenario import load_scenario\n"
        "asked = []\n"
        "inspect.getsource = lambda *found: asked.append(found) or ''\n"
        "load_scenario('resnet50-imagenet-p4d')\n"
        "print(len(asked))\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "0\n"
