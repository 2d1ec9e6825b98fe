"""What each mechanism is worth: errors and coverage with it and without it.

    python evidence/ablations.py TABLES [--only WORD] [--refit] [--jobs N]

A mechanism is taken away from outside: the equations or figures that it rests on are replaced by
plainer ones in a process of its own, and nothing in the package knows of it. Two kinds of rows
tell: steps of language models by figures that their series and its siblings had no part in, and
foreign runs (``TABLES``, as of ``foreign.py``). Figures are those that ship, which favours what is
there; with ``--refit`` those of each series left out are fitted again without the mechanism (two
minutes each; not one that is taken away by its figures). Widths are the shipped ones throughout. Of
each family stand median and 90th percentile of the error and the share of rows inside the 80%
interval; families on which a mechanism does nothing are left out. A star marks rows that it was
chosen on.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from fitting import distance
from fitting.deviations import NINETY
from fitting.language_models import Runs, runs
from fitting.unseen import groups, without
from foreign import score
from simulator.physics import collectives, communication, kernels, operators, training_step
from simulator.physics.kernels import PassTimes
from simulator.physics.transformer import TransformerStep
from simulator.reading import training
from simulator.reading.fitted import kernels as fitted_kernels
from simulator.reading.fitted.kernel_files import KernelFile, kernel_files, with_values
from simulator.reading.fitted.kernels import DeviceShares
from simulator.reading.training import HabitTable
from simulator.schema.machines import Regime
from simulator.schema.software import MemoryFormat
from simulator.terms import Term, stated
from simulator.uncertainty.scenario import unseen_groups
from simulator.units import Real

Vector = NDArray[np.float64]
Errors = Mapping[str, tuple[Vector, NDArray[np.bool_]]]
"""log(measured / predicted) and whether the interval holds it, by family."""
_TOLD: Final = 5e-4
"""Change of a figure of the table from which on a family is printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism:
    """What is taken away.

    `equations` are put instead of functions and constants, by module and name; `figures` in place
    of figures of kernels: a number, or the name of the figure used instead. `chosen_on` are the
    families that it was chosen on.
    """

    name: str
    equations: tuple[tuple[ModuleType, str, object], ...] = ()
    figures: Mapping[str, float | str] = field(default_factory=dict)
    chosen_on: tuple[str, ...] = ()

    def remove(self) -> None:
        """Take it out of this process for good."""
        for module, name, plainer in self.equations:
            setattr(module, name, plainer)
        ships = cast("dict[str, KernelFile]", kernel_files())
        left = {id(one): stand_ins(self.figures, one.figures) for one in unseen_groups()}
        ships.update(with_values(stand_ins(self.figures, {})))
        for group in unseen_groups():
            if group.figures:
                group.figures.update(left[id(group)])


def stand_ins(figures: Mapping[str, float | str], fitted: Mapping[str, float]) -> dict[str, float]:
    """Return replacement figures: numbers, or the value of another figure."""
    found = {}
    for name, value in figures.items():
        if isinstance(value, str):
            file, figure = value.split(".")
            found[name] = fitted.get(value, kernel_files()[file].figures[figure].value)
        else:
            found[name] = value
    return found


def _nothing(*_: object, **__: object) -> float:
    return 0.0


def _one(*_: object, **__: object) -> float:
    return 1.0


def _no_time(*_: object, **__: object) -> PassTimes:
    return PassTimes(0.0, 0.0)


def _device_alone(_k: object, device: Real, *_: object) -> Term:
    return stated(device=device)


def _layer_alone(_d: object, _k: object, device: Real, *_: object) -> Term:
    return stated(device=device)


def _channels_last(_draft: object) -> MemoryFormat:
    return MemoryFormat.CHANNELS_LAST


def _as_most(_framework: str) -> HabitTable:
    return HabitTable(framework="any", source="most frameworks", date="2026-11-24")


def _stated_links(*given: Any) -> list[Regime]:  # noqa: ANN401 - as what it replaces
    _, ranks, link, host = given
    return [collectives._datasheet_regime(link, collectives.reachable(ranks, host))]  # noqa: SLF001


_shares: Final = fitted_kernels._shares  # noqa: SLF001


def _data_sheet(*given: Any) -> DeviceShares:  # noqa: ANN401 - as what it replaces
    if given[2].relative is None:
        return _shares(*given)
    return DeviceShares(products=1.0, throttle=0.0, memory=1.0)


def _whole_clock(*given: Any) -> DeviceShares:  # noqa: ANN401 - as what it replaces
    known = _shares(*given)
    return known if given[2].relative is None else replace(known, throttle=0.0)


_ALL_TO_ALL_BYTES: Final = communication.all_to_all_bytes


def _a_copy_for_each(size: Any, d: TransformerStep) -> communication.SentBytes:  # noqa: ANN401 - a number or array
    return _ALL_TO_ALL_BYTES(size, replace(d, layout=replace(d.layout, deduplicated=0.0)))


_LLM: Final = "left out"
MECHANISMS: Final = (
    Mechanism(
        name="shares of the data sheet of each architecture (off: those of Ampere)",
        figures={
            **{
                f"{card}.{figure}": f"ampere.{figure}"
                for card in ("hopper", "blackwell")
                for figure in ("share16", "throttle", "memory")
            },
            "blackwell.variant.0.products": 1.0,
        },
    ),
    Mechanism(
        name="the clock sinks while matrix units are busy",
        equations=((kernels, "throttled", _one),),
    ),
    Mechanism(
        name="tiles and waves of products",
        figures={"shared.tile_half": 0.0, "shared.wave": 0.0},
    ),
    Mechanism(
        name="launches that a card cannot hide",
        equations=(
            (training_step, "overlapped_with_launches", _device_alone),
            (operators, "overlapped_with_launches", _device_alone),
            (training_step, "layer_overlapped_with_launches", _layer_alone),
        ),
    ),
    Mechanism(
        name="few blocks keep few units busy",
        equations=((operators, "BLOCK_RATE", np.inf),),
    ),
    Mechanism(
        name="order of images by framework",
        equations=((training, "memory_format", _channels_last),),
        chosen_on=("c vision, channels first",),
    ),
    Mechanism(
        name="habits of frameworks (attention, stages, sums)",
        equations=((training, "habit", _as_most),),
        chosen_on=("a dense LLM",),
    ),
    Mechanism(
        name="cards nobody measured reach what a relative does (off: the data sheet)",
        equations=((fitted_kernels, "_shares", _data_sheet),),
    ),
    Mechanism(
        name="the clock of cards nobody measured sinks as a relative's",
        equations=((fitted_kernels, "_shares", _whole_clock),),
    ),
    Mechanism(
        name="measured curves of NCCL",
        equations=((collectives, "_local_regimes", _stated_links),),
    ),
    Mechanism(
        name="gathers and scatters take a step for each rank",
        equations=((communication, "ring_latency", _nothing),),
        chosen_on=("left out, foundry",),
    ),
    Mechanism(
        name="ranks wait for the slowest host",
        equations=((kernels, "expected_slowest", _nothing),),
    ),
    Mechanism(
        name="permutation, activation and casts of experts",
        equations=((training_step, "expert_kernels_time", _no_time),),
    ),
    Mechanism(
        name="casts to 8 bit",
        equations=((kernels, "cast_bytes", _nothing), (training_step, "cast_bytes", _nothing)),
    ),
    Mechanism(
        name="the host routes tokens and waits for their counts",
        equations=((training_step, "routing_time", _nothing),),
    ),
    Mechanism(
        name="host and device run ahead of each other imperfectly (off: the longer one)",
        figures={"shared.blend": 50.0},
    ),
    Mechanism(
        name="how many small kernels norms and activations are, by framework (off: one)",
        figures={
            f"{framework}.{kind}": 1.0
            for framework in ("fsdp-compiled", "fsdp-eager", "transformer-engine", "nanotron")
            for kind in ("gated", "plain")
        },
    ),
    Mechanism(
        name="collectives take multiprocessors from compute",
        figures={"shared.tax": 0.0},
    ),
    Mechanism(
        name="they take fewer where the network feeds fewer channels",
        equations=((training_step, "gather_channels", _one),),
    ),
    Mechanism(
        name="a part of a machine's devices does not reach all of its network cards",
        figures={"shared.part": 1.0},
    ),
    Mechanism(
        name="an all-reduce takes the steps of a ring or a tree",
        equations=((communication, "all_reduce_latency", _nothing),),
    ),
    Mechanism(
        name="a part of overlapped gradients shows whatever hides it",
        figures={"shared.unhidden_gradients": 0.0},
    ),
    Mechanism(
        name="exchange of tensor parallelism runs beside products",
        figures={"shared.hidden_tensor": 0.0, "nanotron.hidden_tensor": 0.0},
    ),
    Mechanism(
        name="exchange of experts runs beside compute where a recipe says so",
        figures={"shared.hidden_experts": 0.0},
    ),
    Mechanism(
        name="a token crosses once for each rank or machine where a recipe says so",
        equations=((communication, "all_to_all_bytes", _a_copy_for_each),),
    ),
)
"""Mechanisms that can be removed so; their own sets test those of loading and stores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What tells: runs with the half width of each interval, and foreign ones with their folder."""

    found: Runs
    half: Vector
    foreign: tuple[dict[str, str], ...]
    folder: Path


def rows(tables: Path) -> Rows:
    """All rows that tell."""
    found = runs()
    found = found.chosen(np.isfinite(found.seconds))
    every = distance.samples(found)
    unseen = every.chosen(every.what == distance.UNSEEN)
    x = np.array([distance._known(str(name)) for name in distance.EXPECTED])  # noqa: SLF001
    with (tables / "foreign_runs.csv").open(encoding="utf-8") as file:
        foreign = [row for row in csv.DictReader(file) if row["metric"] != "mem_gb"]
    return Rows(
        found=Runs(found.rows, found.scenarios),
        half=NINETY * unseen.deviations(x),
        foreign=tuple(foreign),
        folder=tables / "foreign_runs",
    )


def errors(name: str, told: Rows, *, refit: bool) -> Errors:
    """Errors by family without a mechanism of that name; with all of them where there is none."""
    for mechanism in MECHANISMS:
        if mechanism.name == name:
            mechanism.remove()
    found: dict[str, tuple[Vector, NDArray[np.bool_]]] = {}
    if refit and name:
        _fit_again(told.found)
    off = np.log(told.found.seconds / distance.left_out(told.found))
    inside = np.abs(off) <= told.half
    found[f"{_LLM}, all"] = off, inside
    for family in dict.fromkeys(map(str, told.found.families)):
        own = told.found.families == family
        found[f"{_LLM}, {family}"] = off[own], inside[own]
    scored = [score(row, told.folder) for row in told.foreign]
    for family in ("all", *dict.fromkeys(one.family for one in scored)):
        own = [one for one in scored if family in ("all", one.family) and not one.problem]
        name = "foreign, all" if family == "all" else family
        found[name] = (
            -np.log1p([one.error for one in own]),
            np.array([bool(one.covered) for one in own]),
        )
    return found


def _fit_again(found: Runs) -> None:
    by = {tuple(group.series): group for group in unseen_groups()}
    for series in groups():
        by[tuple(series)].figures.update(without(found, series))


def table(mechanism: Mechanism, with_it: Errors, without_it: Errors) -> Iterator[str]:
    """Lines of one mechanism: families on which it does something."""
    yield mechanism.name
    for family, kept in with_it.items():
        both = [_figures(*one) for one in (without_it[family], kept)]
        if max(abs(a - b) for a, b in zip(*both, strict=True)) < _TOLD:
            continue
        star = "*" if family in mechanism.chosen_on else ""
        cells = "   ".join(f"{100 * m:5.1f} {100 * p:5.1f} {c:4.0%}" for m, p, c in both)
        yield f"  {family + star:28} {len(kept[0]):5d}   {cells}"


def _figures(off: Vector, inside: NDArray[np.bool_]) -> tuple[float, float, float]:
    median, most = np.quantile(np.abs(np.expm1(-off)), (0.5, 0.9))
    return float(median), float(most), float(np.mean(inside))


def main(argv: Sequence[str] | None = None) -> int:
    """Take every mechanism away in turn; print what that does."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", type=Path)
    parser.add_argument("--only", default="", help="mechanisms that hold this word")
    parser.add_argument("--refit", action="store_true", help="fit anew without the mechanism")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args(argv)
    asked = [one for one in MECHANISMS if args.only in one.name]
    told = rows(args.tables)
    fork = multiprocessing.get_context("fork")
    alone = partial(errors, told=told, refit=args.refit)
    with fork.Pool(args.jobs, maxtasksperchild=1) as pool:
        found = pool.map(alone, ["", *(one.name for one in asked)], chunksize=1)
    sys.stdout.write(f"{'':38}without              with\n")
    for mechanism, without_it in zip(asked, found[1:], strict=True):
        sys.stdout.write("\n".join([*table(mechanism, found[0], without_it), ""]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
