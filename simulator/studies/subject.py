"""Subjects of studies: a training job or a service, which can be read again with other settings.

A `Subject` reads its file, predicts it and proposes changes; `read_subject` detects the kind of a
file. Commands and the Python interface use the subject without regard to its kind. `report`
contains the documents of the answers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeAlias, TypeVar

from simulator.errors import InputError, PlanError, Problem, UnknownName
from simulator.reading.merge_documents import chain_of
from simulator.records import dataclass

if TYPE_CHECKING:
    from simulator.reading.document import Document
    from simulator.reading.search.candidates import CandidateReader
    from simulator.reading.service.scenario import ServiceReader
    from simulator.results.cost import Listed
    from simulator.results.prediction import Prediction
    from simulator.results.serving import ServicePrediction
    from simulator.schema.goal import Axes, Goal
    from simulator.schema.scenario import Scenario
    from simulator.schema.serving import Service
    from simulator.studies.compare import Side
    from simulator.studies.levers import Settings
    from simulator.studies.recommend.recommendation import Recommendation
    from simulator.studies.recommend.search_problem import SearchBackend
    from simulator.studies.search.explore import Request
    from simulator.studies.search.findings import Findings
    from simulator.studies.search.outcome import Outcome
    from simulator.studies.service_sizing import ChangedService, Need, ServiceChoices
    from simulator.studies.size import SizeAnswer
    from simulator.studies.whatif import WhatIf

Found = TypeVar("Found")
Described = TypeVar("Described")
"""The type that a file is read to: `Scenario` or `Service`."""
Predicted = TypeVar("Predicted")
"""The type of its prediction: `Prediction` or `ServicePrediction`."""
Progress: TypeAlias = Callable[[float], None]
"""Takes the finished share, 0 to 1."""
ProgressLine: TypeAlias = Callable[[str], AbstractContextManager[Progress | None]]
"""Shows the progress of what a label names."""


def no_progress(label: str) -> AbstractContextManager[None]:
    """Show no progress."""
    del label
    return nullcontext()


@dataclass(frozen=True, slots=True, kw_only=True)
class Study(Generic[Found]):
    """Result of a study, and the exit status of the command.

    `good`: there is an answer within the limits. `refused`: there is none because of a mistake in
    the input. `bugs` are internal errors that occurred, `notes` are remarks for the user, `prices`
    are the listed prices in the bills of the answer.
    """

    found: Found
    good: bool
    refused: bool = False
    bugs: Sequence[str] = ()
    notes: Sequence[str] = ()
    prices: Callable[[], Iterable[Listed]] = tuple


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOptions:
    """Options of a study; each command reads those that it has.

    Parameters
    ----------
    seed : int
        Seed of all random draws.
    progress : callable
        Shows progress where `search` and `open_backend` do not.
    loss : float
        Share of a job's throughput that sizing may give up.
    counts : sequence of int
        Numbers of machines to size for; the scenario's own by default.
    typed : str
        Name and settings of the scenario as the user typed them.
    prices : sequence of str
        Prices that changes add to the rent, such as ``vCPUs x2=$0.50/h``.
    gpus : str, optional
        Accelerators to try, names and patterns; none by default.
    tornado : bool
        Also vary each uncertain rate.
    device : str
        Word for the accelerator in names of changes.
    over, where, sample, points, by, top, margin, exhaustive
        Options of `plan sweep`: the variants to try and the ones to report.
    search : callable, optional
        Explores the candidates of a job, with the workers and the store of the caller.
    goal : pathlib.Path, optional
        File with a goal for all jobs or services; their own by default.
    open_backend : callable, optional
        Opens the search of candidates, with the workers and the store of the caller.
    """

    seed: int = 0
    progress: ProgressLine = no_progress
    loss: float = 0.05
    counts: Sequence[int] = ()
    typed: str = ""
    prices: Sequence[str] = ()
    gpus: str | None = None
    tornado: bool = False
    device: str = "GPU"
    over: Sequence[str] = ()
    where: str | None = None
    sample: str | None = None
    points: int | None = None
    by: Sequence[str] = ()
    top: int | None = None
    margin: str = "0%"
    exhaustive: bool = False
    search: Callable[[Request], Sequence[Outcome]] | None = None
    goal: Path | None = None
    open_backend: Callable[[], AbstractContextManager[SearchBackend]] | None = None


class Subject(ABC, Generic[Described, Predicted]):
    """Subject of a study: a job or a service, with the settings given for it.

    `noun` and `plural` name the kind in messages. `unavailable` maps commands to the options that
    this kind does not support, as Python names. `explains_intervals`: explanations of a metric
    include its interval. `resources` can be sized, `default_metric` is the metric by which changes
    are sorted.
    """

    noun: ClassVar[str]
    plural: ClassVar[str]
    explains_intervals: ClassVar[bool] = True
    resources: ClassVar[tuple[str, ...]]
    default_metric: ClassVar[str]
    unavailable: ClassVar[Mapping[str, frozenset[str]]] = {}

    def __init__(self, name_or_path: str, reader: Any) -> None:  # noqa: ANN401 - typed by subclasses
        self.name_or_path = name_or_path
        self.reader = reader

    @property
    def overrides(self) -> tuple[str, ...]:
        """Settings given in addition to the file, as ``key=value``."""
        return tuple(self.reader.overrides)

    @property
    def profiles(self) -> tuple[Path, ...]:
        """Folders of hardware profiles, searched before the usual ones."""
        return tuple(self.reader.profiles)

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the job or service in reports."""

    def with_(self, settings: Settings) -> Self:
        """Return the same job or service with these settings in addition to its own."""
        return type(self)(self.name_or_path, self.reader.over(settings))

    @cached_property
    def described(self) -> Described:
        """Scenario or service without further settings."""
        return self.read({})

    @abstractmethod
    def read(self, settings: Settings) -> Described:
        """Read the job or service with these settings.

        Raises
        ------
        InputError
            With all mistakes at once.
        """

    @abstractmethod
    def predict(
        self,
        *,
        seed: int = 0,
        intervals: bool = True,
        trace: bool = False,
        max_steps: int | None = None,
        progress: Progress | None = None,
    ) -> Predicted:
        """Predict the job or service without further settings.

        Parameters
        ----------
        seed : int
            Seed of all random draws.
        intervals : bool
            Compute the 80% intervals of metrics.
        trace : bool
            Record a timeline, if the simulation has one.
        max_steps : int, optional
            Maximum number of steps to simulate.
        progress : callable, optional
            Called with the finished share.
        """

    @abstractmethod
    def completed(self, prediction: Predicted) -> Predicted:
        """Return the prediction with the additional parts of a full report."""

    @abstractmethod
    def succeeds(self, prediction: Predicted) -> bool:
        """Return whether the job fits, or the service is within its limits."""

    @abstractmethod
    def prices(self, prediction: Predicted) -> tuple[Listed, ...]:
        """Return the listed prices in the bill of the prediction."""

    @abstractmethod
    def actions(self, base: Predicted) -> tuple[tuple[Any, ...], list[str]]:
        """Return the most useful changes, best first, and messages of internal errors."""

    @abstractmethod
    def side(self, label: str, *, seed: int) -> Any:  # noqa: ANN401 - one type a kind
        """Return one column of a comparison: the prediction and all keys of the scenario."""

    @abstractmethod
    def size(self, resource: str, options: StudyOptions) -> Study[Any]:
        """Find the smallest sufficient amount of a resource, one of `resources`."""

    @abstractmethod
    def whatif(self, metric: str, options: StudyOptions) -> Study[Any]:
        """Find the effect of more of each resource on a metric, given by its dotted name."""

    @abstractmethod
    def sweep(self, options: StudyOptions) -> Study[Any]:
        """Predict the variants that the options describe."""

    @classmethod
    @abstractmethod
    def recommend(cls, subjects: Sequence[Any], options: StudyOptions) -> Study[Any]:
        """Find the best machines for one or several subjects, all of this kind."""

    @property
    def job(self) -> Scenario | None:
        """Training job, for a comparison with measured runs; None for a service."""
        return None


class JobSubject(Subject["Scenario", "Prediction"]):
    """Subject of a study that is a training job."""

    noun = "job"
    plural = "jobs"
    resources = ("storage", "network", "cpu", "ram")
    default_metric = "total_time_s"
    reader: CandidateReader

    @property
    def name(self) -> str:
        """Name of the scenario, or that of its file."""
        return str(self.reader.given("name") or Path(self.name_or_path).stem)

    def read(self, settings: Settings) -> Scenario:
        """Read the job with these settings; see `Subject.read`."""
        return self.reader.read(settings).scenario

    def predict(
        self,
        *,
        seed: int = 0,
        intervals: bool = True,
        trace: bool = False,
        max_steps: int | None = None,
        progress: Progress | None = None,
    ) -> Prediction:
        """Predict the job; see `Subject.predict`."""
        from simulator.predict import predict

        return predict(
            self.described,
            seed=seed,
            trace=trace,
            progress=progress,
            max_steps=max_steps,
            intervals=intervals,
        )

    def completed(self, prediction: Prediction) -> Prediction:
        """Add the ways to buy machines for a long run, and a warning about unused keys."""
        from simulator.studies.unused_keys import with_unused_keys

        return with_unused_keys(self._with_ways(prediction), self.reader)

    def _with_ways(self, prediction: Prediction) -> Prediction:
        if prediction.outlook is None:
            return prediction
        from simulator.studies.purchase import with_ways

        return with_ways(prediction, self.reader)

    def succeeds(self, prediction: Prediction) -> bool:
        """Return whether host RAM and GPU memory are or may be sufficient."""
        return prediction.fits

    def prices(self, prediction: Prediction) -> tuple[Listed, ...]:
        """Return the listed prices of the machines."""
        from simulator.results.cost import listed_prices

        return tuple(listed_prices(prediction.scenario))

    def actions(self, base: Prediction) -> tuple[tuple[Any, ...], list[str]]:
        """Return the changes that save most time or money; see `Subject.actions`."""
        from simulator.reading.hardware.catalogue import Catalogue
        from simulator.studies.actions import actions
        from simulator.studies.search.outcome import BugLog

        met = BugLog()
        found = actions(self.reader, base, Catalogue.default(self.profiles), met=met)
        return found, met.reasons

    def side(self, label: str, *, seed: int) -> Side[Prediction]:
        """Return one column of a comparison, with measurements published for a shipped scenario."""
        from simulator.predict import predict
        from simulator.reading.effective_settings import inputs
        from simulator.reading.measured.measurement_set import published
        from simulator.studies.compare import Side

        scenario = self.described
        # A long run needs the uncertainty of its step in any case.
        prediction = predict(scenario, seed=seed, intervals=scenario.interruptions is not None)
        return Side(
            label=f"{scenario.name} with {label}" if label else scenario.name,
            prediction=self._with_ways(prediction),
            inputs=inputs(self.reader.document(), scenario),
            published=() if self._is_changed else published(self.name_or_path),
        )

    def size(self, resource: str, options: StudyOptions) -> Study[SizeAnswer]:
        """Find the smallest sufficient amount of a resource; see `Subject.size`."""
        from simulator.studies.levers.catalogue import Resource
        from simulator.studies.size import size_answer

        with options.progress("sizing") as line:
            found = size_answer(
                self.reader,
                Resource(resource),
                options.loss,
                counts=options.counts,
                seed=options.seed,
                typed=options.typed,
                progress=line,
            )
        return Study(found=found, good=True)

    def whatif(self, metric: str, options: StudyOptions) -> Study[WhatIf]:
        """Find the effect of more of each resource on a metric; see `Subject.whatif`."""
        from simulator.studies import sensitivity, whatif
        from simulator.studies.levers.catalogue import knobs
        from simulator.studies.search.outcome import BugLog
        from simulator.studies.whatif import accelerators, flips, generations

        whatif.check_number(metric)
        seed, gpus = options.seed, options.gpus
        met, turned = BugLog(), knobs(self.described, options.device)
        changes = whatif.knob_steps(turned)
        priced = whatif.prices_of(options.prices, changes)
        swaps = None if gpus is None else accelerators(gpus, self.reader.names("hardware.gpu"))
        with options.progress("trying changes") as line:
            margins = whatif.margins(
                self.read,
                changes,
                metric=metric,
                prices=priced,
                seed=seed,
                progress=line,
                met=met,
            )
        with options.progress("looking for other limits") as line:
            moved = flips(self.read, turned, seed=seed, progress=line, met=met)
        swapped, bars = None, None
        if swaps is not None:
            with options.progress("swapping accelerators") as line:
                swapped = generations(self.read, swaps, seed=seed, progress=line, met=met)
        if options.tornado:
            with options.progress("varying rates") as line:
                bars = sensitivity.tornado(self.described, metric, seed=seed, progress=line)
        found = whatif.WhatIf(
            margins=margins,
            flips=moved,
            turned=tuple(knob for knob in turned if knob.limits),
            generations=swapped,
            tornado=bars,
        )
        return Study(found=found, good=margins.base.fits, bugs=met.reasons)

    def sweep(self, options: StudyOptions) -> Study[Findings]:
        """Search the variants of the job; see `Subject.sweep`."""
        from simulator.results.cost import prices_of
        from simulator.results.metrics import old_names
        from simulator.studies.search.candidates import expand
        from simulator.studies.search.explore import TIME_AND_COST, Request
        from simulator.studies.search.findings import MAX_SHOWN, findings
        from simulator.studies.search.outcome import Status
        from simulator.studies.search.scoring import objective_of, share_of

        axes = self._axes(options)
        margin = share_of(options.margin, "--margin")
        objectives = tuple(objective_of(text) for text in options.by) or TIME_AND_COST
        if options.search is None:
            msg = "a sweep of a job needs a search"
            raise TypeError(msg)
        outcomes = options.search(
            Request(
                reader=self.reader,
                candidates=expand(axes, self.reader),
                objectives=objectives,
                top=options.top,
                margin=margin,
                exhaustive=options.exhaustive,
                where=axes.where,
                seed=options.seed,
            )
        )
        found = findings(outcomes, objectives, top=options.top, margin=margin)
        shown = [place.outcome for place in found.front[:MAX_SHOWN]] + list(found.best)
        prices = prices_of(self.read(outcome.settings) for outcome in shown)
        return Study(
            found=replace(found, prices=prices),
            good=bool(found.front),
            refused=all(outcome.status is Status.REFUSED for outcome in outcomes)
            or found.counts[Status.PREDICTED] > 0,
            bugs=[outcome.reason for outcome in outcomes if outcome.status is Status.BUG],
            notes=old_names(axes.where, *options.by),
        )

    def _axes(self, options: StudyOptions) -> Axes:
        """Return the axes of the file and those of the options."""
        from simulator.reading.search.axes import parse_axis, with_axes
        from simulator.schema.goal import Sampling

        axes = with_axes(self.reader.axes, [parse_axis(text) for text in options.over])
        if not axes.axes:
            msg = "nothing to vary: give --over KEY=VALUES, or the scenario a [sweep] section"
            raise PlanError(msg)
        sampling = axes.sample if options.sample is None else Sampling(options.sample)
        if sampling is Sampling.GRID and options.points is not None:
            msg = "--points draws points: add --sample latin-hypercube or --sample sobol"
            raise PlanError(msg)
        conditions = [condition for condition in (axes.where, options.where) if condition]
        where = " and ".join(f"({condition})" for condition in conditions)
        return replace(
            axes,
            sample=sampling,
            points=options.points or axes.points,
            where=where if len(conditions) > 1 else "".join(conditions),
            seed=options.seed or axes.seed,
        )

    @classmethod
    def recommend(
        cls, subjects: Sequence[JobSubject], options: StudyOptions
    ) -> Study[Sequence[Recommendation]]:
        """Search the machines for the goal of each job and of all jobs; see `Subject.recommend`."""
        from simulator.reading.search.candidates import RentingReader
        from simulator.results.cost import listed_prices
        from simulator.results.metrics import old_names

        if options.open_backend is None:
            msg = "a recommendation for jobs needs a search"
            raise TypeError(msg)
        goals = [subject.goal(options.goal) for subject in subjects]
        several = len(subjects) > 1
        with options.open_backend() as backend:
            found = [
                subject.recommended(wanted, backend, seed=options.seed, everywhere=several)
                for subject, wanted in zip(subjects, goals, strict=True)
            ]

        def prices() -> Iterable[Listed]:
            for subject, each in zip(subjects, found, strict=True):
                reader = RentingReader(subject.reader)
                for choice in each.weighed:
                    yield from listed_prices(reader.read(choice.settings).scenario)

        notes = [old_names(each.objective.metric, each.limits.where) for each in goals]
        return Study(
            found=found,
            good=all(each.winner for each in found),
            bugs=[reason for each in found for reason in each.bugs],
            notes=[note for each in notes for note in each],
            prices=prices,
        )

    def goal(self, path: Path | None = None) -> Goal:
        """Read the [goal] of the file `path`, by default that of the scenario.

        Raises
        ------
        PlanError
            If there is none.
        """
        from simulator.reading.search.goal_section import read_goal

        try:
            found = self.reader.goal if path is None else read_goal(path, profiles=self.profiles)
        except UnknownName as error:
            msg = f"--goal {path}: {error}"
            raise UnknownName(msg) from None
        if found is None:
            msg = (
                f"{self.name_or_path}: has no [goal] section; add one, such as maximize = "
                '"cost.samples_per_usd", or give --goal FILE'
            )
            raise PlanError(msg)
        return found

    def recommended(
        self, goal: Goal, backend: SearchBackend, *, seed: int, everywhere: bool
    ) -> Recommendation:
        """Search the machines for a goal of this job.

        Parameters
        ----------
        goal : Goal
            Objective and limits.
        backend : SearchBackend
            Predicts candidates.
        seed : int
            Seed of all random draws.
        everywhere : bool
            Predict every machine, to find the best one for several jobs.
        """
        from simulator.reading.hardware.catalogue import Catalogue
        from simulator.reading.search.candidates import RentingReader
        from simulator.results.cost import dated_prices
        from simulator.schema.goal import Axes
        from simulator.studies.baseline import baseline_of, with_full_name
        from simulator.studies.levers import MACHINE
        from simulator.studies.purchase import buying_option
        from simulator.studies.recommend.recommendation import recommend
        from simulator.studies.recommend.search_problem import define_problem
        from simulator.studies.search.candidates import expand

        reader, catalogue = RentingReader(self.reader), Catalogue.default(self.profiles)
        points: Sequence[Settings] = [{}]
        if goal.search:
            points = [one.settings for one in expand(Axes(axes=goal.search), reader)]
        seeds = [with_full_name(settings, catalogue) for settings in points]
        machines = tuple({str(point[MACHINE]) for point in seeds if MACHINE in point})
        problem = define_problem(baseline_of(reader, catalogue, machines), goal, seeds)
        answer = recommend(problem, backend, seeds=seeds, seed=seed, everywhere=everywhere)
        if answer.winner is None:
            return answer
        best = reader.read(answer.winner.settings).scenario
        return replace(
            answer,
            best=best,
            buying=buying_option(reader, answer.winner, catalogue, seed),
            prices=tuple(dated_prices(best)),
        )

    @property
    def _is_changed(self) -> bool:
        return bool(self.overrides or self.profiles) or self.reader.calibration is not None

    @property
    def job(self) -> Scenario:
        """The training job."""
        return self.described


class ServiceSubject(Subject["Service", "ServicePrediction"]):
    """Subject of a study that is an inference service (``mode = "serve"``)."""

    noun = "service"
    plural = "services"
    explains_intervals = False
    resources = ("machines",)
    default_metric = "end_to_end_s.mean"
    unavailable: ClassVar[Mapping[str, frozenset[str]]] = {
        "simulate": frozenset({"trace", "every", "steps", "observed"}),
        "explain": frozenset({"metric"}),
        "whatif": frozenset({"prices", "gpus", "tornado", "plot"}),
        "recommend": frozenset({"goal", "html"}),
        "sweep": frozenset(
            {
                *("where", "sample", "points", "by", "top", "exhaustive"),
                *("csv", "parquet", "plot", "html", "store", "cluster"),
            }
        ),
    }
    reader: ServiceReader

    @property
    def name(self) -> str:
        """Name of the service."""
        return self.described.name

    def read(self, settings: Settings) -> Service:
        """Read the service with these settings; see `Subject.read`."""
        return self.reader.read(settings)

    def predict(
        self,
        *,
        seed: int = 0,
        intervals: bool = True,
        trace: bool = False,  # noqa: ARG002 - a service has no timeline
        max_steps: int | None = None,  # noqa: ARG002 - nor steps
        progress: Progress | None = None,  # noqa: ARG002 - and takes a second
    ) -> ServicePrediction:
        """Predict the service under its load; see `Subject.predict`."""
        from simulator.predict import predict_service

        return predict_service(self.described, seed=seed, intervals=intervals)

    def completed(self, prediction: ServicePrediction) -> ServicePrediction:
        """Return the prediction unchanged: it is complete."""
        return prediction

    def succeeds(self, prediction: ServicePrediction) -> bool:
        """Return whether the load is served within all limits of the SLO."""
        return prediction.keeps_limits

    def prices(self, prediction: ServicePrediction) -> tuple[Listed, ...]:
        """Return the listed price of the machines."""
        from simulator.results.cost import listed_prices

        return tuple(listed_prices(prediction.service))

    def actions(self, base: ServicePrediction) -> tuple[tuple[Any, ...], list[str]]:
        """Return the changes that help most; see `Subject.actions`."""
        from simulator.studies.actions import service_actions

        return service_actions(self.reader.read, base, self.reader.catalogue), []

    def side(self, label: str, *, seed: int) -> Side[ServicePrediction]:
        """Return one column of a comparison: the prediction and all keys of the service."""
        from simulator.predict import predict_service
        from simulator.reading.effective_settings import service_inputs
        from simulator.studies.compare import Side

        service = self.described
        return Side(
            label=f"{service.name} with {label}" if label else service.name,
            prediction=predict_service(service, seed=seed),
            inputs=service_inputs(self.reader.document(), service),
        )

    def size(
        self,
        resource: str,  # noqa: ARG002 - machines
        options: StudyOptions,
    ) -> Study[tuple[Service, Sequence[Need]]]:
        """Find the fewest machines within the limits at several rates; see `Subject.size`."""
        from simulator.studies.service_sizing import check_limits, needs

        service = check_limits(self.reader)
        with options.progress("sizing") as line:
            found = needs(service, seed=options.seed, progress=line)
        return Study(found=(service, found), good=found[0].machines is not None)

    def whatif(
        self, metric: str, options: StudyOptions
    ) -> Study[tuple[ServicePrediction, tuple[ChangedService, ...]]]:
        """Find the effect of changes on a metric; see `Subject.whatif`."""
        from simulator.results.metrics import service_figures
        from simulator.schema.fields import nearest_hint
        from simulator.studies.service_sizing import worths

        found = worths(self.described, seed=options.seed)
        known = tuple(service_figures(found[0]))
        if found[0].answered is not None and metric not in known:
            msg = f"unknown figure '{metric}' of a service; {nearest_hint(metric, known)}"
            raise UnknownName(msg)
        return Study(found=found, good=found[0].fits)

    def sweep(self, options: StudyOptions) -> Study[Sequence[Outcome]]:
        """Predict every combination of the values of some keys; see `Subject.sweep`."""
        from simulator.reading.service.scenario import variants
        from simulator.studies.service_sizing import variant_outcomes

        if not options.over:
            msg = "nothing to vary: give --over KEY=VALUES, such as 'load.rate=1 /s,2 /s,4 /s'"
            raise PlanError(msg)
        settings = variants(options.over)
        with options.progress("trying variants") as line:
            found = variant_outcomes(self.read, settings, seed=options.seed, progress=line)
        return Study(found=found, good=any(not outcome.reason for outcome in found))

    @classmethod
    def recommend(
        cls, subjects: Sequence[ServiceSubject], options: StudyOptions
    ) -> Study[ServiceChoices]:
        """Size the machines that the goal of one service allows; see `Subject.recommend`."""
        from simulator.results.cost import listed_prices
        from simulator.studies.service_sizing import cheapest_machines, check_limits

        if len(subjects) > 1:
            msg = "recommend takes one service at a time: each has limits of its own"
            raise PlanError(msg)
        reader = subjects[0].reader
        check_limits(reader)
        with options.progress("sizing") as line:
            found = cheapest_machines(
                reader.read, reader.candidates(), seed=options.seed, progress=line
            )

        def prices() -> Iterable[Listed]:
            return [price for choice in found.choices for price in listed_prices(choice.service)]

        return Study(found=found, good=bool(found.choices), prices=prices)


def read_subject(
    name_or_path: str,
    *,
    overrides: Sequence[str] = (),
    stdin: bytes | None = None,
    profiles: Sequence[Path] = (),
    calibration: Path | None = None,
) -> Subject[Any, Any]:
    """Read the file of a job or a service.

    Parameters
    ----------
    name_or_path : str
        Path of a file, name of a shipped scenario or service, or ``-`` for `stdin`.
    overrides : sequence of str
        Settings in addition to the file, as ``key=value``.
    stdin : bytes, optional
        Text of standard input.
    profiles : sequence of pathlib.Path
        Folders of hardware profiles, searched before the usual ones.
    calibration : pathlib.Path, optional
        Overlay of fitted parameters, for a job.

    Raises
    ------
    InputError
        If the text cannot be read, or a calibration is given for a service.
    UnknownName
        If there is no such scenario.
    """
    from simulator.reading.merge_documents import describes_service

    chain = chain_of(name_or_path, None if stdin is None else BytesIO(stdin))
    if not describes_service(chain):
        return _job(name_or_path, chain, overrides, profiles, calibration)
    if calibration is not None:
        message = f"is not available for {ServiceSubject.plural}"
        raise InputError((Problem(origin=f"--calibration {calibration}", message=message),))
    from simulator.reading.scenario import default_name_of
    from simulator.reading.service.scenario import ServiceReader

    reader = ServiceReader(
        chain, default_name_of(name_or_path), overrides=overrides, profiles=profiles
    )
    return ServiceSubject(name_or_path, reader)


def read_job(
    name_or_path: str,
    *,
    overrides: Sequence[str] = (),
    stdin: bytes | None = None,
    profiles: Sequence[Path] = (),
    calibration: Path | None = None,
) -> JobSubject:
    """Read the file of a job; parameters as for `read_subject`.

    Raises
    ------
    InputError
        If the text cannot be read, or describes a service.
    UnknownName
        If there is no such scenario.
    """
    chain = chain_of(name_or_path, None if stdin is None else BytesIO(stdin))
    return _job(name_or_path, chain, overrides, profiles, calibration)


def _job(
    name_or_path: str,
    chain: Sequence[Document],
    overrides: Sequence[str],
    profiles: Sequence[Path],
    calibration: Path | None,
) -> JobSubject:
    from simulator.reading.search.candidates import CandidateReader

    reader = CandidateReader(
        name_or_path,
        overrides=overrides,
        profiles=profiles,
        calibration=calibration,
        chain=chain,
    )
    return JobSubject(name_or_path, reader)
