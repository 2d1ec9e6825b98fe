"""What the machines of a service draw, and the energy of its tokens and requests.

Powers are those of training: `results.power`.
"""

from __future__ import annotations

from collections.abc import Iterator

from simulator.equations.energy import building_energy, drawn_energy, emissions
from simulator.results.power import draws_at, is_known
from simulator.results.serving import Answered, Saturation, ServiceEnergy
from simulator.schema.energy import EnergyPlan
from simulator.schema.serving import Service
from simulator.units import MILLION, THOUSAND, Joules, Kilograms, PerSecond


def energy_of(
    service: Service, told: Answered | None, saturation: Saturation | None
) -> ServiceEnergy:
    """What all machines draw at the rates of the run; at saturation where it has none.

    Accelerators that no replica uses stand idle. Under autoscaling the machines that were there on
    average count.
    """
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
        emitted_per_thousand_requests=_emitted(service.electricity, of(THOUSAND, requests)),
    )


def _emitted(plan: EnergyPlan | None, energy: Joules) -> Kilograms | None:
    """What the grid emits for so much at the machines' plugs; None where it is not named [kg]."""
    if plan is None or plan.grid is None:
        return None
    return float(emissions(building_energy(energy, plan.pue), plan.grid))


def _busy(service: Service, told: Answered | None) -> tuple[float, float]:
    """Share of the time in which all accelerators, and all processors, are busy [1].

    At saturation all replicas compute. Without accelerators processors do; beside them they are
    busy with requests before their batches alone.
    """
    group, devices = service.group, sum(count * busy for count, busy in _kinds(service, told))
    used = min(1.0, devices / (group.count * group.gpus_per_host))
    if group.host.gpu is None:
        return 0.0, used
    return used, 0.0 if told is None else told.host_busy


def _kinds(service: Service, told: Answered | None) -> Iterator[tuple[int, float]]:
    """Devices of each kind of replica, and the share of the time in which these compute."""
    serving, before = service.serving, service.serving.prefill
    of = {} if told is None else told.busy_of
    yield serving.replicas * serving.tensor, 1.0 if told is None else told.busy
    if before is not None:
        yield before.replicas * before.tensor, of.get("prompts", 1.0)
