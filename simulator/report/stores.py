"""What stores cost over the run, for reading: rows, and the end of a line."""

from __future__ import annotations

from collections.abc import Iterator

from simulator.report.numbers import known
from simulator.results.prediction import Prediction
from simulator.results.storage_bill import PARTS, priced

Row = tuple[str, str]


def store_rows(prediction: Prediction) -> Iterator[Row]:
    """What stores cost, at whose prices, and what is not known; nothing where drives hold all."""
    bill = prediction.storage
    if not bill.terms and not bill.missing:
        return
    parts = ", ".join(f"{name} {cost}" for name, cost in _parts(prediction))
    if bill.total is None:
        yield "stores", f"not known in all{f'; {parts}' if parts else ''}"
    else:
        yield "stores", f"{known(prediction, 'cost.storage.usd')}{f': {parts}' if parts else ''}"
    yield from (("prices of", text) for text in priced(prediction.scenario))
    yield from (("not known", text) for text in bill.missing)
    yield from (("note", text) for text in bill.notes)
    if prediction.cost.for_machines is not None and bill.known:
        yield "of machines", known(prediction, "cost.usd_for_machines")


def in_all(prediction: Prediction, whole: str) -> str:
    """The whole bill as text, marked as the least it can be where stores charge what is unknown."""
    return f"at least {whole}" if whole and prediction.storage.missing else whole


def _parts(prediction: Prediction) -> Iterator[Row]:
    for name in PARTS:
        cost = getattr(prediction.storage, name)
        if cost:
            yield name, known(prediction, f"cost.storage.{name}_usd")


def in_short(prediction: Prediction) -> str:
    """What of the bill is for stores, as the end of a sentence; empty where they cost nothing."""
    bill = prediction.storage
    if bill.missing:
        return "; stores come on top, at prices not all known"
    if not bill.total:
        return ""
    leaving = f" ({known(prediction, 'cost.storage.egress_usd')} egress)" if bill.egress else ""
    return f"; {known(prediction, 'cost.storage.usd')} of it is for stores{leaving}"
