"""Recommended next actions for a job or service: the changes that gain most, predicted and priced.

Every change of a job is first estimated in closed form; only the best of each kind is predicted. A
change counts if the run becomes shorter or cheaper by more than `MIN_GAIN`, and by more than the
noise of both simulated mean steps; if the job probably does not fit, if the change makes it fit.

A service within its limits gains by a lower price of its answers, as long as it stays within them;
one that misses them by meeting them, or by more requests within them; one whose load is beyond
saturation by a higher sustainable load.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simulator.engine.closed_form import device_bound, lower_bound
from simulator.engine.intervals import draw, figures, uncertainty_components
from simulator.errors import InputError, PlanError, UnknownName
from simulator.physics.footprint import HostRam, MemoryFit, Verdict, host_ram, memory_fit
from simulator.pipeline.program import check_modelled
from simulator.predict import layout_of, predict, predict_service, saturation_of, simulation_input
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.search.candidates import CandidateReader
from simulator.records import dataclass
from simulator.results.cost import bill_of, data_rent, machines_price, service_price, uses
from simulator.results.prediction import STARVED, Prediction
from simulator.results.serving import AtSaturation, ServicePrediction
from simulator.schema.accelerators import Stack
from simulator.schema.cost import price_of
from simulator.schema.goal import Plain
from simulator.schema.machines import Host
from simulator.schema.scenario import Scenario
from simulator.schema.serving import OpenLoop, Service
from simulator.schema.uncertainty import P90
from simulator.serving.load import usual_count
from simulator.studies.baseline import Baseline, Machine, machine_of, stores_on_offer
from simulator.studies.data_migration import Move, moves, rewritten, waited
from simulator.studies.levers import MACHINE
from simulator.studies.levers.catalogue import changes, service_changes
from simulator.studies.levers.lever import (
    Change,
    ServiceSituation,
    Situation,
)
from simulator.studies.screening import best_cases
from simulator.studies.search.outcome import BugLog, attempt
from simulator.studies.whatif import relative_noise
from simulator.units import Seconds, Usd, UsdPerSecond

MIN_GAIN: Final = 0.03
"""Share of time or bill below which no change is advised: models of both err by as much."""
NOISE_FACTOR: Final = 1.4
"""Half-widths of a 95% interval by which a gain must exceed the chance of two simulated runs: 2.7
standard deviations, which none of seven changes without effect reaches in 19 of 20 jobs."""
MAX_ACTIONS: Final = 3
"""Number of changes that are reported."""
MAX_PREDICTED: Final = 5
"""How many are predicted at most."""
MAX_PREDICTED_SLOW: Final = 3
"""How many of a job that takes long to simulate: as many as are reported."""
LIKELY_FIT: Final = 0.5
"""Probability from which on a job that may fit into the memory of its devices is taken to fit."""
SURE_FIT: Final = 0.9
"""Probability from which on it fits as well as any, as `Verdict.YES` has it."""
SAME_WORTH: Final = 0.01
"""Worth by which a change must beat one of its kind that asks for less."""
UNSHARED_NOISE: Final = 0.5
"""Share of a step's uncertainty that runs computing in another way do not have in common: a guess,
as no set measures enough pairs (compiled and eager runs of one model differ by up to 16%)."""
QUICK_STEPS: Final = 600
"""Number of simulated steps above which a job takes long to simulate."""
RUN_TIME: Final = "total_time_s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One change to a job and its effect.

    `copies` of the data are needed first and are included in all values. `shorter` is the relative
    reduction of the run time, `low` and `high` its 80% interval. `rent` is the additional price of
    machines and stored data [$/s], None if no price of machines is known. `fits`: the job probably
    does not fit now and does after the change, or may not fit now and surely does; `fitting` is the
    probability that it fits after the change.
    """

    change: Change
    prediction: Prediction
    shorter: float
    low: float
    high: float
    rent: UsdPerSecond | None
    fits: bool = False
    fitting: float = 1.0
    copies: tuple[Move, ...] = ()

    @property
    def settings(self) -> Mapping[str, Plain]:
        """Keys to change, with their values."""
        return self.change.settings

    @property
    def time(self) -> Seconds:
        """Run time after the change, including copies before the run [s]."""
        return self.prediction.timing.total_time + waited(self.copies)

    @property
    def bill(self) -> Usd | None:
        """Cost of machines, stores and copies after the change [$]; None if no price is known."""
        return _in_all(self.prediction.in_all, self.copying)

    @property
    def copying(self) -> Usd:
        """Cost of the copies, including machines that wait for them [$]."""
        rent = machines_price(self.prediction.scenario) or 0.0
        return sum(one.bill(rent) for one in self.copies)


def bills(base: Prediction, action: Action) -> tuple[Usd | None, Usd | None]:
    """Return comparable costs before and after a change [$]; None if no price is known.

    If different charges of stores are unknown before and after, both costs are those of machines
    and copies alone.
    """
    after = action.prediction
    if base.storage.missing == after.storage.missing:
        return base.in_all, action.bill
    return base.cost.for_machines, _in_all(after.cost.for_machines, action.copying)


def _in_all(bill: Usd | None, more: Usd) -> Usd | None:
    return None if bill is None else bill + more


@dataclass(frozen=True, slots=True, kw_only=True)
class _Estimate:
    """Closed-form estimate of a change: run time [s], price [$/s], and probability that it fits.

    `rent` is the part of the price that grows with the run time; the rest is charged once.
    """

    change: Change
    time: Seconds
    price: float | None
    rent: float | None
    fitting: float


def actions(
    reader: CandidateReader,
    base: Prediction,
    catalogue: Catalogue,
    *,
    met: BugLog | None = None,
) -> tuple[Action, ...]:
    """Return the changes to a job that gain most, best first; empty if no gain is significant.

    Parameters
    ----------
    reader : CandidateReader
        Reads the scenario of `base` with some keys set.
    base : Prediction
        Prediction of the job without changes, with its intervals.
    catalogue : Catalogue
        Machines and stores on offer.
    met : BugLog, optional
        Log of internal errors; without it the first one is raised.
    """
    baseline = _ground(reader, base.scenario, catalogue)
    unchanged = Change("", {})
    offered = changes(
        Situation(baseline=baseline, starved=_waits(base), cramped=is_too_large(base))
    )
    own, *others = _estimates((unchanged, *offered), reader, base.scenario)
    if own is None:
        return ()
    found: list[Action] = []
    slack = base.timing.total_time / own.time
    promising = _roomier(own, others) + _promising(own, others, slack)
    slow = base.timing.simulated_steps > QUICK_STEPS
    promising = _few(own, promising) if slow else promising[:MAX_PREDICTED]
    for tried in promising:
        action = _action(base, tried.change, reader, met, found)
        if action is not None and _counts(base, action):
            found = _with(found, action)
        if len(found) == MAX_ACTIONS:
            break
    return tuple(sorted(found, key=lambda one: (not one.fits, -_worth(base, one))))


def _with(found: Sequence[Action], new: Action) -> list[Action]:
    if _for_nothing(new.rent, new.time, found):
        return list(found)
    return [*(one for one in found if not _for_nothing(one.rent, one.time, [new])), new]


def _for_nothing(rent: UsdPerSecond | None, time: Seconds, found: Iterable[Action]) -> bool:
    """Return whether another change has a lower rent and at most the given run time."""
    return bool(rent) and any(
        (other.rent or 0.0) < (rent or 0.0) and other.time <= (1.0 + MIN_GAIN) * time
        for other in found
    )


def _outdone(rent: UsdPerSecond | None, scenario: Scenario, found: Sequence[Action]) -> bool:
    """Return whether a cheaper change found before is at least as good as the best case of one.

    Then it needs no prediction, as no run is shorter than its best case.
    """
    if not rent or not found:
        return False
    least = best_cases([scenario])[0].figures.get(RUN_TIME)
    return least is not None and _for_nothing(rent, least, found)


def _waits(base: Prediction) -> bool:
    timing = base.timing
    return timing.split.data_stall >= STARVED * timing.step_time.mean


def _ground(reader: CandidateReader, scenario: Scenario, catalogue: Catalogue) -> Baseline:
    """Return the baseline with machines of its own cloud and all stores of the clouds."""
    own = machine_of(scenario.cluster.trainers.host)
    return Baseline(
        reader=reader,
        scenario=scenario,
        own=own,
        machines=tuple(machines_beside(catalogue, own)),
        stores=stores_on_offer(catalogue),
    )


def machines_beside(catalogue: Catalogue, own: Machine) -> Iterator[Machine]:
    """Yield priced machines of the same cloud, from the same folder of the catalogue."""
    folder = own.name.rpartition("/")[0]
    if not own.cloud:
        return
    for name in catalogue.names("instance"):
        if name.rpartition("/")[0] != folder:
            continue
        try:
            machine = machine_of(catalogue.host(name))
        except (InputError, UnknownName):
            continue
        if machine.priced:
            yield machine


def _promising(own: _Estimate, found: Iterable[_Estimate | None], slack: float) -> list[_Estimate]:
    """Return the best change of each kind by closed-form estimates, best first.

    `slack` is the run time relative to its lower bound: workers that share a full resource leave it
    idle at times, and more workers bring the run closer to the bound.
    """
    waiting = replace(own, time=slack * own.time)

    def value(tried: _Estimate) -> float:
        return _value(waiting if tried.change.kind in _FILLING else own, tried)

    best: dict[str, _Estimate] = {}
    for tried in found:
        if tried is None or tried.fitting < _enough(own.fitting):
            continue
        if own.fitting >= LIKELY_FIT and value(tried) <= math.log(1.0 + MIN_GAIN):
            continue
        known = best.get(tried.change.kind)
        if known is None or value(tried) > value(known) + SAME_WORTH:
            best[tried.change.kind] = tried
    return sorted(best.values(), key=lambda one: -value(one))


def _roomier(own: _Estimate, found: Iterable[_Estimate | None]) -> list[_Estimate]:
    """Return the cheapest change after which a job surely fits, if it may not fit now."""
    if not LIKELY_FIT <= own.fitting < SURE_FIT:
        return []
    sure = [tried for tried in found if tried is not None and tried.fitting >= SURE_FIT]
    return sorted(sure, key=lambda tried: -_value(own, tried))[:1]


def _few(own: _Estimate, found: Sequence[_Estimate]) -> list[_Estimate]:
    first, rest = list(found[: MAX_PREDICTED_SLOW - 1]), found[MAX_PREDICTED_SLOW - 1 :]
    free = (one for one in rest if (one.rent or 0.0) <= (own.rent or 0.0))
    return [*first, next(free, rest[0])] if rest else first


def _enough(own: float) -> float:
    return LIKELY_FIT if own < LIKELY_FIT else min(own, SURE_FIT)


def _fitting(memory: MemoryFit | None, ram: HostRam) -> float:
    """Return the probability that a job fits into RAM and GPU memory.

    It is 0 or 1 for RAM, and for GPU memory without a known uncertainty.
    """
    if ram.verdict is Verdict.NO:
        return 0.0
    if memory is None:
        return 1.0
    if memory.probability is not None:
        return memory.probability
    return float(memory.total <= memory.capacity)


_FILLING: Final = frozenset({"workers", "readers"})
"""Kinds of levers that keep a resource busier without more of it."""


def _value(own: _Estimate, other: _Estimate) -> float:
    if own.price and other.price is None:
        return -math.inf
    return _score(own.time, other.time, own.price, other.price)


def _score(before: Seconds, after: Seconds, rent: float | None, now: float | None) -> float:
    faster = math.log(before / after)
    dearer = math.log(now / rent) if rent and now else 0.0
    return 2.0 * faster - dearer


def _worth(base: Prediction, action: Action) -> float:
    before, after = bills(base, action)
    cheaper = math.log(before / after) if before and after else 0.0
    return math.log(base.timing.total_time / action.time) + cheaper


def _estimates(
    found: Sequence[Change], reader: CandidateReader, now: Scenario
) -> list[_Estimate | None]:
    return [_in_closed_form(change, reader, now) for change in found]


def _in_closed_form(change: Change, reader: CandidateReader, now: Scenario) -> _Estimate | None:
    try:
        scenario = reader.without_uncertainty(change.settings)
        check_modelled(scenario)
        inputs = simulation_input(scenario)
        memory, ram = memory_fit(scenario), host_ram(scenario)
    except PlanError:
        return None
    at, parts = inputs.lengths, inputs.extras
    least = lower_bound(scenario, inputs.topology, inputs.demands, at, parts)
    machines, copies = machines_price(scenario), _copies(now, scenario, change)
    least = max(float(least), device_bound(scenario))
    time = least * at.total_steps + waited(copies)
    charged = (_asked(scenario) + sum(one.charged for one in copies)) / time
    rent = None if machines is None else machines + data_rent(scenario)
    return _Estimate(
        change=change,
        time=time,
        price=None if rent is None else rent + charged,
        rent=rent,
        fitting=_fitting(memory, ram),
    )


def _asked(scenario: Scenario) -> Usd:
    bill = bill_of(scenario, uses(scenario), 0.0)
    return (bill.requests or 0.0) + (bill.egress or 0.0)


def _copies(now: Scenario, after: Scenario, change: Change) -> tuple[Move, ...]:
    copied = moves(now, after, elsewhere=MACHINE in change.settings)
    return copied or rewritten(now, after)


def _action(
    base: Prediction,
    change: Change,
    reader: CandidateReader,
    met: BugLog | None,
    found: Sequence[Action],
) -> Action | None:
    """Predict a change; return None if it is refused, or if an earlier change is as good."""

    def predicted() -> tuple[Scenario, UsdPerSecond | None, Prediction] | None:
        scenario = reader.read(change.settings).scenario
        rent = _rent(base.scenario, scenario)
        if _outdone(rent, scenario, found):
            return None
        return scenario, rent, predict(scenario, seed=base.seed or 0, intervals=False)

    known = attempt(predicted, met)
    if known is None or isinstance(known, str):
        return None
    scenario, rent, after = known
    copies = _copies(base.scenario, scenario, change)
    longer = waited(copies)
    low, high = _interval(base, after, change, longer)
    return Action(
        change=change,
        prediction=after,
        copies=copies,
        shorter=1.0 - (after.timing.total_time + longer) / base.timing.total_time,
        low=low,
        high=high,
        rent=rent,
        fitting=_fitting(after.memory, after.host_ram),
        fits=_relieved(base, after),
    )


def _rent(base: Scenario, after: Scenario) -> UsdPerSecond | None:
    """Return the additional price of machines and stored data [$/s]; None if unknown."""
    before, now = machines_price(base), machines_price(after)
    if before is None or now is None:
        return None
    return now - before + (data_rent(after) - data_rent(base))


def _relieved(base: Prediction, after: Prediction) -> bool:
    before, now = (_fitting(one.memory, one.host_ram) for one in (base, after))
    return before < SURE_FIT <= now or before < LIKELY_FIT <= now


_COMPUTED: Final = frozenset(
    {
        *("precision", "compile", "memory of the device", "batch", "parallelism"),
        "trainable parameters",
    }
)
"""Kinds of levers that change how the device computes."""


def _interval(
    base: Prediction, after: Prediction, change: Change, longer: Seconds
) -> tuple[float, float]:
    """Return the 80% interval of the relative reduction of the run time.

    `longer` is the time of copies before the run [s]. Uncertainties of both predictions are equal
    on the same devices and mostly cancel; those of another machine are independent, and so is a
    part of those of a change in how the device computes.
    """
    times = [
        _drawn(prediction, seed)
        for prediction, seed in ((base, 0), (after, int(MACHINE in change.settings)))
    ]
    ratios = (times[1] + longer) / times[0]
    middle = (after.timing.total_time + longer) / base.timing.total_time
    low, high = (float(q) for q in np.quantile(ratios, [0.1, 0.9]))
    own = change.log_sd
    if change.kind in _COMPUTED:
        own = UNSHARED_NOISE * float(np.std(np.log(times[0])))
    far = P90 * own
    below = math.hypot(math.log(middle / min(low, middle)), far)
    above = math.hypot(math.log(max(high, middle) / middle), far)
    return 1.0 - middle * math.exp(above), 1.0 - middle * math.exp(-below)


def _drawn(prediction: Prediction, seed: int) -> NDArray[np.float64]:
    """Return the run time at many sampled rates [s]; the same seed samples the same rates."""
    inputs = simulation_input(prediction.scenario)
    uncertainties = uncertainty_components(inputs, prediction)
    figured = np.array([prediction.timing.total_time])
    if not uncertainties:
        return figured
    return figures(inputs, prediction, draw(uncertainties, seed)).get(RUN_TIME, figured)


def is_too_large(prediction: Prediction) -> bool:
    """Return whether a job probably does not fit into memory."""
    return _fitting(prediction.memory, prediction.host_ram) < LIKELY_FIT


def _counts(base: Prediction, action: Action) -> bool:
    """Return whether the gain of a change exceeds the noise and is probable."""
    if is_too_large(base) or action.fits:
        return action.fits
    noise = max(
        MIN_GAIN, NOISE_FACTOR * math.hypot(relative_noise(base), relative_noise(action.prediction))
    )
    if action.fitting < _enough(_fitting(base.memory, base.host_ram)):
        return False
    # Whoever tries what is free loses nothing, so three chances in four are enough.
    least = 0.0 if action.rent else -action.shorter
    surely_shorter = action.shorter > noise and action.low > least
    before, after = bills(base, action)
    if before is None or after is None:
        return surely_shorter
    longest = (1.0 - action.low) / (1.0 - action.shorter)
    surely_cheaper = after * longest < (1.0 - MIN_GAIN) * before
    if not action.rent and surely_shorter:
        return True
    return _worth(base, action) > noise and (surely_shorter or surely_cheaper)


ATTAINMENT: Final = "slo.attainment"
ReadService = Callable[[Mapping[str, Plain]], Service]
MAX_REQUESTS: Final = 600
"""Maximum number of requests of runs that compare changes, if all arrive at the start."""
MAX_MACHINES: Final = 3
"""Maximum number of other machines that are predicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAction:
    """One change to a service, with the prediction of the changed service and its intervals.

    `rent` is the additional price of the machines [$/s]; None if a price is unknown.
    """

    change: Change
    prediction: ServicePrediction
    rent: UsdPerSecond | None


def service_actions(
    read: ReadService, base: ServicePrediction, catalogue: Catalogue
) -> tuple[ServiceAction, ...]:
    """Return the changes to a service that gain most, best first, one of each kind.

    Parameters
    ----------
    read : callable
        Returns the service of `base` with some keys set.
    base : ServicePrediction
        Prediction of the service without changes.
    catalogue : Catalogue
        Machines on offer.
    """
    # Requests that are all there are fewer in runs that compare: with others, the run is the same.
    same = base.answered is not None and _shortened(base.service) is base.service
    quick = base if same else _quick_prediction(base.service, base.seed)
    best: dict[str, tuple[Change, ServicePrediction]] = {}
    hosts = _hosts(base.service, catalogue, keeps=base.keeps_limits)
    situation = ServiceSituation(
        service=base.service, hosts=tuple(hosts), reads=_waits_for_reads(base)
    )
    proposed = service_changes(situation)
    for change, service in _readable(read, proposed):
        if not _may_gain(base, service):
            continue
        try:
            after = _quick_prediction(service, base.seed)
        except PlanError:
            continue
        known = best.get(change.kind)
        if service_gains(quick, after) and (
            known is None or service_worth(after) > service_worth(known[1])
        ):
            best[change.kind] = change, after
    ranked = sorted(best.values(), key=lambda each: service_worth(each[1]), reverse=True)
    found = [
        _service_action(base, read, change, quickly) for change, quickly in ranked[:MAX_ACTIONS]
    ]
    told = [
        one
        for one in found
        if service_gains(base, one.prediction) and keeps_as_surely(base, one.prediction)
    ]
    return tuple(sorted(told, key=lambda one: service_worth(one.prediction), reverse=True))


def _quick_prediction(service: Service, seed: int) -> ServicePrediction:
    return predict_service(
        _shortened(service), seed=seed, intervals=False, wanted=AtSaturation.ROUGHLY
    )


def _shortened(service: Service) -> Service:
    """Return the service with fewer requests if all arrive at the start; its rates are the same."""
    ways, count = service.load.arrivals, usual_count(service.load)
    if not isinstance(ways, OpenLoop) or math.isfinite(ways.rate) or (count or 0) <= MAX_REQUESTS:
        return service
    return replace(service, load=replace(service.load, requests=MAX_REQUESTS))


def price_of_answers(prediction: ServicePrediction) -> Usd | None:
    """Return the price of a million output tokens, or of a thousand requests [$]."""
    if prediction.service.one_pass is not None:
        return prediction.cost.per_thousand_requests
    return prediction.cost.per_million_output_tokens


def service_gains(base: ServicePrediction, after: ServicePrediction) -> bool:
    """Return whether a change improves the service by more than `MIN_GAIN`.

    The criterion is the price of answers if the limits are met, else the share of requests within
    the limits, else the request rate at saturation.
    """
    if base.keeps_limits:
        before, now = price_of_answers(base), price_of_answers(after)
        if not after.keeps_limits or before is None or now is None:
            return False
        return now < (1.0 - MIN_GAIN) * before
    if after.keeps_limits:
        return True
    if base.answered is not None:
        more = 0.0 if after.answered is None else after.answered.attainment
        return more > base.answered.attainment + MIN_GAIN
    return after.answered is not None or carried_rate(after) > (1.0 + MIN_GAIN) * carried_rate(base)


def keeps_as_surely(base: ServicePrediction, after: ServicePrediction) -> bool:
    """Return whether a change leaves the pessimistic share of requests within the limits.

    No saving is proposed that could make a service miss its limits.
    """
    if not base.keeps_limits:
        return True
    return _at_worst(after) >= _at_worst(base) - MIN_GAIN


def _at_worst(prediction: ServicePrediction) -> float:
    ends = prediction.interval.get(ATTAINMENT)
    return 1.0 if ends is None else min(ends["p10"] or 0.0, ends["p90"] or 0.0)


def carried_rate(prediction: ServicePrediction) -> float:
    """Return the sustainable request rate [1/s]; 0 if the model does not fit."""
    if not prediction.fits:
        return 0.0
    found = prediction.saturation or saturation_of(prediction.service, seed=prediction.seed)
    return found.request_rate


def service_worth(prediction: ServicePrediction) -> tuple[float, ...]:
    """Return a sort key for services: limits met at the lowest price, else requests within limits.

    Ties among services that miss the limits are broken by their request rate at saturation.
    """
    price, told, found = price_of_answers(prediction), prediction.answered, prediction.saturation
    cheap = -math.inf if price is None else -price
    if prediction.keeps_limits:
        return (1.0, cheap, 0.0)
    served = 0.0 if told is None else told.request_rate
    kept = -1.0 if told is None else told.attainment
    return (0.0, kept, served if found is None else found.request_rate)


def _readable(read: ReadService, levers: Iterable[Change]) -> Iterator[tuple[Change, Service]]:
    """Yield the changes that the service accepts, with the changed service."""
    for change in levers:
        try:
            yield change, read(change.settings)
        except PlanError:
            continue


def _waits_for_reads(base: ServicePrediction) -> bool:
    found, reading = base.saturation, layout_of(base.service).reading
    return reading is not None and (found is None or found.request_rate >= reading.rate)


def _may_gain(base: ServicePrediction, service: Service) -> bool:
    """Return whether a change may lower the price of answers.

    At a given request rate, only a lower rent does; in a closed loop or with autoscaling faster
    machines may, too.
    """
    found, rent = base.saturation, service_price(service)
    if not base.keeps_limits or found is None:
        return True
    if found.headroom is None or service.serving.autoscaling is not None:
        return True
    before = base.cost.per_second
    return before is not None and rent is not None and rent < (1.0 - MIN_GAIN) * before


def _hosts(service: Service, catalogue: Catalogue, *, keeps: bool) -> list[Host]:
    """Return the cheapest other machines of the cloud that may be suitable.

    `keeps`: the service is within its limits, so only cheaper machines are returned.
    """
    own = service.group.host
    now = service_price(service)
    if now is None or service.owned is not None:
        return []
    found = list[tuple[UsdPerSecond, Host]]()
    for machine in machines_beside(catalogue, machine_of(own)):
        try:
            host = catalogue.host(machine.name)
        except (InputError, UnknownName):
            continue
        price = price_of(host.prices, service.cost.purchase, service.cost.region)
        if price is None or host.name == own.name or not _may_do(service, host):
            continue
        if not keeps or price.usual < (1.0 - MIN_GAIN) * now:
            found.append((price.usual, host))
    return [host for _, host in sorted(found, key=lambda each: each[0])[:MAX_MACHINES]]


def _may_do(service: Service, host: Host) -> bool:
    """Return whether a machine runs the same software and can hold the weights."""
    own = service.group.host.gpu
    if host.gpu is not None and host.gpu.stack is not (Stack.CUDA if own is None else own.stack):
        return False
    if service.one_pass is not None:
        return True
    if host.gpu is None:
        return False
    weights = service.model.parameters * service.serving.weights.bytes_per_element
    return weights < host.gpu_count * host.gpu.memory


def _service_action(
    base: ServicePrediction, read: ReadService, change: Change, quickly: ServicePrediction
) -> ServiceAction:
    """Predict a change with its intervals, after a shorter prediction `quickly` selected it."""
    service = read(change.settings)
    after = predict_service(
        service,
        seed=base.seed,
        wanted=AtSaturation.NEEDED,
        known=quickly.answered if _shortened(service) is service else None,
    )
    before, now = base.cost.per_second, after.cost.per_second
    rent = None if before is None or now is None else now - before
    return ServiceAction(change=change, prediction=after, rent=rent)
