"""What a question is about: a training job or a service, read again with other settings.

A `Subject` reads its file, predicts it and proposes changes; `read_subject` decides which kind a
file describes. Verbs and the Python interface ask the subject and never which kind it is.
`report.kinds` prints the answers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar

from simulator.errors import InputError, Problem
from simulator.reading.merge_documents import chain_of

if TYPE_CHECKING:
    from simulator.reading.document import Document
    from simulator.reading.search.candidates import CandidateReader
    from simulator.reading.service.scenario import ServiceReader
    from simulator.results.prediction import Prediction
    from simulator.results.price_age import Listed
    from simulator.results.serving import ServicePrediction
    from simulator.schema.goal import Plain
    from simulator.schema.scenario import Scenario
    from simulator.schema.serving import Service
    from simulator.studies.changes.compare import Side
    from simulator.studies.service.compare import ServiceSide

Described = TypeVar("Described")
"""The type that a file is read to: `Scenario` or `Service`."""
Predicted = TypeVar("Predicted")
"""The type of its prediction: `Prediction` or `ServicePrediction`."""
Settings: TypeAlias = "Mapping[str, Plain]"
Progress: TypeAlias = Callable[[float], None]
"""Takes the finished share, 0 to 1."""


class Subject(ABC, Generic[Described, Predicted]):
    """A job or a service, with the settings given for it.

    `noun` and `plural` name the kind in messages. `unavailable` lists by verb the options that
    this kind has no answer for, as Python names. `explains_intervals`: an explanation of a figure
    shows its interval, too.
    """

    noun: ClassVar[str]
    plural: ClassVar[str]
    explains_intervals: ClassVar[bool] = True
    unavailable: ClassVar[Mapping[str, frozenset[str]]] = {}

    def __init__(self, name_or_path: str, reader: Any) -> None:  # noqa: ANN401 - typed by subclasses
        self.name_or_path = name_or_path
        self.reader = reader

    @property
    def overrides(self) -> tuple[str, ...]:
        """The settings given over the file, as ``key=value``."""
        return tuple(self.reader.overrides)

    @property
    def profiles(self) -> tuple[Path, ...]:
        """Folders of hardware profiles that come before the usual ones."""
        return tuple(self.reader.profiles)

    def with_(self, settings: Settings) -> Subject[Described, Predicted]:
        """Return the same subject with these settings over its own."""
        return type(self)(self.name_or_path, self.reader.over(settings))

    @cached_property
    def described(self) -> Described:
        """The job or service as it is."""
        return self.read({})

    @abstractmethod
    def read(self, settings: Settings) -> Described:
        """Read the subject with some keys set.

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
        """Predict the subject as it is.

        Parameters
        ----------
        seed : int
            Seed of all random draws.
        intervals : bool
            Compute intervals.
        trace : bool
            Keep a timeline, where there is one.
        max_steps : int, optional
            Largest number of steps to simulate.
        progress : callable, optional
            Called with the finished share.
        """

    @abstractmethod
    def completed(self, prediction: Predicted) -> Predicted:
        """Return the prediction with what a full report adds to it."""

    @abstractmethod
    def succeeds(self, prediction: Predicted) -> bool:
        """Return whether the job fits, or the service is within its limits."""

    @abstractmethod
    def prices(self, prediction: Predicted) -> tuple[Listed, ...]:
        """Return the listed prices in its bill."""

    @abstractmethod
    def actions(self, base: Predicted) -> tuple[tuple[Any, ...], list[str]]:
        """Return the most useful changes, best first, and reports of internal errors met."""

    @abstractmethod
    def side(self, label: str, *, seed: int) -> Any:  # noqa: ANN401 - one type a kind
        """Return one column of a comparison: the prediction with all keys."""

    @property
    def job(self) -> Scenario | None:
        """The training job, to compare with measured runs; None for a service."""
        return None


class JobSubject(Subject["Scenario", "Prediction"]):
    """A training job."""

    noun = "job"
    plural = "jobs"
    reader: CandidateReader

    def read(self, settings: Settings) -> Scenario:
        """Read the job with some keys set; see `Subject.read`."""
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
        """Add the ways to buy machines for a long run, and a warning on keys without effect."""
        from simulator.studies.changes.idle_keys import with_idle_keys
        from simulator.studies.changes.ways_to_buy import with_ways

        return with_idle_keys(with_ways(prediction, self.reader), self.reader)

    def succeeds(self, prediction: Prediction) -> bool:
        """Return whether RAM and device memory may be enough."""
        return prediction.fits

    def prices(self, prediction: Prediction) -> tuple[Listed, ...]:
        """Return the listed prices of its machines."""
        from simulator.results.price_age import listed_prices

        return tuple(listed_prices(prediction.scenario))

    def actions(self, base: Prediction) -> tuple[tuple[Any, ...], list[str]]:
        """Return the changes that save most time or money; see `Subject.actions`."""
        from simulator.reading.hardware.catalogue import Catalogue
        from simulator.studies.changes.actions import actions
        from simulator.studies.search.outcome import BugLog

        met = BugLog()
        found = actions(self.reader, base, Catalogue.default(self.profiles), met=met)
        return found, met.reasons

    def side(self, label: str, *, seed: int) -> Side:
        """Return one column of a comparison, with figures published for the shipped scenario."""
        from simulator.predict import predict
        from simulator.reading.effective_settings import inputs
        from simulator.reading.measured.measurement_set import published
        from simulator.studies.changes.compare import Side
        from simulator.studies.changes.ways_to_buy import with_ways

        scenario = self.described
        # A long run needs the uncertainty of its step in any case.
        prediction = predict(scenario, seed=seed, intervals=scenario.interruptions is not None)
        return Side(
            label=f"{scenario.name} with {label}" if label else scenario.name,
            prediction=with_ways(prediction, self.reader),
            inputs=inputs(self.reader.document(), scenario),
            published=() if self._is_changed else published(self.name_or_path),
        )

    @property
    def _is_changed(self) -> bool:
        return bool(self.overrides or self.profiles) or self.reader.calibration is not None

    @property
    def job(self) -> Scenario:
        """The training job."""
        return self.described


class ServiceSubject(Subject["Service", "ServicePrediction"]):
    """A service that answers requests with a model (``mode = "serve"``)."""

    noun = "service"
    plural = "services"
    explains_intervals = False
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

    def read(self, settings: Settings) -> Service:
        """Read the service with some keys set; see `Subject.read`."""
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
        """Return the prediction, which is complete."""
        return prediction

    def succeeds(self, prediction: ServicePrediction) -> bool:
        """Return whether the load is served within all limits."""
        return prediction.keeps_limits

    def prices(self, prediction: ServicePrediction) -> tuple[Listed, ...]:
        """Return the listed price of its machines."""
        from simulator.serving.cost import listed_prices

        return listed_prices(prediction.service)

    def actions(self, base: ServicePrediction) -> tuple[tuple[Any, ...], list[str]]:
        """Return the changes that help most; see `Subject.actions`."""
        from simulator.studies.service.actions import service_actions

        return service_actions(self.reader.read, base, self.reader.catalogue), []

    def side(self, label: str, *, seed: int) -> ServiceSide:
        """Return one column of a comparison."""
        from simulator.predict import predict_service
        from simulator.reading.effective_settings import service_inputs
        from simulator.studies.service.compare import ServiceSide

        service = self.described
        return ServiceSide(
            label=f"{service.name} with {label}" if label else service.name,
            prediction=predict_service(service, seed=seed),
            inputs=service_inputs(self.reader.document(), service),
        )


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
        A file, the name of a shipped scenario or service, or ``-`` for `stdin`.
    overrides : sequence of str
        Settings over it, as ``key=value``.
    stdin : bytes, optional
        Text of standard input.
    profiles : sequence of pathlib.Path
        Folders of hardware profiles that come before the usual ones.
    calibration : pathlib.Path, optional
        An overlay of fitted parameters, for a job.

    Raises
    ------
    InputError
        If the text cannot be read, or a calibration is given for a service.
    UnknownName
        If there is no such scenario.
    """
    from simulator.reading.service.mode import describes_service

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
