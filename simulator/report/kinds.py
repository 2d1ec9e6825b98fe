"""How the answers about a subject are printed: one report for jobs, one for services.

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
    from simulator.report.launch import Launch
    from simulator.results.prediction import Prediction
    from simulator.results.serving import ServicePrediction
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
            Print samples/s every `every` steps.
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

    def sized(self, found: SizeAnswer, form: str, typed: str = "") -> str:  # noqa: ARG002 - it has it
        """Return the answer of `plan size`."""
        from simulator.report.size import document

        return render(document(found), form)

    def changed(self, found: WhatIf, metric: str, form: str) -> str:  # noqa: ARG002 - it has it
        """Return the answer of `plan whatif`."""
        from simulator.report.whatif import document

        return render(document(found), form)

    def device(self, job: Any) -> str:  # noqa: ANN401 - a scenario
        """Return the word for the accelerators of a job."""
        from simulator.report.labels import device_called

        return device_called(job)

    def swept(self, found: Findings, name: str, form: str) -> str:
        """Return the answer of `plan sweep`; CSV has all candidates, the others the best."""
        from simulator.report.sweep import document

        return render(document(found, name), form)

    def no_sweep(self, found: Findings) -> tuple[str, ...]:
        """Return why a sweep has no answer."""
        from simulator.report.sweep import nothing_found

        return (nothing_found(found),)

    def launches(self, found: Sequence[Recommended]) -> list[Launch | None]:
        """Return how to start each job on the recommended machines with SkyPilot."""
        from simulator.report.launch import launch_of

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
        from simulator.report.recommend import document, several
        from simulator.studies.recommend.recommendation import common_machine

        answers, launches = [one.answer for one in found], self.launches(found)
        if len(answers) == 1:
            return render(document(answers[0], launches[0]), form)
        together = all(answer.winner for answer in answers)
        common = common_machine(answers) if together else None
        return render(several(answers, launches, common), form)

    def no_recommendation(self, found: Sequence[Recommended]) -> list[str]:
        """Return why there is no best choice, for tables that cannot say so."""
        from simulator.report.recommend import nothing_texts

        lines = list[str]()
        for answer in (one.answer for one in found):
            if answer.winner is None:
                lines += [f"{answer.scenario.name}: no choice will do", *nothing_texts(answer)]
        return lines


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
        from simulator.studies.service_sizing import against_load

        return as_page(prediction, against_load(prediction), how, steps)

    def sized(self, found: tuple[Service, Sequence[Need]], form: str, typed: str = "") -> str:
        """Return the answer of `plan size`."""
        from simulator.report.service_studies import needed

        service, needs = found
        return render(needed(service, needs, typed), form)

    def changed(self, found: Any, metric: str, form: str) -> str:  # noqa: ANN401 - see the report
        """Return the answer of `plan whatif`."""
        from simulator.report.service_studies import changed

        base, worths = found
        return render(changed(base, worths, metric), form)

    def device(self, job: Any) -> str:  # noqa: ANN401, ARG002 - of jobs
        """Return the word for its accelerators."""
        return "GPU"

    def swept(self, found: Sequence[Variant], name: str, form: str) -> str:  # noqa: ARG002 - of jobs
        """Return the answer of `plan sweep`."""
        from simulator.report.service_studies import swept

        return render(swept(found), form)

    def no_sweep(self, found: Sequence[Variant]) -> tuple[str, ...]:  # noqa: ARG002 - it says why
        """Return nothing: every variant has its reason in the table."""
        return ()

    def recommended(self, found: SizedService, form: str, typed: str = "") -> str:
        """Return the answer of `plan recommend`."""
        from simulator.report.service_studies import sized

        return render(sized(found, typed), form)

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
    return report_for(subject.noun)


def report_for(noun: str) -> KindReport:
    """Return the reports on a kind by its noun, ``job`` or ``service``."""
    return _REPORTS[noun]
