"""Plan from Python: load a scenario or a service, change it, simulate it, sweep it.

::

    import simulator

    job = simulator.load("resnet50-imagenet-p4d")
    job.simulate()["step_time_s.mean"]
    job.sweep({"input.workers": "4..16 step 4"})

    chat = simulator.load("llama3-8b-chat-h100")
    chat.simulate()["first_token_s.p99"]

Metrics have the names they have everywhere (``plan simulate --json``), figures are in SI units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from simulator.api.jobs import Answer, Configuration
from simulator.api.services import ServiceAnswer, ServiceConfiguration
from simulator.errors import InputError, Problem
from simulator.reading.merge_documents import chain_of
from simulator.reading.scenario import default_name_of
from simulator.reading.search.candidates import CandidateReader
from simulator.reading.service.mode import describes_service
from simulator.reading.service.scenario import ServiceReader
from simulator.schema.goal import Plain

__all__ = ["Answer", "Configuration", "ServiceAnswer", "ServiceConfiguration", "compare", "load"]


def load(
    name_or_path: str | Path,
    settings: Mapping[str, Plain] | None = None,
    *,
    profiles: Sequence[str | Path] = (),
    calibration: str | Path | None = None,
) -> Any:  # noqa: ANN401 - a job or a service, by what the file says
    """Read a scenario or a service: a file, or the name of a shipped one.

    Parameters
    ----------
    name_or_path : str or pathlib.Path
        Such as ``my-job.toml`` or ``resnet50-imagenet-p4d``.
    settings : mapping, optional
        Keys to set over it.
    profiles : sequence of paths
        Folders of hardware profiles that come first.
    calibration : path, optional
        What ``plan calibrate`` wrote, for a job.

    Returns
    -------
    Configuration or ServiceConfiguration
        The latter for a file with ``mode = "serve"``.

    Raises
    ------
    InputError
        With all mistakes at once.
    UnknownName
        If there is no such scenario.

    Examples
    --------
    >>> load("resnet18-imagenet-hidden")
    <Configuration of resnet18-imagenet-hidden>
    >>> load("llama3-8b-chat-h100")
    <ServiceConfiguration of llama3-8b-chat-h100>
    """
    name, folders = str(name_or_path), [Path(folder) for folder in profiles]
    chain = chain_of(name, None)
    found: Configuration | ServiceConfiguration
    if describes_service(chain):
        if calibration is not None:
            message = "means nothing for a service"
            raise InputError((Problem(origin=f"calibration {calibration}", message=message),))
        reader = ServiceReader(chain, default_name_of(name), profiles=folders)
        found = ServiceConfiguration(reader)
    else:
        overlay = None if calibration is None else Path(calibration)
        found = Configuration(CandidateReader(name, profiles=folders, calibration=overlay))
    return found.with_(settings) if settings else found


def compare(**answers: Answer | ServiceAnswer) -> pd.DataFrame:
    """Metrics of several answers side by side, a column each.

    Examples
    --------
    >>> job = load("resnet18-imagenet-hidden")
    >>> quick, slow = job.simulate(), job.with_({"input.workers": 1}).simulate()
    >>> bool(compare(quick=quick, slow=slow).loc["step_time_s.mean"].is_monotonic_increasing)
    True
    """
    return pd.DataFrame({name: answer.metrics["value"] for name, answer in answers.items()})
