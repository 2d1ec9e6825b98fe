"""Uncertainty of the rates behind a scenario, by the evidence for each of its values.

Uncertainties are in ``data/uncertainty.toml``, the range of measured runs in
``data/envelope.toml``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from typing import Final

import numpy as np

from simulator.memo import cached
from simulator.physics.device_memory import batch_in_bytes
from simulator.physics.device_time import carried_times, device_time, measured_times
from simulator.physics.training_step import launch_share, network_share, small_kernels_share
from simulator.physics.transformer import TransformerStep, kernels_of, of_tokens, transformer_step
from simulator.pipeline.stages.input import opening_share, transfer_share
from simulator.reading.document import check, read_document
from simulator.reading.fitted.kernel_files import with_values
from simulator.reading.fitted.kernels import stood_in, with_kernel_files
from simulator.reading.keys import numeric_key
from simulator.reading.shipped import DATA
from simulator.records import dataclass
from simulator.results.envelope import outside, placed
from simulator.schema.calibration import Overlay, TransferError
from simulator.schema.fields import NumberOrZeroField, Quantity, TextField
from simulator.schema.models import Dlrm
from simulator.schema.provenance import Source
from simulator.schema.scenario import Scenario
from simulator.schema.software import Kernels
from simulator.schema.training import Mode
from simulator.schema.uncertainty import (
    Axis,
    Grade,
    Rate,
    Reach,
    UncertaintyComponent,
    stretched,
)
from simulator.uncertainty.grades import (
    MEMORY,
    UNLIKE,
    graded,
    grades,
    memory_deviations,
    shipped_envelope,
)
from simulator.units import BYTE_PER_SECOND, FLOP_PER_SECOND, HERTZ, PER_SECOND, Real


@cached(most=64)
def with_uncertainties(scenario: Scenario) -> Scenario:
    """Return a scenario read from a file, with the uncertainties of its rates.

    A scenario that was built in code, or already has uncertainties, is returned unchanged.
    """
    stated = scenario.stated
    if stated is None:
        return scenario
    found = [_component(rate, grade, scenario) for rate, grade in grades(scenario, stated)]
    found += outside(scenario, shipped_envelope(), _widest(found))
    found += _of_tables(scenario)
    found += _of_copies(scenario)
    overlay = scenario.calibration.overlay
    if overlay is not None:
        found = _calibrated_over(found, overlay, scenario)
    deviation = _of_device_memory(scenario)
    return replace(scenario, stated=None, uncertainties=tuple(found), memory_log_sd=deviation)


def uncertainties_of(scenario: Scenario) -> tuple[UncertaintyComponent, ...]:
    """Return the uncertainties of a scenario that was read from a file or built in code."""
    return with_uncertainties(scenario).uncertainties


def _of_device_memory(scenario: Scenario) -> float:
    """Return the uncertainty of the memory that the job needs on an accelerator.

    Memory was measured for language models with all parameters trained, in frameworks with fitted
    constants; other jobs are less certain.
    """
    known = memory_deviations()
    job = scenario.job
    like = of_tokens(job.model) and not stood_in(job.software) and not job.train.freezes
    return math.hypot(known[MEMORY], 0.0 if like else known[UNLIKE])


def as_unseen(scenario: Scenario, series: Sequence[str]) -> Scenario:
    """Return the scenario with its uncertainties as if some series had not been measured."""
    scenario = with_uncertainties(scenario)
    inside = [component for component in scenario.uncertainties if not component.outside]
    envelope = shipped_envelope().without(series)
    uncertainties = (*inside, *outside(scenario, envelope, _widest(inside)))
    return replace(scenario, uncertainties=uncertainties)


def _widest(uncertainties: Sequence[UncertaintyComponent]) -> float:
    apart = (Rate.START, Rate.CHECKPOINT)
    return max(component.log_sd for component in uncertainties if component.rate not in apart)


def _component(rate: Rate, grade: Grade, scenario: Scenario) -> UncertaintyComponent:
    table, wide = graded(rate, grade), 0.0
    if rate is Rate.DEVICE:
        slope = table.per_doubling.get(Axis.BATCH, 0.0)
        wide = _beyond_measured_batches(scenario, slope)
    # The writer of a checkpoint does nothing else.
    share = 1.0 if rate is Rate.CHECKPOINT else _share_of(grade, scenario)
    log_sd = table.log_sd
    if grade in {Grade.CROWDED, Grade.CROWDED_SMALL}:
        groups = scenario.cluster.groups
        log_sd = max(log_sd, *(group.host.cpu.assumed_log_sd for group in groups))
    deviation = math.hypot(share * log_sd, wide)
    # A client that is slow to answer is slow to deliver.
    slow = {f"{rate}, {Grade.UNKNOWN_STREAM}": 1.0} if grade is Grade.UNKNOWN_REQUEST else {}
    return UncertaintyComponent(
        name=f"{rate}, {grade}",
        rate=rate,
        grade=grade,
        log_sd=deviation,
        seconds=table.seconds,
        source=table.cited,
        warning=_told_of(grade, deviation, scenario),
        shared=slow,
    )


def _told_of(grade: Grade, deviation: float, scenario: Scenario) -> str:
    """Return the warning that a grade of evidence causes in a scenario; empty without one."""
    if grade is Grade.GATHERED and deviation > _WARNED:
        return _GATHERS_SLOWLY
    if grade is Grade.CARRIED_LAUNCHES and _largest(launch_share, scenario) > _BOUND_BY_LAUNCHES:
        return _LAUNCHES_OF_ANOTHER
    return ""


def _of_tables(scenario: Scenario) -> Iterator[UncertaintyComponent]:
    """Yield the uncertainty of the step from the all-to-all of sharded embedding tables.

    Each device sends looked-up rows of its tables to the others and receives their gradients. That
    communication is not modeled, so that a step may be longer by it.
    """
    job, group = scenario.job, scenario.cluster.trainers
    if not isinstance(job.model, Dlrm) or job.mode is not Mode.TRAIN or scenario.ranks == 1:
        return
    network, peer = group.host.network, group.host.peer_link or group.host.host_link
    rate = math.inf if peer is None else peer.rate
    if scenario.ranks > group.gpus_per_host and network is not None:
        rate = min(rate, network.bandwidth / group.gpus_per_host)
    away = 1.0 - 1.0 / scenario.ranks
    sent = away * job.model.looked_up_bytes(job.train.batch_size, job.train.precision)
    table = graded(Rate.STEP, Grade.TABLES)
    yield UncertaintyComponent(
        name=f"{Rate.STEP}, {Grade.TABLES}",
        rate=Rate.STEP,
        grade=Grade.TABLES,
        log_sd=table.log_sd,
        seconds=float(np.max(2.0 * sent / rate)),
        source=table.cited,
        warning=_TABLES_EXCHANGED,
    )


def _of_copies(scenario: Scenario) -> Iterator[UncertaintyComponent]:
    """Yield the uncertainty of the step from copies that a prefetcher would hide.

    By default PyTorch copies pinned batches on the compute stream; whether a program has a stream
    of its own for them is not known.
    """
    work, host = scenario.job.input, scenario.cluster.trainers.host
    in_line = work.pin_memory and not work.overlap_copies and not work.states("overlap_copies")
    gpu, link = host.gpu, host.host_link
    if not in_line or gpu is None or gpu.emulated or gpu.unified_memory or link is None:
        return
    time = device_time(scenario)
    each = batch_in_bytes(scenario).value / link.rate
    if time is None or not np.any(each > _NEGLIGIBLE_COPY * time.total):
        return
    copied = each * scenario.job.train.accumulation
    table = graded(Rate.STEP, Grade.COPIES)
    yield UncertaintyComponent(
        name=f"{Rate.STEP}, {Grade.COPIES}",
        rate=Rate.STEP,
        grade=Grade.COPIES,
        log_sd=table.log_sd,
        seconds=_HIDDEN_COPIES * float(np.max(copied)),
        source=table.cited,
    )


_NEGLIGIBLE_COPY: Final = 1e-3
"""Share of the device's time up to which copies do not matter."""
_HIDDEN_COPIES: Final = 0.4
"""Standard deviation of a step over the time of its copies: one program in ten hides half of them
or more, on either side of what is predicted [a guess]."""
_TABLES_EXCHANGED: Final = (
    "rows that are looked up in tables on other accelerators, and their gradients, are exchanged "
    "all to all; that time is not in the step, whose interval is wider by it"
)
_WARNED: Final = 0.1
"""Log deviation from which on it is worth a warning."""
_GATHERS_SLOWLY: Final = (
    "parameters are gathered over the network by a framework of which no such run was measured: "
    "six published steps of DeepSpeed's ZeRO-3 on 384 to 2,240 GPUs took 1.3 to 3.1 times what is "
    "predicted; tensor and pipeline parallelism send less between machines"
)


_BOUND_BY_LAUNCHES: Final = 0.7
"""Share of a step's change with the launches from which on they bound it."""
_LAUNCHES_OF_ANOTHER: Final = (
    "the host that launches kernels bounds the step, and another framework's launches are used: "
    "380 measured steps so predicted took 22% longer in the median, one in ten of them 32% and more"
)


def _beyond_measured_batches(scenario: Scenario, slope: float) -> float:
    """Return the uncertainty of a step at a batch size outside of the measured ones.

    `slope` is the uncertainty for each doubling of the batch size.
    """
    times = measured_times(scenario) or carried_times(scenario)
    if times is None:
        return 0.0
    sizes = times.batch_sizes
    reach = Reach(axis=Axis.BATCH, low=min(sizes), high=max(sizes), per_doubling=slope)
    return stretched(0.0, (reach,), {Axis.BATCH: float(scenario.job.train.batch_size)})


def _share_of(grade: Grade, scenario: Scenario) -> float:
    """Return the share of the step (or of a read) that a grade is about, largest of candidates."""
    if grade is Grade.OPENING:
        return float(np.max(opening_share(scenario)))
    if grade is Grade.UNKNOWN_STREAM:
        return float(np.max(transfer_share(scenario)))
    if grade is Grade.UNKNOWN_REQUEST:
        return 1.0 - float(np.min(transfer_share(scenario)))
    share = _SHARES.get(grade)
    return 1.0 if share is None else _largest(share, scenario)


def _largest(share: Callable[[TransformerStep, Kernels], Real], scenario: Scenario) -> float:
    return float(np.max(share(transformer_step(scenario), kernels_of(scenario))))


_SHARES: Final = {
    Grade.CARRIED_KERNELS: small_kernels_share,
    Grade.CARRIED_LAUNCHES: launch_share,
    Grade.GATHERED: network_share,
}


_KEYS: Final[tuple[tuple[str, Rate], ...]] = (
    ("calibration.compute", Rate.DEVICE),
    ("calibration.device_memory", Rate.DEVICE),
    ("calibration.cpu", Rate.WORKERS),
    ("calibration.storage", Rate.STORAGE),
    ("calibration.client", Rate.CLIENT),
    ("calibration.network", Rate.NETWORK),
    ("calibration.collective", Rate.COLLECTIVES),
    ("calibration.straggling", Rate.WAITING),
    ("calibration.checkpoint", Rate.CHECKPOINT),
    ("train.checkpoint", Rate.CHECKPOINT),
    ("train.straggling", Rate.WAITING),
    ("train.device_spread", Rate.WAITING),
    ("train.step_jitter", Rate.WAITING),
    ("train.step_overhead", Rate.WAITING),
    ("train.exchange", Rate.COLLECTIVES),
    ("hardware.storage", Rate.STORAGE),
    ("hardware.network", Rate.NETWORK),
    ("hardware.pcie", Rate.PCIE),
    ("hardware.memory_bandwidth", Rate.HOST_MEMORY),
    ("hardware.", Rate.WORKERS),
    ("data.request_cpu", Rate.CLIENT_CPU),
    ("data.core_rate", Rate.CLIENT_CPU),
    ("data.", Rate.STORAGE),
    ("input.receive", Rate.HANDOVER),
    ("input.worker_start", Rate.START),
    ("input.epoch_start", Rate.START),
    ("input.device_time", Rate.DEVICE),
    ("input.", Rate.WORKERS),
    ("remote.send", Rate.HANDOVER),
    ("remote.", Rate.WORKERS),
    ("model.", Rate.DEVICE),
)
"""Which rate a fitted key is about; the first that the key begins with counts."""


def rate_of(key: str) -> Rate:
    """Return the rate that a numeric key of a scenario affects; by default `Rate.STEP`."""
    return next((rate for begin, rate in _KEYS if key.startswith(begin)), Rate.STEP)


_FASTER: Final = ("calibration.", "remote.speed", "hardware.smt_worth", "remote.smt_worth")
_RATES: Final = (BYTE_PER_SECOND, PER_SECOND, FLOP_PER_SECOND, HERTZ)


def sign_of(key: str) -> float:
    """Return 1 if a larger value of a numeric key is faster, or -1 if it is slower."""
    kind = numeric_key(key).kind
    faster = isinstance(kind, Quantity) and kind.unit in _RATES
    return 1.0 if faster or key.startswith(_FASTER) else -1.0


def calibrated(
    scenario: Scenario,
    keys: Sequence[str],
    anchors: Sequence[Mapping[Axis, float]],
    noise: float = 0.0,
) -> Scenario:
    """Return a scenario whose `keys` were fitted to anchors: measured runs of the same system.

    Parameters
    ----------
    scenario : Scenario
        The scenario, with the fitted values.
    keys : sequence of str
        Fitted keys, such as ``hardware.storage_bandwidth``.
    anchors : sequence of mapping of Axis to float
        Positions of the anchors, as returned by `envelope.placed`; uncertainty grows with the
        distance to them.
    noise : float
        Uncertainty of the measurements of the anchors.

    Returns
    -------
    Scenario
        The scenario, in which the rates of fitted keys have the uncertainty of calibrated rates.
    """
    scenario, place = with_uncertainties(scenario), placed(scenario)
    fitted = dict.fromkeys(rate_of(key) for key in keys)
    kept = [component for component in scenario.uncertainties if component.rate not in fitted]
    new = [_near(rate, place, anchors) for rate in fitted]
    if noise > 0.0:
        # Fitted values absorb the error of the measurements.
        new.append(
            UncertaintyComponent(name="anchors", rate=Rate.STEP, log_sd=noise, source=_NOISE)
        )
    return replace(scenario, uncertainties=(*kept, *new))


def known_elsewhere(scenario: Scenario, keys: Sequence[TransferError]) -> Scenario:
    """Return the scenario with the uncertainty of keys whose values come from other systems.

    Parameters
    ----------
    scenario : Scenario
        The scenario, with those values.
    keys : sequence of TransferError
        The keys, each with its uncertainty.

    Returns
    -------
    Scenario
        The scenario, in which the rates of the keys have the uncertainty of calibrated rates, plus
        the variation of each key over systems, weighted by its share of the rate's work.
    """
    scenario = with_uncertainties(scenario)
    rates = dict.fromkeys(rate_of(one.key) for one in keys)
    kept = [component for component in scenario.uncertainties if component.rate not in rates]
    place = placed(scenario)
    apart = [
        UncertaintyComponent(
            name=_OTHERS.format(one.key),
            rate=rate_of(one.key),
            log_sd=one.log_sd * _share(one.key, scenario),
            source=_ELSEWHERE,
            shared={_OTHERS.format(key): share for key, share in one.shared},
        )
        for one in keys
    ]
    return replace(
        scenario, uncertainties=(*kept, *(_near(rate, place, ()) for rate in rates), *apart)
    )


_OTHERS: Final = "{} of other systems"
_ELSEWHERE: Final = Source(reference="spread of the values fitted to others", date="undated")
_NOISE: Final = Source(reference="spread of the anchors' repeats", date="undated")


def _near(
    rate: Rate, place: Mapping[Axis, float], anchors: Sequence[Mapping[Axis, float]]
) -> UncertaintyComponent:
    table = graded(rate, Grade.CALIBRATED)
    reaches = tuple(
        Reach(axis=axis, low=min(seen), high=max(seen), per_doubling=slope)
        for axis, slope in table.per_doubling.items()
        if (seen := [anchor.get(axis, 1.0) for anchor in anchors])
    )
    wide = stretched(table.log_sd, reaches, place)
    return UncertaintyComponent(
        name=f"{rate}, calibrated",
        grade=Grade.CALIBRATED,
        rate=rate,
        log_sd=wide,
        seconds=table.seconds,
        source=table.cited,
    )


def _calibrated_over(
    uncertainties: Sequence[UncertaintyComponent], overlay: Overlay, scenario: Scenario
) -> list[UncertaintyComponent]:
    """Return the uncertainties, with those of fitted rates replaced by those of the fit.

    Rates that the fit covers need no other evidence. A parameter that the measurements do not
    determine leaves the uncertainty of its rate unchanged.
    """
    place = placed(scenario)
    known = [(i, p) for i, p in enumerate(overlay.parameter) if p.log_sd is not None]
    rates = dict.fromkeys(rate_of(parameter.key) for _, parameter in known)
    kept = [component for component in uncertainties if component.rate not in rates]
    fitted = []
    for i, parameter in known:
        deviation = parameter.log_sd or 0.0
        # Covariances are of values, an uncertainty is about a speed: a longer time is a slower
        # rate.
        shared = {
            other.key: sign_of(parameter.key)
            * sign_of(other.key)
            * overlay.covariance[i][j]
            / (deviation * other.log_sd)
            for j, other in known
            if j != i and deviation > 0.0 and other.log_sd
        }
        fitted.append(
            UncertaintyComponent(
                name=parameter.key,
                rate=rate_of(parameter.key),
                log_sd=deviation * _share(parameter.key, scenario),
                source=overlay.cited,
                shared=shared,
            )
        )
    # Distance adds to a whole rate: errors of parameters that cancel at the anchors still do.
    far = ((rate, stretched(0.0, _reaches(overlay, rate), place)) for rate in rates)
    distant = [
        UncertaintyComponent(
            name=f"{rate} far from the fit", rate=rate, log_sd=wide, source=overlay.cited
        )
        for rate, wide in far
        if wide > 0.0
    ]
    return kept + fitted + distant


def _share(key: str, scenario: Scenario) -> float:
    """Return the share of a rate's work that a key is about; 1 if the rate has no parts."""
    work, batch = scenario.job.input, scenario.job.train.batch_size
    parts = {
        "input.decode": work.decode * batch,
        "input.augment": work.augment * batch,
        "input.collate": work.collate * batch,
        "input.per_batch": work.per_batch,
    }
    whole = sum(parts.values())
    return parts[key] / whole if key in parts and whole > 0.0 else 1.0


def _reaches(overlay: Overlay, rate: Rate) -> tuple[Reach, ...]:
    slopes = graded(rate, Grade.CALIBRATED).per_doubling
    ranges = {Axis.RANKS: overlay.envelope.devices, Axis.BATCH: overlay.envelope.batch_size}
    return tuple(
        Reach(axis=axis, low=float(low), high=float(high), per_doubling=slopes[axis])
        for axis, (low, high) in ranges.items()
        if axis in slopes and low > 0
    )


_FILE: Final = DATA / "unseen.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutTable:
    """Constants that were fitted without a group of series."""

    series: list[TextField]
    """Those measured by the same people on the same machines."""
    figures: dict[str, NumberOrZeroField] = field(default_factory=dict)
    """By name; none where nothing was fitted to the group, so that the shipped ones do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnseenFile:
    """Contents of the file with constants that were fitted without some series."""

    without: list[WithoutTable] = field(default_factory=list)
    """By group."""


@cache
def unseen_groups() -> tuple[WithoutTable, ...]:
    """Return all groups of series, with the constants that were fitted without them."""
    return tuple(check(UnseenFile, read_document(_FILE)).without)


def siblings(series: str) -> tuple[str, ...]:
    """Return the series that are left out together with a series, which is one of them.

    Empty if the series is in no group.
    """
    found = (tuple(group.series) for group in unseen_groups() if series in group.series)
    return next(found, ())


def before(scenario: Scenario, series: str) -> Scenario:
    """Return the scenario as predicted before a series and its siblings were measured.

    Its kernel constants were fitted without them, and its uncertainty is that without them.

    Raises
    ------
    StopIteration
        If the series is in no group, which is a bug.
    """
    scenario = with_uncertainties(scenario)
    group = next(group for group in unseen_groups() if series in group.series)
    if group.figures:
        scenario = with_kernel_files(scenario, with_values(group.figures))
    return as_unseen(scenario, group.series)
