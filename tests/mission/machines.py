"""Machines of the published cases, from the catalogue, and what is common to the jobs on them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from simulator.reading.fitted.kernels import Use, kernels
from simulator.reading.hardware.catalogue import Catalogue
from simulator.schema.accelerators import Precision
from simulator.schema.data_loading import CachePolicy, Dataset, InputPipeline
from simulator.schema.machines import Cluster, Group, Host, Role
from simulator.schema.models import StepTimes
from simulator.schema.provenance import Source
from simulator.schema.scenario import Job, Scenario
from simulator.schema.software import Software
from simulator.schema.storage import Storage
from simulator.schema.training import Mode, Train

BLOG = Source(
    reference="Improve price performance of your model training using Amazon SageMaker "
    "heterogeneous clusters, AWS Machine Learning Blog",
    date="2022",
)
"""Where the rows on groups of machines come from."""

DATA = "data"
"""What the group that only makes batches is called."""


@cache
def catalogue() -> Catalogue:
    """The profiles of the checkout, each read once."""
    return Catalogue.default()


def managed(name: str) -> Host:
    """A machine at the managed service's price of 2022-10."""
    return catalogue().host(f"instance/aws-managed/{name}")


def rented(name: str) -> Host:
    """A machine of the same cloud at its plain price."""
    return catalogue().host(f"instance/aws/{name}")


def per_vcpu(host: Host) -> float:
    """CoreMark of one hardware thread with all of them busy [/s]."""
    assert host.cpu.coremark is not None
    return host.cpu.coremark / host.cpu.threads


def in_pytorch(host: Host) -> Software:
    """PyTorch in 16 bit on a machine's accelerators; every model is timed operator by operator."""
    software = Software(framework="pytorch")
    use = Use(software=software, precision=Precision.FP16, summed_in=Precision.FP32)
    found = kernels(host.gpu, use)
    assert found is not None
    return replace(software, kernels=replace(found, of_layers=False))


def alike(host: Host) -> Host:
    """The machine with hardware threads that all count the same, alone or together.

    Sources that only count vCPUs mean this: no core is shared and none is faster.
    """
    return replace(host, cpu=replace(host.cpu, smt_worth=1.0, contention=0.0, coremark=None))


def trainers(host: Host, *, count: int = 1, gpus: int | None = None, **more: object) -> Group:
    """Machines that train, on all of their accelerators."""
    return Group(
        name="train",
        role=Role.TRAIN,
        host=host,
        count=count,
        gpus_per_host=host.gpu_count if gpus is None else gpus,
        **{"storage": store(), **more},  # type: ignore[arg-type]  # Group's own
    )


def producers(host: Host, count: int = 1) -> Group:
    """Machines that only make batches."""
    return Group(name=DATA, role=Role.PREPROCESS, host=host, storage=store(), count=count)


def store(name: str = "s3") -> Storage:
    """A store of the catalogue."""
    return catalogue().storage(name)


def in_memory(samples: float, size: float) -> Dataset:
    """Data that is in memory from the start, so that no store matters."""
    return Dataset(
        name="in memory",
        samples=samples,
        bytes_per_sample=size,
        cache=CachePolicy.PRELOADED,
    )


def job(  # noqa: PLR0913 - what a row states
    *,
    dataset: Dataset,
    batch: float,
    step: float | None = None,
    pipeline: InputPipeline | None = None,
    mode: Mode = Mode.TRAIN,
    train: dict[str, object] | None = None,
    **more: object,
) -> Job:
    """A job whose device time `step` [s] for `batch` samples is as a source measured it."""
    times = StepTimes(batch_sizes=(batch,), seconds=(step,), source=BLOG) if step else None
    settings = {"software": Software(), "step_times": times, **more}
    return Job(
        mode=mode,
        dataset=dataset,
        input=pipeline or InputPipeline(),
        train=Train(batch_size=batch, **{"precision": Precision.FP32, **(train or {})}),  # type: ignore[arg-type]  # Train's own
        **settings,  # type: ignore[arg-type]  # Job's own
    )


def scenario(name: str, work: Job, *groups: Group) -> Scenario:
    """A job on groups of machines."""
    return Scenario(name=name, cluster=Cluster(groups=groups), jobs=(work,))
