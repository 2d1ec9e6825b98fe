"""The tables of docs/internals/heterogeneous.md hold what is predicted now."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from mission.clusters import (
    A6,
    A7,
    A11,
    A12,
    CLOCK,
    COREMARK,
    DIGIT_AS_FLOATS,
    MNIST_BATCH,
    Row,
    from_row,
    offloaded,
)
from mission.machines import managed
from mission.starved import starved

from simulator.predict import predict
from simulator.results.prediction import Prediction

PAGE = Path(__file__).parents[2] / "docs" / "internals" / "heterogeneous.md"
C5, P4D = "ml.c5.18xlarge", "ml.p4d.24xlarge"


def milliseconds(seconds: float) -> str:
    """A time as the source prints it."""
    return f"{seconds * 1e3:,.0f} ms"


def step_row(name: str, found: Prediction, measured: Row, basis: str) -> str:
    """A predicted step next to the measured one."""
    step = found.timing.step_time.mean
    error = step / measured.step - 1.0
    times = f"{milliseconds(measured.step)} | {milliseconds(step)}"
    return f"| {name} | {times} | {error:+.1%} | {basis} |"


def predictions() -> list[str]:
    """What is predicted from one row for the other, and what follows from counts."""
    to_a7, to_a6 = from_row(A6, together=True), from_row(A7, together=False)
    speed_up = from_row(A6, together=False).timing.step_time.mean / to_a7.timing.step_time.mean
    last = "+ pin thread"
    return [
        "| row | published | predicted | error | calibrated on |",
        "|---|---|---|---|---|",
        step_row("A7 step", to_a7, A7, "A6: CPU time by the step, device time by 38% GPU"),
        f"| A7 speed-up | 2.23 | {speed_up:.2f} | {speed_up / (192 / 86) - 1:+.1%} | A6 |",
        _share("A7 GPU", A7.gpu, to_a7.timing.accelerator_utilization, "A6"),
        _share("A7 CPU, all machines", A7.cpu, _threads(to_a7), "A6"),
        _saving(from_row(A6, together=False), to_a7),
        step_row("A6 step", to_a6, A6, "A7: CPU time by the step, device time by 74% GPU"),
        _share("A6 GPU", A6.gpu, to_a6.timing.accelerator_utilization, "A7"),
        _share("A6 CPU", A6.cpu, to_a6.timing.usage["cpu"].mean, "A7"),
        step_row("A12 step, CoreMark", offloaded(COREMARK[last]), A12, "A11: CPU time by the step"),
        step_row("A12 step, base clock", offloaded(CLOCK[last]), A12, "A11: CPU time by the step"),
        _share(
            "A12 CPU, data machine",
            0.92,
            offloaded(COREMARK[last]).timing.usage["data.cpu"].mean,
            "A11",
        ),
        _share("A12 CPU, trainer", 0.16, offloaded(COREMARK[last]).timing.usage["cpu"].mean, "A11"),
        *_counted(),
    ]


def _share(name: str, measured: float, found: float | None, basis: str) -> str:
    assert found is not None
    gap = round((found - measured) * 100) + 0
    return f"| {name} | {measured:.0%} | {found:.0%} | {gap:+d} points | {basis} |"


def _threads(found: Prediction) -> float:
    own, other = found.timing.usage["cpu"], found.timing.usage["data.cpu"]
    return (own.total + other.total) / (own.units + other.units)


def _saving(alone: Prediction, together: Prediction) -> str:
    before, after = alone.cost.per_step, together.cost.per_step
    assert before is not None
    assert after is not None
    saved = 1.0 - after / before
    gap = (saved - 0.4648) * 100
    return f"| A8 saving a step | 46.5% | {saved:.1%} | {gap:+.1f} points | A6 |"


def _counted() -> list[str]:
    one, two = (predict(starved(managed(P4D), 20.0, count=n)) for n in (1, 2))
    more = predict(starved(managed(P4D), 20.0, beside=managed(C5)))
    basis = "20 vCPUs a GPU"
    return [
        _share("A1 GPU, 96 vCPUs and 8 GPUs", 0.6, one.timing.accelerator_utilization, basis),
        _share("A2 GPU, twice that machine", 0.6, two.timing.accelerator_utilization, basis),
        _share("A3 GPU, with 2 x 72 vCPUs", 1.0, more.timing.accelerator_utilization, basis),
        _share("A3 CPU, 240 vCPUs", 160 / 240, _threads(more), basis),
    ]


def mechanisms() -> list[str]:
    """A12 from A11, one mechanism after another."""
    lines = [
        "| taken into account | CoreMark | error | base clock | error |",
        "|---|---|---|---|---|",
    ]
    for (name, by_coremark), by_clock in zip(COREMARK.items(), CLOCK.values(), strict=True):
        steps = [offloaded(given).timing.step_time.mean for given in (by_coremark, by_clock)]
        cells = [f"{milliseconds(s)} | {s / A12.step - 1:+.0%}" for s in steps]
        lines.append(f"| {name.replace('CoreMark', 'speed')} | {' | '.join(cells)} |")
    return lines


def traffic() -> list[str]:
    """Bytes from the machines that make batches."""
    found = from_row(A7, together=True)
    bandwidth = {name: managed(name).network for name in (P4D, "ml.p3.2xlarge")}
    wide, narrow = bandwidth[P4D], bandwidth["ml.p3.2xlarge"]
    assert wide is not None
    assert narrow is not None
    crossing = found.timing.usage["network"].mean * wide.bandwidth
    made = A7.samples * 12_288 / found.timing.step_time.mean
    there = offloaded(COREMARK["+ pin thread"]).timing
    digits = there.usage["network"].mean * narrow.bandwidth * there.step_time.mean
    over = f"{crossing / 1e9:.2f} GB/s ({crossing / made:.0%})"
    printed = MNIST_BATCH * DIGIT_AS_FLOATS
    return [
        "| row | published | simulated |",
        "|---|---|---|",
        f"| A10 made in all, A7 as measured | 1.17 GB/s | {made / 1e9:.2f} GB/s |",
        f"| A10 over the network | 0.70 GB/s (60%) | {over} |",
        f"| A15 a batch | 25.7 MB | {digits / 1e6:.1f} MB |",
        f"| A15 at the measured step | 140 MB/s | {printed / A12.step / 1e6:.0f} MB/s |",
    ]


TABLES: dict[str, Callable[[], list[str]]] = {
    "predictions": predictions,
    "mechanisms": mechanisms,
    "traffic": traffic,
}


@pytest.mark.parametrize("name", TABLES)
def test_the_page_shows_what_is_predicted(name: str, request: pytest.FixtureRequest) -> None:
    """Each table between its marks is the one of today; --update-golden writes it."""
    text = PAGE.read_text(encoding="utf-8")
    begin, end = f"<!-- table: {name} -->\n", "<!-- end of table -->"
    before, rest = text.split(begin)
    shown, after = rest.split(end, maxsplit=1)
    table = "\n".join(TABLES[name]()) + "\n"
    if request.config.getoption("--update-golden"):
        PAGE.write_text(before + begin + table + end + after, encoding="utf-8")
        return
    assert shown == table


def test_the_printed_table_is_in_the_page() -> None:
    """Prices and steps of the source's comparison, and the three misprints in it."""
    text = PAGE.read_text(encoding="utf-8")
    for row in (A6, A7, A11, A12):
        assert f"{row.step * 1e3:.0f} ms" in text.replace(",", "")
        assert f"${row.price * 3600:.3f}" in text
    assert all(error in text for error in ("E1", "E4", "E7"))
