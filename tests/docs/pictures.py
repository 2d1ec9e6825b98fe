"""Draws the pictures of the documentation anew: ``python tests/docs/pictures.py``.

Needs Chromium. Look at the pictures before you commit them.
"""

from __future__ import annotations

import html
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

IMAGES = Path(__file__).parents[2] / "docs" / "images"
SCENARIO = "resnet50-imagenet-p4d"
REPORT, TERMINAL = (1000, 1120), (920, 800)
"""Width and height of the pictures [px]."""
STYLE = """
body { margin: 0; background: #1e2430; padding: 18px }
main { background: #0d1117; border-radius: 10px; overflow: hidden }
header { background: #2b3240; padding: 9px 12px; display: flex; gap: 7px }
header i { width: 12px; height: 12px; border-radius: 50%; background: #5b6577 }
pre { margin: 0; padding: 14px 18px 18px; color: #d7dde6;
      font: 14px/1.32 "DejaVu Sans Mono", monospace }
b { color: #7ee787; font-weight: 400 }
"""


def main() -> None:
    """Write both pictures."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        _plan("report", SCENARIO, "--no-evidence", "--output", str(page))
        _shoot(page, IMAGES / "report.png", REPORT)
        page.write_text(_terminal("whatif", SCENARIO), encoding="utf-8")
        _shoot(page, IMAGES / "terminal.png", TERMINAL)


def _plan(*arguments: str) -> str:
    """What a command prints on a terminal of 100 columns."""
    command = [
        sys.executable,
        "-c",
        "from simulator.cli.main import main; raise SystemExit(main())",
    ]
    ran = subprocess.run(  # noqa: S603 - our own command
        [*command, *arguments],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "100"},
    )
    return ran.stdout


def _terminal(*arguments: str) -> str:
    printed = html.escape(_plan(*arguments).rstrip())
    bar = "<header><i></i><i></i><i></i></header>"
    lines = f"<pre><b>$</b> plan {html.escape(' '.join(arguments))}\n{printed}</pre>"
    return f"<!doctype html><meta charset=utf-8><style>{STYLE}</style><main>{bar}{lines}</main>"


def _shoot(page: Path, picture: Path, size: tuple[int, int]) -> None:
    browser = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if browser is None:
        sys.exit("no Chromium found")
    arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    arguments += [f"--window-size={size[0]},{size[1]}", f"--screenshot={picture}", page.as_uri()]
    subprocess.run([browser, *arguments], check=True, capture_output=True)  # noqa: S603 - a browser


if __name__ == "__main__":
    main()
