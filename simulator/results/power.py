"""What machines draw: accelerators, processors and the rest of every machine that is billed.

Each part draws so much at rest and so much at work, and in between in proportion to how busy it
is. Waiting machines and idle accelerators count. Not counted: cooling and losses of the building,
switches and stores outside of the machines, memory and boards of owned machines without
accelerators.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, cast

from simulator.equations.energy import drawn_energy, energy_per_step
from simulator.pipeline.stages.base import Resource
from simulator.results.prediction import Timing
from simulator.schema.hardware.cluster import Group
from simulator.schema.scenario import Scenario
from simulator.terms import Term, term
from simulator.uncertainty.provenance import Source
from simulator.units import WATT, Watts, parse

_TEADS: Final = (
    "github cloud-carbon-footprint/cloud-carbon-coefficients@dda7621f8ab2, instances of Teads "
    "(a model on processors that were measured)"
)
VCPU_IDLE: Final = parse("1.98 W", WATT)
VCPU_FULL: Final = parse("9.72 W", WATT)
"""A vCPU with its part of memory and board: c5.24xlarge, 190.5 W at rest and 933.2 W at work."""
OF_VCPUS: Final = Source(reference=f"{_TEADS}: c5.24xlarge / 96 vCPUs", date="2023")
CPU_IDLE: Final = 0.2
"""Power of sockets at rest over their design power, as of the same machine: 190.5 W / 933.2 W."""
OF_SOCKETS: Final = Source(
    reference="design power of the sockets; at rest a fifth of it, a guess",
    date="2026",
    verified=False,
)
LOG_SD: Final = 0.32
"""Standard deviation of the logarithm of the power of machines, a guess: chosen so that its 80%
interval, a third less to half more, holds all ten metered runs of MLPerf Inference v5.1, which drew
6 to 33% less than figured (mlcommons/inference_results_v5.1@965182b, 2025-09). They are of one
machine, 8 B200, so they say little of others."""
GPU_IDLE: Final = 0.15
"""Power of an accelerator at rest over its limit: 8% (A10G) to 19% (V100) where measured."""
OF_LIMIT: Final = Source(
    reference="power limit of the profile; at rest 15% of it, a guess", date="2026", verified=False
)
REST_IDLE: Final = 0.05
REST_FULL: Final = 0.37
"""Fans, network cards, switches and losses of a machine over the limits of its accelerators."""
OF_REST: Final = Source(
    reference=f"{_TEADS}: p4d.24xlarge, 744.8 W at rest and 5,245 W at work, less its A100s and "
    "vCPUs; a DGX H100 in training then draws 7.1 kW (measured: 7.75 kW, arXiv 2506.14551)",
    date="2023",
    verified=False,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Power of a part of a group's machines, all together [W]; `busy` is 0 to 1."""

    part: str
    idle: Watts
    full: Watts
    busy: float
    source: Source

    @property
    def mean(self) -> Watts:
        """Power over a mean step [W]."""
        return cast("float", energy_per_step(self.idle, self.full, self.busy, 1.0))


def draws(
    scenario: Scenario, timing: Timing, groups: Sequence[Group] | None = None
) -> tuple[Draw, ...] | None:
    """What every part of every machine that is billed draws over a mean step.

    All groups count where none are named. None where the power of an accelerator is not known.
    """
    groups = scenario.cluster.groups if groups is None else groups
    if not all(map(is_known, groups)):
        return None
    return tuple(draw for group in groups for draw in _of_group(scenario, group, timing))


def joules_per_step(scenario: Scenario, timing: Timing) -> Term | None:
    """Energy of all machines in a mean step; None where a power is not known."""
    found = draws(scenario, timing)
    if found is None:
        return None
    power = sum(d.mean for d in found)
    return term(drawn_energy, power=power, time=timing.step_time.mean)


def is_known(group: Group) -> bool:
    """Whether the power of a group's accelerators is stated; machines without any have none."""
    gpu = group.host.gpu
    return gpu is None or gpu.emulated or gpu.power is not None


def _busy(timing: Timing) -> float:
    found = timing.accelerator_utilization
    return 0.0 if found is None else found


def _of_group(scenario: Scenario, group: Group, timing: Timing) -> tuple[Draw, ...]:
    trains = group is scenario.cluster.trainers
    usage = timing.usage.get(str(Resource.CPU) if trains else f"{group.name}.{Resource.CPU}")
    return draws_at(
        group,
        accelerators=_busy(timing) if trains else 0.0,
        processors=0.0 if usage is None else usage.mean,
        lead="" if trains else f"{group.name}: ",
    )


def draws_at(
    group: Group, *, accelerators: float, processors: float, lead: str = ""
) -> tuple[Draw, ...]:
    """What every part of a group's machines draws.

    Parameters
    ----------
    group : Group
        Machines whose accelerators, if any, have a known power.
    accelerators, processors : float
        Share of the time in which those that are used, and all processors, are busy [1].
    lead : str
        Put before the names of the parts.
    """
    pool = group.host.cpu
    owned = pool.power is not None and not group.host.virtual
    full = pool.power if owned and pool.power is not None else pool.threads * VCPU_FULL
    idle = CPU_IDLE * full if owned else pool.threads * VCPU_IDLE
    own = Draw(
        part=f"{lead}processors",
        idle=group.count * idle,
        full=group.count * full,
        busy=processors,
        source=OF_SOCKETS if owned else OF_VCPUS,
    )
    return (*_gpus(group, lead, accelerators), own)


def _gpus(group: Group, lead: str, busy: float) -> Iterator[Draw]:
    """Accelerators in use, those that stand idle beside them, and what surrounds them."""
    host, gpu = group.host, group.host.gpu
    if gpu is None or gpu.power is None or gpu.emulated:
        return
    limit = gpu.power
    idle = GPU_IDLE * limit if gpu.idle_power is None else gpu.idle_power
    source = OF_LIMIT if gpu.idle_power is None else gpu.sources["idle_power"]
    used, spare = group.gpus_per_host, max(0, host.gpu_count - group.gpus_per_host)
    for part, number, share in (("accelerators", used, busy), ("idle accelerators", spare, 0.0)):
        if number:
            all_of_them = group.count * number
            yield Draw(
                part=f"{lead}{part}",
                idle=all_of_them * idle,
                full=all_of_them * limit,
                busy=share,
                source=source,
            )
    if not gpu.unified_memory:
        around = group.count * max(host.gpu_count, used) * limit
        yield Draw(
            part=f"{lead}rest of the machines",
            idle=REST_IDLE * around,
            full=REST_FULL * around,
            busy=busy * used / max(host.gpu_count, used),
            source=OF_REST,
        )
