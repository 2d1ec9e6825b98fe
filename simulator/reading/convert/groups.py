"""Where data lies and who helps: placement, drives as a cache, and the [remote] section."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from simulator.reading.checks.groups import cache_drives
from simulator.reading.convert import defaults
from simulator.reading.convert.hardware import said_in
from simulator.reading.resolved import Draft
from simulator.reading.sections import RemoteSection
from simulator.schema.hardware.cluster import Cluster, Group, Role
from simulator.schema.hardware.host import Host
from simulator.schema.hardware.naming import short_name
from simulator.schema.hardware.storage import Scope, Storage
from simulator.schema.workload.dataset import CachePolicy, Placement
from simulator.schema.workload.loader import LoaderKind, Remote
from simulator.uncertainty.provenance import Assumption

_QUEUE = 2


def cluster_of(draft: Draft, trainers: Group) -> Cluster:
    """The machines that train, with data placed as the file says, and those that help."""
    placed = _placed(draft, trainers)
    if draft.remote is None or draft.helper is None:
        return Cluster(groups=(placed,))
    helpers = Group(
        name=draft.remote.name,
        role=Role.PREPROCESS,
        host=_changed(draft, draft.remote, draft.helper),
        storage=_helper_store(draft, trainers.storage),
        count=draft.remote.count,
        price=draft.remote.price,
    )
    return Cluster(groups=(placed, helpers))


def _changed(draft: Draft, given: RemoteSection, helper: Host) -> Host:
    """The helpers' machine, with its processors as the file changes them."""
    cpu = helper.cpu
    changed = replace(
        cpu,
        # A speed is stated beside a vCPU that trains, which moves the yardstick of this machine.
        coremark=cpu.coremark
        if given.speed is None
        else given.speed * _reference(draft) * cpu.threads,
        smt_worth=cpu.smt_worth if given.smt_worth is None else given.smt_worth,
        contention=cpu.contention if given.contention is None else given.contention,
    )
    keys = {"cpu.coremark": "speed", "cpu.smt_worth": "smt_worth", "cpu.contention": "contention"}
    said = said_in(draft.document, "remote", **keys)
    return replace(helper, cpu=changed, sources={**helper.sources, **said})


def _reference(draft: Draft) -> float:
    """CoreMark of a vCPU that trains; 1 where it is not known, so that all else is its multiple."""
    pool = None if draft.host is None else draft.host.cpu
    return 1.0 if pool is None or pool.coremark is None else pool.coremark / pool.threads


def _placed(draft: Draft, group: Group) -> Group:
    store, own = group.storage, group.host.local_storage
    match draft.data.placement:
        case Placement.STAGE if own is not None:
            return replace(group, storage=own, origin=store)
        case Placement.PRELOAD:
            return replace(group, origin=store)
    return replace(group, cache=cache_drives(draft))


def _helper_store(draft: Draft, trainers: Storage) -> Storage:
    """What the helpers read: as named, what the trainers share, or their own drives."""
    if draft.helper_storage is not None:
        return draft.helper_storage
    own = None if draft.helper is None else draft.helper.local_storage
    return own if trainers.scope is Scope.LOCAL and own is not None else trainers


def remote_of(draft: Draft) -> Remote | None:
    """The workers on the helpers' machines."""
    given, helper = draft.remote, draft.helper
    if given is None or helper is None:
        return None
    return Remote(
        group=given.name,
        workers=_workers(draft, helper),
        shares_batches=_shares(draft),
        queue=given.queue or _QUEUE,
        send_per_batch=given.send_per_batch,
        send_per_sample=given.send_per_sample,
    )


def _workers(draft: Draft, helper: Host) -> int:
    stated = None if draft.remote is None else draft.remote.workers
    return max(1, int(helper.cpu.threads)) if stated is None else stated


def _shares(draft: Draft) -> bool:
    stated = None if draft.remote is None else draft.remote.shares_batches
    return draft.loader is LoaderKind.TF_DATA if stated is None else stated


def yardstick(draft: Draft) -> float | None:
    """CoreMark of a vCPU that CPU times are scaled from, to other machines by theirs.

    That of the machine they were measured on; with helpers of another make, of one that trains.
    """
    elsewhere = draft.measured_on
    if elsewhere is not None:
        known = elsewhere.cpu.coremark
        return None if known is None else known / elsewhere.cpu.threads
    return _reference(draft) if _are_comparable(draft) else None


def _are_comparable(draft: Draft) -> bool:
    if draft.remote is None or draft.helper is None or draft.host is None:
        return False
    marks = (draft.host.cpu.coremark, draft.helper.cpu.coremark)
    return draft.remote.speed is not None or None not in marks


def group_notes(draft: Draft) -> Iterator[Assumption]:
    """The defaults of [remote] and of placement that a prediction rests on."""
    given, helper = draft.remote, draft.helper
    if given is None or helper is None:
        return
    if given.workers is None:
        what = f"workers on each {short_name(helper.name)}, one a vCPU (remote.workers not given)"
        yield _note(what, str(_workers(draft, helper)))
    if given.queue is None:
        what = "finished batches that wait for each process that trains (remote.queue not given)"
        yield _note(what, str(_QUEUE))
    if given.shares_batches is None:
        what = "remote workers make a batch (remote.shares_batches not given)"
        yield _note(what, "together" if _shares(draft) else "each alone")
    if given.storage is None:
        yield _note("store of the remote machines (remote.storage not given)", _whose(draft))
    if draft.measured_on is None and given.speed is None:
        yield _speed(draft, helper)


def _whose(draft: Draft) -> str:
    shared = draft.storage is not None and draft.storage.scope is not Scope.LOCAL
    if shared:
        return "that of the trainers"
    if draft.data.cache is CachePolicy.PRELOADED:
        return "none is read: the data is in their memory"
    return "their own drives, where the data lies too"


def _speed(draft: Draft, helper: Host) -> Assumption:
    beside = "beside one that trains (input.measured_on not given)"
    what = f"speed of a vCPU of {short_name(helper.name)} {beside}"
    if draft.host is None or not _are_comparable(draft):
        return _note(what, "the same, as a CoreMark is missing")
    return _note(what, f"as their CoreMark, {_ratio(draft.host, helper):.3f}")


def _ratio(host: Host, helper: Host) -> float:
    here, there = host.cpu, helper.cpu
    if here.coremark is None or there.coremark is None:
        return 1.0
    return (there.coremark / there.threads) / (here.coremark / here.threads)


def _note(what: str, value: str) -> Assumption:
    return Assumption(what=what, value=value, source=defaults.OWN_CHOICE)
