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

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import pandas as pd

from simulator.errors import UnknownName
from simulator.report.document import render
from simulator.report.prediction import document, summary
from simulator.results.metrics import (
    Value,
    figures,
    number_at,
    select,
    service_figures,
    unit_of,
)
from simulator.results.prediction import Prediction
from simulator.results.serving import ServicePrediction
from simulator.schema.fields import nearest_hint
from simulator.schema.goal import Axes, Axis, Plain, Sampling
from simulator.studies.subject import JobSubject, ServiceSubject, Subject, read_subject
from simulator.units import Seconds, Usd

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from simulator.engine.closed_form import Estimate
    from simulator.results.prediction import Outlook
    from simulator.schema.scenario import Scenario
    from simulator.schema.serving import Service

__all__ = ["Answer", "Configuration", "ServiceAnswer", "ServiceConfiguration", "compare", "load"]

Over = Mapping[str, str | Sequence[Plain] | Sequence[Sequence[Plain]]]
"""Axes of a sweep: a dotted key (or several, with commas) and its values, as text or as a list."""
Predicted = TypeVar("Predicted")
Asked = TypeVar("Asked", bound=Subject[Any, Any])


class _Answer(ABC, Generic[Predicted]):
    """A prediction with its metrics; `str` of it is the report."""

    noun: ClassVar[str]

    def __init__(self, prediction: Predicted) -> None:
        self.prediction = prediction

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the job or service."""

    @property
    def _any(self) -> Any:  # noqa: ANN401 - a prediction of its kind
        return self.prediction

    @abstractmethod
    def _figures(self) -> Mapping[str, Value]:
        """Return all figures by name."""

    @property
    def metrics(self) -> pd.DataFrame:
        """All metrics that have a value, with unit and 80% interval."""
        rows = [
            {
                "metric": name,
                "value": value,
                "unit": unit_of(name, self.noun),
                **{end: self.interval(name).get(end) for end in ("p10", "p90")},
            }
            for name, value in self._figures().items()
            if not isinstance(value, Mapping) and value is not None
        ]
        return pd.DataFrame(rows).set_index("metric")

    def interval(self, metric: str) -> Mapping[str, float | None]:
        """Return P10, P50 and P90 of a metric; an empty dict if it has no uncertainty.

        P90 of a service is None where the slower case is beyond saturation.
        """
        found: Mapping[str, Mapping[str, float | None]] = self._any.interval
        return found.get(metric, {})

    @property
    def verdict(self) -> str:
        """The answer in a sentence or two."""
        return summary(self._any)

    def save(self, path: str | Path) -> None:
        """Write the report as one HTML file."""
        from simulator.report.html import as_page

        Path(path).write_text(as_page(self._any), encoding="utf-8")

    def __str__(self) -> str:
        return render(document(self._any, full=self.noun == JobSubject.noun), "table")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} to {self.name}: {self.verdict}>"


class Answer(_Answer[Prediction]):
    """The prediction of a job; in a notebook it shows itself.

    Examples
    --------
    >>> from simulator import load
    >>> answer = load("resnet18-imagenet-hidden").simulate()
    >>> round(answer["step_time_s.mean"], 3), answer["bottleneck"]
    (0.055, 'gpu')
    """

    noun = JobSubject.noun

    @property
    def name(self) -> str:
        """The name of the job."""
        return self.prediction.scenario.name

    def _figures(self) -> Mapping[str, Value]:
        return figures(self.prediction)

    def __getitem__(self, metric: str) -> Value:
        """Return the value of a metric by its dotted name.

        Raises
        ------
        UnknownName
            If there is no such metric; names the nearest.
        """
        known = self._figures()
        if metric in known:
            return known[metric]
        number = number_at(self.prediction, metric)
        if number is None:
            select(metric)
            msg = f"'{metric}' has no value in this prediction"
            raise UnknownName(msg)
        return number

    @property
    def outlook(self) -> Outlook | None:
        """The long run with its failures; None where the scenario has no section on them."""
        return self.prediction.outlook

    def plot(self, what: str = "step") -> Figure:
        """Return a figure of the prediction: ``step``, ``utilization`` or ``memory``.

        Raises
        ------
        UnknownName
            If there is no such figure.
        """
        from simulator.report.plot import prediction_figure

        return prediction_figure(self.prediction, what)

    def _repr_html_(self) -> str:
        from simulator.report.html.prediction import as_fragment

        return as_fragment(self.prediction)


class ServiceAnswer(_Answer[ServicePrediction]):
    """The prediction of a service.

    Examples
    --------
    >>> from simulator import load
    >>> answer = load("llama3-8b-chat-h100").simulate()
    >>> answer.prediction.keeps_limits, answer["saturation.headroom"] > 1.0
    (True, True)
    """

    noun = ServiceSubject.noun

    @property
    def name(self) -> str:
        """The name of the service."""
        return self.prediction.service.name

    def _figures(self) -> Mapping[str, float | None]:
        return service_figures(self.prediction)

    def __getitem__(self, metric: str) -> float | None:
        """Return a figure by its dotted name, in SI units; None where it has no value.

        Latencies have none beyond saturation, costs none without a price.

        Raises
        ------
        UnknownName
            If there is no such figure; names the nearest.
        """
        known = self._figures()
        if metric not in known:
            msg = f"unknown figure '{metric}' of this service; {nearest_hint(metric, tuple(known))}"
            raise UnknownName(msg)
        return known[metric]


class _Configuration(Generic[Asked]):
    """An immutable job or service with overridden keys; `with_` returns a changed copy."""

    subject: Asked

    def __init__(self, subject: Asked) -> None:
        self.subject = subject

    def __repr__(self) -> str:
        settings = self.subject.overrides
        changed = f" with {', '.join(settings)}" if settings else ""
        return f"<{type(self).__name__} of {self.subject.name}{changed}>"


class Configuration(_Configuration[JobSubject]):
    """An immutable job with overridden keys; `with_` returns a changed copy.

    Examples
    --------
    >>> from simulator import Configuration, load
    >>> job = load("resnet18-imagenet-hidden")
    >>> job.with_({"input.workers": 2}).scenario.job.input.workers
    2
    >>> Configuration("resnet18-imagenet-hidden").scenario.name
    'resnet18-imagenet-hidden'
    """

    def __init__(self, scenario: str | Path | JobSubject) -> None:
        """Read a scenario by its shipped name or its file, as `load` does."""
        from simulator.studies.subject import read_job

        if not isinstance(scenario, JobSubject):
            scenario = read_job(str(scenario))
        super().__init__(scenario)
        self.scenario: Scenario = self.subject.described

    def with_(self, settings: Mapping[str, Plain]) -> Configuration:
        """Return a copy with some keys set, such as ``{"input.workers": 8}``.

        Raises
        ------
        InputError
            With everything that is wrong with them.
        """
        return Configuration(self.subject.with_(settings))

    def estimate(self, settings: Mapping[str, Plain] | None = None) -> Estimate:
        """Return the closed-form step time with some keys set.

        A thousand a second: for trying many parallelism settings, one after the other. Data loading
        is left out; `simulate` includes it.

        Returns
        -------
        Estimate
            `step_time` [s], `throughput` [samples/s], `memory` of a device by item with its `total`
            and `capacity` [B], whether it `fits`, and `usd_per_step`; None where not known.

        Raises
        ------
        InputError
            With everything that is wrong with the settings.
        NotModelled
            If no accelerator computes.

        Examples
        --------
        >>> from simulator import load
        >>> job = load("megatron-1t")
        >>> whole, split = job.estimate(), job.estimate({"parallelism.interleave": 2})
        >>> whole.fits, split.step_time < whole.step_time
        ('yes', True)
        """
        from simulator.engine.closed_form import estimate

        return estimate(self.subject.reader.without_uncertainty(settings or {}))

    def simulate(self, *, seed: int = 0, trace: bool = False, intervals: bool = True) -> Answer:
        """Predict the job.

        Parameters
        ----------
        seed : int
            Seed of all random draws.
        trace : bool
            Keep a timeline, for `Answer.save`.
        intervals : bool
            Compute the interval of each figure.
        """
        return Answer(self.subject.predict(seed=seed, trace=trace, intervals=intervals))

    def long_run(
        self,
        *,
        deadline: Seconds | None = None,
        budget: Usd | None = None,
        draws: int = 1000,
        seed: int = 0,
    ) -> Outlook:
        """Simulate the run with its failures, and compare all ways to buy its machines.

        Parameters
        ----------
        deadline, budget : float, optional
            Time [s] and money [$] to give the probability for; those of [run] by default.
        draws, seed : int
            Number of simulated runs, and seed of all random draws.

        Returns
        -------
        Outlook
            As `plan goodput` prints it; `ways` are on demand, reserved, spot, both in turn, a
            capacity block and owned, each with its outlook and its probability to be the cheapest.
        """
        from simulator.schema.long_run import Terms
        from simulator.studies.purchase import long_run

        terms = Terms(deadline=deadline, budget=budget, draws=draws)
        return long_run(self.subject.reader, terms=terms, seed=seed)[1]

    def sweep(  # noqa: PLR0913 - the options of a sweep
        self,
        over: Over | None = None,
        *,
        where: str = "",
        sample: str | None = None,
        points: int | None = None,
        seed: int | None = None,
        screen: bool = False,
        jobs: int | None = None,
        executor: Executor | None = None,
    ) -> pd.DataFrame:
        """Predict many configurations; one row each, with the values of keys and all metrics.

        Parameters
        ----------
        over : mapping, optional
            Keys and their values: ``{"input.workers": "1..8", "train.batch_size": [32, 64]}``,
            instead of the file's [sweep] section; all of that section by default.
        where : str
            Only candidates that meet this, such as ``fits.gpu != 'no'``.
        sample, points : str, int, optional
            ``grid`` (default), or this number of points of ``latin-hypercube`` or ``sobol``.
        seed : int, optional
            Seed of all random draws; 0 by default.
        screen : bool
            Predict only what could be best in time or cost; others have their bounds.
        jobs : int, optional
            Processes; all cores by default.
        executor : concurrent.futures.Executor, optional
            Instead of processes of this machine: any executor, such as that of a cluster.
        """
        from simulator.studies.search.candidates import expand
        from simulator.studies.search.explore import Request, explore
        from simulator.studies.search.findings import frame
        from simulator.studies.search.workers import cores, local_workers

        reader = self.subject.reader
        file = reader.axes if over is None else None
        given = file or Axes(axes=_axes(over or {}))
        axes = replace(
            given,
            sample=given.sample if sample is None else Sampling(sample),
            points=given.points if points is None else points,
            seed=given.seed if seed is None else seed,
            where=" and ".join(f"({part})" for part in (given.where, where) if part),
        )
        request = Request(
            reader=reader,
            candidates=expand(axes, reader),
            where=axes.where,
            seed=axes.seed,
            exhaustive=not screen,
        )
        if executor is not None:
            return frame(explore(request, executor=executor))
        with local_workers(jobs or cores()) as workers:
            return frame(explore(request, workers=workers))


class ServiceConfiguration(_Configuration[ServiceSubject]):
    """An immutable service with overridden keys; `with_` returns a changed copy.

    Examples
    --------
    >>> from simulator import load
    >>> chat = load("llama3-8b-chat-h100")
    >>> chat.with_({"load.rate": "2 /s"}).service.load.arrivals.rate
    2.0
    """

    def __init__(self, subject: ServiceSubject) -> None:
        super().__init__(subject)
        self.service: Service = subject.described

    def with_(self, settings: Mapping[str, Plain]) -> ServiceConfiguration:
        """Return the same with some keys set, such as ``{"load.rate": "20 /s"}``.

        Raises
        ------
        InputError
            With everything that is wrong with them.
        """
        return ServiceConfiguration(self.subject.with_(settings))

    def simulate(self, *, seed: int = 0, intervals: bool = True) -> ServiceAnswer:
        """Predict latencies, rates, memory and cost.

        Parameters
        ----------
        seed : int
            Seed of lengths and arrivals.
        intervals : bool
            Compute the interval of each figure.
        """
        return ServiceAnswer(self.subject.predict(seed=seed, intervals=intervals))

    def sweep(self, over: Mapping[str, str | Sequence[Plain]], *, seed: int = 0) -> pd.DataFrame:
        """Predict many configurations: one row each, with the keys' values and all figures.

        Parameters
        ----------
        over : mapping
            Keys and their values: ``{"load.rate": ["5 /s", "10 /s"], "serving.tensor": "1,2"}``.
        seed : int
            Seed of lengths and arrivals.

        Raises
        ------
        InputError
            If a key is none of a service.
        """
        from simulator.reading.service.scenario import variants
        from simulator.studies.service_sizing import variant_outcomes

        points = [
            variants([f"{key}={values}"])
            if isinstance(values, str)
            else [{key: value} for value in values]
            for key, values in over.items()
        ]
        settings = [{k: v for part in parts for k, v in part.items()} for parts in product(*points)]
        found = variant_outcomes(self.subject.read, settings, seed=seed)
        return pd.DataFrame(
            [{**each.settings, **each.figures, "mistake": each.reason} for each in found]
        )

    def recommend(self, *, seed: int = 0) -> pd.DataFrame:
        """Return the machines that meet the limits of [goal], one row each, the cheapest first."""
        from simulator.report.service_sizing import choices_table
        from simulator.studies.service_sizing import cheapest_machines

        reader = self.subject.reader
        found = cheapest_machines(reader.read, reader.candidates(), seed=seed)
        table = choices_table(found)
        return pd.DataFrame(table.rows, columns=table.head)


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
    subject: Any = read_subject(
        str(name_or_path),
        profiles=[Path(folder) for folder in profiles],
        calibration=None if calibration is None else Path(calibration),
    )
    if settings:
        subject = subject.with_(settings)
    if isinstance(subject, JobSubject):
        return Configuration(subject)
    return ServiceConfiguration(subject)


def compare(**answers: Answer | ServiceAnswer) -> pd.DataFrame:
    """Return metrics of several answers side by side, a column each.

    Examples
    --------
    >>> job = load("resnet18-imagenet-hidden")
    >>> quick, slow = job.simulate(), job.with_({"input.workers": 1}).simulate()
    >>> bool(compare(quick=quick, slow=slow).loc["step_time_s.mean"].is_monotonic_increasing)
    True
    """
    return pd.DataFrame({name: answer.metrics["value"] for name, answer in answers.items()})


def _axes(over: Over) -> tuple[Axis, ...]:
    from simulator.reading.search.axes import axis_of, parse_axis

    return tuple(
        parse_axis(f"{key}={values}")
        if isinstance(values, str)
        else axis_of(key, list(values), origin="sweep", line=None, key=key)
        for key, values in over.items()
    )
