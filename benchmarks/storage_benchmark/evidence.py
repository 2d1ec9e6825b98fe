"""MLPerf Storage held out by scale and workload: what one run of a store says about its others.

    python benchmarks/storage_benchmark/evidence.py [SET]

Prints the tables of docs/internals/evidence-storage.md for a measurement set (default: the shipped
one):

- every run predicted from the smallest run of its store and workload (what `plan validate` does);
- every run predicted from each smaller run, and from each run of another workload, of its store;
- every run of a submitter predicted by figures of the benchmark that its own runs had no part in:
  how late ranks are, and how fast one reader is, as the others' smallest runs say;
- the largest number of accelerators that passes, where a run came within 1.5 points of its
  threshold.

Next to each error is that of one constant for each workload (of a rate: as a share of what the
accelerators could do), fitted to the very rows it is judged on.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import mean, median

from most_accelerators import most_accelerators

from simulator.calibration.samples import anchored
from simulator.physics.device_time import device_time
from simulator.predict import predict
from simulator.reading.measured.measurement_set import load_set
from simulator.reading.scenario import load_scenario
from simulator.results.metrics import number_at
from simulator.schema.measurement import MeasurementSet, Parameter, Row

GROUP = "mlperf_storage"
UTILIZATION = f"{GROUP}.accelerator_utilization"
RATES = (f"{GROUP}.throughput_v1_samples_per_s", f"{GROUP}.throughput_v2_samples_per_s")
FIRST = f"{GROUP}.first_step_s"
READ_AT_ONCE = "unet3d"
"""The workload whose first step shows how fast the store is."""
CLOSE = 0.015
"""Distance to the threshold within which a submitter is taken to have stopped for it."""
FEW = 3
"""Accelerators up to which how late ranks are does not show."""
LATE = Parameter(key="calibration.straggling", start="1", low="0.2", high="5")
READER = Parameter(
    key="hardware.storage_request_rate", start="0.45 GB/s", low="0.02 GB/s", high="10 GB/s"
)
RIGHT = 0.1
"""Relative difference up to which the largest count is counted as right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """How wrong a prediction of a row is, in per cent, and how wrong the constant is."""

    row: Row
    metric: str
    ours: float
    constant: float


@cache
def _figures(base: str, overrides: tuple[str, ...]) -> Mapping[str, float | None]:
    found = predict(load_scenario(base, overrides=overrides))
    return {name: number_at(found, name) for name in (UTILIZATION, *RATES, FIRST)}


def predictor(
    row: Row, overrides: tuple[str, ...], metrics: Sequence[str]
) -> Mapping[str, float | None]:
    """What the model says, each scenario once."""
    figures = _figures(row.base, (*row.overrides, *overrides))
    return {name: figures[name] for name in metrics}


def configurations(found: MeasurementSet) -> Mapping[tuple[str, ...], list[Row]]:
    """Rows with their repeats, by what was run."""
    groups = defaultdict(list)
    for row in found.rows:
        if not row.excluded:
            columns = ("submitter", "store", "workload", "system", "accelerator", "hosts")
            groups[*row.key((*columns, "accelerators", "threads"))].append(row)
    return groups


def fitted(found: MeasurementSet, rows: Sequence[Row]) -> tuple[str, ...]:
    """What a run says about its store."""
    if rows[0].family != READ_AT_ONCE:
        rows = [
            replace(row, measured={k: v for k, v in row.measured.items() if k != FIRST})
            for row in rows
        ]
    return anchored(rows, found.fit, found.metrics, predictor=predictor)


def size(row: Row) -> tuple[int, int]:
    """Accelerators, then hosts."""
    return int(row.labels["accelerators"]), int(row.labels["hosts"])


def pairs(found: MeasurementSet, *, smallest: bool) -> Iterator[tuple[list[Row], list[Row]]]:
    """Runs that describe a store, each with one it is to predict."""
    stores = defaultdict(list)
    for key, rows in configurations(found).items():
        stores[key[:2]].append(rows)
    for runs in stores.values():
        for described in runs:
            if any("mode=infer" in text for text in described[0].overrides):
                continue
            for predicted in runs:
                same = described[0].family == predicted[0].family
                bigger = size(predicted[0]) > size(described[0])
                if smallest:
                    wanted = same and described[0].anchor and not predicted[0].anchor
                else:
                    wanted = predicted is not described and (bigger or not same)
                if wanted:
                    yield described, predicted


def errors(found: MeasurementSet, *, smallest: bool) -> Iterator[Error]:
    """Of every metric of every predicted row."""
    constants = _constants(found)
    for described, predicted in pairs(found, smallest=smallest):
        yield from _errors(found, described, predicted, constants)


def _errors(
    found: MeasurementSet,
    described: Sequence[Row],
    predicted: Sequence[Row],
    constants: Mapping[tuple[str, str], float],
) -> Iterator[Error]:
    """Of runs predicted from the ones that describe their store; metrics no constant knows miss."""
    overrides = fitted(found, described)
    for row in predicted:
        for metric in (UTILIZATION, *RATES, FIRST):
            measured, constant = row.measured.get(metric), constants.get((row.family, metric))
            if not measured or constant is None:
                continue
            ours = predictor(row, overrides, (metric,))[metric] or 0.0
            unit = 1.0 if metric == UTILIZATION else measured
            yield Error(
                row=row,
                metric="rate" if metric in RATES else metric.removeprefix(f"{GROUP}."),
                ours=100.0 * abs(ours - measured) / unit,
                constant=100.0 * abs(constant * _scale(row, metric) - measured) / unit,
            )


@cache
def _ideal(base: str) -> float:
    """Samples per second of one accelerator that never waits."""
    scenario = load_scenario(base)
    time = device_time(scenario)
    return 0.0 if time is None else scenario.job.train.batch_size / float(time.total)


def _scale(row: Row, metric: str) -> float:
    """What a constant is a share of: for rates, what the accelerators could do."""
    return size(row)[0] * _ideal(row.base) if metric in RATES else 1.0


def _constants(found: MeasurementSet) -> Mapping[tuple[str, str], float]:
    """Medians over all rows of a workload: of a rate, as a share of the ideal one."""
    values = defaultdict(list)
    for row in found.rows:
        for metric in () if row.excluded else (UTILIZATION, *RATES, FIRST):
            if row.measured.get(metric):
                values[row.family, metric].append(row.measured[metric] / _scale(row, metric))
    return {key: median(numbers) for key, numbers in values.items()}


def show(title: str, found: Sequence[Error]) -> None:
    """A table by metric and workload."""
    print(f"\n{title}\n")
    print("| metric | workload | rows | median | mean | constant, median | constant, mean |")
    print("|---|---|---|---|---|---|---|")
    for metric in dict.fromkeys(error.metric for error in found):
        own = [error for error in found if error.metric == metric]
        for family in ("all", *sorted({error.row.family for error in own})):
            some = [e for e in own if family in ("all", e.row.family)]
            ours, naive = [e.ours for e in some], [e.constant for e in some]
            figures = (median(ours), mean(ours), median(naive), mean(naive))
            cells = " | ".join(f"{figure:.2f}" for figure in figures)
            print(f"| {metric} | {family} | {len(some)} | {cells} |")


def unseen(found: MeasurementSet) -> Iterator[Error]:
    """Of every submitter's runs but its smallest, by figures without any of its runs.

    The constants in comparison are without them too.
    """
    for submitter in dict.fromkeys(row.labels["submitter"] for row in found.rows):
        others = [row for row in found.rows if row.labels["submitter"] != submitter]
        own = [row for row in found.rows if row.labels["submitter"] == submitter]
        figures = _of_others(replace(found, rows=tuple(others)))
        constants = _constants(replace(found, rows=tuple(others)))
        given = [
            replace(row, overrides=(*row.overrides, *figures.get(row.family, ()))) for row in own
        ]
        alone = replace(found, rows=tuple(given))
        for described, predicted in pairs(alone, smallest=True):
            yield from _errors(alone, described, predicted, constants)


def _of_others(found: MeasurementSet) -> Mapping[str, tuple[str, ...]]:
    """Keys of the benchmark for each workload, as medians over the smallest runs of a set."""
    late: dict[str, list[float]] = defaultdict(list)
    readers = []
    for key, rows in configurations(found).items():
        row = rows[0]
        if not row.anchor or any("mode=infer" in text for text in row.overrides):
            continue
        if size(row)[0] > FEW:
            late[key[2]].append(_share(row.base) / _one(rows, LATE, (UTILIZATION,)))
        elif row.family == READ_AT_ONCE and row.measured.get(FIRST):
            readers.append(_one(rows, READER, (FIRST,)))
    keys = {name: (f"train.straggling={median(own):.4g}",) for name, own in late.items()}
    if readers:
        told = f"hardware.storage_request_rate={median(readers):.4g} GB/s"
        keys[READ_AT_ONCE] = (*keys.get(READ_AT_ONCE, ()), told)
    return keys


def _one(rows: Sequence[Row], parameter: Parameter, metrics: Sequence[str]) -> float:
    """A parameter fitted to runs alone, in the unit of its bounds."""
    (found,) = anchored(rows, (parameter,), metrics, predictor=predictor)
    return float(found.partition("=")[2].split()[0])


@cache
def _share(base: str) -> float:
    return float(load_scenario(base).job.train.straggling)


def counts(found: MeasurementSet) -> None:
    """The largest number of accelerators a host that passes, over the number that was run."""
    print("\nLargest number of accelerators that passes, over the submitted one\n")
    print("| store | workload | accelerators | utilization | predicted / submitted |")
    print("|---|---|---|---|---|")
    ratios = []
    for described, predicted in pairs(found, smallest=True):
        row, reached = predicted[0], [r.measured.get(UTILIZATION) for r in predicted]
        known = [value for value in reached if value]
        threshold = float(row.labels.get("au_threshold") or 0.0) / 100.0
        if not known or abs(median(known) - threshold) >= CLOSE:
            continue
        ratio = _most(row, fitted(found, described), threshold)
        ratios.append(ratio)
        name = f"{row.labels['accelerators']} x {row.labels['accelerator']}"
        cells = (row.labels["store"], row.family, name, f"{median(known):.3f}", f"{ratio:.2f}")
        print(f"| {' | '.join(cells)} |")
    right = sum(abs(ratio - 1.0) <= RIGHT for ratio in ratios)
    print(f"\n{right} of {len(ratios)} within {RIGHT:.0%}")


def _most(row: Row, overrides: tuple[str, ...], threshold: float) -> float:
    accelerators, hosts = size(row)
    own = accelerators // hosts
    samples = next(float(o.split("=")[1]) for o in row.overrides if o.startswith("data.samples="))

    def utilization(count: int) -> float:
        more = (f"hardware.emulated={count}", f"data.samples={samples * count / own:.0f}")
        return predictor(row, (*overrides, *more), (UTILIZATION,))[UTILIZATION] or 0.0

    return most_accelerators(utilization, threshold, own) / own


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("set", nargs="?", default="mlperf_storage")
    found = load_set(parser.parse_args().set)
    show("From the smallest run of the store and workload", list(errors(found, smallest=True)))
    every = list(errors(found, smallest=False))
    show("From every smaller run and every run of another workload", every)
    show("Submitters unseen, from their smallest run", list(unseen(found)))
    counts(found)


if __name__ == "__main__":
    main()
