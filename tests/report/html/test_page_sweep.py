"""The HTML page of a sweep: the front, the map of two keys, and why others are out."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest

from simulator.report.html.charts import Point, axis, scaling, scatter
from simulator.report.html.page import Made
from simulator.report.html.sweep import as_page
from simulator.results.prediction import Prediction
from simulator.schema.goal import Objective, Plain, Sense
from simulator.studies.search.explore import TIME_AND_COST
from simulator.studies.search.findings import Findings, findings
from simulator.studies.search.outcome import Candidate, Outcome, Status
from simulator.units import SECOND, USD


def outcome(index: int, settings: dict[str, Plain], time: float, cost: float) -> Outcome:
    """A predicted candidate."""
    figures = {"total_time_s": time, "cost.usd_to_train": cost}
    candidate = Candidate(index=index, settings=settings)
    return Outcome(candidate=candidate, status=Status.PREDICTED, figures=figures)


@pytest.fixture
def found() -> Findings:
    """Two keys; one candidate is beaten, one does not fit."""
    keys = "input.workers", "train.batch_size"
    rows = [(1, 8, 40.0, 1.0), (2, 8, 20.0, 2.0), (1, 16, 40.0, 3.0)]
    predicted = [
        outcome(i, dict(zip(keys, (w, b), strict=True)), time, cost)
        for i, (w, b, time, cost) in enumerate(rows)
    ]
    last = Candidate(index=3, settings=dict(zip(keys, (2, 16), strict=True)))
    lost = Outcome(candidate=last, status=Status.INFEASIBLE, reason="<b>too large</b>")
    return findings((*predicted, lost), TIME_AND_COST)


def test_the_front_is_marked(found: Findings) -> None:
    """Two candidates on the front, one beaten; the fastest is named first."""
    page = as_page(found, "mine")
    assert len(re.findall(r'<circle class="t1( best)?"', page)) == 2
    assert len(re.findall(r'<circle class="t7"', page)) == 1
    verdict = re.search(r'id="verdict">(.*?)</p>', page)
    assert verdict is not None
    said = "Shortest run (20 s): 2 workers, batch 8. 1 other is better in cost of the run."
    assert verdict[1] == said
    assert "plan report mine --set input.workers=2 --set train.batch_size=8" in page


def test_its_command_works_from_where_it_was_asked(found: Findings) -> None:
    """The scenario is named as it was typed, which may be a file elsewhere with settings."""
    page = as_page(found, "mine", made=Made(asked=("jobs/mine.toml --set data.samples=9",)))
    assert "plan report jobs/mine.toml --set data.samples=9 --set input.workers=2" in page


def test_it_counts_candidates_and_names_no_solver(found: Findings) -> None:
    """Who found the times is of no use to a reader."""
    page = as_page(found, "mine")
    assert "Candidates: 3 simulated, 1 infeasible" in page
    assert "solved" not in page


def test_the_map_has_every_candidate(found: Findings) -> None:
    """The best place has the best shade, the worst the worst; what does not run says why."""
    page = as_page(found, "mine")
    assert len(re.findall(r'class="shade8"', page)) == 1
    assert len(re.findall(r'class="shade0"', page)) == 2
    assert "infeasible; &lt;b&gt;too large&lt;/b&gt;" in page
    assert "<b>too large" not in page


def test_the_colours_have_a_scale_in_words(found: Findings) -> None:
    """Each shade in the map says which times it stands for; the best comes first."""
    page = as_page(found, "mine")
    scale = page.partition('class="keys scale"')[2].partition("</ul>")[0]
    told = re.findall(r"--s(\d)\)\"></i>(.*?)</li>", scale)
    assert told == [("8", "20 s to 21.6 s, the best"), ("0", "37 s to 40 s, the worst")]
    assert "<li>run time:</li>" in scale
    assert "not predicted" in scale


def test_a_scale_where_more_is_better(found: Findings) -> None:
    """The best shade then stands for the largest values."""
    objective = Objective(metric="cost.usd_to_train", sense=Sense.MAXIMIZE)
    page = as_page(findings(found.outcomes, (objective,)), "mine")
    told = re.findall(r"--s(\d)\)\"></i>(.*?)</li>", page)
    assert told[0] == ("8", "$2.66 to $3, the best")
    assert told[-1] == ("0", "$1 to $1.13, the worst")


def test_the_best_is_shown_in_full(found: Findings, prediction: Prediction) -> None:
    """What it rests on, with sources, and its warnings stand on the page itself."""
    page = unescape(as_page(found, "mine", (prediction, None)))
    assert prediction.warnings[0] in page
    for one in prediction.assumptions:
        assert one.what in page
        assert one.source.reference in page
    assert prediction.warnings[0] not in as_page(found, "mine")


def test_names_are_text(found: Findings) -> None:
    """The scenario's name is escaped."""
    page = as_page(found, "<script>x</script>")
    assert "<script>x" not in page
    assert "<script>x</script>" in unescape(page)


def test_nothing_to_show(found: Findings) -> None:
    """Without a candidate that runs there is no drawing and a plain verdict."""
    page = as_page(findings(found.outcomes[3:], TIME_AND_COST), "mine")
    assert "No candidate can run." in page
    assert "<circle" not in page


def test_wide_axes_are_logarithmic() -> None:
    """A value halfway between the logarithms of the ends lies in the middle."""
    drawn = axis([1.0, 100.0], "total_time_s", SECOND)
    assert drawn.logarithmic
    assert drawn.at(10.0) == pytest.approx(0.5)
    assert drawn.label == "total_time_s [s]"
    even = axis([1.0, 3.0], "x", None)
    assert not even.logarithmic
    assert even.at(2.0) == pytest.approx(0.5)
    assert all(0.0 <= tick.at <= 1.0 for tick in (*drawn.ticks, *even.ticks))


def test_one_value_has_an_axis() -> None:
    """A single point lies in the middle."""
    assert axis([5.0], "x", None).at(5.0) == pytest.approx(0.5)
    assert axis([0.0], "x", None).at(0.0) == pytest.approx(0.5)


def test_growth_with_machines_is_drawn_beside_the_ideal() -> None:
    """All else as in the best: eight machines that do six times what one does have 75%."""

    def candidate(index: int, machines: int, workers: int, rate: float) -> Outcome:
        settings: dict[str, Plain] = {"hardware.count": machines, "input.workers": workers}
        one = outcome(index, settings, 1000.0 / rate, rate)
        return replace(one, figures={**one.figures, "throughput_samples_per_s": rate})

    outcomes = (
        candidate(0, 1, 4, 10.0),
        candidate(1, 8, 4, 60.0),
        candidate(2, 1, 2, 1.0),
    )
    found = findings(outcomes, TIME_AND_COST)
    drawn = scaling(found)
    assert drawn is not None
    assert [row[::2] for row in drawn.rows] == [("1", "100%"), ("8", "75%")]
    assert drawn.marks[0].y == pytest.approx(drawn.ideal[0])
    assert drawn.marks[-1].y < drawn.ideal[1]
    assert 'class="ideal"' in as_page(found, "mine")
    assert scaling(findings(outcomes[:1], TIME_AND_COST)) is None


def test_values_of_an_axis_have_thousands_and_dollars() -> None:
    """Money has its sign, large numbers commas."""
    texts = [tick.text for tick in axis([1000.0, 30000.0], "cost of the run", USD).ticks]
    assert "$10,000" in texts
    assert all(text.startswith("$") for text in texts)


def test_labels_that_would_lie_over_each_other_are_left_out() -> None:
    """The best keeps its own; a neighbour at the same place loses its."""
    points = [
        Point(x=1.0, y=1.0, front=True, hint="", label="here", best=True),
        Point(x=1.01, y=1.0, front=True, hint="", label="there"),
        Point(x=9.0, y=9.0, front=True, hint="", label="far"),
    ]
    drawn = scatter(points, "total_time_s", "cost.usd_to_train")
    assert drawn is not None
    assert [dot.label for dot in drawn.dots] == ["here", "", "far"]
