"""The table of calibration factors."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from simulator.schema.calibration import FACTORS, FactorKind


@pytest.mark.parametrize("kind", FACTORS, ids=lambda kind: kind.name)
def test_the_docs_show_the_table(root: Path, kind: FactorKind) -> None:
    """Each factor's meaning, home and bounds stand in the docs as in the code."""
    cells = (f"`{kind.name}`", kind.meaning, kind.home, f"{kind.low:g} to {kind.high:g}", kind.why)
    lines = (root / "docs" / "calibration.md").read_text(encoding="utf-8").splitlines()
    assert f"| {' | '.join(cells)} |" in lines


@pytest.mark.parametrize("kind", FACTORS, ids=lambda kind: kind.name)
def test_a_factor_is_at_home_where_the_table_says(kind: FactorKind) -> None:
    """The module named as its home reads the factor, and exists."""
    module, _, rest = kind.home.partition(":")
    assert rest
    try:
        found = import_module(f"simulator.{module}")
    except ModuleNotFoundError:
        found = import_module(f"simulator.{module.rpartition('.')[0]}")
        assert hasattr(found, module.rpartition(".")[2])
    source = Path(str(found.__file__)).read_text(encoding="utf-8")
    assert f'"{kind.name}"' in source
