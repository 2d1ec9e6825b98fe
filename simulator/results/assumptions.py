"""The assumptions behind a prediction, and its warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from simulator.physics import footprint
from simulator.physics.device_time import device_time
from simulator.physics.footprint import HostRam, MemoryFit, Verdict
from simulator.physics.transformer import kernels_of
from simulator.pipeline.run_length import lengths
from simulator.pipeline.stages.input import client_of, helpers_alone
from simulator.pipeline.topology import drives_used
from simulator.results.cost import elsewhere, listed_price, uses
from simulator.results.energy import Billed, in_a_rack
from simulator.results.prediction import Timing
from simulator.schema.accelerators import Gpu
from simulator.schema.cost import MOST_IN_BLOCKS, Purchase
from simulator.schema.machines import Group, Host, Link, short_name
from simulator.schema.provenance import Assumption, Part, Source, bearing
from simulator.schema.scenario import Scenario
from simulator.schema.storage import Scope, Storage
from simulator.schema.training import Sharding
from simulator.units import (
    BYTE,
    BYTE_PER_SECOND,
    HOUR,
    KILOGRAM_PER_JOULE,
    MONTH,
    SECOND,
    THOUSAND,
    USD,
    USD_PER_BYTE,
    USD_PER_BYTE_SECOND,
    USD_PER_JOULE,
    USD_PER_REQUEST,
    USD_PER_SECOND,
    Unit,
    show,
)

BETWEEN_STOPS = 1024 * 7.9 * HOUR
"""Mean accelerator-time between interruptions, 1,024 A100 (RSC-1, arXiv 2410.21680) [s]."""
LEAST_STOPPED = 384
"""Accelerators of the smallest job with published failures (BLOOM, arXiv 2211.05100)."""
OF_RACKS = ("network", "hosting")
"""Costs that apply only to machines in a data centre, unless a scenario states them."""
SHAKY_WIDTH = 0.01
"""Relative half-width of the mean step above which a warning about its precision is given."""


def assumptions(scenario: Scenario) -> tuple[Assumption, ...]:
    """Return all inputs that a scenario takes from profiles or defaults, with their sources."""
    return (
        *scenario.notes,
        *_machine(scenario),
        *bearing(_device_time(scenario), Part.DEVICE),
        *_processors(scenario),
        *bearing(_kernels(scenario), Part.DEVICE),
        *footprint.assumptions(scenario),
    )


def _of(what: str, owner: Host | Gpu | Link | Storage) -> str:
    return f"{what} of {short_name(owner.name)}"


def _figure(
    what: str, value: float | None, unit: Unit, sources: object, key: str, *parts: Part
) -> tuple[Assumption, ...]:
    source = sources.get(key) if isinstance(sources, dict) else None
    if value is None or source is None:
        return ()
    return bearing((Assumption(what=what, value=show(value, unit), source=source),), *parts)


def _machine(scenario: Scenario) -> tuple[Assumption, ...]:
    group = scenario.cluster.trainers
    host, store, gpu = group.host, group.storage, group.host.gpu
    found = [
        *_figure(
            *(_of("RAM", host), host.ram, BYTE, host.sources, "ram"), Part.HOST_RAM, Part.INPUT
        ),
        *_store(store),
        *_client(scenario, store),
        *_links(group),
    ]
    if gpu is not None:
        found += _figure(
            *(_of("memory", gpu), gpu.memory, BYTE, gpu.sources, "memory"), Part.GPU_MEMORY
        )
    found += _figure(
        _of("memory bandwidth", host),
        host.memory_bandwidth,
        BYTE_PER_SECOND,
        host.sources,
        "memory_bandwidth",
        Part.INPUT,
    )
    paid = (*_prices(scenario), *_store_prices(scenario), *bill_notes(scenario))
    return (*found, *_layout(host), *bearing(paid, Part.BILL))


def _store(store: Storage) -> Iterator[Assumption]:
    """Yield the assumed read rate and read latency of the store."""
    reached = store.achievable_read_bandwidth is not None
    key = "achievable_read_bandwidth" if reached else "read_bandwidth"
    what, sources = _of("read rate", store), store.sources
    yield from _figure(what, store.read_rate, BYTE_PER_SECOND, sources, key, Part.INPUT)
    what, key = _of("read latency", store), "read_latency"
    yield from _figure(what, store.read_latency or None, SECOND, sources, key, Part.INPUT)


def _client(scenario: Scenario, store: Storage) -> Iterator[Assumption]:
    """Yield the assumed figures of the client of an object store."""
    client = client_of(scenario, store)
    if client is None or scenario.job.dataset.read_time is not None:
        return
    known = (
        ("time of a request", client.request_time or None, SECOND, "request_time"),
        ("rate of a reader", client.stream_rate, BYTE_PER_SECOND, "stream_rate"),
        ("CPU time of a request", client.request_cpu or None, SECOND, "request_cpu"),
        ("bytes a core receives", client.core_rate, BYTE_PER_SECOND, "core_rate"),
    )
    for what, value, unit, key in known:
        name = f"{what} of {client.name}"
        yield from _figure(name, value, unit, client.sources, key, Part.INPUT)


def _links(group: Group) -> Iterator[Assumption]:
    """Yield the assumed rates of the links to and between accelerators."""
    host, gpu = group.host, group.host.gpu
    copied = gpu is not None and not gpu.unified_memory
    among = group.gpus_per_host > 1
    for link, part, used in (
        (host.host_link, Part.COPY, copied),
        (host.peer_link, Part.EXCHANGE, among),
    ):
        if link is not None and used:
            key = "peak" if link.achievable is None else "achievable"
            what = _of("rate", link)
            yield from _figure(what, link.rate, BYTE_PER_SECOND, link.sources, key, part)


def _layout(host: Host) -> tuple[Assumption, ...]:
    """Return the assumed PCIe switches and drives of a machine whose source is unverified."""
    named = (
        ("switches", "PCIe switches", (Part.COPY, Part.EXCHANGE)),
        ("local_storage", "drives inside", (Part.INPUT,)),
    )
    found: list[Assumption] = []
    for key, what, parts in named:
        source = host.sources.get(key) or host.sources.get(f"{key}.0")
        if source is not None and not source.verified:
            guess = Assumption(what=_of(what, host), value="assumed", source=source)
            found += bearing((guess,), *parts)
    return tuple(found)


def _store_prices(scenario: Scenario) -> tuple[Assumption, ...]:
    """Return the assumed prices of stores and their requests."""
    found: list[Assumption] = []
    for use in uses(scenario):
        store, charges = use.store, use.store.charges
        told = [("price", "rent", store.price, USD_PER_BYTE_SECOND, True)]
        if charges is not None:
            reads, writes = use.reads > 0.0, use.writes > 0.0
            told += [
                ("charges.reads", "requests that read", charges.reads, USD_PER_REQUEST, reads),
                ("charges.writes", "requests that write", charges.writes, USD_PER_REQUEST, writes),
                ("charges.read_bytes", "bytes read", charges.read_bytes, USD_PER_BYTE, True),
                (
                    "charges.written_bytes",
                    "bytes written",
                    charges.written_bytes,
                    USD_PER_BYTE,
                    True,
                ),
            ]
        for key, what, price, unit, asked in told:
            if asked:
                found += _figure(_of(what, store), price, unit, store.sources, key)
    return tuple(found)


def bill_notes(billed: Billed) -> tuple[Assumption, ...]:
    """Return the assumptions of a bill about the building, the grid and owned machines."""
    return (*_electricity(billed), *_ownership(billed))


def _electricity(billed: Billed) -> Iterator[Assumption]:
    plan = billed.energy
    if plan is None:
        return
    for name, what, value in (
        ("pue", "power usage effectiveness", f"{plan.pue:g}"),
        (
            "grid",
            "emissions of the grid",
            plan.emissions and show(plan.emissions, KILOGRAM_PER_JOULE),
        ),
        ("tariff", "tariff", plan.price and show(plan.price, USD_PER_JOULE)),
    ):
        if value is not None:
            yield Assumption(what=what, value=str(value), source=plan.figures[name])


def _ownership(billed: Billed) -> Iterator[Assumption]:
    """Return the assumed costs of owned machines."""
    plan, cluster = billed.owned, billed.cluster
    if plan is None or billed.cost.purchase is not Purchase.OWNED:
        return
    shown = {
        "life": show(plan.life, SECOND),
        "network": f"{plan.network:g}",
        "residual": f"{plan.residual:g}",
        "interest": f"{plan.interest:g} a year",
        "utilization": f"{plan.utilization:g} of its life",
        "hosting": f"{show(plan.hosting_per_watt * THOUSAND * MONTH, USD)} a month for each kW",
    }
    racks = any(map(in_a_rack, cluster.groups))
    for name, value in shown.items():
        if name in plan.assumed and (racks or name not in OF_RACKS):
            what = f"owned.{name} (not given)"
            yield Assumption(what=what, value=value, source=plan.assumed[name])
    for group in cluster.groups:
        source = group.host.sources.get("capex")
        if source is not None and (plan.capex is None or group is not cluster.trainers):
            what = f"what {short_name(group.host.name)} costs to buy"
            yield Assumption(what=what, value=show(group.host.capex or 0.0, USD), source=source)
    if plan.staff is None:
        source = Source(reference="no published figure was found", date="2026-11", verified=False)
        yield Assumption(what="owned.staff (not given)", value="$0/h", source=source)


def _prices(scenario: Scenario) -> tuple[Assumption, ...]:
    found = []
    for group in scenario.cluster.groups:
        listed = listed_price(scenario, group)
        if listed is not None:
            what = _of(f"{listed.purchase} price", group.host)
            value = show(listed.usual, USD_PER_SECOND)
            found.append(Assumption(what=what, value=value, source=listed.source))
    return tuple(found)


def _processors(scenario: Scenario) -> tuple[Assumption, ...]:
    """Return the assumed SMT gain and contention of busy cores on all machines."""
    computes = scenario.cluster.trainers.host.gpu is None
    found: list[Assumption] = []
    for group in scenario.cluster.groups:
        pool, sources = group.host.cpu, group.host.sources
        for key, what, value in (
            ("cpu.smt_worth", "worth of a second thread on a busy core", pool.smt_worth),
            ("cpu.contention", "slow-down of busy cores by one another", pool.contention),
        ):
            source = sources.get(key)
            if source is not None:
                what_where = f"{what}, {short_name(group.host.name)}"
                found.append(Assumption(what=what_where, value=f"{value:g}", source=source))
    return bearing(found, Part.INPUT, *([Part.DEVICE] if computes else []))


def _device_time(scenario: Scenario) -> Iterator[Assumption]:
    """Yield the device time of a batch, and the time of an optimizer update on the host."""
    time = device_time(scenario)
    if time is None:
        return
    what = f"device time of a batch, by {time.equation}"
    yield Assumption(what=what, value=show(float(time.total), SECOND), source=time.source)
    if scenario.job.parallelism.offload_optimizer and time.step is not None:
        yield Assumption(
            what="update by the host's processors",
            value=show(float(time.step.host.update), SECOND),
            source=kernels_of(scenario).sources["update_host"],
        )


def _kernels(scenario: Scenario) -> Iterator[Assumption]:
    """Yield the inputs of a computed device time that come from other devices or the software."""
    time, gpu = device_time(scenario), scenario.cluster.trainers.host.gpu
    if time is None or time.measured:
        return
    kernels = scenario.job.software.kernels
    if time.step is None and kernels is not None:
        launch, others = kernels.launch, kernels.kernel.others
        if others != 1.0:
            what = "memory that compiled norms, activations and sums move, of eager ones"
            yield Assumption(what=what, value=f"{others:.0%}", source=launch.source)
        value = show(launch.kernel, SECOND)
        yield Assumption(what="launching a kernel", value=value, source=launch.source)
    if gpu is None:
        return
    if time.step is not None and kernels is not None and kernels.apart is not None:
        factor, source = kernels.apart
        of_others = f"relative to others of {gpu.architecture}, measured"
        what = f"{_of('matrix products', gpu)} {of_others}"
        yield Assumption(what=what, value=f"{factor:.0%}", source=source)
    elif gpu.relative is not None:
        what = f"{_of('kernels', gpu)}, to which no figures were fitted"
        value = f"{gpu.reach:.0%} of those of {gpu.relative.device}"
        yield Assumption(what=what, value=value, source=gpu.relative.source)
    if gpu.outdone is not None:
        # Newer devices that memory limits fall short of what their bandwidth says.
        more = f"relative to kernels of {gpu.outdone.architecture}, measured"
        what = f"{_of('share of the memory bandwidth', gpu)} {more}"
        value = f"{gpu.outdone.ratio:.1%}"
        yield Assumption(what=what, value=value, source=gpu.outdone.source)


def warnings(
    scenario: Scenario,
    timing: Timing,
    ram: HostRam,
    memory: MemoryFit | None,
    rests_on: tuple[Assumption, ...],
) -> tuple[str, ...]:
    """Return warnings about an unreliable prediction or a job that may fail.

    `rests_on`: assumptions of the prediction; unverified ones are named in a warning.
    """
    found = (
        _short_memory(memory),
        _sharded_for_nothing(scenario, memory),
        footprint.paging_warning(ram),
        *_unsure_steps(scenario, timing),
        _stragglers_of_an_epoch(scenario, timing),
        _drives(scenario),
        *_volumes(scenario),
        *elsewhere(scenario),
        _helpers(scenario),
        _spot(scenario),
        _blocks(scenario),
        _failures(scenario, timing),
        *(component.warning for component in scenario.uncertainties),
        _unverified(rests_on),
        "the price is undated" if _is_undated(scenario) else "",
    )
    return tuple(text for text in found if text)


def _short_memory(memory: MemoryFit | None) -> str:
    if memory is None or memory.known_verdict in {None, Verdict.YES}:
        return ""
    total, capacity = show(memory.total, BYTE), show(memory.capacity, BYTE)
    word = "does not fit" if memory.verdict is Verdict.NO else "may not fit"
    return f"GPU memory: the job {word}: {total} of {capacity}"


def _unsure_steps(scenario: Scenario, timing: Timing) -> Iterator[str]:
    learns, number = scenario.job.mode.learns, f"the {timing.simulated_steps:,}"
    one, many = ("step", "steps") if learns else ("batch", "batches")
    if timing.half_width > SHAKY_WIDTH * timing.step_time.mean:
        off = timing.half_width / timing.step_time.mean
        yield (
            f"{many} differ so much that the mean of {number} simulated ones is off by up to "
            f"{off:.0%} by chance"
        )
    if timing.bounded:
        yield (
            f"{number} simulated {many} use prefetched data only: the time of a {one} is the lower "
            "bound of a sustained run"
        )


def _unverified(rests_on: Sequence[Assumption]) -> str:
    names = [a.what for a in rests_on if not a.source.verified]
    return f"rests on unverified figures: {', '.join(names)}" if names else ""


def _is_undated(scenario: Scenario) -> bool:
    price = listed_price(scenario, scenario.cluster.trainers)
    return price is not None and price.source.date == "undated"


def _sharded_for_nothing(scenario: Scenario, memory: MemoryFit | None) -> str:
    """Warn if sharding gradients needs more memory than sharding only the optimizer.

    FSDP's SHARD_GRAD_OP keeps a shard of all parameters in addition to the full ones during a pass.
    Gradients make up for it, unless few parameters have some or a pipeline adds up whole ones.
    """
    job = scenario.job
    if memory is None or job.parallelism.sharding is not Sharding.GRADIENTS:
        return ""
    less = replace(job, parallelism=replace(job.parallelism, sharding=Sharding.OPTIMIZER))
    other = footprint.memory_fit(replace(scenario, jobs=(less,)))
    if other is None or other.total >= memory.total:
        return ""
    few = "there are few", "a pipeline adds up whole ones first"
    more, why = show(memory.total - other.total, BYTE), few[job.parallelism.pipeline > 1]
    needs = f"with sharded gradients the job needs {more} more than with a sharded optimizer alone"
    whole = "full parameters stay in addition to their shards (FSDP's SHARD_GRAD_OP)"
    return f"GPU memory: {needs}: {whole}, and of gradients {why}"


def _stragglers_of_an_epoch(scenario: Scenario, timing: Timing) -> str:
    """Warn if an epoch takes far longer than its steps, because its last batches are late."""
    steps = lengths(scenario).steps * timing.step_time.mean
    if timing.epoch_time - timing.first_step <= 2.0 * steps:
        return ""
    whole, own = show(timing.epoch_time, SECOND), show(steps, SECOND)
    return f"an epoch takes {whole}, its steps {own}: workers far slower than others delay its end"


def _drives(scenario: Scenario) -> str:
    """Warn if the data do not fit the drives."""
    group, job = scenario.cluster.trainers, scenario.job
    if group.storage.capacity is None or group.storage.scope is not Scope.LOCAL:
        return ""
    there = group.storage.capacity * drives_used(group)
    needed = job.stored_total
    if needed <= there:
        return ""
    return f"the data ({show(needed, BYTE)}) do not fit the drives ({show(there, BYTE)})"


def _volumes(scenario: Scenario) -> list[str]:
    """Warn if the credits of a volume depend on its size, and its size is unknown."""
    group = scenario.cluster.trainers
    stores = [store for store in (group.storage, group.origin) if store is not None]
    large = {s.name: s.full_rate_size for s in stores if s.capacity is None}
    return [
        f"{name.rpartition('/')[2]} is taken to be one of {show(size, BYTE)} or more, which keeps "
        "its full rate up; smaller ones are slower: hardware.storage_capacity states the size"
        for name, size in large.items()
        if size is not None
    ]


def _spot(scenario: Scenario) -> str:
    """Warn that spot machines may be interrupted, which the predicted times do not include."""
    if scenario.cost.purchase is not Purchase.SPOT:
        return ""
    told = scenario.interruptions
    counted = (
        "[spot] states them, and [goal.spot] for plan recommend"
        if told is None or told.outages is None
        else "they are in when it ends and in its bill"
    )
    said = f"bought as spot capacity: time and cost of the run leave interruptions out; {counted}"
    price = listed_price(scenario, scenario.cluster.trainers)
    if price is None or price.low == price.high:
        return said
    between = f"{show(price.low, USD_PER_SECOND)} to {show(price.high, USD_PER_SECOND)}"
    return f"{said}; the price is the middle of {between}"


def _blocks(scenario: Scenario) -> str:
    """Warn if more machines are requested as capacity blocks than can be bought."""
    machines = sum(group.count for group in scenario.cluster.groups)
    if scenario.cost.purchase is not Purchase.CAPACITY_BLOCK or machines <= MOST_IN_BLOCKS:
        return ""
    return f"capacity blocks hold {MOST_IN_BLOCKS} machines at a time, and these are {machines:,}"


def _failures(scenario: Scenario, timing: Timing) -> str:
    """Warn if a job of this size and length would be interrupted, and no failures are stated."""
    trainers = scenario.cluster.trainers
    accelerators = trainers.count * trainers.gpus_per_host
    stops = timing.total_time * accelerators / BETWEEN_STOPS
    if scenario.interruptions is not None or accelerators < LEAST_STOPPED or stops < 1.0:
        return ""
    return (
        "no failures are counted in time and cost (jobs of 1,024 GPUs were stopped every 7.9 h, "
        "arXiv 2410.21680): plan goodput counts them"
    )


def _helpers(scenario: Scenario) -> str:
    """Warn if machines of remote workers are short of RAM."""
    remote = scenario.job.remote
    if remote is None:
        return ""
    ram = footprint.host_ram(helpers_alone(scenario, remote))
    if ram.verdict is Verdict.YES:
        return ""
    needed, there = show(ram.total, BYTE), show(ram.capacity, BYTE)
    return f"RAM of group '{remote.name}' is short: {needed} needed, {there} there"
