"""Launch hints for a recommended job: command, loader arguments, SkyPilot resources."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from simulator.records import dataclass
from simulator.report.text import printable
from simulator.schema.accelerators import Stack
from simulator.schema.cost import Purchase
from simulator.schema.data_loading import LoaderKind
from simulator.schema.machines import short_name
from simulator.schema.scenario import Scenario
from simulator.schema.training import Mode, Sharding
from simulator.units import SECOND, show

_PARTED: Final = re.compile(r"(?P<machine>.+)-(?P<count>\d+)x(?P<device>\w+)")
"""Pattern of a machine that is rented with attached accelerators."""
_PLAIN: Final = re.compile(r"[A-Za-z][\w.-]*")
SKYPILOT_CLOUDS: Final = ("aws", "azure", "gcp", "lambda")
"""Clouds with the same name in profiles and in SkyPilot."""


PROGRAM: Final = "train.py"
_LAUNCHED: Final = frozenset({Stack.CUDA, Stack.ROCM})
"""Accelerator software for which PyTorch starts one identical process per device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Commands to launch a job: launcher, arguments of the loader, resources as YAML (or empty)."""

    command: str
    loader: str
    resources: str
    notes: tuple[str, ...] = ()


def launch_of(
    scenario: Scenario, rentable: Collection[str], checkpoint_every: float | None = None
) -> Launch:
    """Return the commands to launch the job of a scenario.

    Parameters
    ----------
    scenario : Scenario
        The recommended scenario.
    rentable : collection of str
        Clouds that SkyPilot can rent from.
    checkpoint_every : float, optional
        Time between two checkpoints [s].
    """
    every = () if checkpoint_every is None else (_checkpoints(checkpoint_every),)
    return Launch(
        command=_command(scenario),
        loader=_loader(scenario),
        resources=_resources(scenario, rentable),
        notes=(*_ported(scenario), *_spread(scenario), *every),
    )


def _checkpoints(every: float) -> str:
    return f"write a checkpoint every {show(every, SECOND, 3)}"


def _command(scenario: Scenario) -> str:
    """Return the launch command: accelerate for a sharded model, torchrun for other training."""
    trainers, job = scenario.cluster.trainers, scenario.job
    nodes, devices = trainers.count, trainers.gpus_per_host // job.copies
    alone = devices == 0 or not _is_launched(scenario)
    if job.mode is not Mode.TRAIN or alone or job.input.loader is LoaderKind.TF_DATA:
        return f"python {PROGRAM}"
    degrees = job.parallelism
    if degrees.sharding is not Sharding.NONE and degrees.devices == 1:
        return _accelerate(scenario, nodes, devices)
    meeting = " --node-rank=$RANK --master-addr=$HEAD" if nodes > 1 else " --standalone"
    return f"torchrun --nnodes={nodes} --nproc-per-node={devices}{meeting} {PROGRAM}"


def _is_launched(scenario: Scenario) -> bool:
    """Return True if PyTorch's launchers support these accelerators."""
    gpu = scenario.cluster.trainers.host.gpu
    return gpu is not None and gpu.stack in _LAUNCHED


def _ported(scenario: Scenario) -> tuple[str, ...]:
    """Return a note that the program has to be ported to these accelerators; empty if not."""
    trainers = scenario.cluster.trainers
    gpu = trainers.host.gpu
    if gpu is None or trainers.gpus_per_host == 0 or gpu.stack in _LAUNCHED:
        return ()
    text = (
        f"{PROGRAM} has to be written for {gpu.stack.value}; how it is started on "
        f"{trainers.gpus_per_host} accelerators follows from that"
    )
    return (text,)


_STRATEGIES: Final = {
    Sharding.OPTIMIZER: "SHARD_GRAD_OP",
    Sharding.GRADIENTS: "SHARD_GRAD_OP",
    Sharding.PARAMETERS: "FULL_SHARD",
}


def _accelerate(scenario: Scenario, nodes: int, devices: int) -> str:
    train = scenario.job.train
    strategy = _STRATEGIES[scenario.job.parallelism.sharding]
    meeting = " --machine_rank $RANK --main_process_ip $HEAD" if nodes > 1 else ""
    mixed = (
        train.precision.value if train.mixed_precision and train.precision.value != "fp32" else "no"
    )
    return (
        f"accelerate launch --num_machines {nodes} --num_processes {nodes * devices}{meeting} "
        f"--mixed_precision {mixed} --use_fsdp --fsdp_sharding_strategy {strategy} "
        f"--gradient_accumulation_steps {train.accumulation} {PROGRAM}"
    )


def _loader(scenario: Scenario) -> str:
    """Return the settings of the loader, in the terms of its framework."""
    job, pipeline = scenario.job, scenario.job.input
    if pipeline.loader is not LoaderKind.PYTORCH:
        return (
            f"{pipeline.loader.value}: {pipeline.workers} threads, "
            f"{pipeline.prefetch} batches ahead, batches of {job.train.batch_size:g}"
        )
    settings: list[tuple[str, object]] = [
        ("batch_size", f"{job.train.batch_size:g}"),
        ("num_workers", pipeline.workers),
    ]
    if pipeline.workers:
        settings += [
            ("prefetch_factor", pipeline.prefetch),
            ("persistent_workers", pipeline.persistent_workers),
        ]
    if _is_launched(scenario) or not pipeline.pin_memory:
        settings.append(("pin_memory", pipeline.pin_memory))
    settings.append(("drop_last", pipeline.drop_last))
    inside = ", ".join(f"{name}={value}" for name, value in settings)
    return f"DataLoader(dataset, {inside})"


def _spread(scenario: Scenario) -> tuple[str, ...]:
    """Return notes on the parallelism that the program has to set up itself."""
    job, degrees = scenario.job, scenario.job.parallelism
    notes = []
    if job.train.accumulation > 1:
        notes.append(f"accumulate gradients over {job.train.accumulation} batches")
    if degrees.devices > 1:
        notes.append(
            f"tensor parallel {degrees.tensor}, pipeline parallel {degrees.pipeline}, "
            f"optimizer sharded: {'yes' if degrees.sharding is not Sharding.NONE else 'no'}"
        )
    if job.remote is not None:
        helpers = next(g for g in scenario.cluster.groups if g.name == job.remote.name)
        notes.append(
            f"{helpers.count} x {short_name(printable(helpers.host.name))} make batches with "
            f"{job.remote.workers} workers each; rent them in the same network"
        )
    return tuple(notes)


def _resources(scenario: Scenario, rentable: Collection[str]) -> str:
    """Return a SkyPilot task; an empty string for a machine that SkyPilot cannot rent."""
    trainers = scenario.cluster.trainers
    kind, _, rest = trainers.host.name.partition("/")
    cloud, _, machine = rest.partition("/")
    if kind != "instance" or cloud not in rentable or not machine:
        return ""
    parted = _PARTED.fullmatch(machine)
    lines = ["resources:", f"  cloud: {_scalar(cloud)}"]
    if parted is None:
        lines.append(f"  instance_type: {_scalar(machine)}")
    else:
        lines.append(f"  instance_type: {_scalar(parted['machine'])}")
        lines.append(f"  accelerators: {_scalar(parted['device'] + ':' + parted['count'])}")
    if scenario.cost.purchase is Purchase.SPOT:
        lines.append("  use_spot: true")
    lines += [f"num_nodes: {trainers.count}", "run: |", *_run(scenario)]
    return "\n".join(lines)


def _run(scenario: Scenario) -> list[str]:
    command = _command(scenario)
    several = scenario.cluster.trainers.count > 1
    meeting = [
        "  RANK=$SKYPILOT_NODE_RANK",
        '  HEAD=$(echo "$SKYPILOT_NODE_IPS" | head -n1)',
    ]
    return [*(meeting if several else []), f"  {command}"]


def _scalar(text: str) -> str:
    """Return a text as a YAML scalar, quoted if it is ambiguous."""
    if _PLAIN.fullmatch(text) and text.lower() not in {"yes", "no", "on", "off", "true", "false"}:
        return text
    escaped = printable(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
