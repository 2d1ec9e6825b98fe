"""How the answers about a subject are printed: one report for jobs, one for services.

`report_of` gives that of a subject; verbs call it and never ask which kind a subject is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from simulator.report.format.table import Format, as_markdown, rendered, reported
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

    def text(
        self,
        prediction: Prediction,
        steps: Sequence[str] = (),
        *,
        width: int = WIDTH,
        full: bool = False,
    ) -> str:
        """Return the report of `plan simulate`."""
        from simulator.report.prediction import summary, text

        if full:
            return "\n".join([text.as_text(prediction), *summary.next_section(steps)])
        return summary.as_text(prediction, steps, width=width)

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
            One of `Format`.
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
        from simulator.report.prediction import json as prediction_json
        from simulator.report.prediction.observed import as_object, as_text
        from simulator.report.prediction.rows import metric_page, metric_table
        from simulator.report.prediction.text import log_text

        def text() -> str:
            before = "" if observed is None else as_text(observed)
            log = "" if every is None else f"{log_text(prediction, every)}\n\n"
            steps = self.steps(actions or (), prediction)
            return f"{before}{log}{self.text(prediction, steps, width=width, full=full)}"

        explained = None if observed is None else as_object(observed)
        return rendered(
            Format(form),
            text=text,
            tree=lambda: prediction_json.as_json(prediction, explained, actions),
            table=lambda: metric_table(prediction),
            page=lambda: as_markdown(metric_page(prediction)),
        )

    def explained(self, prediction: Prediction, form: str, metric: str | None = None) -> str:
        """Return the terms behind a figure; the step time by default."""
        from simulator.report.prediction import explain_table
        from simulator.report.prediction.explain import as_explanation

        return rendered(
            Format(form),
            text=lambda: as_explanation(prediction, metric),
            tree=lambda: explain_table.as_json(prediction, metric),
            table=lambda: explain_table.as_table(prediction, metric),
            page=lambda: explain_table.as_page(prediction, metric),
        )

    def compared(self, sides: Sequence[Any], form: str) -> str:
        """Return several jobs side by side."""
        from simulator.report import compare

        return reported(compare, sides, Format(form))

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
        from simulator.report.service.text import verdict

        return verdict(prediction)

    def steps(self, actions: Sequence[Any], base: ServicePrediction) -> list[str]:
        """Return the actions in words."""
        from simulator.report.service.actions import service_action_texts

        return service_action_texts(actions, base)

    def text(
        self,
        prediction: ServicePrediction,
        steps: Sequence[str] = (),
        *,
        width: int = WIDTH,
        full: bool = False,
    ) -> str:
        """Return the report of `plan simulate`."""
        from simulator.report.service.text import as_text

        return as_text(prediction, steps, width=width, full=full)

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
        from simulator.report.service.actions import service_action_objects
        from simulator.report.service.text import as_json, as_table

        def text() -> str:
            steps = [] if actions is None else self.steps(actions, prediction)
            return self.text(prediction, steps, width=width, full=full)

        objects = None if actions is None else service_action_objects(actions)
        return rendered(
            Format(form),
            text=text,
            tree=lambda: as_json(prediction, objects),
            table=lambda: as_table(prediction),
        )

    def explained(self, prediction: ServicePrediction, form: str, metric: str | None = None) -> str:  # noqa: ARG002 - of jobs
        """Return what the iterations of a service are made of."""
        from simulator.physics.forward_pass import batch_pass
        from simulator.predict import pass_of
        from simulator.report.service.batch_explain import BatchReport, ExplainedBatches
        from simulator.report.service.explain import Explained, ExplainReport

        service = prediction.service
        if service.one_pass is not None:
            work = batch_pass(service.one_pass, service.serving.max_batched_tokens)
            batches = ExplainedBatches(prediction=prediction, work=work)
            return reported(BatchReport(), batches, Format(form))
        found = Explained(prediction=prediction, work=pass_of(service))
        return reported(ExplainReport(), found, Format(form))

    def compared(self, sides: Sequence[Any], form: str) -> str:
        """Return several services side by side."""
        from simulator.report.service import compare

        return reported(compare, sides, Format(form))

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
        from simulator.studies.service_sizing import against_load

        return as_page(prediction, against_load(prediction), how, steps)


KindReport: TypeAlias = JobReport | ServiceReport
_REPORTS: Final[Mapping[str, KindReport]] = {"job": JobReport(), "service": ServiceReport()}


def report_of(subject: Subject[Any, Any]) -> KindReport:
    """Return the reports on the kind of a subject."""
    return _REPORTS[subject.noun]
