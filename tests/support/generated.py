"""Valid scenarios by number: machines, stores, loaders, models and modes of all kinds.

`text_of` writes a scenario file from a seed; the same seed gives the same text on every machine.
Most are put together from what users combine, some set keys of the schema at random over a shipped
scenario, so that no key is left out. What `plan` refuses is drawn again by `generated`.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from simulator import units
from simulator.errors import PlanError
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.model_library import model_names
from simulator.reading.scenario import load_scenario
from simulator.reading.sections import ScenarioFile
from simulator.reading.shipped import scenario_names
from simulator.reading.tables import TableKey, table_keys
from simulator.schema.fields import Choice, Number, Quantity

Draw = random.Random
Tables = dict[str, dict[str, Any]]

ATTEMPTS: Final = 200
"""Texts that are drawn for a seed before it is given up."""
SECTIONS: Final = (
    *("hardware", "data", "input", "model", "software", "train", "cost", "memory", "remote"),
    *("parallelism", "calibration"),
)
NAMES: Final = frozenset(
    {"machine", "gpu", "storage", "cache", "measured_on", "framework", "version", "family", "name"}
    | {"overlay", "attention_kernel", "global_batch_size"}
)
"""Keys that name something, or have to agree with others: not drawn one by one."""
ENDS: Final[Mapping[units.Unit, tuple[float, float, str]]] = {
    units.BYTE: (1e2, 1e10, "B"),
    units.BYTE_PER_SECOND: (1e6, 1e11, "B/s"),
    units.SECOND: (1e-6, 1.0, "s"),
    units.FLOP: (1e6, 1e12, "FLOP"),
    units.PER_SECOND: (10.0, 1e6, "IOPS"),
    units.USD_PER_SECOND: (0.1, 100.0, "/h"),
}
"""Least and greatest amount that is drawn of a unit, and how it is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """The text of a valid scenario, and how many texts were refused before it."""

    text: str
    refused: int


@cache
def catalogue() -> Catalogue:
    """The shipped profiles, read once."""
    return Catalogue.default()


def generated(seed: int) -> Generated | None:
    """The valid scenario of a seed; None if every text drawn for it is refused."""
    for attempt in range(ATTEMPTS):
        text = text_of(seed, attempt)
        try:
            load_scenario("-", stdin=io.StringIO(text), catalogue=catalogue())
        except PlanError:
            continue
        return Generated(text=text, refused=attempt)
    return None


def text_of(seed: int, attempt: int = 0) -> str:
    """The text drawn for a seed at an attempt."""
    draw = random.Random(f"{seed}/{attempt}")  # noqa: S311 - reproducible, not secret
    kind = draw.random()
    if kind < SHIPPED:
        return _over_a_shipped_one(draw)
    return written(_language(draw) if kind < SHIPPED + LANGUAGE else _together(draw))


SHIPPED, LANGUAGE = 0.25, 0.15
"""Shares of scenarios that change a shipped one, and of language models over many devices."""


def _together(draw: Draw) -> Tables:
    """Sections that fit each other, as users write them."""
    tables: Tables = {name: {} for name in SECTIONS}
    mode = draw.choice(["train"] * 6 + ["prepare", "infer", "infer", "rollout"])
    tables["hardware"] = _hardware(draw)
    tables["data"] = _data(draw)
    tables["input"] = _input(draw, mode)
    tables["train"] = _train(draw, mode)
    if mode != "prepare":
        tables["model"] = _model(draw)
    if draw.random() < 0.15:
        tables["remote"] = _remote(draw)
    for name, section in (("cost", 0.2), ("memory", 0.2), ("calibration", 0.1), ("software", 0.1)):
        if draw.random() < section:
            tables[name] |= _some(draw, name, 1)
    if draw.random() < 0.3:
        name = draw.choice(["hardware", "data", "input", "train"])
        tables[name] |= _some(draw, name, draw.choice([1, 2]))
    return tables


def _hardware(draw: Draw) -> dict[str, Any]:
    kinds = ["node", "instance/aws", "instance/aws", "instance/gcp", "instance/azure"]
    machine = draw.choice(catalogue().listed(f"{draw.choice(kinds)}/"))
    found: dict[str, Any] = {"machine": machine, "count": draw.choice([1] * 6 + [2, 4, 16])}
    if draw.random() < 0.7:
        found["storage"] = draw.choice(catalogue().listed("storage/"))
    if draw.random() < 0.3:
        found["gpus"] = draw.choice([1, 2, 4])
    if draw.random() < 0.1:
        found["ram"] = f"{draw.choice([8, 64, 512, 4000])} GB"
    if draw.random() < 0.1:
        found["vcpus"] = draw.choice([1.0, 2.0, 7.0, 48.0, 300.0])
    if draw.random() < 0.05:
        found["cache"] = draw.choice(["local", *catalogue().listed("storage/")])
    return found


def _data(draw: Draw) -> dict[str, Any]:
    found: dict[str, Any] = {
        "samples": round(_between(draw, 10.0, 1e7)),
        "bytes_per_sample": _amount(draw, units.BYTE, 1e2, 1e8),
        "layout": draw.choice(["files", "files", "shards", "tokens"]),
    }
    if found["layout"] == "shards":
        found["shard_size"] = f"{draw.choice([100, 150, 1000])} MB"
    if draw.random() < 0.5:
        found["access"] = draw.choice(["random", "sequential"])
    if draw.random() < 0.5:
        found["cache"] = draw.choice(["none", "preloaded", "random", "scan", "lru"])
    if draw.random() < 0.15:
        found["read_time"] = _amount(draw, units.SECOND, 1e-5, 0.1)
    if draw.random() < 0.2:
        found["readers"] = draw.choice([2, 8, 64])
    if draw.random() < 0.15:
        found["placement"] = draw.choice(["stage", "preload"])
    if draw.random() < 0.4:
        found["size_spread"] = _spread(draw)
    return found


def _input(draw: Draw, mode: str) -> dict[str, Any]:
    loader = draw.choice(["pytorch"] * 5 + ["tf.data", "tf.data", "dali", "actors"])
    least = 0 if loader == "pytorch" and mode != "rollout" else 1
    workers = max(least, draw.choice([0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 36, 48, 96]))
    found: dict[str, Any] = {"loader": loader, "workers": workers}
    if workers and draw.random() < 0.5:
        found["prefetch"] = draw.choice([1, 2, 3, 4, 8, 16])
    for key in ("decode", "augment", "collate", "per_batch"):
        if draw.random() < 0.5:
            found[key] = _amount(draw, units.SECOND, 1e-6, 0.05)
    for key, share in (("pin_memory", 0.5), ("drop_last", 0.2)):
        if draw.random() < share:
            found[key] = draw.random() < 0.7
    if loader == "pytorch":
        for key in ("in_order", "persistent_workers"):
            if draw.random() < 0.3 and workers:
                found[key] = draw.random() < 0.5
    if mode == "prepare":
        found["output_bytes_per_sample"] = _amount(draw, units.BYTE, 1.0, 1e7)
    return found | _unusual(draw, workers)


def _unusual(draw: Draw, workers: int) -> dict[str, Any]:
    """What few input pipelines have."""
    found: dict[str, Any] = {}
    if draw.random() < 0.25:
        found["cost_spread"] = _spread(draw)
    if draw.random() < 0.1 and workers:
        found["straggler"] = [{"factor": draw.choice([1.5, 3.0]), "every": draw.choice([2, 7])}]
    if draw.random() < 0.1:
        found["cost_basis"] = "vcpu"
    if draw.random() < 0.1:
        found |= {"where": "device", "device_time": _amount(draw, units.SECOND, 1e-6, 1e-3)}
    elif draw.random() < 0.1:
        found |= {"where": "beforehand", "decode": "3 ms"}
        found["prepared_bytes_per_sample"] = _amount(draw, units.BYTE, 1e3, 1e6)
    return found


def _model(draw: Draw) -> dict[str, Any]:
    kind = draw.random()
    if kind < 0.4:
        return {"name": draw.choice(model_names())}
    measured = {"step_time": _amount(draw, units.SECOND, 1e-4, 1.0)}
    figures = {
        "parameters": _between(draw, 1e4, 1e9),
        "forward_flops_per_sample": _amount(draw, units.FLOP, 1e6, 1e12),
    }
    if kind < 0.6:
        return measured | {"parameters": figures["parameters"]}
    return measured if kind < 0.8 else figures


def _train(draw: Draw, mode: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "mode": mode,
        "batch_size": draw.choice([1, 2, 8, 32, 64, 100, 256, 1024]),
        "precision": draw.choice(["fp32", "fp32", "fp16", "bf16", "tf32"]),
        "epochs": draw.choice([1.0, 1.0, 2.0, 3.5, 0.3, 90.0]),
    }
    if mode == "train":
        if draw.random() < 0.3:
            found["optimizer"] = draw.choice(["sgd", "momentum", "adam", "adafactor"])
        if draw.random() < 0.2:
            found["accumulation"] = draw.choice([2, 3, 8])
        if draw.random() < 0.2:
            found["checkpoint_every_steps"] = draw.choice([1, 10, 1000])
        if draw.random() < 0.2:
            found["evaluation"] = {"samples": draw.choice([10, 50_000])}
        if draw.random() < 0.15:
            found["device_spread"] = _spread(draw)
        if draw.random() < 0.15:
            found["sync_every_step"] = True
        if draw.random() < 0.15:
            found["overlap_communication"] = False
    if draw.random() < 0.1:
        found["copies"] = draw.choice([2, 4])
    return found


def _remote(draw: Draw) -> dict[str, Any]:
    found: dict[str, Any] = {
        "machine": draw.choice(catalogue().listed("instance/aws/")),
        "count": draw.choice([1, 2, 5]),
        "storage": draw.choice(catalogue().listed("storage/")),
        "speed": draw.choice([0.5, 1.0, 1.5]),
    }
    if draw.random() < 0.7:
        found["workers"] = draw.choice([1, 2, 8, 32, 64])
    if draw.random() < 0.3:
        found["queue"] = draw.choice([1, 4, 64])
    if draw.random() < 0.3:
        found["send_per_batch"] = _amount(draw, units.SECOND, 1e-5, 1e-2)
    return found


def _language(draw: Draw) -> Tables:
    """A language model over the devices of one or many machines."""
    nodes = ["node/dgx-a100-80gb", "node/dgx-h100", "node/dgx-a100-40gb", "node/dgx-1v"]
    sharding = draw.choice(["none", "none", "optimizer", "gradients", "parameters"])
    tables: Tables = {name: {} for name in SECTIONS}
    tables["hardware"] = {
        "machine": draw.choice(nodes),
        "count": draw.choice([1, 2, 4, 8, 32]),
        "storage": draw.choice(catalogue().listed("storage/")),
    }
    tables["data"] = {"samples": 100_000, "bytes_per_sample": "8 kB", "layout": "tokens"}
    tables["input"] = {"workers": draw.choice([0, 1, 2, 4])}
    names = [n for n in model_names() if n.startswith(("gpt", "llama", "mixtral", "bert", "bloom"))]
    tables["model"] = {"name": draw.choice(names)}
    tables["train"] = {
        "batch_size": draw.choice([1, 2, 4]),
        "accumulation": draw.choice([1, 4, 8, 32]),
        "precision": draw.choice(["bf16", "fp16"]),
        "mixed_precision": True,
        "optimizer": "adam",
        "recompute": draw.choice(["none", "selective", "full"]),
    }
    if draw.random() < 0.2:
        tables["train"]["checkpoint_every_steps"] = draw.choice([10, 1000])
    tables["software"] = {
        "framework": draw.choice(
            ["megatron-lm", "megatron-core", "nemo", "pytorch", "torchtitan", "megatron-deepspeed"]
        )
    }
    tables["parallelism"] = {
        "tensor": draw.choice([1, 1, 2, 4, 8]),
        "pipeline": draw.choice([1, 1, 2, 4, 8]),
        "sharding": sharding,
    }
    if draw.random() < 0.3:
        tables["parallelism"] |= _some(draw, "parallelism", draw.choice([1, 2]))
    return tables


def _over_a_shipped_one(draw: Draw) -> str:
    """A shipped scenario with some keys of the schema set at random."""
    tables: Tables = {}
    for _ in range(draw.choice([1, 2, 3])):
        name = draw.choice(SECTIONS)
        tables.setdefault(name, {}).update(_some(draw, name, 1))
    return written({"extends": draw.choice(scenario_names()), **tables})


def _some(draw: Draw, name: str, count: int) -> dict[str, Any]:
    """Some keys of a section with values as their type allows."""
    makers = _makers(name)
    keys = draw.sample(sorted(makers), min(count, len(makers)))
    return {key: makers[key](draw) for key in keys}


@cache
def _makers(name: str) -> Mapping[str, Callable[[Draw], Any]]:
    """What draws a value for each key of a section."""
    section = table_keys(ScenarioFile)[name].table
    assert section is not None
    found: dict[str, Callable[[Draw], Any]] = {}
    for key, each in table_keys(section).items():
        maker = _maker(each)
        if key not in NAMES and maker is not None:
            found[key] = maker
    return found


def _maker(key: TableKey) -> Callable[[Draw], Any] | None:
    mark = key.marker
    if not key.is_list:
        if isinstance(mark, Choice):
            values = [str(member.value) for member in mark.kind]
            return lambda draw: draw.choice(values)
        if isinstance(mark, Quantity) and mark.unit in ENDS:
            low, high, _ = ENDS[mark.unit]
            unit, zero = mark.unit, mark.zero
            return lambda draw: (
                _zero(unit) if zero and draw.random() < 0.1 else _amount(draw, unit, low, high)
            )
        if isinstance(mark, Number):
            return lambda draw: _number(draw, mark)
    if key.is_switch:
        return lambda draw: draw.random() < 0.5
    return None


def _number(draw: Draw, mark: Number) -> float:
    low, high = max(mark.low, 1.0 if mark.whole else 0.01), min(mark.high, 100.0)
    value = _between(draw, low, max(low, high))
    return round(value) if mark.whole else value


def _between(draw: Draw, low: float, high: float) -> float:
    """A number between two, even in its logarithm, with three digits."""
    return float(f"{low * (high / low) ** draw.random():.3g}")


def _amount(draw: Draw, unit: units.Unit, low: float, high: float) -> str:
    return _text(unit, _between(draw, low, high))


def _zero(unit: units.Unit) -> str:
    return _text(unit, 0.0)


def _text(unit: units.Unit, value: float) -> str:
    sign = "$" if unit is units.USD_PER_SECOND else ""
    number = f"{value:.12f}".rstrip("0").rstrip(".")
    ending = ENDS[unit][2]
    return f"{sign}{number}{ending}" if sign else f"{number} {ending}"


def _spread(draw: Draw) -> dict[str, Any]:
    shape = draw.choice(["uniform", "gamma", "lognormal", "exponential", "constant"])
    if shape in {"exponential", "constant"}:
        return {"shape": shape}
    return {"shape": shape, "relative_deviation": draw.choice([0.05, 0.2, 0.5])}


def written(tables: Mapping[str, Any]) -> str:
    """A scenario file of some sections; what stands beside them comes first."""
    beside = {key: value for key, value in tables.items() if not isinstance(value, Mapping)}
    lines = ["schema = 1"]
    lines += [f"{key} = {_value(value)}" for key, value in beside.items() if key != "schema"]
    for name, table in tables.items():
        if table and name not in beside:
            lines.append(f"[{name}]")
            lines += [f"{json.dumps(key)} = {_value(value)}" for key, value in table.items()]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        inside = (f"{json.dumps(key)} = {_value(own)}" for key, own in value.items())
        return "{ " + ", ".join(inside) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_value(one) for one in value) + "]"
    return json.dumps(value)
