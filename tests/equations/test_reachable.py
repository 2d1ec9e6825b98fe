"""Every formula of the sheet is one that a prediction calls."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "simulator"
SHEET = PACKAGE / "equations"

Name = tuple[str, str]
"""A module of the sheet, and what it defines."""


def imported(tree: ast.Module) -> dict[str, Name | str]:
    """Names that a module takes from the sheet: of a function, or of a whole module of it."""
    found: dict[str, Name | str] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or node.module is None:
            continue
        for alias in node.names:
            known = alias.asname or alias.name
            if node.module == "simulator.equations":
                found[known] = alias.name
            elif node.module.startswith("simulator.equations."):
                found[known] = (node.module.rpartition(".")[2], alias.name)
    return found


def used(node: ast.AST, known: dict[str, Name | str], own: dict[str, Name]) -> set[Name]:
    """What of the sheet is named in a piece of code."""
    found: set[Name] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            name = known.get(part.id, own.get(part.id))
            found |= {name} if isinstance(name, tuple) else set()
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            module = known.get(part.value.id)
            found |= {(module, part.attr)} if isinstance(module, str) else set()
    return found


def uncalled(sheet: dict[str, ast.Module], callers: list[ast.Module]) -> list[str]:
    """Functions of the sheet that no caller reaches, through others of the sheet or directly."""
    bodies = {
        (name, node.name): node
        for name, tree in sheet.items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }
    reached: set[Name] = set()
    ahead = {name for tree in callers for name in used(tree, imported(tree), {})}
    while ahead:
        reached |= ahead
        calls: set[Name] = set()
        for name in ahead & bodies.keys():
            own = {function: (m, function) for m, function in bodies if m == name[0]}
            calls |= used(bodies[name], imported(sheet[name[0]]), own)
        ahead = calls - reached
    return sorted(".".join(name) for name in bodies.keys() - reached)


def test_no_formula_is_a_decoy() -> None:
    """What nothing reaches but importers is not on the sheet: a reader would take it for ours."""
    sheet = {path.stem: ast.parse(path.read_text()) for path in SHEET.glob("*.py")}
    aside = (SHEET, PACKAGE / "importers")
    others = [p for p in PACKAGE.rglob("*.py") if not any(map(p.is_relative_to, aside))]
    texts = (path.read_text() for path in others)
    assert uncalled(sheet, [ast.parse(text) for text in texts if "equations" in text]) == []


def test_a_decoy_is_found() -> None:
    """A function that only another uncalled one calls is a decoy as well."""
    sheet = {"a": ast.parse("def f(): return g()\ndef g(): return 1\ndef h(): return f()\n")}
    direct = ast.parse("from simulator.equations.a import g\ng()\n")
    whole = ast.parse("from simulator.equations import a as s\ns.f()\n")
    assert uncalled(sheet, [direct]) == ["a.f", "a.h"]
    assert uncalled(sheet, [whole]) == ["a.h"]
