"""What documents show is what the commands print now.

A comment marks what is checked, in every Markdown file::

    <!-- output of: plan simulate resnet50-m40 -->      a ```text block follows
    <!-- output of: plan models (up to "bert") -->       the same, cut before that line
    <!-- markdown of: plan metrics --format markdown --> until <!-- end -->
    <!-- file: my-job.toml -->                           a ```toml block that commands may name

What a command only says on standard error (``plan: wrote report.html``) is shown too. A page's
commands run in one empty folder, so a later one may use what an earlier one wrote, and
commands in ```sh blocks that are not shown with their output are marked by
``<!-- not run: why -->`` above the block. ``pytest --update-golden`` writes the outputs anew.

Outputs of pages that take long are checked in the slow stage, and ``pytest --update-golden -m slow
tests/docs`` writes them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.catalogue import each

from simulator.cli.main import main
from simulator.cli.output import Exit

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"))
)
LONG = {
    "docs/tutorial.md",
    "docs/what-if.md",
    *(f"docs/how-to/{page}.md" for page in ("storage", "workers", "language-models", "goodput")),
}
"""They recommend machines or try many changes, which takes as long as all other pages."""
SHOWN = re.compile(
    r"(?P<head><!-- output of: plan (?P<command>.*?)(?: \((?P<note>[^()]*)\))? -->\n+```text\n)"
    r"(?P<body>.*?)(?P<tail>^```$)",
    re.DOTALL | re.MULTILINE,
)
GENERATED = re.compile(
    r"(?P<head><!-- markdown of: plan (?P<command>.*?) -->\n)(?P<body>.*?)(?P<tail><!-- end -->)",
    re.DOTALL,
)
CUT = re.compile(r"up to \"(?P<line>.+)\"")
FILE = re.compile(
    r"<!-- file: (?P<name>[\w.-]+) -->\n+```toml\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE
)
SHELL = re.compile(r"(?P<before>[^\n]*)\n+```sh\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run in a folder of their own, in the checkout's view of shipped files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("PLAN_STORE", str(tmp_path / "results.sqlite"))


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] * (page in LONG)) for page in PAGES],
)
def test_outputs_are_real(
    page: str, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    """Every marked output is what its command prints now."""
    path = ROOT / page
    text = path.read_text(encoding="utf-8")
    for name, body in FILE.findall(text):
        Path(name).write_text(body, encoding="utf-8")

    def printed(match: re.Match[str]) -> str:
        code = main(shlex.split(match["command"]))
        out, err = capsys.readouterr()
        assert code in {Exit.FINE, Exit.DOES_NOT_FIT}, f"plan {match['command']}: {err}"
        out = _part(out or err, match["note"] or "") if match.re is SHOWN else f"\n{out}\n"
        return f"{match['head']}{out}{match['tail']}"

    real = GENERATED.sub(printed, SHOWN.sub(printed, text))
    if request.config.getoption("--update-golden"):
        path.write_text(real, encoding="utf-8")
        return
    assert text == real


@each("page", PAGES)
def test_commands_are_run_or_say_why_not(page: str) -> None:
    """A command in a shell block has its output below, or a reason above."""
    text = (ROOT / page).read_text(encoding="utf-8")
    shown = {match["command"] for match in (*SHOWN.finditer(text), *GENERATED.finditer(text))}
    unproven = [command for command in _commands(text) if command not in shown]
    assert unproven == []


def _part(out: str, note: str) -> str:
    """What is shown of an output: all, or up to the line that the marker names."""
    cut = CUT.fullmatch(note)
    if cut is None:
        return out
    before, found, _ = out.partition(f"\n{cut['line']}")
    assert found, f"no line begins with '{cut['line']}'"
    return f"{before.rstrip()}\n\n...\n"


def _commands(text: str) -> Iterator[str]:
    """Commands of ``plan`` in shell blocks that don't say why they are not run."""
    for match in SHELL.finditer(text):
        if not match["before"].startswith("<!-- not run:"):
            for line in match["body"].splitlines():
                if line.startswith("plan "):
                    yield line.removeprefix("plan ").split("  #")[0].strip()
