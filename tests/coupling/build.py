"""Parts of scenarios in which things are shared, and what one such case claims."""

from __future__ import annotations

from dataclasses import dataclass, replace

from support.scenarios import NO_LATENCY, host

from simulator.predict import predict
from simulator.results.metrics import select
from simulator.schema.fields import Shape, Spread
from simulator.schema.machines import (
    Collective,
    Curve,
    Group,
    Host,
    Link,
    LinkKind,
    Network,
    Regime,
    Role,
)
from simulator.schema.models import CustomModel, StepTimes
from simulator.schema.scenario import Scenario
from simulator.schema.storage import Scope, Storage

VARIED = Spread(shape=Shape.LOGNORMAL, relative_deviation=0.3)
"""Files of different sizes, as real ones are. With equal ones all workers stay in step for ever:
they read at one time and decode at another, and neither the disk nor the CPU is ever full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coupling:
    """A scenario in which parts share something, and three answers to one question [s].

    `hand` is worked out with pencil and paper from `formula`; `spreadsheet` is what
    max(compute, input) says with every part taken alone; the simulation answers by `metric`.
    """

    name: str
    formula: str
    job: Scenario
    hand: float
    spreadsheet: float
    metric: str = "step_time_s.mean"

    def simulated(self) -> float:
        """The simulation's answer [s]."""
        (metric,) = select(self.metric)
        value = metric.get(predict(self.job))
        assert isinstance(value, float)
        return value


def with_job(base: Scenario, **changes: object) -> Scenario:
    """The scenario with parts of its job replaced."""
    return replace(base, jobs=(replace(base.jobs[0], **changes),))  # type: ignore[arg-type]


def with_data(base: Scenario, **changes: object) -> Scenario:
    """The scenario with parts of its data set replaced."""
    return with_job(base, dataset=replace(base.job.dataset, **changes))  # type: ignore[arg-type]


def in_step(base: Scenario) -> Scenario:
    """The scenario with workers that stay in step: what they do can then be followed by hand."""
    return with_job(base, input=replace(base.job.input, in_step=True))


def with_work(base: Scenario, **changes: object) -> Scenario:
    """The scenario with parts of its preprocessing replaced."""
    return with_job(base, input=replace(base.job.input, **changes))  # type: ignore[arg-type]


def with_train(base: Scenario, **changes: object) -> Scenario:
    """The scenario with parts of its training replaced."""
    return with_job(base, train=replace(base.job.train, **changes))  # type: ignore[arg-type]


def with_group(base: Scenario, **changes: object) -> Scenario:
    """The scenario with parts of the group that trains replaced."""
    trainers = base.cluster.trainers
    groups = tuple(
        replace(group, **changes) if group is trainers else group  # type: ignore[arg-type]
        for group in base.cluster.groups
    )
    return replace(base, cluster=replace(base.cluster, groups=groups))


def with_helpers(base: Scenario, helpers: Group) -> Scenario:
    """The scenario with a second group of machines."""
    cluster = replace(base.cluster, groups=(*base.cluster.groups, helpers))
    return replace(base, cluster=cluster)


def without_device(base: Scenario) -> Scenario:
    """The scenario with no measured step: nothing computes on the batches."""
    return with_job(base, step_times=None)


def batches_of(base: Scenario, batch: int, batches: int, compute: float) -> Scenario:
    """The scenario with batches of another size, and its samples counted anew."""
    times = base.job.step_times
    assert times is not None
    measured = StepTimes(batch_sizes=(float(batch),), seconds=(compute,), source=times.source)
    changed = with_job(with_train(base, batch_size=batch), step_times=measured)
    return with_data(changed, samples=batch * batches * base.ranks)


def networked(machine: Host, bandwidth: float, **limits: object) -> Host:
    """The machine with a network card of so many bytes per second, which collectives reach."""
    reached = Regime(latency=NO_LATENCY, bandwidth=bandwidth)
    curve = Curve(
        operation=Collective.ALL_REDUCE,
        ranks=2,
        machines=2,
        regimes=(reached,),
        source="test",
        date="undated",
    )
    wire = Link(name="link/test", kind=LinkKind.NETWORK, peak=bandwidth, collective=(curve,))
    return replace(machine, network=Network(bandwidth=bandwidth, link=wire, **limits))  # type: ignore[arg-type]


def remote_store(rate: float = 100e9, scope: Scope = Scope.NETWORK, **figures: object) -> Storage:
    """A store that is reached over the network, wide enough not to matter."""
    return Storage(name="storage/remote", scope=scope, read_bandwidth=rate, **figures)  # type: ignore[arg-type]


def helpers(count: int, cores: float, network: float, storage: Storage | None = None) -> Group:
    """Machines without devices that preprocess."""
    return Group(
        name="data",
        role=Role.PREPROCESS,
        host=networked(host(gpus=0, cores=cores), network),
        storage=storage or remote_store(),
        count=count,
    )


def model(parameters: float = 25e6, output_bytes: float = 0.0) -> CustomModel:
    """A model of so many fp32 gradients, `output_bytes` of results a sample; steps are measured."""
    return CustomModel(
        name="test",
        parameters=parameters,
        forward_flops=1e9,
        traffic=1e8,
        activation=1e5,
        input_bytes=0.0,
        output_bytes=output_bytes,
    )
