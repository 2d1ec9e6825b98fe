"""What a page shows in full: a prediction, and the measured runs most like its scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from simulator.cli.progress import progress_line

if TYPE_CHECKING:
    from simulator.reading.search.candidates import CandidateReader
    from simulator.results.prediction import Prediction
    from simulator.schema.goal import Plain
    from simulator.schema.scenario import Scenario
    from simulator.validation.local_coverage import Neighbourhood

Verb = TypeVar("Verb", bound=Callable[..., Any])


def evidence_option(of_page: str) -> Callable[[Verb], Verb]:
    """Add ``--evidence`` to a verb; `of_page` says what its page compares."""
    return click.option(
        "--evidence/--no-evidence",
        default=True,
        show_default=True,
        help=f"Compare with the shipped measured runs most like {of_page} (takes a while).",
    )


def near(scenario: Scenario, jobs: int | None, profiles: tuple[Path, ...]) -> Neighbourhood:
    """The shipped measured runs most like a scenario, with the errors there."""
    from simulator.reading.measured.measurement_set import load_set
    from simulator.reading.shipped import set_names
    from simulator.validation.local_coverage import nearest

    sets = [load_set(name) for name in set_names()]
    with progress_line("comparing with measured runs") as progress:
        return nearest(scenario, sets, processes=jobs, progress=progress, profiles=profiles)


@dataclass(frozen=True, slots=True, kw_only=True)
class InFull:
    """Predicts the best of many candidates once more, whole, for a page that shows all of it."""

    seed: int
    jobs: int | None
    profiles: tuple[Path, ...]
    evidence: bool

    def of(
        self, reader: CandidateReader, settings: Mapping[str, Plain]
    ) -> tuple[Prediction, Neighbourhood | None]:
        """The candidate with these settings, and the measured runs near it if they are wanted."""
        from simulator.predict import predict

        scenario = reader.read(settings).scenario
        with progress_line("predicting the best in full") as progress:
            prediction = predict(scenario, seed=self.seed, progress=progress)
        return prediction, near(scenario, self.jobs, self.profiles) if self.evidence else None
