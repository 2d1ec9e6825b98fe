"""What is installed: plan and what it builds on, its extras, and where it looks for files."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from simulator.version import __version__

DISTRIBUTION: Final = "plan-simulator"
"""What plan is called where packages are listed."""
_EXTRA: Final = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A package that plan builds on; `version` is None where it is not installed.

    `extra` names the group of optional packages it belongs to; empty: it is always needed.
    """

    name: str
    version: str | None
    extra: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """Versions, and where plan itself lies."""

    version: str
    python: str
    system: str
    place: Path
    packages: tuple[Package, ...]

    @property
    def missing(self) -> tuple[Package, ...]:
        """Packages that are needed and not there."""
        return tuple(p for p in self.packages if not p.extra and p.version is None)


def installation() -> Installation:
    """Look at this installation; nothing of it is imported."""
    return Installation(
        version=__version__,
        python=platform.python_version(),
        system=platform.platform(terse=True),
        place=Path(sys.modules[__name__].__file__ or "").parents[1],
        packages=tuple(_packages()),
    )


def _packages() -> Iterator[Package]:
    """What the distribution's own description requires; nothing in an uninstalled checkout."""
    try:
        required = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return
    for text in required:
        name, extra = _NAME.match(text), _EXTRA.search(text)
        if name is not None:
            yield Package(
                name=name.group(),
                version=_version(name.group()),
                extra="" if extra is None else extra.group(1),
            )


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
