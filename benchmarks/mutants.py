"""Change one expression of the model at a time, and see whether the package's own tests notice.

Run from the root of the repository, by hand: ``python benchmarks/mutants.py --count 40 --seed 1``.
Each mutant is tried in a copy of the checkout, with the tests of its module first and then those of
its package, slow ones left out. Exit code 1: more than one in twenty survive.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[1]
PACKAGES = ("engine", "pipeline", "long_run", "serving", "physics")
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
NAMES |= {"at_least": "at_most", "at_most": "at_least", "any": "all", "all": "any"}
ALL_NOTICED = 0.95


def mutated(node: ast.AST) -> ast.AST | None:
    """Return a changed copy of a node; None if nothing of it is changed."""
    new = copy.deepcopy(node)
    match new:
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in SWAPS:
            new.op = SWAPS[type(op)]()  # type: ignore[assignment] # of the same kind
        case ast.Compare(ops=[op]) if type(op) in SWAPS:
            new.ops = [SWAPS[type(op)]()]  # type: ignore[list-item] # of the same kind
        case ast.Call(func=ast.Name(id=name)) if name in NAMES:
            new.func.id = NAMES[name]  # type: ignore[attr-defined] # matched above
        case ast.Call(func=ast.Attribute(attr=name)) if name in NAMES:
            new.func.attr = NAMES[name]  # type: ignore[attr-defined] # matched above
        case ast.IfExp(body=body, orelse=orelse):
            new.body, new.orelse = orelse, body
        case ast.Constant(value=float(value)) if value:
            new.value = 2.0 * value
        case _:
            return None
    return new


def places(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the expressions inside functions that can be changed, annotations left out."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for statement in function.body:
                for node in ast.walk(statement):
                    if isinstance(node, ast.expr) and mutated(node) is not None:
                        yield node


def change(path: Path, random: Random) -> tuple[str, str] | None:
    """Return the text of a module with one change, and what changed; None without a place."""
    text = path.read_text(encoding="utf-8")
    found = [node for node in places(ast.parse(text)) if node.lineno == node.end_lineno]
    if not found:
        return None
    node = random.choice(found)
    lines = text.split("\n")
    line = lines[node.lineno - 1].encode()
    new = f"({ast.unparse(mutated(node) or node)})".encode()
    row = line[: node.col_offset] + new + line[node.end_col_offset :]
    lines[node.lineno - 1] = row.decode()
    said = f"{path.name}:{node.lineno}: {ast.unparse(node)} -> {new.decode()}"
    return "\n".join(lines), said


def survives(folder: Path, package: str, module: str, limit: float) -> bool:
    """Return True if no test of the package fails in the copy; too long a run is noticed too."""
    own = folder / "tests" / package / f"test_{module}.py"
    tests = [[str(own)]] if own.exists() else []
    for files in (*tests, [f"simulator/{package}", f"tests/{package}"]):
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *files]
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        try:
            done = subprocess.run(  # noqa: S603 - pytest on its own copy
                command,
                cwd=folder,
                env=environment,
                capture_output=True,
                timeout=limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
        if done.returncode:
            return False
    return True


def main() -> int:
    """Try the mutants, print each, and count the survivors."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first one to try")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds for one run of tests")
    options = parser.parse_args()
    alive = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "copy"
        ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", "shared")
        shutil.copytree(ROOT, folder, ignore=ignored)
        for number in range(options.first, options.first + options.count):
            random = Random(f"{options.seed}-{number}")  # noqa: S311 - drawn
            package = PACKAGES[number % len(PACKAGES)]
            paths = sorted((folder / "simulator" / package).rglob("*.py"))
            path = random.choices(paths, [each.stat().st_size for each in paths])[0]
            found = change(path, random)
            if found is None:
                continue
            before, started = path.read_text(encoding="utf-8"), time.monotonic()
            path.write_text(found[0], encoding="utf-8")
            lives = survives(folder, package, path.stem, options.limit)
            path.write_text(before, encoding="utf-8")
            alive += lives
            state = "LIVES" if lives else "noticed"
            print(f"{number} {package}/{found[1]}: {state} ({time.monotonic() - started:.0f} s)")
            sys.stdout.flush()
    print(f"{alive} of {options.count} survive")
    return int(alive > (1.0 - ALL_NOTICED) * options.count)


if __name__ == "__main__":
    sys.exit(main())
