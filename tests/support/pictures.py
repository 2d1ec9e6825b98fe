"""Draws the pictures of the documentation: ``pytest tests/docs/test_pictures.py --update-golden``.

Each picture carries the text it shows: the terminal's is text, the report's says it in its
description. So a test can tell a picture that shows other numbers than today's. Drawing the report
needs Chromium. Look at the pictures before you commit them.
"""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import tempfile
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

from PIL import Image, PngImagePlugin

from simulator.cli.output import coloured
from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.report.html.prediction import as_page

IMAGES = Path(__file__).parents[2] / "docs" / "images"
REPORT, TERMINAL = IMAGES / "report.png", IMAGES / "terminal.svg"
SCENARIO = "resnet50-imagenet-p4d"
COMMAND = ("whatif", "resnet18-imagenet-one-worker")
SIZE = (1000, 1120)
"""Width and height of the report's picture [px]."""
BELOW = "Memory"
"""Heading from which on the report's picture shows no more."""
COLUMN, LINE, EDGE, BAR = 8.43, 18.5, 18, 30
"""Width and height of a letter on the terminal, of its edge and its title bar [px]."""
COLOURS = {1: "#ffffff", 31: "#ff7b72", 32: "#7ee787", 33: "#e3b341"}
STYLE = 'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14" fill="#d7dde6"'
_ESCAPES = re.compile(r"((?:\x1b\[\d+m)+)")


def terminal(printed: str) -> str:
    """A terminal that shows what `COMMAND` printed, as SVG."""
    lines = ["\x1b[32m$\x1b[0m plan " + " ".join(COMMAND), *coloured(printed.rstrip()).split("\n")]
    columns = max(len(re.sub(_ESCAPES, "", line)) for line in lines)
    width = round(2 * EDGE + COLUMN * columns)
    height = round(BAR + 2 * EDGE + LINE * len(lines))
    texts = (
        f'<text x="{EDGE}" y="{BAR + EDGE + LINE * (row + 0.7):.1f}">{_spans(line)}</text>'
        for row, line in enumerate(lines)
        if line
    )
    dots = (f'<circle cx="{EDGE + 18 * n}" cy="15" r="5.5" fill="#5b6577"/>' for n in range(3))
    size = f'width="{width}" height="{height}"'
    bar = f"M0 {BAR}V10A10 10 0 0 1 10 0H{width - 10}A10 10 0 0 1 {width} 10V{BAR}Z"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {size}'
    return "\n".join(
        [
            f"{head} {STYLE}>",
            f'<rect {size} rx="10" fill="#0d1117"/>',
            f'<path d="{bar}" fill="#2b3240"/>',
            *dots,
            *texts,
            "</svg>\n",
        ]
    )


def _spans(line: str) -> str:
    """A line with its escape codes as colours; what follows one has that of the line's last."""
    parts = ["", *re.split(_ESCAPES, line)]
    return "".join(
        _span(html.escape(text, quote=False), code) for code, text in list(pairwise(parts))[::2]
    )


def _span(text: str, code: str) -> str:
    text = text.replace(" ", "\N{NO-BREAK SPACE}")  # a space beside a space would not be drawn
    look = [int(number) for number in re.findall(r"\d+", code)]
    colour = next((COLOURS[number] for number in look if number in COLOURS), None)
    weight = ' font-weight="700"' if 1 in look else ""
    return f'<tspan fill="{colour}"{weight}>{text}</tspan>' if colour and text else text


def report() -> str:
    """The page whose top the report's picture shows."""
    return as_page(predict(load_scenario(SCENARIO), trace=True))


class _Text(HTMLParser):
    """Collects what a page says, as far as the picture goes."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.hidden = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002 - the parser's signature
        """Do not read what is not shown."""
        self.hidden += tag in {"head", "script", "style"}

    def handle_endtag(self, tag: str) -> None:
        """Read on behind it."""
        self.hidden -= tag in {"head", "script", "style"}

    def handle_data(self, data: str) -> None:
        """Keep a text."""
        if not self.hidden and data.strip() and BELOW not in self.said:
            self.said.append(" ".join(data.split()))


def text_of(page: str) -> str:
    """What the picture of a page shows, a line for each text."""
    reader = _Text()
    reader.feed(page)
    return "\n".join(reader.said[:-1])


def described(picture: Path) -> str:
    """What a picture says it shows."""
    with Image.open(picture) as image:
        return str(image.info.get("Description", ""))


def draw(page: str) -> None:
    """Draw the report's picture with its text in it.

    Raises
    ------
    RuntimeError
        Without Chromium.
    """
    browser = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if browser is None:
        msg = "the report's picture needs Chromium, which is not installed"
        raise RuntimeError(msg)
    with tempfile.TemporaryDirectory() as folder:
        source, drawn = Path(folder) / "page.html", Path(folder) / "page.png"
        source.write_text(page, encoding="utf-8")
        arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        arguments += [f"--window-size={SIZE[0]},{SIZE[1]}", f"--screenshot={drawn}"]
        subprocess.run(  # noqa: S603 - a browser
            [browser, *arguments, source.as_uri()], check=True, capture_output=True
        )
        about = PngImagePlugin.PngInfo()
        about.add_itxt("Description", text_of(page))
        with Image.open(drawn) as image:
            image.convert("P", palette=Image.Palette.ADAPTIVE).save(
                REPORT, pnginfo=about, optimize=True
            )
