"""The settings of a job that decide the answer: machine, data, loader, model."""

from __future__ import annotations

from typing import Final

from simulator.report.labels import device_called
from simulator.report.numbers import significant
from simulator.schema.data_loading import CachePolicy, Layout, LoaderKind, Placement, Preparation
from simulator.schema.machines import Group, Host, short_name
from simulator.schema.scenario import Scenario
from simulator.schema.training import Mode, Recompute, Sharding
from simulator.units import BYTE, SECOND, show

_DEGREES: Final = ("tensor", "pipeline", "context", "expert")
_PLACED: Final = {
    Placement.STAGE: ", copied to local drives first",
    Placement.PRELOAD: ", loaded into RAM first",
}
_THREADS: Final = {LoaderKind.TF_DATA: "threads", LoaderKind.DALI: "threads"}


def setting_rows(scenario: Scenario) -> list[tuple[str, str]]:
    """Return rows of the settings: a label and a text."""
    trainers = scenario.cluster.trainers
    others = [group for group in scenario.cluster.groups if group is not trainers]
    return [
        ("Machine", _machine(trainers)),
        *((f"+ {group.name}"[:10], _machine(group)) for group in others),
        ("Data", _data(scenario)),
        ("Input", _loader(scenario)),
        (_MODES[scenario.job.mode], _model(scenario)),
    ]


_MODES: Final = {
    Mode.TRAIN: "Model",
    Mode.INFER: "Model",
    Mode.ROLLOUT: "Model",
    Mode.PREPARE: "Work",
}


def _machine(group: Group) -> str:
    each = " each" if group.count > 1 else ""
    return f"{group.count} x {machine_called(group.host, group.gpus_per_host)}{each}"


def machine_called(host: Host, devices: int) -> str:
    """Return a machine with its parts, such as ``m7i.16xlarge: 64 vCPUs, 275 GB RAM``."""
    parts = []
    if host.gpu is not None and devices:
        parts.append(f"{devices} x {short_name(host.gpu.name).upper()}")
    parts += [f"{significant(host.cpu.threads, 4)} vCPUs", f"{show(host.ram, BYTE, 3)} RAM"]
    return f"{short_name(host.name)}: {', '.join(parts)}"


def _data(scenario: Scenario) -> str:
    data, group = scenario.job.dataset, scenario.cluster.trainers
    size = show(scenario.job.stored_bytes, BYTE, 3)
    store = short_name((group.origin or group.storage).name)
    said = f"{data.samples:,.0f} samples of {size}"
    if data.cache is CachePolicy.PRELOADED:
        return f"{said}, held in RAM"
    order = f", {data.access.value} access" if data.layout is not Layout.TOKENS else ""
    said += f", stored as {data.layout.value} on {store}{order}"
    return said + _PLACED.get(data.placement, "")


def _loader(scenario: Scenario) -> str:
    job = scenario.job
    pipeline, remote = job.input, job.remote
    each, processes = pipeline.workers, scenario.ranks_per_host
    word = (
        "actors"
        if pipeline.loader is LoaderKind.ACTORS
        else _THREADS.get(pipeline.loader, "workers")
    )
    word = word.removesuffix("s") if each == 1 else word
    if pipeline.loader is LoaderKind.ACTORS:
        said = f"{each} {word}"
    elif each == 0:
        said = "no workers: the main process loads batches"
    elif processes > 1:
        said = f"{each} {word} per process, {each * processes} per machine"
    else:
        said = f"{each} {word}"
    if remote is not None:
        own = "" if each == 0 else f"{said}, and "
        said = f"{own}{remote.workers} on each machine of '{remote.name}'"
    if each:
        said += f", prefetch {pipeline.prefetch}"
    if pipeline.per_sample > 0.0:
        said += f"; {show(pipeline.per_sample, SECOND, 3)} of CPU time per sample"
    where = {
        Preparation.DEVICE: f", plus work on the {device_called(scenario)}",
        Preparation.BEFOREHAND: ", once before training",
    }
    return said + where.get(pipeline.where, "")


def _model(scenario: Scenario) -> str:
    job, train = scenario.job, scenario.job.train
    if job.mode is Mode.PREPARE:
        return f"prepares samples in batches of {train.batch_size:,.0f} and writes them"
    name = "measured step times" if job.model is None else job.model.name
    device = device_called(scenario) if scenario.cluster.trainers.gpus_per_host else "process"
    spread = job.parallelism.devices > 1
    if scenario.ranks > 1 or train.accumulation > 1:
        unit = "replica" if spread else device
        micro = f" x {train.accumulation}" if train.accumulation > 1 else ""
        whole = train.batch_size * train.accumulation * scenario.ranks
        batch = f"batch {train.batch_size:,.0f}{micro} per {unit}, {whole:,.0f} in all"
    else:
        batch = f"batch {train.batch_size:,.0f}"
    copies = f", {job.copies} such jobs in parallel" if job.copies > 1 else ""
    return f"{name} in {train.precision}, {batch}{_spread(scenario)}{copies}"


def _spread(scenario: Scenario) -> str:
    degrees, train = scenario.job.parallelism, scenario.job.train
    ways = [f"{name} {n}" for name in _DEGREES if (n := getattr(degrees, name)) > 1]
    said = f"; {' x '.join(ways)}" if ways else ""
    if degrees.sharding is not Sharding.NONE:
        said += f"; {degrees.sharding.value} sharded"
    if train.recompute is not Recompute.NONE:
        said += f"; {train.recompute.value} recomputation"
    if train.head_only:
        said += "; only the head is trained"
    if train.adapters is not None:
        stored = train.frozen_precision
        said += f"; LoRA rank {train.adapters.rank:,.0f}"
        said += "" if stored is None else f" on weights in {stored}"
    return said
