"""One machine: sockets, cores, RAM, accelerators and what hangs where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from simulator.equations.cpu import capacity_beside
from simulator.schema.figures import (
    ByteRateFigure,
    ClockFigure,
    CountFigure,
    NameFigure,
    PowerFigure,
    Profile,
)
from simulator.schema.hardware.gpu import Gpu
from simulator.schema.hardware.link import Link
from simulator.schema.hardware.price import Price
from simulator.schema.hardware.storage import Storage
from simulator.uncertainty.provenance import Source
from simulator.units import (
    Bytes,
    BytesPerSecond,
    Hertz,
    PerSecond,
    Real,
    Usd,
    Watts,
    at_least,
    at_most,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu(Profile):
    """One processor socket."""

    cores: CountFigure
    """Physical cores."""
    threads: CountFigure
    """Hardware threads."""
    base_clock: ClockFigure
    """Clock that all cores hold."""
    memory_bandwidth: ByteRateFigure | None = None
    """Peak of the memory of one socket."""
    memory: NameFigure = ""
    """Kind and channels of memory."""
    pcie_generation: CountFigure | None = None
    """Generation of its PCIe lanes."""
    power: PowerFigure | None = None
    """Thermal design power."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorUnits:
    """Arithmetic rates of a core: vector units in fp32, and matrix units if it has some.

    `flop_per_cycle` is the peak, `matrix_per_cycle` that of products in 16 bit; `share` of both at
    the base clock is reached, and `memory_share` of the memory's rate.
    """

    flop_per_cycle: float
    share: float
    memory_share: float
    source: Source
    memory_source: Source
    matrix_per_cycle: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuPool:
    """The processors a program may use, all sockets together.

    `threads` is what the operating system shows (vCPUs), `cores` the physical cores behind them.
    `smt_worth` is what a second hardware thread adds to a busy core, as a fraction of a core;
    `contention` how much longer work takes with all cores busy than alone, less 1.
    `coremark` is the CoreMark of the whole machine, the yardstick for the speed of one vCPU.
    `taken` are hardware threads that other programs keep busy all the time, waiting in a loop.
    `vector` is what a core computes of a neural network, where it is known.
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

    @property
    def free(self) -> Real:
        """Hardware threads that are not taken."""
        return self.threads - self.taken

    @property
    def capacity(self) -> Real:
        """Core-seconds per second with every free hardware thread busy."""
        return self.capacity_for(self.threads)

    def capacity_for(self, threads: Real) -> Real:
        """Return core-seconds per second for `threads` that are ready to run."""
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
    """Connection of the accelerators of one machine."""

    SWITCHED = "switched"
    MESH = "mesh"
    PCIE = "pcie"
    NONE = "none"


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

    `rdma` traffic skips the copy through host memory. `storage_cap` limits volumes that are
    reached over the provider's storage network (the EBS limit), in addition to the
    volume's own rate. `link` is the profile of its cards together, with measured collectives.
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
    grouped under `switches` (a GPU under none has a root port of its own) and joined by
    `peer_link` in `peer_topology`. `gpu_sockets` says which socket each GPU is attached to.
    `local_storage` are the drives inside, `drive_count` of one kind.
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
    def device_rate(self) -> BytesPerSecond | None:
        """Rate at which an accelerator alone reaches its host [B/s], over its link and uplink."""
        if self.host_link is None:
            return None
        uplinks = (switch.uplink.rate for switch in self.switches if switch.gpus)
        return min(self.host_link.rate, *uplinks, self.host_link.rate)
