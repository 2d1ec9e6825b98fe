"""Power of machines, electricity and ownership, and the energy of runs and requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from simulator.equations import cost as equations
from simulator.equations.cost import (
    building_energy,
    drawn_energy,
    electricity_cost,
    emissions,
    energy_per_step,
    run_energy,
)
from simulator.pipeline.run_length import lengths
from simulator.pipeline.stages.base import Resource
from simulator.records import dataclass
from simulator.results.prediction import Energy, Timing
from simulator.schema.cost import EnergyPlan, Purchase
from simulator.schema.machines import Group, short_name
from simulator.schema.provenance import Source
from simulator.schema.scenario import Scenario
from simulator.terms import Term, term
from simulator.units import (
    MILLION,
    THOUSAND,
    WATT,
    Joules,
    Kilograms,
    PerSecond,
    Usd,
    UsdPerSecond,
    Watts,
    at_most,
    parse,
)

if TYPE_CHECKING:
    from simulator.results.serving import Answered, Saturation, ServiceEnergy
    from simulator.schema.serving import Service

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
"""Idle power of an accelerator as a share of its limit; measured: 8% (A10G) to 19% (V100)."""
OF_LIMIT: Final = Source(
    reference="power limit of the profile; at rest 15% of it, a guess", date="2026", verified=False
)
REST_IDLE: Final = 0.05
REST_FULL: Final = 0.37
"""Power of fans, NICs, switches and losses of a machine as a share of its accelerators' limits."""
OF_REST: Final = Source(
    reference=f"{_TEADS}: p4d.24xlarge, 744.8 W at rest and 5,245 W at work, less its A100s and "
    "vCPUs; a DGX H100 in training then draws 7.1 kW (measured: 7.75 kW, arXiv 2506.14551)",
    date="2023",
    verified=False,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Power of one part of all machines of a group [W]; `busy` is its utilization, 0 to 1."""

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
    """Return the power of every part of all billed machines over a mean step.

    `groups` defaults to all groups. None if the power of an accelerator is unknown.
    """
    groups = scenario.cluster.groups if groups is None else groups
    if not all(map(is_known, groups)):
        return None
    return tuple(draw for group in groups for draw in _of_group(scenario, group, timing))


def joules_per_step(scenario: Scenario, timing: Timing) -> Term | None:
    """Return the energy of all machines in a mean step; None if a power is unknown."""
    found = draws(scenario, timing)
    if found is None:
        return None
    power = sum(d.mean for d in found)
    return term(drawn_energy, power=power, time=timing.step_time.mean)


def is_known(group: Group) -> bool:
    """Return whether the power of the accelerators of a group is known."""
    gpu = group.host.gpu
    return gpu is None or gpu.emulated or gpu.power is not None


def _of_group(scenario: Scenario, group: Group, timing: Timing) -> tuple[Draw, ...]:
    trains = group is scenario.cluster.trainers
    usage = timing.usage.get(str(Resource.CPU) if trains else f"{group.name}.{Resource.CPU}")
    devices = timing.accelerator_utilization
    return draws_at(
        group,
        accelerators=devices if trains and devices is not None else 0.0,
        processors=0.0 if usage is None else usage.mean,
        lead="" if trains else f"{group.name}: ",
    )


def draws_at(
    group: Group, *, accelerators: float, processors: float, lead: str = ""
) -> tuple[Draw, ...]:
    """Return the power of every part of the machines of a group at given utilizations.

    Parameters
    ----------
    group : Group
        Machines whose accelerators, if any, have a known power.
    accelerators, processors : float
        Utilization of the accelerators in use, and of all processors, 0 to 1.
    lead : str
        Prefix for the names of the parts.
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
    """Yield the power of used and idle accelerators and of the rest of the machines."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Fixed costs of one owned machine.

    `capex` is paid at the start and includes a share of the network; `capital`, `hosting`, `staff`
    and `electricity` (of the idle machine, including building losses) are per time [$/s].
    """

    capex: Usd
    capital: Term
    hosting: UsdPerSecond
    staff: UsdPerSecond
    electricity: Term

    @property
    def running(self) -> UsdPerSecond:
        """Fixed costs per time without the purchase price of the machine [$/s]."""
        return self.hosting + self.staff + float(self.electricity.value)

    @property
    def price(self) -> UsdPerSecond:
        """All fixed costs per time, including the purchase price of the machine [$/s]."""
        return float(self.capital.value) + self.running


Billed: TypeAlias = "Scenario | Service"
"""A job or a service: machines that are rented or owned."""


def is_owned(billed: Billed, group: Group) -> bool:
    """Return whether the machines of a group are owned; machines with a stated price are rented."""
    own = group is billed.cluster.trainers and billed.cost.price is not None
    return billed.cost.purchase is Purchase.OWNED and group.price is None and not own


def standing(billed: Billed, group: Group) -> Standing | None:
    """Return the fixed costs of one machine of a group; None if a price or power is unknown."""
    plan, energy = billed.owned, billed.energy
    paid, watts = capex_of(billed, group), _power(group)
    if plan is None or energy is None or energy.price is None or paid is None or watts is None:
        return None
    rest, most = watts
    usual = in_a_rack(group)
    network = plan.network if usual or plan.states("network") else 0.0
    with_network = paid * (1.0 + network)
    capital = term(
        equations.capital_cost,
        capex=with_network,
        residual=paid * plan.residual,
        interest=plan.interest,
        life=plan.life,
    )
    room = most * plan.hosting_per_watt if usual else 0.0
    return Standing(
        capex=with_network,
        capital=capital,
        hosting=room if plan.hosting is None else plan.hosting,
        staff=plan.staff or 0.0,
        electricity=electricity_by_time(energy, rest),
    )


def in_a_rack(group: Group) -> bool:
    """Return whether the machines of a group are assumed to be in a data centre."""
    gpu = group.host.gpu
    return gpu is None or not gpu.desktop


def electricity_by_time(plan: EnergyPlan, power: Watts) -> Term:
    """Return the electricity cost of a power per time, including building losses [$/s]."""
    building = term(building_energy, energy=power, pue=plan.pue)
    return term(electricity_cost, energy=building, tariff=plan.price or 0.0)


def owned_price(billed: Billed, group: Group) -> Term | None:
    """Return the cost of an owned machine per working time, electricity of work excluded [$/s]."""
    found = standing(billed, group)
    if found is None or billed.owned is None:
        return None
    return term(
        equations.owned_price,
        capital=found.capital,
        hosting=found.hosting,
        staff=found.staff,
        standing=found.electricity,
        utilization=billed.owned.utilization,
    )


def capex_of(billed: Billed, group: Group) -> Usd | None:
    """Return the purchase price of one machine of a group: stated, else listed, else None."""
    plan = billed.owned
    stated = plan is not None and group is billed.cluster.trainers and plan.capex is not None
    return plan.capex if stated and plan is not None else group.host.capex


def missing(scenario: Scenario) -> Iterator[str]:
    """Yield texts for unknown prices and powers of owned machines, which the bill lacks."""
    for group in scenario.cluster.groups:
        if not is_owned(scenario, group):
            continue
        if capex_of(scenario, group) is None:
            trains = group is scenario.cluster.trainers
            key = "owned.capex" if trains else "remote.price"
            yield f"what {short_name(group.host.name)} costs to buy: state {key}"
        if _power(group) is None:
            machine = short_name(group.host.name)
            yield f"the power of {machine}: its accelerator's profile states none"


def _power(group: Group) -> tuple[Watts, Watts] | None:
    """Return the idle and maximum power of one machine of a group [W]; None if unknown."""
    host = group.host
    if not is_known(group):
        return None
    found = draws_at(
        replace(group, count=1, gpus_per_host=host.gpu_count), accelerators=0.0, processors=0.0
    )
    most = sum(draw.full for draw in found) if host.power is None else host.power
    return sum(draw.idle for draw in found), most


def energy_of(scenario: Scenario, timing: Timing) -> Energy:
    """Return the energy of a run without interruptions, with that of its building if described.

    Machines are billed from the first to the last second of the run. During steps they draw their
    power by utilization; at all other times (provisioning, start-up, evaluation) they draw idle
    power.

    Parameters
    ----------
    scenario : Scenario
        Scenario with the billed machines and the source of their electricity.
    timing : Timing
        Times of steps and the run, and utilizations.
    """
    missing = tuple(_missing(scenario))
    found = draws(scenario, timing)
    if found is None:
        return Energy(missing=missing)
    machines = _of_machines(scenario, timing, found)
    terms = {"of_machines": machines}
    if scenario.energy is not None:
        terms |= _of_building(scenario.energy, machines)
    known = {name: cast("float", one.value) for name, one in terms.items()}
    return Energy(
        power=sum(draw.mean for draw in found),
        of_machines=known["of_machines"],
        of_building=known.get("of_building"),
        emitted=known.get("emitted"),
        price=known.get("price"),
        missing=missing,
        terms=terms,
    )


def electricity_of(scenario: Scenario, timing: Timing) -> Term | None:
    """Return the electricity cost of owned machines in the run; None if none is owned.

    For rented machines, electricity is included in the rent.
    """
    plan, found = scenario.energy, _of_owned(scenario, timing)
    if plan is None or plan.price is None or found is None:
        return None
    return _of_building(plan, _of_machines(scenario, timing, found))["price"]


def electricity_in_a_step(scenario: Scenario, timing: Timing) -> Term | None:
    """Return the electricity cost of owned machines per time in steps [$/s]; None without any."""
    plan, found = scenario.energy, _of_owned(scenario, timing)
    if plan is None or plan.price is None or found is None:
        return None
    return electricity_by_time(plan, sum(draw.mean for draw in found))


def _of_owned(scenario: Scenario, timing: Timing) -> tuple[Draw, ...] | None:
    owned = [group for group in scenario.cluster.groups if is_owned(scenario, group)]
    return draws(scenario, timing, owned) if owned else None


def _of_machines(scenario: Scenario, timing: Timing, found: tuple[Draw, ...]) -> Term:
    steps = lengths(scenario).total_steps * timing.step_time.mean
    idle = sum(draw.idle for draw in found)
    return term(
        run_energy,
        idle_power=idle,
        added_power=sum(draw.mean for draw in found) - idle,
        time=timing.total_time + scenario.cost.provisioning,
        worked=at_most(timing.total_time, steps),
    )


def _of_building(plan: EnergyPlan, machines: Term) -> dict[str, Term]:
    building = term(building_energy, energy=machines, pue=plan.pue)
    terms = {"of_building": building}
    if plan.emissions is not None:
        terms["emitted"] = term(emissions, energy=building, grid=plan.emissions)
    if plan.price is not None:
        terms["price"] = term(electricity_cost, energy=building, tariff=plan.price)
    return terms


def _missing(scenario: Scenario) -> Iterator[str]:
    """Yield texts for inputs that are missing for energy and emissions.

    The grid is requested if the scenario describes energy, but neither its price nor its emissions.
    """
    for group in scenario.cluster.groups:
        gpu = group.host.gpu
        if gpu is not None and gpu.power is None and not gpu.emulated:
            yield f"the power of {short_name(gpu.name)}: its profile states none"
    plan = scenario.energy
    if plan is not None and plan.emissions is None and plan.price is None:
        yield "energy.grid, for the emissions: an amount in g/kWh, or the region of a cloud"


def service_energy(
    service: Service, told: Answered | None, saturation: Saturation | None
) -> ServiceEnergy:
    """Return the power of all machines of a service, and energy per token and request.

    Rates are those of the simulated run if it is given, else those at saturation. Accelerators
    without a replica are idle. Under autoscaling, the average number of machines counts.
    """
    from simulator.results.serving import ServiceEnergy  # noqa: PLC0415 - no job needs it

    found = told or saturation
    if found is None or not found.output_rate or not is_known(service.group):
        return ServiceEnergy()
    serving = service.serving
    there = 1.0 if told is None else told.replicas / serving.replicas
    accelerators, processors = _busy(service, told)
    drawn = draws_at(service.group, accelerators=accelerators, processors=processors)
    power = there * sum(draw.mean for draw in drawn)
    requests = found.request_rate
    prompts = requests * service.load.prompt.mean if told is None else told.prompt_rate

    def of(many: float, rate: PerSecond) -> Joules:
        return float(drawn_energy(power, many / rate))

    return ServiceEnergy(
        power=power,
        per_million_output_tokens=of(MILLION, found.output_rate),
        per_million_tokens=of(MILLION, found.output_rate + prompts),
        per_thousand_requests=of(THOUSAND, requests),
        emitted_per_thousand_requests=_emitted(service.energy, of(THOUSAND, requests)),
    )


def _emitted(plan: EnergyPlan | None, energy: Joules) -> Kilograms | None:
    """Return the emissions for an energy drawn by machines [kg]; None if the grid is unknown."""
    if plan is None or plan.emissions is None:
        return None
    return float(emissions(building_energy(energy, plan.pue), plan.emissions))


def _busy(service: Service, told: Answered | None) -> tuple[float, float]:
    """Return the utilization of all accelerators and of all processors.

    Without a simulated run, all replicas are busy (saturation). With accelerators, processors are
    busy only with requests before they are batched.
    """
    group, devices = service.group, sum(count * busy for count, busy in _kinds(service, told))
    used = min(1.0, devices / (group.count * group.gpus_per_host))
    if group.host.gpu is None:
        return 0.0, used
    return used, 0.0 if told is None else told.host_busy


def _kinds(service: Service, told: Answered | None) -> Iterator[tuple[int, float]]:
    """Yield the number of devices of each kind of replica and their utilization."""
    serving, before = service.serving, service.serving.prefill
    of = {} if told is None else told.busy_of
    yield serving.replicas * serving.tensor, 1.0 if told is None else told.busy
    if before is not None:
        yield before.replicas * before.tensor, of.get("prompts", 1.0)
