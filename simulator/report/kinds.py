"""Reports by the kind of a subject: jobs and services.

`report_of` gives that of a subject; verbs call it and never ask which kind a subject is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from simulator.report.render import render
from simulator.report.text import WIDTH

if TYPE_CHECKING:
    from simulator.calibration.observed import Explained
    from simulator.report.html.page import Made
    from simulator.results.prediction import Prediction
    from simulator.results.serving import ServicePrediction
    from simulator.studies.subject import Subject
    from simulator.validation.local_coverage import Neighbourhood


class JobReport:
    """The reports on training jobs."""

    def verdict(self, prediction: Prediction) -> str:
        """Return the answer in a sentence or two."""
        from simulator.report.prediction.verdict import verdict

        return verdict(prediction)

    def steps(self, actions: Sequence[Any], base: Prediction) -> list[str]:
        """Return the actions in words."""
        from simulator.report.prediction.actions import action_texts

        return action_texts(actions, base)

    def simulated(  # noqa: PLR0913 - what a report may show
        self,
        prediction: Prediction,
        form: str,
        *,
        actions: Sequence[Any] | None = None,
        observed: Explained | None = None,
        every: int | None = None,
        full: bool = False,
        width: int = WIDTH,
    ) -> str:
        """Return the answer of `plan simulate` in the given format.

        Parameters
        ----------
        prediction : Prediction
            With its intervals.
        form : str
            One of `render.Format`.
        actions : sequence of Action, optional
            What to do next, where it was looked for.
        observed : Explained, optional
            What explains a figure of the real job.
        every : int, optional
            Print samples/s for every so many steps.
        full : bool
            Print all figures with their sources.
        width : int
            Columns.
        """
        from simulator.report.prediction.job import document

        answer = document(prediction, actions, full=full, observed=observed, every=every)
        return render(answer, form, width=width)

    def explained(self, prediction: Prediction, form: str, metric: str | None = None) -> str:
        """Return the terms behind a figure; the step time by default."""
        from simulator.report.prediction.explain import document

        return render(document(prediction, metric), form)

    def compared(self, sides: Sequence[Any], form: str) -> str:
        """Return several jobs next to each other."""
        from simulator.report.compare import document

        return render(document(sides), form)

    def page(
        self,
        prediction: Prediction,
        steps: Sequence[str] = (),
        *,
        near: Neighbourhood | None = None,
        how: Made | None = None,
    ) -> str:
        """Return the report as one HTML page."""
        from simulator.report.html.prediction import as_page

        return as_page(prediction, near, steps, how)


class ServiceReport:
    """The reports on services."""

    def verdict(self, prediction: ServicePrediction) -> str:
        """Return the answer in a sentence or two."""
        from simulator.report.prediction.service import verdict

        return verdict(prediction)

    def steps(self, actions: Sequence[Any], base: ServicePrediction) -> list[str]:
        """Return the actions in words."""
        from simulator.report.prediction.actions import service_action_texts

        return service_action_texts(actions, base)

    def simulated(  # noqa: PLR0913 - what a report may show
        self,
        prediction: ServicePrediction,
        form: str,
        *,
        actions: Sequence[Any] | None = None,
        observed: Explained | None = None,  # noqa: ARG002 - of jobs
        every: int | None = None,  # noqa: ARG002 - of jobs
        full: bool = False,
        width: int = WIDTH,
    ) -> str:
        """Return the answer of `plan simulate`; see `JobReport.simulated`."""
        from simulator.report.prediction.service import document

        return render(document(prediction, actions, full=full), form, width=width)

    def explained(self, prediction: ServicePrediction, form: str, metric: str | None = None) -> str:  # noqa: ARG002 - of jobs
        """Return what the iterations of a service are made of."""
        from simulator.physics.forward_pass import batch_pass
        from simulator.predict import pass_of
        from simulator.report.service_studies import explained, explained_batches

        service = prediction.service
        if service.one_pass is not None:
            work = batch_pass(service.one_pass, service.serving.max_batched_tokens)
            return render(explained_batches(prediction, work), form)
        return render(explained(prediction, pass_of(service)), form)

    def compared(self, sides: Sequence[Any], form: str) -> str:
        """Return several services next to each other."""
        from simulator.report.compare import document

        return render(document(sides), form)

    def page(
        self,
        prediction: ServicePrediction,
        steps: Sequence[str] = (),
        *,
        near: Neighbourhood | None = None,  # noqa: ARG002 - of jobs
        how: Made | None = None,
    ) -> str:
        """Return the report as one HTML page, with latencies against the load."""
        from simulator.report.html.service import as_page
        from simulator.studies.service.sizing import against_load

        return as_page(prediction, against_load(prediction), how, steps)


KindReport: TypeAlias = JobReport | ServiceReport
_REPORTS: Final[Mapping[str, KindReport]] = {"job": JobReport(), "service": ServiceReport()}


def report_of(subject: Subject[Any, Any]) -> KindReport:
    """Return the reports on the kind of a subject."""
    return _REPORTS[subject.noun]
