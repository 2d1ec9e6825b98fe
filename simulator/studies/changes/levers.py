"""What of a scenario can be more, faster or fewer: each resource with its keys and its value now.

A knob turns a value into settings of the scenario's own keys, so that every what-if is a scenario
that ``--set`` gives as well. Only measured step times have no key to scale them; `turned` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from simulator.physics.device_time import measured_times, uses_fitted_kernels
from simulator.pipeline.stages.input import drives_of
from simulator.schema.goal import Plain
from simulator.schema.hardware.cluster import Group
from simulator.schema.hardware.host import CpuPool
from simulator.schema.hardware.storage import Storage
from simulator.schema.scenario import Job, Scenario
from simulator.schema.workload.loader import LoaderKind
from simulator.units import BYTE, BYTE_PER_SECOND, PER_SECOND, SECOND, Unit, parse

Settings: TypeAlias = Mapping[str, Plain]
Read: TypeAlias = Callable[[Settings], Scenario]
"""Reads the scenario at hand with some keys set; raises what reading a scenario raises."""

SPEED: Final = Unit("x", "times as fast")
"""The unit of knobs that have no figure of their own: 1 is as described."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """A resource or setting: `value` as it is now, in `unit` (None: a count).

    `settings` are the keys for a value; None where no key says it. `whole`: only whole numbers,
    from `least` on. `free`: a setting, which costs nothing. `steps` are what a
    what-if tries: a name and the value. `limits`: whether more or less of it can move the limit of
    a job, as a resource does.
    """

    name: str
    value: float
    settings: Callable[[float], Settings] | None
    unit: Unit | None = None
    whole: bool = False
    least: float = 0.0
    free: bool = False
    limits: bool = True
    steps: tuple[tuple[str, float], ...] = ()


def turned(read: Read, knob: Knob, value: float) -> Scenario:
    """The scenario with a knob at `value`.

    Raises
    ------
    PlanError
        If there is no such scenario, or it is refused.
    """
    if knob.settings is not None:
        return read(knob.settings(value))
    scenario = read({})
    return replace(
        scenario, jobs=tuple(_faster_steps(scenario, job, value) for job in scenario.jobs)
    )


def _faster_steps(scenario: Scenario, job: Job, speed: float) -> Job:
    """The job with what was measured of its step taking less time."""
    measured = measured_times(scenario)
    if measured is None:
        return job
    seconds = tuple(time / speed for time in measured.seconds)
    return replace(job, step_times=replace(measured, seconds=seconds))


def knobs(scenario: Scenario, device: str = "GPU") -> tuple[Knob, ...]:
    """Everything of a scenario that can be more or less, as it has them.

    Parameters
    ----------
    scenario : Scenario
        As read, without changes.
    device : str
        What its accelerators are called.
    """
    return (
        *_loader(scenario),
        *_processors(scenario),
        *_memory(scenario),
        *_store(scenario),
        *_requests(scenario),
        *_links(scenario),
        *_devices(scenario, device),
        *_machines(scenario),
    )


def _times(value: float, *factors: tuple[str, float]) -> tuple[tuple[str, float], ...]:
    return tuple((name, value * factor) for name, factor in factors)


_TENTH: Final = ("+10%", 1.1)
_TWICE: Final = ("x2", 2.0)
_HALF: Final = ("x0.5", 0.5)


def _quantity(key: str, symbol: str) -> Callable[[float], Settings]:
    return lambda value: {key: f"{value!r} {symbol}"}


def _whole(key: str) -> Callable[[float], Settings]:
    return lambda value: {key: round(value)}


def _count(name: str, key: str, value: int, *, free: bool, limits: bool) -> Knob:
    return Knob(
        name=name,
        value=value,
        settings=_whole(key),
        whole=True,
        least=1.0,
        free=free,
        limits=limits,
        steps=(("+1", value + 1), *(_times(value, _TWICE) if value > 1 else ())),
    )


def _loader(scenario: Scenario) -> Iterator[Knob]:
    """Workers, prefetch and batch size."""
    job = scenario.job
    loader, remote, batch = job.loader, job.remote, job.train.batch_size
    if loader.workers > 0 or remote is None:
        yield _count("workers", "input.workers", loader.workers, free=True, limits=True)
    if remote is not None:
        yield _count("remote workers", "remote.workers", remote.workers, free=True, limits=True)
    if loader.workers > 0 or loader.kind is not LoaderKind.PYTORCH:
        yield _count("prefetch", "input.prefetch", loader.prefetch, free=True, limits=False)
    yield Knob(
        name="batch size",
        value=batch,
        settings=_whole("train.batch_size"),
        whole=True,
        least=1.0,
        free=True,
        limits=False,
        steps=_times(batch, _TWICE, *((_HALF,) if batch > 1 else ())),
    )


def _vcpus(threads: float, cpu: CpuPool) -> Settings:
    """So many hardware threads, on cores in proportion."""
    cores = threads * cpu.cores / cpu.threads
    return {
        "hardware.vcpus": float(threads),
        "hardware.cores": min(float(threads), max(1.0, cores)),
    }


def _processors(scenario: Scenario) -> Iterator[Knob]:
    """Hardware threads and their speed."""
    host = scenario.cluster.trainers.host
    cpu, speed = host.cpu, scenario.calibration.value("cpu")
    yield Knob(
        name="vCPUs",
        value=cpu.threads,
        settings=lambda threads: _vcpus(threads, cpu),
        least=1.0,
        steps=_times(cpu.threads, _TENTH, _TWICE),
    )
    each = scenario.job.loader.workers / cpu.threads
    if each > 0.0:
        yield Knob(
            name="vCPUs+workers",
            value=cpu.threads,
            settings=lambda threads: {
                **_vcpus(threads, cpu),
                "input.workers": max(1, round(each * threads)),
            },
            least=1.0,
            steps=_times(cpu.threads, _TENTH, _TWICE),
        )
    yield Knob(
        name="CPU speed",
        value=1.0,
        unit=SPEED,
        settings=lambda faster: {"calibration.cpu": faster * speed},
        steps=_times(1.0, _TENTH),
    )


def _memory(scenario: Scenario) -> Iterator[Knob]:
    """RAM and its bandwidth."""
    host = scenario.cluster.trainers.host
    yield Knob(
        name="RAM",
        value=host.ram,
        unit=BYTE,
        settings=_quantity("hardware.ram", "B"),
        steps=_times(host.ram, _TWICE),
    )
    if host.memory_bandwidth is not None:
        rate = host.memory_bandwidth
        yield Knob(
            name="RAM bandwidth",
            value=rate,
            unit=BYTE_PER_SECOND,
            settings=_quantity("hardware.memory_bandwidth", "B/s"),
            steps=_times(rate, _TWICE),
        )


ONE_MORE: Final = "1 GB/s"
"""A step of bandwidth as people ask for it."""


def _store(scenario: Scenario) -> Iterator[Knob]:
    """Rate and operations of the store that the file names."""
    store, faster = _named_store(scenario)
    drives = drives_of(_before(scenario.cluster.trainers), store)
    rate = store.read_rate * drives / faster
    yield Knob(
        name="storage bandwidth",
        value=rate,
        unit=BYTE_PER_SECOND,
        settings=_quantity("hardware.storage_bandwidth", "B/s"),
        steps=(
            *_times(rate, _TENTH, _TWICE),
            (f"+{ONE_MORE}", rate + parse(ONE_MORE, BYTE_PER_SECOND)),
        ),
    )
    if store.read_operations is not None:
        operations = store.read_operations * drives / faster
        yield Knob(
            name="storage IOPS",
            value=operations,
            unit=PER_SECOND,
            settings=_quantity("hardware.storage_operations", "/s"),
            steps=_times(operations, _TWICE),
        )


def _named_store(scenario: Scenario) -> tuple[Storage, float]:
    """The store that the file's keys are about, and how much faster than there it already is."""
    group = scenario.cluster.trainers
    return group.origin or group.storage, scenario.calibration.value("storage")


def _requests(scenario: Scenario) -> Iterator[Knob]:
    """Rate and latency of single reads from that store, or the time measured for one."""
    store, faster = _named_store(scenario)
    measured = scenario.job.dataset.read_time
    if measured is not None:
        yield Knob(
            name="read time",
            value=measured * faster,
            unit=SECOND,
            settings=_quantity("data.read_time", "s"),
            steps=_times(measured * faster, _HALF),
        )
        return
    if store.request_rate is not None:
        single = store.request_rate / faster
        yield Knob(
            name="rate of one request",
            value=single,
            unit=BYTE_PER_SECOND,
            settings=_quantity("hardware.storage_request_rate", "B/s"),
            steps=_times(single, _TWICE),
        )
    if store.read_latency > 0.0:
        latency = store.read_latency * faster
        yield Knob(
            name="storage latency",
            value=latency,
            unit=SECOND,
            settings=_quantity("hardware.storage_latency", "s"),
            steps=_times(latency, _HALF),
        )


def _before(group: Group) -> Group:
    """The group before its data was placed, which is what the file's keys are about."""
    return group if group.origin is None else replace(group, storage=group.origin, origin=None)


def _links(scenario: Scenario) -> Iterator[Knob]:
    """Network cards, PCIe, and what accelerators exchange over."""
    host = scenario.cluster.trainers.host
    network, pcie = host.network, host.device_rate
    if network is not None:
        rate = network.bandwidth / scenario.calibration.value("network")
        more = (f"+1 NIC of {network.cards}", 1.0 + 1.0 / network.cards)
        yield Knob(
            name="network bandwidth",
            value=rate,
            unit=BYTE_PER_SECOND,
            settings=_quantity("hardware.network_bandwidth", "B/s"),
            steps=_times(rate, *([more] if network.cards > 1 else []), _TWICE),
        )
    if pcie is not None:
        yield Knob(
            name="PCIe bandwidth",
            value=pcie,
            unit=BYTE_PER_SECOND,
            settings=_quantity("hardware.pcie_bandwidth", "B/s"),
            steps=_times(pcie, _TWICE),
        )


def _devices(scenario: Scenario, device: str) -> Iterator[Knob]:
    """Speed of the accelerators, and of what they exchange among each other."""
    calibration, job = scenario.calibration, scenario.job
    if scenario.cluster.trainers.gpus_per_host > 0:
        measured = measured_times(scenario) is not None and not uses_fitted_kernels(scenario)
        own = {name: calibration.value(name) for name in ("compute", "device_memory")}
        yield Knob(
            name=f"{device} speed",
            value=1.0,
            unit=SPEED,
            settings=None
            if measured
            else lambda faster: {f"calibration.{k}": faster * v for k, v in own.items()},
            steps=_times(1.0, _TENTH, _TWICE),
        )
    if scenario.devices > 1 and job.model is not None:
        speed = calibration.value("collective")
        yield Knob(
            name=f"links between {device}s",
            value=1.0,
            unit=SPEED,
            settings=lambda faster: {"calibration.collective": faster * speed},
            steps=_times(1.0, _TWICE),
        )


def _machines(scenario: Scenario) -> Iterator[Knob]:
    """Machines that train, and those that help."""
    trainers = scenario.cluster.trainers
    yield _count("machines", "hardware.count", trainers.count, free=False, limits=False)
    for group in scenario.cluster.groups:
        if group is not trainers:
            name = f"machines of '{group.name}'"
            yield _count(name, "remote.count", group.count, free=False, limits=True)
