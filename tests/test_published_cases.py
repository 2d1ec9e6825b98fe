"""The tables of published results, in the README and docs/published-cases.md, are what we compute.

``pytest --update-golden`` writes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from support import published, published_loaders

MISSION = {
    *(f"A{i}" for i in (1, 2, 3, 4, 6, 7, 8, 10, 11, 12, 13, 15, 16, 17, 18, 19)),
    *(f"B{i}" for i in range(1, 9)),
    *(f"C{i}" for i in range(1, 11)),
    *("D1", "D6"),
}
TABLE = re.compile(
    r"(<!-- table: (?P<name>[a-z ]+?)(?: \(.*?\))? -->\n).*?(<!-- end of table -->\n)", re.DOTALL
)
HEAD = ("case", "what", "published", "predicted", "error")


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    lines = [list(head), ["---"] * len(list(head)), *(list(row) for row in rows)]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines).replace("| --- ", "|---")


def arithmetic() -> str:
    """Figures worked out in articles: what `plan` answers to them, and what is arithmetic."""
    head = (*HEAD, "how")
    return table(head, ((*row.cells, row.how) for row in published.worked_out()))


def measured() -> str:
    """Runs that somebody measured."""
    head = ("scenario", *HEAD[1:])
    return table(head, (row.cells for row in published.measured()))


def loader() -> str:
    """The DataLoader cases."""
    head = (
        "case",
        "reference [ms]",
        "PyTorch [ms]",
        "predicted [ms]",
        "to reference",
        "to PyTorch",
    )
    return table(head, (case.cells for case in published_loaders.loader_cases()))


def cache() -> str:
    """The points of the page cache."""
    head = ("hit rate of the page cache", "measured", "predicted", "difference")
    return table(head, (point.cells for point in published_loaders.cache_points()))


def decoders() -> str:
    """The imread benchmark."""
    rows = [held.cells for held in published_loaders.decoders()]
    total = ("**all**", f"**{published_loaders.decoder_error():.2%}**", "")
    return table(("machine", "mean error", "worst row"), [*rows, total])


def summary() -> str:
    """What the README shows of it all."""
    rows = [row.cells for row in published.measured() if row.short]
    return table(HEAD, [*worked_out(), *rows, *published_loaders.summary()])


def worked_out() -> Iterator[tuple[str, ...]]:
    """How many figures of articles are simulated or arithmetic, and how many of them exact."""
    found = published.worked_out()
    for how in dict.fromkeys(row.how for row in found):
        own = [row for row in found if row.how == how]
        exact = sum(row.error == "exact" for row in own)
        what = f"{len(own)} worked examples from articles, {how}"
        yield "articles", what, "", "", f"{exact} of {len(own)} exact"


TABLES: dict[str, Callable[[], str]] = {
    "arithmetic": arithmetic,
    "measured runs": measured,
    "loader": loader,
    "page cache": cache,
    "decoders": decoders,
    "summary": summary,
}
HOMES = {
    "README.md": ["summary"],
    "docs/published-cases.md": ["arithmetic", "measured runs", "loader", "page cache", "decoders"],
}


@pytest.mark.parametrize("document", HOMES)
def test_tables_are_what_is_computed(
    document: str, root: Path, request: pytest.FixtureRequest
) -> None:
    """Every figure in the tables is the one that the code gives now."""
    path = root / document
    text = path.read_text(encoding="utf-8")
    assert [found["name"] for found in TABLE.finditer(text)] == HOMES[document]
    real = TABLE.sub(lambda found: found[1] + TABLES[found["name"]]() + found[3], text)
    if request.config.getoption("--update-golden"):
        path.write_text(real, encoding="utf-8")
        return
    assert text == real


def test_every_case_of_one_group_is_there() -> None:
    """All cases that come to a figure, or to a yes, have a row."""
    assert {name for row in published.worked_out() for name in row.case.split(", ")} == MISSION


def test_arithmetic_is_exact() -> None:
    """All of it reads as published, but for one figure where we keep the maker's."""
    off = [row.what for row in published.arithmetic() if row.error != "exact"]
    assert off == ["GB/s of unified memory of an M1 Max (the vendor says 400)"]


def test_required_errors_are_kept() -> None:
    """Loader cases within 1%, page cache within 2 points, decoders within 5% and 6.5% on each."""
    for case in published_loaders.loader_cases():
        assert case.ours == pytest.approx(case.reference, rel=0.01), case.name
    for point in published_loaders.cache_points():
        assert abs(point.points) <= 2.0, point.what
    assert published_loaders.decoder_error() <= 0.05
    assert max(held.error for held in published_loaders.decoders()) <= 0.065


def test_errors_of_the_sources_are_listed(root: Path) -> None:
    """Each of the twelve errors we know of has its line in the document."""
    text = (root / "docs" / "published-cases.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| (E\d+) \|", text, re.MULTILINE) == [f"E{i}" for i in range(1, 13)]
