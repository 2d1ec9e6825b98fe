"""The section of a scenario file on factors that evidence has put on its rates."""

from __future__ import annotations

from typing import Annotated

from simulator.files.document import FileModel
from simulator.files.quantity import Number, TextField

# Far beyond any fitted factor, near enough to catch a per cent written for a share.
SpeedField = Annotated[float, Number(low=1e-3, high=1e3)]


class CalibrationSection(FileModel):
    """How much faster resources are than described, as fitted to measurements; above 1: faster."""

    overlay: TextField | None = None
    """A file that plan calibrate wrote, relative to this one; --set wins over what it says."""
    compute: SpeedField = 1.0
    """Device arithmetic; measured step times stay as they are."""
    device_memory: SpeedField = 1.0
    """Bandwidth of device memory."""
    cpu: SpeedField = 1.0
    """Work on the host's cores."""
    storage: SpeedField = 1.0
    """Stores: rates and operations, and as much less latency."""
    network: SpeedField = 1.0
    """Network cards."""
    collective: SpeedField = 1.0
    """Exchange between the devices of a job."""
    straggling: SpeedField = 1.0
    """Ranks that are late by chance; above 1: less late."""
