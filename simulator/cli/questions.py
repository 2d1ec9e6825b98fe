"""The questions of ``plan init``: the key that each answers, and its words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from simulator.schema.hardware.host import Host

MACHINE: Final = "hardware.machine"
MODEL: Final = "model.name"
MODE: Final = "train.mode"
STORE: Final = "hardware.storage"
MEASURED: Final = "model.step_time"
SAMPLE: Final = "data.bytes_per_sample"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One thing to ask: the key it answers, its flag, and what is asked.

    `own`: it describes a machine of one's own, and is asked only about such a one. `cores`,
    `tokens`: what is asked where no accelerator computes, and where a model reads tokens.
    """

    key: str
    flag: str
    text: str
    own: bool = False
    cores: str = ""
    tokens: str = ""

    @property
    def name(self) -> str:
        """What the flag's value is called in Python."""
        return self.flag.removeprefix("--").replace("-", "_")


QUESTIONS: Final = (
    Question(
        key=MACHINE,
        flag="--machine",
        text="Machine (names: plan hardware list), or own, or the name of its card",
    ),
    Question(
        key="hardware.gpu",
        flag="--gpu",
        text="Its card (names: plan hardware list gpu)",
        own=True,
    ),
    Question(key="hardware.gpus", flag="--gpus", text="How many such cards it has", own=True),
    Question(
        key="hardware.vcpus", flag="--vcpus", text="Its hardware threads, as nproc says", own=True
    ),
    Question(key="hardware.ram", flag="--ram", text="Its RAM, such as 64 GB", own=True),
    Question(key="hardware.count", flag="--count", text="How many such machines"),
    Question(
        key=MODEL,
        flag="--model",
        text="Model, such as resnet50 or llama-3.1-8b (plan models), or own",
        cores="Model, if the machine computes one (plan models; Enter: data are only prepared)",
    ),
    Question(
        key=MEASURED,
        flag="--step-time",
        text="Time of a batch on the device, if measured, such as 120 ms (Enter: plan computes it)",
    ),
    Question(
        key=STORE,
        flag="--storage",
        text="Where the data lie, such as s3 (plan hardware list storage; Enter: own drives)",
    ),
    Question(
        key="data.samples",
        flag="--samples",
        text="Samples in an epoch",
        cores="Samples or files in all",
        tokens="Sequences of tokens in an epoch",
    ),
    Question(
        key=SAMPLE,
        flag="--bytes",
        text="Size of a sample on the store",
    ),
    Question(
        key="input.workers",
        flag="--workers",
        text="DataLoader workers of each GPU's process",
        cores="Worker processes of a machine",
    ),
    Question(
        key="input.decode",
        flag="--decode",
        text="CPU time to decode and augment one sample (plan probe --loader measures it)",
        cores="CPU time that one sample or file takes",
    ),
    Question(
        key="train.batch_size",
        flag="--batch-size",
        text="Samples a GPU takes in a step",
        cores="Samples or files that a worker takes at a time",
        tokens="Sequences a GPU takes in a step",
    ),
    Question(key="train.epochs", flag="--epochs", text="Passes over the data"),
    Question(
        key="train.precision", flag="--precision", text="Precision: fp32, tf32, fp16, bf16 or amp"
    ),
)
OWN: Final = "own"
"""What stands for a machine that is described rather than named."""
DESCRIBED: Final = tuple(question.key for question in QUESTIONS if question.own)
ALWAYS: Final = frozenset({STORE, MODEL, MEASURED, *DESCRIBED})
"""What is asked though nothing stands there by default."""
_TOKENS: Final = "tokens"
_PREPARE: Final = "prepare"


def worded(question: Question, usual: Mapping[str, str], host: Host | None) -> str:
    """What is asked, in the words of the job that the answers so far make.

    `host`: the machine, where it is known.
    """
    alone = host is not None and host.gpu_count == 0
    if question.key == STORE and host is not None and host.local_storage is None:
        return "Where the data lie, such as s3 (plan hardware list storage; it has no own drives)"
    if question.tokens and usual.get("data.layout") == _TOKENS:
        return question.tokens
    return question.cores if question.cores and alone else question.text


def applies(question: Question, usual: Mapping[str, str], *, own: bool) -> bool:
    """Whether a question is asked after the answers so far.

    A machine that has a name is not described; data are prepared once and by no model, and the
    size of a sequence of tokens follows from the model.
    """
    if question.own and not own:
        return False
    if usual.get(MODE) == _PREPARE and question.key in {MEASURED, "train.epochs"}:
        return False
    if question.key == SAMPLE and usual.get("data.layout") == _TOKENS:
        return False
    return question.key in ALWAYS or question.key in usual
