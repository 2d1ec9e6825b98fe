"""The section of a scenario file on machines beside those that train."""

from __future__ import annotations

from typing import Annotated

from simulator.files.document import FileModel
from simulator.files.quantity import (
    CountField,
    FractionField,
    Number,
    NumberField,
    NumberOrZeroField,
    PriceOrZeroField,
    TextField,
    TimeOrZeroField,
)

HelpersField = Annotated[int, Number(low=1.0, high=1e4, whole=True)]
RemoteWorkersField = Annotated[int, Number(low=1.0, high=4096.0, whole=True)]


class RemoteSection(FileModel):
    """Machines that only make batches and hand them over the network."""

    machine: TextField
    """Name of a machine's profile, such as instance/aws/c5.18xlarge."""
    count: HelpersField = 1
    """How many equal machines."""
    name: TextField = "data"
    """What the group is called in reports, as in the resource data.cpu."""
    storage: TextField | None = None
    """Store these machines read; that of the trainers by default, unless it is their own drives."""
    workers: RemoteWorkersField | None = None
    """Workers on each of these machines; one for each of its vCPUs by default."""
    shares_batches: bool | None = None
    """Whether all workers of a machine make each batch together; true by default for tf.data."""
    queue: CountField | None = None
    """Finished batches that may wait for each process that trains; 2 by default."""
    speed: NumberField | None = None
    """Speed of one of their vCPUs beside one that trains, such as 1.2; as their CoreMarks say."""
    smt_worth: FractionField | None = None
    """What a second hardware thread adds to a busy core there, as a fraction of a core."""
    contention: NumberOrZeroField | None = None
    """How much longer work takes there with all cores busy than with one, less 1."""
    send_per_batch: TimeOrZeroField = 0.0
    """CPU time of a remote worker to serialise and send a batch."""
    send_per_sample: TimeOrZeroField = 0.0
    """CPU time of a remote worker to serialise and send, for each sample."""
    price: PriceOrZeroField | None = None
    """Price of one of these machines, such as $3.06/h; the profile's by default."""
