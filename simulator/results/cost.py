"""What a run costs, and how many processors its devices need to stay busy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from simulator.equations import cost as equations
from simulator.equations.cpu import speed_ratio, vcpus_short, vcpus_to_feed
from simulator.physics.device_time import device_time
from simulator.pipeline.program import makes_own_batches
from simulator.pipeline.run_length import samples_of_an_epoch
from simulator.pipeline.stages.base import Path, StageDemands
from simulator.pipeline.topology import Site, Topology
from simulator.results.energy import electricity_in_a_step, electricity_of
from simulator.results.ownership import is_owned, owned_price
from simulator.results.power import joules_per_step
from simulator.results.prediction import Cost, CpuNeed, Timing
from simulator.schema.hardware.cluster import Group
from simulator.schema.hardware.price import Price, Purchase, price_of
from simulator.schema.scenario import Scenario
from simulator.terms import Term, product_of, sum_of, term
from simulator.units import Real, UsdPerSecond


def bill(scenario: Scenario, timing: Timing) -> Cost:
    """Price, cost per step and of the whole run, samples per dollar, energy per step.

    Parameters
    ----------
    scenario : Scenario
        Says what machines cost; without a price all dollars are None.
    timing : Timing
        How long a step and the run take.
    """
    price, energy = rent(scenario), joules_per_step(scenario, timing)
    terms = {} if price is None else _dollars(scenario, timing, price)
    if energy is not None:
        terms["energy_per_step"] = energy
    known = {name: float(one.value) for name, one in terms.items()}
    return Cost(
        terms=terms,
        per_second=known.get("per_second"),
        per_step=known.get("per_step"),
        samples_per_usd=known.get("samples_per_usd"),
        for_machines=known.get("for_machines"),
        time_to_train=timing.total_time,
        energy_per_step=known.get("energy_per_step"),
        electricity=known.get("electricity"),
    )


def _dollars(scenario: Scenario, timing: Timing, price: Term) -> dict[str, Term]:
    """What steps, samples and the whole run cost, with their equations."""
    whole = term(
        equations.cost_of_block if is_block(scenario) else equations.cost_to_train,
        price=price,
        time=timing.total_time,
        provisioning=scenario.cost.provisioning,
    )
    found, working = {"per_second": price}, price
    drawn, in_a_step = electricity_of(scenario, timing), electricity_in_a_step(scenario, timing)
    if drawn is not None and in_a_step is not None:
        found["electricity"] = drawn
        whole = sum_of(rent=whole, electricity=drawn)
        working = sum_of(rent=price, electricity=in_a_step)
    step = timing.step_time.mean
    found["per_step"] = term(equations.cost_per_step, price=working, step_time=step)
    found["for_machines"] = whole
    if float(working.value) > 0.0:
        found["samples_per_usd"] = term(
            equations.samples_per_usd, throughput=_epoch_rate(scenario, timing), price=working
        )
    return found


def is_block(scenario: Scenario) -> bool:
    """Whether the machines are bought as a capacity block, which is paid whole."""
    return scenario.cost.purchase is Purchase.CAPACITY_BLOCK


def paid_time(scenario: Scenario, time: Real) -> Real:
    """How long machines are paid for a run of so long, with what is billed before it [s]."""
    held = scenario.cost.provisioning + time
    return equations.block_time(held) if is_block(scenario) else held


def _epoch_rate(scenario: Scenario, timing: Timing) -> float:
    """Samples of a whole epoch over its time [/s]: what starts and ends it is paid for as well."""
    return float(samples_of_an_epoch(scenario) / timing.epoch_time)


def machines_price(scenario: Scenario) -> UsdPerSecond | None:
    """Price of all machines together [$/s]: every group is billed until all have ended.

    None if any machine's price is unknown.
    """
    price = rent(scenario)
    return None if price is None else cast("UsdPerSecond", price.value)


def rent(scenario: Scenario) -> Term | None:
    """The same with the equation that gives it."""
    total: Term | None = None
    for group in scenario.cluster.groups:
        owned = is_owned(scenario, group)
        price = owned_price(scenario, group) if owned else _rent_of_one(scenario, group)
        if price is None:
            return None
        own = product_of(price=price, machines=group.count)
        total = own if total is None else sum_of(groups_before=total, group=own)
    return total


def price_spread(scenario: Scenario) -> UsdPerSecond:
    """From the lowest to the highest price seen, of all machines together [$/s]; 0 without one."""
    listed = ((group.count, listed_price(scenario, group)) for group in scenario.cluster.groups)
    return sum(count * (one.high - one.low) for count, one in listed if one is not None)


def machine_price(scenario: Scenario, group: Group) -> UsdPerSecond | None:
    """Price of one machine of a group [$/s]: the scenario's own, else the catalogue's, or None.

    A price that moves is the middle of the range seen. That of an owned machine is without the
    electricity of its work.
    """
    if is_owned(scenario, group):
        owned = owned_price(scenario, group)
        return None if owned is None else cast("UsdPerSecond", owned.value)
    return _rent_of_one(scenario, group)


def _rent_of_one(scenario: Scenario, group: Group) -> UsdPerSecond | None:
    """The same of a machine that is rented."""
    own = stated_price(scenario, group)
    if own is not None:
        return own
    listed = listed_price(scenario, group)
    return None if listed is None else listed.usual


def stated_price(scenario: Scenario, group: Group) -> UsdPerSecond | None:
    """Price that the scenario states for one machine of a group [$/s]; None where it does not."""
    if group.price is None and group is scenario.cluster.trainers:
        return scenario.cost.price
    return group.price


def listed_price(scenario: Scenario, group: Group) -> Price | None:
    """The catalogue's price that a machine of a group is billed at.

    None where the scenario states one, or the profile has none for what is bought there.
    """
    if stated_price(scenario, group) is not None:
        return None
    return price_of(group.host.prices, scenario.cost.purchase, scenario.cost.region)


def cpu_need(
    scenario: Scenario, topology: Topology, stages: Sequence[StageDemands]
) -> CpuNeed | None:
    """Count the vCPUs one accelerator needs to stay busy, and how many are short for all.

    A vCPU here is a hardware thread of a machine whose threads are all busy.
    """
    compute = device_time(scenario)
    gpus = scenario.cluster.trainers.gpus_per_host
    if compute is None or gpus == 0 or float(compute.total) == 0.0:
        return None
    pool = replace(topology.host.cpu, taken=0.0)
    core_seconds = sum(
        float(demand.amount) * stage.times * speed
        for stage in stages
        for speed in (_speed_of(topology, stage, stages),)
        for demand in stage.demands
        if demand.path is Path.CORES
    )
    vcpu_seconds = core_seconds * pool.threads / pool.capacity
    making = float(vcpus_to_feed(vcpu_seconds, compute.total))
    per_gpu = making + scenario.job.train.host_threads * scenario.ranks_per_host / gpus
    machines = scenario.cluster.trainers.count
    own = machines * pool.threads if makes_own_batches(scenario) else 0.0
    there = own + sum(_own_vcpus(topology, site) for site in topology.sites[1:])
    return CpuNeed(
        per_gpu=per_gpu,
        short=float(vcpus_short(there, per_gpu, machines * gpus)),
        per_sample=float(vcpu_seconds) / scenario.job.train.batch_size,
    )


def _speed_of(topology: Topology, stage: StageDemands, stages: Sequence[StageDemands]) -> float:
    """Core-seconds of the trainers' machine for one of where the stage runs.

    0 for what is done elsewhere in place of the same work here: it would count twice.
    """
    if not stage.group:
        return 1.0
    if any(other.stage == stage.stage and not other.group for other in stages):
        return 0.0
    site = topology.sites[topology.sites_of(stage.group)[0]]
    return _own_vcpus(topology, site) / site.host.cpu.threads


def _own_vcpus(topology: Topology, site: Site) -> float:
    """A site's vCPUs in vCPUs of the trainers' machine, by CoreMark where both are known."""
    own, pool = topology.host.cpu, site.host.cpu
    if own.coremark is None or pool.coremark is None:
        return pool.threads
    ratio = speed_ratio(pool.coremark / pool.threads, own.coremark / own.threads)
    return float(pool.threads * ratio)
