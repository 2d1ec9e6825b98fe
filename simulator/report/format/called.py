"""What things of a job are called, so that a job that only reads or infers does not train."""

from __future__ import annotations

from simulator.schema.hardware.gpu import Stack
from simulator.schema.hardware.price import Price, Purchase
from simulator.schema.scenario import Scenario


def device_called(scenario: Scenario) -> str:
    """``GPU``, or ``accelerator`` where nobody would call it that."""
    gpu = scenario.cluster.trainers.host.gpu
    is_gpu = gpu is not None and gpu.stack in {Stack.CUDA, Stack.ROCM, Stack.METAL}
    return "GPU" if is_gpu else "accelerator"


def one(called: str) -> str:
    """A thing with its article.

    Examples
    --------
    >>> one("GPU"), one("accelerator")
    ('a GPU', 'an accelerator')
    """
    return f"{'an' if called[0] in 'aeiou' else 'a'} {called}"


def batch_called(scenario: Scenario) -> str:
    """What a job does again and again: a step where it learns, a batch where it does not."""
    return "step" if learns(scenario) else "batch"


def batches_called(scenario: Scenario) -> str:
    """Several of what `batch_called` names."""
    return "steps" if learns(scenario) else "batches"


def bill_called(scenario: Scenario) -> str:
    """What the bill of the whole run is for."""
    return "to train" if learns(scenario) else "bill"


def price_called(scenario: Scenario) -> str:
    """What all machines cost by the hour: rent, or what it takes to own them."""
    return "to own" if scenario.cost.purchase is Purchase.OWNED else "rent"


def learns(scenario: Scenario) -> bool:
    """Whether a job trains a model, by itself or beside actors."""
    return scenario.job.mode.learns


def dated(price: Price) -> str:
    """When a listed price was read, in brackets."""
    later, date = price.source.date.startswith(">="), price.source.date.removeprefix(">=")
    if date == "undated":
        return " (undated price)"
    return f" (price of {date}{' or later' if later else ''})"
