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
    from simulator.report.recommendation.launch import Launch
    from simulator.results.prediction import Prediction
    from simulator.results.serving import ServicePrediction
    from simulator.schema.scenario import Scenario
    from simulator.schema.serving import Service
    from simulator.studies.search.findings import Findings
    from simulator.studies.service_sizing import Need, Variant
    from simulator.studies.service_sizing import Sized as SizedService
    from simulator.studies.size import SizeAnswer
    from simulator.studies.subject import Recommended, Subject
    from simulator.studies.whatif import WhatIf
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

    def sized(self, found: SizeAnswer, form: str, typed: str = "") -> str:  # noqa: ARG002 - it has it
        """Return the answer of `plan size`."""
        from simulator.report import size

        return reported(size, found, Format(form))

    def changed(self, found: WhatIf, metric: str, form: str) -> str:  # noqa: ARG002 - it has it
        """Return the answer of `plan whatif`."""
        from simulator.report.whatif import text

        return reported(text, found, Format(form))

    def device(self, job: Scenario) -> str:
        """Return the word for the accelerators of a job."""
        from simulator.report.labels import device_called

        return device_called(job)

    def swept(self, found: Findings, name: str, form: str) -> str:
        """Return the answer of `plan sweep`; CSV has all candidates, the others the best."""
        from simulator.report.search import text
        from simulator.report.search.files import as_json

        kind = Format(form)
        return rendered(
            kind,
            text=lambda: text.as_text(found, name),
            tree=lambda: as_json(found, name),
            table=lambda: (
                text.all_candidates(found) if kind is Format.CSV else text.best_candidates(found)
            ),
        )

    def no_sweep(self, found: Findings) -> tuple[str, ...]:
        """Return why a sweep has no answer."""
        from simulator.report.search.text import nothing_found

        return (nothing_found(found),)

    def launches(self, found: Sequence[Recommended]) -> list[Launch | None]:
        """Return how to start each job on the recommended machines with SkyPilot."""
        from simulator.report.recommendation.launch import launch_of

        return [
            None
            if one.best is None
            else launch_of(
                one.best,
                SKYPILOT_CLOUDS,
                None if one.answer.lost is None else one.answer.lost.interval,
            )
            for one in found
        ]

    def recommended(self, found: Sequence[Recommended], form: str, typed: str = "") -> str:  # noqa: ARG002 - of services
        """Return the answer of `plan recommend`."""
        from simulator.report.recommendation import json, table, text
        from simulator.studies.recommend.recommendation import common_machine

        answers, launches = [one.answer for one in found], self.launches(found)
        together = len(answers) > 1 and all(answer.winner for answer in answers)
        common = common_machine(answers) if together else None

        def as_text() -> str:
            if len(answers) == 1:
                return text.as_text(answers[0], launches[0])
            return text.several_text(answers, common)

        def tree() -> str:
            if len(answers) == 1:
                return json.as_json(answers, launches)
            return json.several_as_json(answers, launches, common)

        return rendered(
            Format(form),
            text=as_text,
            tree=tree,
            table=lambda: table.as_table(answers),
            page=lambda: table.as_page(answers),
        )

    def no_recommendation(self, found: Sequence[Recommended]) -> list[str]:
        """Return why there is no best choice, for tables that cannot say so."""
        from simulator.report.recommendation.text import nothing_lines

        lines = list[str]()
        for answer in (one.answer for one in found):
            if answer.winner is None:
                lines += [f"{answer.scenario.name}: no choice will do", *nothing_lines(answer)]
        return lines


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

    def sized(self, found: tuple[Service, Sequence[Need]], form: str, typed: str = "") -> str:
        """Return the answer of `plan size`."""
        from simulator.report.service.needs import NeedsReport

        service, needs = found
        return reported(NeedsReport(service, typed), needs, Format(form))

    def changed(self, found: Any, metric: str, form: str) -> str:  # noqa: ANN401 - see the report
        """Return the answer of `plan whatif`."""
        from simulator.report.service.studies import WhatifReport

        return reported(WhatifReport(metric), found, Format(form))

    def device(self, job: None) -> str:  # noqa: ARG002 - of jobs
        """Return the word for its accelerators."""
        return "GPU"

    def swept(self, found: Sequence[Variant], name: str, form: str) -> str:  # noqa: ARG002 - of jobs
        """Return the answer of `plan sweep`."""
        from simulator.report.service.studies import SweptReport

        return reported(SweptReport(), found, Format(form))

    def no_sweep(self, found: Sequence[Variant]) -> tuple[str, ...]:  # noqa: ARG002 - it says why
        """Return nothing: every variant has its reason in the table."""
        return ()

    def recommended(self, found: SizedService, form: str, typed: str = "") -> str:
        """Return the answer of `plan recommend`."""
        from simulator.report.service.studies import SizedReport

        return reported(SizedReport(typed), found, Format(form))

    def launches(self, found: SizedService) -> list[Launch | None]:  # noqa: ARG002 - of jobs
        """Return nothing: services are not started by SkyPilot."""
        return []

    def no_recommendation(self, found: SizedService) -> list[str]:  # noqa: ARG002 - it says why
        """Return nothing: the report has the reasons."""
        return []


SKYPILOT_CLOUDS: Final = ("aws", "azure", "gcp", "lambda")
"""Clouds by the names that both our profiles and SkyPilot give them."""
KindReport: TypeAlias = JobReport | ServiceReport
_REPORTS: Final[Mapping[str, KindReport]] = {"job": JobReport(), "service": ServiceReport()}


def report_of(subject: Subject[Any, Any]) -> KindReport:
    """Return the reports on the kind of a subject."""
    return _REPORTS[subject.noun]
