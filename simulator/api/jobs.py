"""Jobs from Python: a configuration, its predictions and its sweeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pandas as pd

from simulator.engine.closed_form import Estimate, estimate
from simulator.errors import UnknownName
from simulator.predict import predict
from simulator.reading.search.axes import axis_of, parse_axis
from simulator.reading.search.candidates import CandidateReader
from simulator.reading.settings import as_option
from simulator.report.html.prediction import as_fragment, as_page
from simulator.report.prediction.job import document
from simulator.report.render import Format, render
from simulator.results.metrics import JOB_METRICS, Value, number_at, select
from simulator.results.outlook import Outlook
from simulator.results.prediction import Prediction
from simulator.schema.goal import Axes, Axis, Plain, Sampling
from simulator.schema.long_run import Terms
from simulator.schema.scenario import Scenario
from simulator.studies.purchase import long_run
from simulator.studies.search.candidates import expand
from simulator.studies.search.explore import Request, explore
from simulator.studies.search.findings import frame
from simulator.studies.search.workers import cores, local_workers
from simulator.units import Seconds, Usd

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Over = Mapping[str, str | Sequence[Plain] | Sequence[Sequence[Plain]]]
"""Axes of a sweep: a dotted key (or several, with commas) and its values, as text or as a list."""

_UNITLESS: Final = ""


class Answer:
    """What a configuration was predicted to do; in a notebook it shows itself.

    Examples
    --------
    >>> from simulator import load
    >>> answer = load("resnet18-imagenet-hidden").simulate()
    >>> round(answer["step_time_s.mean"], 3), answer["bottleneck"]
    (0.055, 'gpu')
    """

    def __init__(self, prediction: Prediction) -> None:
        self.prediction = prediction

    def __getitem__(self, metric: str) -> Value:
        """The value of a metric by its dotted name.

        Raises
        ------
        UnknownName
            If there is no such metric; names the nearest.
        """
        known = {one.name: one for one in JOB_METRICS}
        if metric in known:
            return known[metric].get(self.prediction)
        number = number_at(self.prediction, metric)
        if number is None:
            select(metric)
            msg = f"'{metric}' has no value in this prediction"
            raise UnknownName(msg)
        return number

    @property
    def metrics(self) -> pd.DataFrame:
        """All single figures: value, unit, and where they lie in four of five cases."""
        rows = [
            {
                "metric": one.name,
                "value": value,
                "unit": _UNITLESS if one.unit is None else one.unit.symbol,
                **{end: self.interval(one.name).get(end) for end in ("p10", "p90")},
            }
            for one in JOB_METRICS
            if not isinstance(value := one.get(self.prediction), Mapping) and value is not None
        ]
        return pd.DataFrame(rows).set_index("metric")

    def interval(self, metric: str) -> Mapping[str, float]:
        """P10, P50 and P90 of a metric; empty where nothing about it is uncertain."""
        return self.prediction.interval.get(metric, {})

    @property
    def verdict(self) -> str:
        """The answer in a sentence or two."""
        from simulator.report.prediction.verdict import verdict

        return verdict(self.prediction)

    @property
    def outlook(self) -> Outlook | None:
        """The long run with its failures; None where the scenario has no section on them."""
        return self.prediction.outlook

    def plot(self, what: str = "step") -> Figure:
        """A figure of the prediction: ``step``, ``utilization`` or ``memory``.

        Raises
        ------
        UnknownName
            If there is no such figure.
        """
        from simulator.report.plot import prediction_figure

        return prediction_figure(self.prediction, what)

    def save(self, path: str | Path) -> None:
        """Write the report as one HTML file."""
        Path(path).write_text(as_page(self.prediction), encoding="utf-8")

    def __str__(self) -> str:
        return render(document(self.prediction, full=True), Format.TABLE)

    def __repr__(self) -> str:
        return f"<Answer to {self.prediction.scenario.name}: {self.verdict}>"

    def _repr_html_(self) -> str:
        return as_fragment(self.prediction)


class Configuration:
    """A scenario with settings of its own over it; nothing changes one, `with_` makes another.

    Examples
    --------
    >>> from simulator import Configuration, load
    >>> job = load("resnet18-imagenet-hidden")
    >>> job.with_({"input.workers": 2}).scenario.job.loader.workers
    2
    >>> Configuration("resnet18-imagenet-hidden").scenario.name
    'resnet18-imagenet-hidden'
    """

    def __init__(self, scenario: str | Path | CandidateReader) -> None:
        """Read a scenario by its shipped name or its file, as `load` does."""
        if not isinstance(scenario, CandidateReader):
            scenario = CandidateReader(str(scenario))
        self._reader = scenario
        self.scenario: Scenario = self._reader.read({}).scenario

    def with_(self, settings: Mapping[str, Plain]) -> Configuration:
        """The same with some keys set, such as ``{"input.workers": 8, "train.batch_size": 64}``.

        Raises
        ------
        InputError
            With everything that is wrong with them.
        """
        known = self._reader
        options = (as_option(key, value) for key, value in settings.items())
        changed = CandidateReader(
            known.name_or_path,
            overrides=(*known.overrides, *options),
            profiles=known.profiles,
            calibration=known.calibration,
        )
        return Configuration(changed)

    def estimate(self, settings: Mapping[str, Plain] | None = None) -> Estimate:
        """What the devices take for a step with some keys set, in closed form.

        A thousand a second: for trying many ways to spread a model, one after the other. Data is
        taken to be at hand; `simulate` looks at all of it.

        Returns
        -------
        Estimate
            `step_time` [s], `throughput` [samples/s], `memory` of a device by item with its `total`
            and `capacity` [B], whether it `fits`, and `usd_per_step`; None for what is not known.

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
        return estimate(self._reader.plainly(settings or {}))

    def simulate(self, *, seed: int = 0, trace: bool = False, intervals: bool = True) -> Answer:
        """Predict what the job takes.

        Parameters
        ----------
        seed : int
            Of all random draws.
        trace : bool
            Keep a timeline, for `Answer.save`.
        intervals : bool
            Work out how well each figure is known.
        """
        return Answer(predict(self.scenario, seed=seed, trace=trace, intervals=intervals))

    def long_run(
        self,
        *,
        deadline: Seconds | None = None,
        budget: Usd | None = None,
        draws: int = 1000,
        seed: int = 0,
    ) -> Outlook:
        """Draw the run with its failures, and hold all ways to buy its machines against each other.

        Parameters
        ----------
        deadline, budget : float, optional
            Time [s] and money [$] whose chances are wanted; those of [run] by default.
        draws, seed : int
            How many lives, and of all random numbers.

        Returns
        -------
        Outlook
            As `plan goodput` prints it; `ways` are on demand, reserved, spot, both in turn, a
            capacity block and owned, each with its own outlook and its chance to be the cheapest.
        """
        terms = Terms(deadline=deadline, budget=budget, draws=draws)
        return long_run(self._reader, terms=terms, seed=seed)[1]

    def sweep(  # noqa: PLR0913 - what a sweep may be asked for
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
        """Predict many configurations: one row each, with the keys' values and all metrics.

        Parameters
        ----------
        over : mapping, optional
            Keys and their values: ``{"input.workers": "1..8", "train.batch_size": [32, 64]}``,
            in place of the file's [sweep] section; all of that section by default.
        where : str
            Only candidates that meet this, such as ``fits.gpu != 'no'``.
        sample, points : str, int, optional
            ``grid`` (the usual way), or so many points of ``latin-hypercube`` or ``sobol``.
        seed : int, optional
            Of all random draws; 0 by default.
        screen : bool
            Predict only what could be best in time or cost; others keep their bounds.
        jobs : int, optional
            Processes; all cores by default.
        executor : concurrent.futures.Executor, optional
            In place of processes of this machine: any executor, such as that of a cluster.
        """
        file = self._reader.axes if over is None else None
        given = file or Axes(axes=_axes(over or {}))
        wanted = replace(
            given,
            sampling=given.sampling if sample is None else Sampling(sample),
            points=given.points if points is None else points,
            seed=given.seed if seed is None else seed,
            where=" and ".join(f"({part})" for part in (given.where, where) if part),
        )
        request = Request(
            reader=self._reader,
            candidates=expand(wanted, self._reader),
            where=wanted.where,
            seed=wanted.seed,
            exhaustive=not screen,
        )
        if executor is not None:
            return frame(explore(request, executor=executor))
        with local_workers(jobs or cores()) as workers:
            return frame(explore(request, workers=workers))

    def __repr__(self) -> str:
        changed = f" with {', '.join(self._reader.overrides)}" if self._reader.overrides else ""
        return f"<Configuration of {self.scenario.name}{changed}>"


def _axes(over: Over) -> tuple[Axis, ...]:
    return tuple(
        parse_axis(f"{key}={values}") if isinstance(values, str) else _axis(key, values)
        for key, values in over.items()
    )


def _axis(key: str, values: Sequence[object]) -> Axis:
    return axis_of(key, list(values), origin="sweep", line=None, key=key)
