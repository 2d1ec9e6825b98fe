"""Counters of the house: how large the package is, what one prediction runs, and how it speaks.

    python benchmarks/house.py                    # print all counters with their ceilings
    python benchmarks/house.py --static           # those that need no run (a second)
    python benchmarks/house.py --words            # words to avoid, counted by package
    python benchmarks/house.py --words studies    # each hit, with file and line
    python benchmarks/house.py --lower            # lower the ceilings to what is counted now

Ceilings and the list of words are in `benchmarks/house.toml`.
"""

from __future__ import annotations

import argparse
import ast
import re
import resource
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
SETTINGS: Final = Path(__file__).with_name("house.toml")
SCENARIO: Final = "resnet50-imagenet-p4d"
READING: Final = ("reading", "schema")
LEVER_HOME: Final = "studies/levers/"
MIN_LEVER_KEYS: Final = 7
MIN_SHARED_NAMES: Final = 3
RUNS: Final = 7

SETTING_KEY: Final = re.compile(
    r"(input|data|train|hardware|serving|load|parallelism|model|checkpoint)\.[a-z_.]+"
)
SERVICE: Final = re.compile(r"servic(e|es)|serving")

DOCSTRINGS: Final = "docstrings"
MESSAGES: Final = "messages"
DOCUMENTS: Final = "documents"


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A docstring, a message or a line of a document, with the package or folder it belongs to."""

    kind: str
    group: str
    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A word to avoid, in the text that begins in line `owner`."""

    kind: str
    group: str
    path: str
    line: int
    owner: int
    word: str
    context: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: [{self.kind[:-1]}] {self.word!r} in: {self.context}"


@cache
def settings() -> dict[str, Any]:
    """Return ceilings, targets and words."""
    return tomllib.loads(SETTINGS.read_text(encoding="utf-8"))


@cache
def banned() -> re.Pattern[str]:
    """Return one pattern for all words to avoid."""
    return re.compile(rf"\b(?:{'|'.join(settings()['words'])})")


@cache
def modules(root: Path = ROOT) -> dict[str, ast.Module]:
    """Return the syntax tree of each module of the package, by its path below `simulator/`."""
    package = root / "simulator"
    return {
        path.relative_to(package).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(package.rglob("*.py"))
    }


@cache
def nodes(root: Path = ROOT) -> dict[str, tuple[ast.AST, ...]]:
    """Return all nodes of each module that counters look at, by its path below `simulator/`."""
    kinds = (ast.Constant, ast.Expr, ast.FunctionDef, ast.ClassDef)
    return {
        path: tuple(node for node in ast.walk(module) if isinstance(node, kinds))
        for path, module in modules(root).items()
    }


def sizes(root: Path = ROOT) -> dict[str, int]:
    """Return the lines of each module, by its path below `simulator/`."""
    package = root / "simulator"
    return {
        path.relative_to(package).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in sorted(package.rglob("*.py"))
    }


# Words -----------------------------------------------------------------------------------------


@cache
def texts(root: Path = ROOT) -> tuple[Text, ...]:
    """Return the docstrings and messages of the package, and the lines of the documents."""
    return tuple(_texts(root))


def _texts(root: Path) -> Iterator[Text]:
    for path, inside in nodes(root).items():
        group = path.split("/")[0] if "/" in path else "top"
        yield from _texts_of(inside, group, f"simulator/{path}")
    for group, paths in _documents(root).items():
        for page in paths:
            name = page.relative_to(root).as_posix()
            for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
                yield Text(kind=DOCUMENTS, group=group, path=name, line=number, text=line)


def _documents(root: Path) -> dict[str, list[Path]]:
    """Return the pages that people read, by folder; generated ones are made of docstrings."""
    docs = root / "docs"
    return {
        "README": [root / "README.md"],
        "docs": sorted(docs.glob("*.md")),
        "how-to": sorted((docs / "how-to").glob("*.md")),
        "scenarios": sorted((root / "scenarios").glob("*.toml")),
        "services": sorted((root / "services").glob("*.toml")),
    }


def _texts_of(inside: Sequence[ast.AST], group: str, path: str) -> Iterator[Text]:
    """Yield the docstrings and messages of a module; help of a command is a message."""
    shown = _help_texts(inside)
    alone = {id(node.value) for node in inside if isinstance(node, ast.Expr)}
    for node in inside:
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            continue
        document = id(node) in alone and id(node) not in shown
        if document or " " in node.value.strip() or id(node) in shown:
            kind = DOCSTRINGS if document else MESSAGES
            yield Text(kind=kind, group=group, path=path, line=node.lineno, text=node.value)


def _help_texts(inside: Sequence[ast.AST]) -> set[int]:
    """Return ids of the docstrings that `--help` prints."""
    return {
        id(node.body[0].value)
        for node in inside
        if isinstance(node, ast.FunctionDef)
        and any("command" in ast.unparse(one) for one in node.decorator_list)
        and isinstance(node.body[0], ast.Expr)
    }


@cache
def hits(root: Path = ROOT) -> tuple[Hit, ...]:
    """Return every word to avoid."""
    return tuple(hit for text in texts(root) for hit in _hits_in(text))


def _hits_in(text: Text) -> Iterator[Hit]:
    for match in banned().finditer(text.text.lower()):
        before = text.text[: match.start()]
        around = text.text[max(0, match.start() - 40) : match.end() + 40]
        yield Hit(
            kind=text.kind,
            group=text.group,
            path=text.path,
            line=text.line + before.count("\n"),
            owner=text.line,
            word=" ".join(match.group().split()),
            context=" ".join(around.split()),
        )


def word_counts(root: Path = ROOT) -> dict[str, dict[str, int]]:
    """Return the number of words to avoid by kind of text, then by package or folder."""
    counts = {kind: Counter[str]() for kind in (DOCSTRINGS, MESSAGES, DOCUMENTS)}
    for hit in hits(root):
        counts[hit.kind][hit.group] += 1
    return {kind: dict(sorted(counter.items())) for kind, counter in counts.items()}


def share_of_docstrings(root: Path = ROOT) -> float:
    """Return the percentage of docstrings with a word to avoid."""
    number = sum(text.kind == DOCSTRINGS for text in texts(root))
    marked = {(hit.path, hit.owner) for hit in hits(root) if hit.kind == DOCSTRINGS}
    return 100 * len(marked) / number


# Structure -------------------------------------------------------------------------------------


def twins(root: Path = ROOT) -> list[tuple[str, str]]:
    """Return pairs of modules that do for services what another does for jobs.

    A module with "service" or "serving" in its path has a twin where another module shares
    three public function names with it, or one and the rest of its own name.
    """
    names = {path: _public_names(module) for path, module in modules(root).items()}
    services = [path for path in names if SERVICE.search(path)]
    pairs = []
    for path in services:
        candidates = [
            (_stem(path) == _stem(other), len(names[path] & names[other]), other)
            for other in names
            if other not in services
        ]
        same_stem, shared, other = max(candidates)
        if same_stem and not shared:
            same_stem, shared, other = max(candidates, key=lambda one: one[1:])
        if shared >= (1 if same_stem else MIN_SHARED_NAMES):
            pairs.append((path, other))
    return pairs


def _stem(path: str) -> str:
    return _without_service(Path(path).stem)


def _without_service(name: str) -> str:
    """Return a name without "service" or "serving"."""
    return SERVICE.sub("", name).replace("__", "_").strip("_")


def _public_names(module: ast.Module) -> set[str]:
    """Return public functions of a module and methods of its public classes, without "service"."""
    owners = [module, *(one for one in module.body if isinstance(one, ast.ClassDef))]
    return {
        _without_service(node.name)
        for owner in owners
        for node in owner.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    }


def lever_modules(root: Path = ROOT) -> list[str]:
    """Return modules of studies, beyond the one list of levers, that name many keys of settings."""
    return [
        path
        for path, inside in nodes(root).items()
        if path.startswith("studies/")
        and not path.startswith(LEVER_HOME)
        and len(_keys(inside)) >= MIN_LEVER_KEYS
    ]


def _keys(inside: Sequence[ast.AST]) -> set[str]:
    """Return the keys of a scenario file that a module names."""
    return {
        node.value
        for node in inside
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and SETTING_KEY.fullmatch(node.value)
    }


def static_counters(root: Path = ROOT) -> dict[str, float]:
    """Return the counters that need no run."""
    lines = sizes(root)
    words = word_counts(root)
    inside = nodes(root).values()
    return {
        "lines": sum(lines.values()),
        "files": len(lines),
        "median_lines": median(lines.values()),
        "classes": sum(isinstance(node, ast.ClassDef) for one in inside for node in one),
        "twins": len(twins(root)),
        "lever_modules": len(lever_modules(root)),
        "words_shown": sum(words[MESSAGES].values()) + sum(words[DOCUMENTS].values()),
        "words_in_docstrings": sum(words[DOCSTRINGS].values()),
        "docstrings_with_words_percent": round(share_of_docstrings(root), 1),
        "hops_median": median(_hops(root)),
        "hops_worst": max(_hops(root)),
        "golden_lines": sum(
            len(path.read_text(encoding="utf-8").splitlines())
            for path in (root / "tests" / "golden").glob("*.txt")
        ),
    }


def _hops(root: Path) -> list[int]:
    """Return the steps from each committed number of the screen to its formula."""
    text = (root / "tests" / "hops.toml").read_text(encoding="utf-8")
    return [len(one["chain"]) - 1 for one in tomllib.loads(text)["numbers"]]


# Runs ------------------------------------------------------------------------------------------

PROFILED: Final = """
import contextlib, io, sys
from inspect import CO_NEWLOCALS
from simulator.cli.main import main
seen = set()
def note(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_flags & CO_NEWLOCALS:
        seen.add((code.co_filename, code.co_qualname))
sys.setprofile(note)
with contextlib.redirect_stdout(io.StringIO()):
    main(["simulate", sys.argv[1], "--no-actions"])
sys.setprofile(None)
for file, _ in seen:
    print("function", file)
for name in sys.modules:
    if name.partition(".")[0] == "simulator":
        print("module", name)
"""
"""Prints the file of each function that runs, bodies of classes apart, and names of modules."""


def run_counters(root: Path = ROOT) -> dict[str, float]:
    """Return what one `plan simulate` runs and imports, in a process of its own."""
    rows = [line.split(maxsplit=1) for line in _python("-c", PROFILED, SCENARIO, root=root)]
    package = root / "simulator"
    files = [Path(name) for kind, name in rows if kind == "function"]
    inside = [path.relative_to(package).parts[0] for path in files if package in path.parents]
    return {
        "functions": len(inside),
        "functions_in_reading": sum(name in READING for name in inside),
        "modules": sum(kind == "module" for kind, _ in rows),
    }


def cpu_counters(root: Path = ROOT) -> dict[str, float]:
    """Return CPU seconds of `plan simulate` and of its imports, as medians of fresh processes."""
    rows = [line.split(maxsplit=1) for line in _python("-c", PROFILED, SCENARIO, root=root)]
    imports = "".join(f"import {name}\n" for kind, name in rows if kind == "module")
    simulate = (
        f"from simulator.cli.main import main; main(['simulate', '{SCENARIO}', '--no-actions'])"
    )
    numpy = _cpu("import numpy", root)
    whole, imported = _cpu(simulate, root), _cpu(imports, root)
    return {
        "cpu_s": round(whole, 2),
        "cpu_of_imports_s": round(imported, 2),
        "cpu_to_numpy": round(whole / numpy, 1),
        "cpu_of_imports_to_numpy": round(imported / numpy, 1),
    }


def _cpu(code: str, root: Path) -> float:
    """Return CPU seconds of some code, the median of fresh processes."""
    return median(_cpu_once(code, root) for _ in range(RUNS))


def _cpu_once(code: str, root: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _python("-c", code, root=root)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def count_tests(root: Path = ROOT) -> dict[str, float]:
    """Return the number of test cases of both stages."""
    command = (
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "-p",
        "no:cacheprovider",
        "-m",
        "slow or not slow",
    )
    lines = _python(*command, root=root, check=False)
    return {"test_cases": sum("::" in line for line in lines)}


def _python(*arguments: str, root: Path, check: bool = True) -> list[str]:
    """Run Python in the checkout, and return the lines that it prints."""
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, *arguments],
        cwd=root,
        env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=check,
    )
    return done.stdout.splitlines()


# Ceilings --------------------------------------------------------------------------------------


def over_the_ceiling(counters: dict[str, float]) -> list[str]:
    """Return the counters above their ceiling, a line each."""
    ceilings = settings()["counters"]
    return [
        f"{name}: {value:g}, ceiling {ceilings[name]['ceiling']:g}"
        for name, value in counters.items()
        if "ceiling" in ceilings[name] and value > ceilings[name]["ceiling"]
    ]


def words_over_the_ceiling(counts: dict[str, dict[str, int]]) -> list[str]:
    """Return the packages and folders with more words to avoid than their ceiling, a line each."""
    ceilings = settings()["word_ceilings"]
    return [
        f"{kind} of {group}: {count}, ceiling {ceilings.get(kind, {}).get(group, 0)}; see"
        f" python benchmarks/house.py --words {group}"
        for kind, groups in counts.items()
        for group, count in groups.items()
        if count > ceilings.get(kind, {}).get(group, 0)
    ]


def lower(counters: dict[str, float], words: dict[str, dict[str, int]]) -> None:
    """Lower the ceilings to what is counted now, and none below what is to be reached."""
    text = SETTINGS.read_text(encoding="utf-8")
    for name, value in counters.items():
        ceiling = settings()["counters"][name].get("ceiling")
        lowest = max(value, settings()["counters"][name]["reach"])
        if ceiling is not None and lowest < ceiling:
            row = re.compile(rf"^({name} = .*ceiling = )[\d._]+", re.MULTILINE)
            text = row.sub(rf"\g<1>{lowest:.10g}", text)
    head = text.partition("\n[word_ceilings.")[0]
    old = settings()["word_ceilings"]
    parts = [head.rstrip("\n")]
    for kind, groups in words.items():
        rows = [
            f"{group} = {min(count, old.get(kind, {}).get(group, count))}"
            for group, count in groups.items()
            if count
        ]
        parts.append("\n".join([f"[word_ceilings.{kind}]", *rows]))
    SETTINGS.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def print_words(group: str) -> None:
    """Print each word to avoid of a package or folder; without one, the counts of all."""
    if group:
        print("\n".join(str(hit) for hit in hits() if hit.group == group))
        return
    counts = word_counts()
    for name in sorted({name for groups in counts.values() for name in groups}):
        row = (f"{counts[kind].get(name, 0):>6} {kind}" for kind in counts if name in counts[kind])
        print(f"{name:<14}{''.join(row)}")


def main() -> int:
    """Print the counters with their start, ceiling and target; return 1 if one is too high."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--static", action="store_true", help="counters that need no run")
    parser.add_argument("--words", nargs="?", const="", metavar="PACKAGE", help="words to avoid")
    parser.add_argument("--lower", action="store_true", help="lower the ceilings")
    arguments = parser.parse_args()
    if arguments.words is not None:
        print_words(arguments.words)
        return 0
    counters = static_counters()
    if not arguments.static:
        counters |= run_counters() | count_tests()
    if not (arguments.static or arguments.lower):
        counters |= cpu_counters()
    rows = settings()["counters"]
    print(f"{'counter':<32}{'26 Nov':>9}{'now':>9}{'ceiling':>9}{'reach':>9}")
    for name, value in counters.items():
        row = {key: f"{number:,g}" for key, number in rows[name].items()}
        print(
            f"{name:<32}{row.get('before', ''):>9}{f'{value:,.6g}':>9}"
            f"{row.get('ceiling', ''):>9}{row['reach']:>9}"
        )
    high = [*over_the_ceiling(counters), *words_over_the_ceiling(word_counts())]
    if arguments.lower:
        lower(counters, word_counts())
        return 0
    for line in high:
        print(f"too high: {line}")
    return int(bool(high))


if __name__ == "__main__":
    sys.exit(main())
