"""Measurement sets converted again from a folder of tables."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from converters.converter import import_table, table_names
from fitting.part import Say

KERNELS: Final = "kernels"
"""Folder of timings of single kernels."""
SERVING: Final = "serving"
"""Folder of runs of serving engines."""
_PARTS_OF: Final = {
    "imread_benchmark": ("input_pipeline", {"source": "repo ternaus/imread_benchmark"}),
}
"""Tables whose rows are some of another's: its name, and what their cells begin with."""


def converted(folder: Path, say: Say) -> Path:
    """A new folder with the sets of the folder's tables, and its other folders as they are."""
    made = Path(tempfile.mkdtemp(prefix="plan-evidence-"))
    for name in table_names():
        table, only = _PARTS_OF.get(name, (name, {}))
        path = folder / f"{table}.csv"
        if not path.exists():
            say(f"{path} is not there: the shipped set {name} is taken")
            continue
        found = import_table(name, path, made / f"{name}.toml", by_configuration=True, only=only)
        (made / f"{name}.toml").write_text(found.toml, encoding="utf-8")
        (made / f"{name}.csv").write_text(found.csv, encoding="utf-8")
        say(f"{name}: {len(found.found.rows)} rows converted")
    for name in (KERNELS, SERVING):
        if (folder / name).exists():
            (made / name).symlink_to((folder / name).resolve())
    return made
