"""The pipeline: what each stage asks of which resource for one batch of one rank.

A stage says once what it demands, as amounts; solvers (`bounds`, `engine`) decide how long that
takes. The tuples below *are* the pipelines: a stage takes part by standing in one of them.
"""

from __future__ import annotations

from simulator.stages.allreduce import AllReduce
from simulator.stages.base import Stage
from simulator.stages.checkpoint import Checkpoint
from simulator.stages.collate import Collate
from simulator.stages.compute import Backward, Forward, Update
from simulator.stages.copy import Copy
from simulator.stages.decode import Decode
from simulator.stages.fit import Fit
from simulator.stages.read import Read
from simulator.stages.receive import Receive
from simulator.stages.result import Result

TRAINING: tuple[Stage, ...] = (
    Read(),
    Decode(),
    Collate(),
    Receive(),
    Copy(),
    Fit(),
    Forward(),
    Backward(),
    AllReduce(),
    Update(),
    Result(),
)
"""One batch of one rank; all-reduce and optimizer run once a step, after its last batch."""

CHECKPOINTING: tuple[Stage, ...] = (Checkpoint(),)
"""What happens at a checkpoint, while training waits."""
