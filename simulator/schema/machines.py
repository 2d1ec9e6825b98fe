"""Machines: links, sockets, cores, RAM, accelerators, and clusters of equal hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import Annotated, Final

from simulator.equations.cpu import capacity_beside
from simulator.records import dataclass
from simulator.schema.accelerators import Gpu
from simulator.schema.cost import Price
from simulator.schema.fields import (
    ByteField,
    ByteRateField,
    ByteRateFigure,
    Choice,
    Citation,
    ClockFigure,
    CountField,
    CountFigure,
    CountOrZeroField,
    FractionField,
    NameFigure,
    Number,
    NumberField,
    NumberOrZeroField,
    OperationsField,
    PowerFigure,
    Profile,
    Section,
    TextField,
    TimeFigure,
    TimeOrZeroField,
)
from simulator.schema.provenance import Source
from simulator.schema.storage import Storage
from simulator.units import (
    Bytes,
    BytesPerSecond,
    Hertz,
    PerSecond,
    Real,
    Usd,
    UsdPerSecond,
    Watts,
    at_least,
    at_most,
)


def short_name(profile: object) -> str:
    """Return the name of a profile without its folders, which files may leave out.

    Examples
    --------
    >>> short_name("instance/aws/p4d.24xlarge"), short_name("storage/s3"), short_name("dgx-h100")
    ('p4d.24xlarge', 's3', 'dgx-h100')
    """
    return str(profile).rpartition("/")[2]


class LinkKind(StrEnum):
    """Kind of a link."""

    PCIE = "pcie"
    NVLINK = "nvlink"
    NETWORK = "network"
    SOCKET = "socket"


class Collective(StrEnum):
    """A collective, as nccl-tests names it."""

    ALL_REDUCE = "all-reduce"
    REDUCE_SCATTER = "reduce-scatter"
    ALL_GATHER = "all-gather"
    ALL_TO_ALL = "all-to-all"
    SEND = "send"


@dataclass(frozen=True, slots=True, kw_only=True)
class Regime:
    """One protocol or algorithm of a collective."""

    latency: TimeOrZeroField
    """Time of an empty message; zero where only large ones were measured."""
    bandwidth: ByteRateField
    """Bus bandwidth of large messages, as in nccl-tests: comparable with a link's rate at any
    number of ranks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve(Citation):
    """A collective measured at several message sizes: the best of its regimes at each size."""

    operation: Annotated[Collective, Choice(Collective)]
    """The collective."""
    ranks: CountField
    """Ranks it was measured over."""
    machines: CountField
    """Machines these ranks were on."""
    regimes: tuple[Regime, ...]
    """Protocols or algorithms, of which the fastest is used at each size."""
    in_switch: bool = False
    """Whether switches reduce data in the network, so that the bus bandwidth may exceed the link's
    rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link(Profile):
    """A link in one direction."""

    kind: Annotated[LinkKind, Choice(LinkKind)]
    """Kind of the link, by the devices it connects."""
    peak: ByteRateFigure
    """Datasheet rate of one direction, after line encoding."""
    achievable: ByteRateFigure | None = None
    """Best rate measured."""
    pageable: ByteRateFigure | None = None
    """Rate of copies from ordinary (not page-locked) host memory."""
    latency: TimeFigure = 0.0
    """Time before the first byte."""
    duplex: bool = True
    """Whether both directions carry the rate at once."""
    through_host: bool = False
    """Whether data between accelerators is copied through host memory on its way."""
    collective: tuple[Curve, ...] = ()
    """Collectives measured over it, by message size."""

    @property
    def rate(self) -> BytesPerSecond:
        """Rate to plan with: achievable if measured, else the peak [B/s]."""
        return self.peak if self.achievable is None else self.achievable


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu(Profile):
    """One processor socket."""

    cores: CountFigure
    """Physical cores."""
    threads: CountFigure
    """Hardware threads."""
    base_clock: ClockFigure
    """Clock that all cores sustain."""
    memory_bandwidth: ByteRateFigure | None = None
    """Peak memory bandwidth of one socket."""
    memory: NameFigure = ""
    """Type and number of channels of the memory."""
    pcie_generation: CountFigure | None = None
    """Generation of its PCIe lanes."""
    power: PowerFigure | None = None
    """Thermal design power."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorUnits:
    """Arithmetic rates of a core: vector units in fp32, and matrix units if it has any.

    `flop_per_cycle` is the peak of vector units, `matrix_per_cycle` that of 16-bit matrix products;
    `share` is the fraction of both that is reached at the base clock, `memory_share` the fraction
    of the memory bandwidth.
    """

    flop_per_cycle: float
    share: float
    memory_share: float
    source: Source
    memory_source: Source
    matrix_per_cycle: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuPool:
    """The processors available to a program, all sockets together.

    `threads` is the number of hardware threads that the operating system shows (vCPUs), `cores` the
    number of physical cores. `smt_worth` is the extra speed of a busy core with a second hardware
    thread, as a fraction of a core; `contention` is the extra time of work with all cores busy over
    that with one, as a fraction. `coremark` is the CoreMark of the whole machine, which compares
    the speed of vCPUs. `taken` is the number of hardware threads that other programs keep busy all
    the time. `vector` are the arithmetic rates of a core, if known. `assumed` holds which of
    `smt_worth` and `contention` are those of a kind of work on other machines, and `assumed_log_sd`
    the log deviation of the speed of all threads from that.
    """

    cores: float
    threads: float
    sockets: int = 1
    smt_worth: float = 1.0
    contention: float = 0.0
    coremark: PerSecond | None = None
    base_clock: Hertz | None = None
    model: str = ""
    power: Watts | None = None
    taken: Real = 0.0
    vector: VectorUnits | None = None
    assumed: frozenset[str] = frozenset()
    assumed_log_sd: float = 0.0

    @property
    def free(self) -> Real:
        """Number of hardware threads that are not taken."""
        return self.threads - self.taken

    @property
    def capacity(self) -> Real:
        """Core-seconds per second with every free hardware thread busy."""
        return self.capacity_for(self.threads)

    def capacity_for(self, threads: Real) -> Real:
        """Return the core-seconds per second that `threads` runnable threads get."""
        own = at_most(at_least(1.0, threads), self.free)
        return capacity_beside(
            own,
            self.taken,
            cores=self.cores,
            threads=self.threads,
            smt_worth=self.smt_worth,
            contention=self.contention,
        )


class PeerTopology(StrEnum):
    """Connection between the accelerators of one machine."""

    SWITCHED = "switched"
    MESH = "mesh"
    PCIE = "pcie"
    NONE = "none"


class PeerPath(StrEnum):
    """Path of data between the accelerators of one machine."""

    NVLINK = "nvlink"
    """Links between the accelerators, such as NVLink; for cards, a bridge between two."""
    P2P = "p2p"
    """PCIe, from one card's memory directly to the other's."""
    HOST = "host"
    """PCIe, through a buffer in host memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PcieSwitch:
    """A PCIe switch: the devices below it share one `uplink` to a socket's root complex.

    `gpus`, `nics` and `drives` are indices into the machine's devices.
    """

    socket: int
    uplink: Link
    gpus: tuple[int, ...] = ()
    nics: tuple[int, ...] = ()
    drives: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The machine's network attachment, one direction, all cards together.

    `rdma` traffic skips the copy through host memory. `storage_cap` limits volumes that are reached
    over the provider's storage network (the EBS limit), in addition to the volume's own rate.
    `link` is the profile of all cards together, with measured collectives.
    """

    bandwidth: BytesPerSecond
    cards: int = 1
    rdma: bool = False
    baseline: BytesPerSecond | None = None
    storage_cap: BytesPerSecond | None = None
    storage_operations_cap: PerSecond | None = None
    per_flow: BytesPerSecond | None = None
    link: Link | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One machine as bought or rented.

    `gpu_count` accelerators of one type `gpu` (None: a CPU-only machine), each on `host_link`,
    grouped under `switches` (a GPU under no switch has a root port of its own) and connected by
    `peer_link` in `peer_topology` (None: by PCIe, directly). `bridge` is the link that can join two
    of the cards, `staging` the path through host memory, which is slower. `gpu_sockets` is the
    socket of each GPU. `local_storage` is the kind of drives inside, `drive_count` their number.
    """

    name: str
    cpu: CpuPool
    ram: Bytes
    memory_bandwidth: BytesPerSecond | None = None
    gpu: Gpu | None = None
    gpu_count: int = 0
    host_link: Link | None = None
    switches: tuple[PcieSwitch, ...] = ()
    gpu_sockets: tuple[int, ...] = ()
    socket_link: Link | None = None
    peer_link: Link | None = None
    peer_topology: PeerTopology = PeerTopology.NONE
    bridge: Link | None = None
    staging: Link | None = None
    network: Network | None = None
    local_storage: Storage | None = None
    drive_count: int = 0
    virtual: bool = False
    power: Watts | None = None
    prices: tuple[Price, ...] = ()
    capex: Usd | None = None
    cloud: str = ""
    family: str = ""
    note: str = ""
    sources: Mapping[str, Source] = field(default_factory=dict)

    @property
    def peer_path(self) -> PeerPath:
        """Path of data between its accelerators."""
        if self.peer_link is None:
            return PeerPath.P2P
        return PeerPath.HOST if self.peer_link.through_host else PeerPath.NVLINK

    def peers_by_default(self, gpus: int) -> PeerPath:
        """Return the path between the first `gpus` accelerators where none is stated.

        Accelerators with links of their own use these. Cards reach each other over PCIe, except
        for cards without peer access, and for cards below several sockets: NCCL sends through host
        memory then, unless collectives were measured over as many cards on such links.
        """
        if self.peer_link is not None or self.staging is None or self.gpu is None or gpus < PAIR:
            return self.peer_path
        sockets = len(set(self.gpu_sockets[:gpus]))
        curves = () if self.host_link is None else self.host_link.collective
        measured = any(c.machines == 1 and c.ranks >= gpus and c.verified for c in curves)
        direct = self.gpu.peer_access and (sockets <= 1 or measured)
        return PeerPath.P2P if direct else PeerPath.HOST

    def with_peers(self, path: PeerPath) -> Host:
        """Return the machine with its accelerators connected by another path.

        A path that it does not have leaves it unchanged.
        """
        if path is self.peer_path:
            return self
        if path is PeerPath.P2P:
            return replace(self, peer_link=None, peer_topology=PeerTopology.PCIE)
        if path is PeerPath.HOST and self.staging is not None:
            return replace(self, peer_link=self.staging, peer_topology=PeerTopology.PCIE)
        if path is PeerPath.NVLINK and self.bridge is not None:
            return replace(self, peer_link=self.bridge, peer_topology=PeerTopology.SWITCHED)
        return self

    @property
    def device_rate(self) -> BytesPerSecond | None:
        """Rate between one accelerator alone and its host, over its link and uplink [B/s]."""
        if self.host_link is None:
            return None
        uplinks = (switch.uplink.rate for switch in self.switches if switch.gpus)
        return min(self.host_link.rate, *uplinks, self.host_link.rate)


PAIR: Final = 2
"""Cards that a bridge joins."""
MachinesField = Annotated[int, Number(low=1.0, high=1e6, whole=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware(Section):
    """The machine the job runs on, and what-if changes to it."""

    machine: TextField
    """Name of a machine's profile, such as node/dgx-a100-80gb or instance/aws/p4d.24xlarge."""
    count: MachinesField = 1
    """Number of equal machines."""
    gpu: TextField | None = None
    """Replace each of its accelerators by this one, such as gpu/h100-sxm5-80gb; everything else in
    the machine stays, but its price is then unknown."""
    gpus: CountOrZeroField | None = None
    """Accelerators used on each machine; all of them by default."""
    emulated: CountField | None = None
    """Instead of its accelerators, this number of processes on each machine that only wait for
    model.step_times, as storage benchmarks do; nothing is copied to them."""
    peer_link: Annotated[PeerPath, Choice(PeerPath)] | None = None
    """Path between its accelerators: nvlink (for cards, a bridge that joins two), p2p (PCIe from
    card to card) or host (through host memory). Default: their own links; else p2p for data-centre
    cards below one socket, host for cards without peer access such as GeForce, and for cards below
    several sockets over which no collective was measured."""
    storage: TextField | None = None
    """Name of a store's profile, such as storage/ebs-gp3; the machine's own drives by default."""
    cache: TextField | None = None
    """Drives in front of the store that cache the data read: local, or a store's profile."""
    ram: ByteField | None = None
    """RAM of the machine, instead of its own."""
    vcpus: NumberField | None = None
    """Number of hardware threads, instead of the machine's; cores change in proportion unless
    given."""
    cores: NumberField | None = None
    """Number of physical cores, instead of the machine's."""
    smt_worth: FractionField | None = None
    """Extra speed of a busy core with a second hardware thread, as a fraction of a core."""
    contention: NumberOrZeroField | None = None
    """Extra time of work with all cores busy over that with one, as a fraction; 0: none."""
    memory_bandwidth: ByteRateField | None = None
    """Bandwidth of the host memory, instead of the machine's."""
    storage_bandwidth: ByteRateField | None = None
    """Achieved read rate of the store, instead of its own."""
    storage_latency: TimeOrZeroField | None = None
    """Time before the first byte of a read, instead of the store's."""
    storage_operations: OperationsField | None = None
    """Small random reads per second, instead of the store's."""
    storage_capacity: ByteField | None = None
    """Capacity of the store; its rent and burst credits are in proportion to it where they depend
    on it."""
    storage_prefixes: CountField = 1
    """Number of prefixes of objects, each with the store's limit of requests for itself."""
    storage_request_rate: ByteRateField | None = None
    """Highest rate of one request to the store, instead of its own."""
    network_bandwidth: ByteRateField | None = None
    """Rate of each machine's network attachment, one way, for its accelerators in use, instead of
    its own."""
    pcie_bandwidth: ByteRateField | None = None
    """Rate between an accelerator alone and its host, one way, over its link and the uplink of its
    switch, instead of its own."""


class Role(StrEnum):
    """Role of a group of machines in the job."""

    TRAIN = "train"
    PREPROCESS = "preprocess"
    SERVE = "serve"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """`count` equal machines with one role, reading their samples from `storage`.

    `gpus_per_host` accelerators of each machine are used; the whole machine is paid for, at `price`
    if that replaces the catalogue's. `origin` is the store of the data before it is staged or
    preloaded. `cache` are drives in front of `storage` that cache the data read.
    """

    name: str
    role: Role
    host: Host
    storage: Storage
    count: int = 1
    gpus_per_host: int = 0
    origin: Storage | None = None
    cache: Storage | None = None
    price: UsdPerSecond | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """All groups of a scenario."""

    groups: tuple[Group, ...]

    @property
    def trainers(self) -> Group:
        """The group that trains (the first one, if none has that role)."""
        return next((g for g in self.groups if g.role is not Role.PREPROCESS), self.groups[0])

    @property
    def vcpus_per_gpu(self) -> float | None:
        """Hardware threads of all machines, helpers included, per accelerator in use."""
        used = self.trainers.count * self.trainers.gpus_per_host
        threads = sum(group.count * group.host.cpu.threads for group in self.groups)
        return threads / used if used else None
