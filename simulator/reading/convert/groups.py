"""Where data lies and who helps: placement, drives as a cache, and the [remote] section."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from simulator.memo import cached
from simulator.reading.convert import defaults
from simulator.reading.sections import RemoteSection
from simulator.reading.unresolved import UnresolvedScenario
from simulator.schema.hardware.cluster import Cluster, Group, Role
from simulator.schema.hardware.host import Host
from simulator.schema.hardware.naming import short_name
from simulator.schema.hardware.storage import Scope, Storage
from simulator.schema.workload.dataset import CachePolicy, Placement
from simulator.schema.workload.loader import LoaderKind, Remote
from simulator.uncertainty.provenance import Assumption

_QUEUE = 2


@cached()
def cluster_of(  # noqa: PLR0913, PLR0917 - all that describes the machines
    trainers: Group,
    placement: Placement,
    cache: Storage | None,
    remote: RemoteSection | None,
    helper: Host | None,
    helper_storage: Storage | None,
) -> Cluster:
    """Return the machines that train, with data placed as the file says, and those that help.

    Parameters
    ----------
    trainers : Group
        The machines that train.
    placement : Placement
        Where the data is while the job runs.
    cache : Storage, optional
        The drives in front of the store.
    remote : RemoteSection, optional
        What the file states of the machines that help.
    helper : Host, optional
        One of these machines, as its profile says.
    helper_storage : Storage, optional
        Their store, where the file names one.
    """
    placed = _placed(trainers, placement, cache)
    if remote is None or helper is None:
        return Cluster(groups=(placed,))
    # They read what the file names, what the trainers share, or their own drives.
    shared_store, own = trainers.storage, helper.local_storage
    if shared_store.scope is Scope.LOCAL and own is not None:
        shared_store = own
    helpers = Group(
        name=remote.name,
        role=Role.PREPROCESS,
        host=_changed(remote, helper, trainers.host),
        storage=helper_storage or shared_store,
        count=remote.count,
        price=remote.price,
    )
    return Cluster(groups=(placed, helpers))


def _changed(remote: RemoteSection, helper: Host, trainer: Host) -> Host:
    """Return the helpers' machine, with its processors as the file changes them."""
    cpu = helper.cpu
    changed = replace(
        cpu,
        # A speed is stated in multiples of a vCPU that trains: the reference of this machine.
        coremark=cpu.coremark
        if remote.speed is None
        else remote.speed * _reference(trainer) * cpu.threads,
        smt_worth=cpu.smt_worth if remote.smt_worth is None else remote.smt_worth,
        contention=cpu.contention if remote.contention is None else remote.contention,
    )
    keys = {"cpu.coremark": "speed", "cpu.smt_worth": "smt_worth", "cpu.contention": "contention"}
    return replace(helper, cpu=changed, sources={**helper.sources, **remote.stated(**keys)})


def _reference(trainer: Host) -> float:
    """Return the CoreMark of a vCPU that trains.

    It is 1 where it is not known, so that all else is its multiple.
    """
    pool = trainer.cpu
    return 1.0 if pool.coremark is None else pool.coremark / pool.threads


def _placed(group: Group, placement: Placement, cache: Storage | None) -> Group:
    store, own = group.storage, group.host.local_storage
    if placement is Placement.STAGE and own is not None:
        return replace(group, storage=own, origin=store)
    if placement is Placement.PRELOAD:
        return replace(group, origin=store)
    return replace(group, cache=cache)


@cached()
def remote_of(
    stated: RemoteSection | None, helper: Host | None, loader: LoaderKind
) -> Remote | None:
    """Return the workers on the helpers' machines."""
    if stated is None or helper is None:
        return None
    return Remote(
        group=stated.name,
        workers=_workers(stated, helper),
        shares_batches=_shares(stated, loader),
        queue=stated.queue or _QUEUE,
        send_per_batch=stated.send_per_batch,
        send_per_sample=stated.send_per_sample,
    )


def _workers(stated: RemoteSection, helper: Host) -> int:
    return max(1, int(helper.cpu.threads)) if stated.workers is None else stated.workers


def _shares(stated: RemoteSection, loader: LoaderKind) -> bool:
    shares = stated.shares_batches
    return loader is LoaderKind.TF_DATA if shares is None else shares


def reference_of(
    host: Host, measured_on: Host | None, remote: RemoteSection | None, helper: Host | None
) -> float | None:
    """Return the CoreMark of a vCPU that CPU times are scaled from, to other machines by theirs.

    That of the machine they were measured on; with helpers of another make, of one that trains.
    """
    if measured_on is not None:
        known = measured_on.cpu.coremark
        return None if known is None else known / measured_on.cpu.threads
    return _reference(host) if _are_comparable(host, remote, helper) else None


def _are_comparable(host: Host, remote: RemoteSection | None, helper: Host | None) -> bool:
    if remote is None or helper is None:
        return False
    return remote.speed is not None or None not in (host.cpu.coremark, helper.cpu.coremark)


def group_notes(file: UnresolvedScenario) -> Iterator[Assumption]:
    """The defaults of [remote] and of placement that a prediction rests on."""
    given, helper, host = file.remote, file.helper, file.host
    if given is None or helper is None:
        return
    if given.workers is None:
        what = f"workers on each {short_name(helper.name)}, one a vCPU (remote.workers not given)"
        yield _note(what, str(_workers(given, helper)))
    if given.queue is None:
        what = "finished batches that wait for each process that trains (remote.queue not given)"
        yield _note(what, str(_QUEUE))
    if given.shares_batches is None:
        what = "remote workers make a batch (remote.shares_batches not given)"
        yield _note(what, "together" if _shares(given, file.loader) else "each alone")
    if given.storage is None:
        yield _note("store of the remote machines (remote.storage not given)", _whose(file))
    if file.measured_on is None and given.speed is None:
        yield _speed(host, given, helper)


def _whose(file: UnresolvedScenario) -> str:
    shared = file.storage is not None and file.storage.scope is not Scope.LOCAL
    if shared:
        return "that of the trainers"
    if file.data.cache is CachePolicy.PRELOADED:
        return "none is read: the data is in their memory"
    return "their own drives, where the data lies too"


def _speed(host: Host, remote: RemoteSection, helper: Host) -> Assumption:
    what = (
        f"speed of a vCPU of {short_name(helper.name)} beside one that trains "
        "(input.measured_on not given)"
    )
    if not _are_comparable(host, remote, helper):
        return _note(what, "the same, as a CoreMark is missing")
    return _note(what, f"as their CoreMark, {_ratio(host, helper):.3f}")


def _ratio(host: Host, helper: Host) -> float:
    here, there = host.cpu, helper.cpu
    if here.coremark is None or there.coremark is None:
        return 1.0
    return (there.coremark / there.threads) / (here.coremark / here.threads)


def _note(what: str, value: str) -> Assumption:
    return Assumption(what=what, value=value, source=defaults.OWN_CHOICE)
