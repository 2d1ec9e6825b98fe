"""``plan init``: write a first scenario from answers to a few questions."""

from __future__ import annotations

import io
import re
import sys
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from simulator.cli.options import (
    Complete,
    complete_models,
    complete_profiles,
    complete_scenarios,
    examples,
    file_option,
    profiles_option,
)
from simulator.cli.output import Exit, check_writable, complain, emit, write_file
from simulator.errors import InputError, NotModelled, PlanError
from simulator.records import dataclass
from simulator.uncertainty.scenario import with_uncertainties

if TYPE_CHECKING:
    from simulator.schema.machines import Host
    from simulator.schema.scenario import Scenario

MACHINE: Final = "hardware.machine"
MODEL: Final = "model.name"
MODE: Final = "train.mode"
STORE: Final = "hardware.storage"
MEASURED: Final = "model.step_time"
SAMPLE: Final = "data.bytes_per_sample"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question: the key that it sets, its flag and its text.

    `own`: asked only for a machine that the user describes. `cores`, `tokens`: alternative texts
    for jobs without accelerators and for language models.
    """

    key: str
    flag: str
    text: str
    own: bool = False
    cores: str = ""
    tokens: str = ""

    @property
    def name(self) -> str:
        """Name of the flag as a Python parameter."""
        return self.flag.removeprefix("--").replace("-", "_")


QUESTIONS: Final = (
    Question(
        key=MACHINE,
        flag="--machine",
        text="Machine type (plan hardware list), a GPU, or own to describe a machine",
    ),
    Question(
        key="hardware.gpu",
        flag="--gpu",
        text="GPU of your own machine (plan hardware list gpu)",
        own=True,
    ),
    Question(key="hardware.gpus", flag="--gpus", text="Number of GPUs in the machine", own=True),
    Question(
        key="hardware.vcpus",
        flag="--vcpus",
        text="Hardware threads of the machine, as reported by nproc",
        own=True,
    ),
    Question(key="hardware.ram", flag="--ram", text="RAM of the machine, such as 64 GB", own=True),
    Question(key="hardware.count", flag="--count", text="Number of machines"),
    Question(
        key=MODEL,
        flag="--model",
        text="Model, such as resnet50 or llama-3.1-8b (plan models), or own",
        cores="Model, if the machine computes one (plan models; default: data are only prepared)",
    ),
    Question(
        key=MEASURED,
        flag="--step-time",
        text="Measured time of a batch on the GPU, such as 120 ms (default: computed)",
    ),
    Question(
        key=STORE,
        flag="--storage",
        text="Storage of the data, such as s3 (plan hardware list storage; default: local drives)",
    ),
    Question(
        key="data.samples",
        flag="--samples",
        text="Number of samples per epoch",
        cores="Number of samples or files",
        tokens="Number of sequences per epoch",
    ),
    Question(
        key=SAMPLE,
        flag="--bytes",
        text="Stored size of one sample",
    ),
    Question(
        key="input.workers",
        flag="--workers",
        text="DataLoader workers per GPU process",
        cores="Worker processes per machine",
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
        text="Batch size per GPU, in samples",
        cores="Samples or files per batch of a worker",
        tokens="Batch size per GPU, in sequences",
    ),
    Question(key="train.epochs", flag="--epochs", text="Passes over the data"),
    Question(
        key="train.precision", flag="--precision", text="Precision: fp32, tf32, fp16, bf16 or amp"
    ),
)
OWN: Final = "own"
"""Answer for a machine (or model) that is described instead of named."""
DESCRIBED: Final = tuple(question.key for question in QUESTIONS if question.own)
ALWAYS: Final = frozenset({STORE, MODEL, MEASURED, *DESCRIBED})
"""Keys without a default that are asked for."""
_TOKENS: Final = "tokens"
_PREPARE: Final = "prepare"


def worded(question: Question, usual: Mapping[str, str], host: Host | None) -> str:
    """Return the text of a question that suits the answers so far.

    Parameters
    ----------
    question : Question
        The question.
    usual : mapping
        Default answers by key.
    host : Host or None
        The machine, if it is known.
    """
    alone = host is not None and host.gpu_count == 0
    if question.key == STORE and host is not None and host.local_storage is None:
        return "Storage of the data, such as s3 (plan hardware list storage; no local drives)"
    if question.tokens and usual.get("data.layout") == _TOKENS:
        return question.tokens
    return question.cores if question.cores and alone else question.text


def applies(question: Question, usual: Mapping[str, str], *, own: bool) -> bool:
    """Return True if a question is asked, given the default answers by key in `usual`.

    `own`: the user describes the machine, instead of naming one. Data preparation has no model and
    no epochs; the sample size of token data follows from the model.
    """
    if question.own and not own:
        return False
    if usual.get(MODE) == _PREPARE and question.key in {MEASURED, "train.epochs"}:
        return False
    if question.key == SAMPLE and usual.get("data.layout") == _TOKENS:
        return False
    return question.key in ALWAYS or question.key in usual


Command = TypeVar("Command", bound=Callable[..., Any])

_OWN_DRIVES: Final = frozenset({"nvme", "ssd", "local", "localnvme", "localssd"})
"""Words for the local drives of a machine, the default store."""
MAX_MACHINES: Final = 256
"""Maximum number of machines to try."""
MIN_SEQUENCE: Final = 512
"""Shortest sequence length to suggest [tokens]."""
SEQUENCE: Final = "model.sequence"
BATCH: Final = "train.batch_size"
COUNT: Final = "hardware.count"
_AMP: Final = "amp"
_TRAIN: Final = "train"
_SERVE: Final = "serve"
_PURPOSES: Final = (_TRAIN, _PREPARE, _SERVE)
_LIKE: Final = "llama3-8b-chat-h100"
"""Default service."""
_MEANT: Final = re.compile(r"did you mean '([^']+)'\?$")
"""Pattern of the end of a message with one suggestion."""

COMPLETE: Final[Mapping[str, Complete]] = {
    "hardware.machine": complete_profiles("node", "instance"),
    "hardware.storage": complete_profiles("storage"),
    "model.name": complete_models,
}
"""Shell completion functions by key."""


def _flags(command: Command) -> Command:
    for question in reversed(QUESTIONS):
        command = click.option(
            question.flag,
            question.name,
            metavar="VALUE",
            shell_complete=COMPLETE.get(question.key),
            help=question.text,
        )(command)
    return command


@click.command(
    epilog=examples(
        "plan init",
        "plan init --yes --machine MACHINE --workers 16 -o mine.toml",
        "plan init --yes --gpu GPU --vcpus 16 --ram '64 GB'",
        "plan init --from SCENARIO -o mine.toml",
    )
)
@click.argument("misplaced", nargs=-1, metavar="")
@_flags
@click.option(
    "--from",
    "shipped",
    metavar="SCENARIO",
    shell_complete=complete_scenarios,
    help="Copy a shipped scenario instead (plan scenarios lists them), for you to change.",
)
@click.option("--name", default="my-job", show_default=True, help="Name of the scenario.")
@click.option(
    "--title", default="How fast is my job, and what limits it?", help="Title of the scenario."
)
@file_option("-o", "--output", text="Output file; NAME.toml by default, - for standard output.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option("-y", "--yes", is_flag=True, help="Do not prompt; use flags and defaults.")
@profiles_option
def init(  # noqa: PLR0913 - one parameter an option
    *,
    misplaced: tuple[str, ...],
    shipped: str | None,
    name: str,
    title: str,
    output: Path | None,
    force: bool,
    yes: bool,
    profiles: tuple[Path, ...],
    **flags: str | None,
) -> int:
    """Write a first scenario of your own, with every key explained.

    Asks a few questions on a terminal; flags answer them beforehand.
    """
    if misplaced:
        msg = f"where it goes is an option: plan init --output {misplaced[0]}"
        raise click.UsageError(msg)
    target = Path(f"{name}.toml") if output is None else output
    to_file = str(target) != "-"
    if to_file:
        check_writable(target, "--output")
        if target.exists() and not force:
            msg = f"{target} exists; choose another --output, or --force to replace it"
            raise click.UsageError(msg)
    ask = sys.stdin is not None and sys.stdin.isatty() and not yes
    purpose = _TRAIN
    if ask and shipped is None and not any(flags.values()):
        purpose = _purpose()
    if purpose == _SERVE:
        shipped = _service()
    if shipped is not None:
        text = _copied(shipped, name, flags)
        remarks = _about_base(text)
    else:
        given = _answers(flags, profiles, purpose=purpose if ask else "")
        stated = {question.key for question in QUESTIONS if flags[question.name] is not None}
        text, remarks = _written(name, title, given, profiles, stated=stated)
    if not to_file:
        emit(text.rstrip("\n"))
    else:
        write_file(target, text, "--output")
        remarks = [f"wrote {target}; next: plan simulate {target}", *remarks]
    complain(*remarks)
    return Exit.FINE


def _purpose() -> str:
    """Prompt for the purpose of the job, and return it."""
    click.echo("Enter accepts the value in brackets; Ctrl-C stops without writing.", err=True)
    while True:
        said = _prompt("What it does: train a model, prepare data, or serve requests", _TRAIN)
        meant = [one for one in _PURPOSES if said and one.startswith(said.strip().lower())]
        if meant:
            return meant[0]
        complain(f"write one of {', '.join(_PURPOSES)}")


def _service() -> str:
    """Prompt for the shipped service to copy, and return its name."""
    from simulator.reading.shipped import scenario_path, service_names

    names = service_names()
    for name in names:
        path = scenario_path(name)
        told = {} if path is None else tomllib.loads(path.read_text(encoding="utf-8"))
        click.echo(f"  {name:<{max(map(len, names))}}  {told.get('title', '')}", err=True)
    while True:
        said = _prompt("Which of these is most like yours", _LIKE).strip()
        if said in names:
            return said
        complain(f"unknown service '{said}'")


def _prompt(text: str, default: str) -> str:
    said: str = click.prompt(text, default=default, show_default=bool(default), err=True)
    return said


def _copied(shipped: str, name: str, flags: Mapping[str, str | None]) -> str:
    """Return the text of a shipped scenario with another name.

    Raises
    ------
    click.UsageError
        If there is no such scenario, or flags that set keys are given.
    """
    from simulator.reading.shipped import nearest_shipped, scenario_path

    said = [question.flag for question in QUESTIONS if flags[question.name] is not None]
    if said:
        msg = f"{said[0]} does not go with --from; change the file, or use plan simulate --set"
        raise click.UsageError(msg)
    path = scenario_path(shipped)
    if path is None:
        close = " or ".join(repr(other) for other in nearest_shipped(shipped))
        meant = f"did you mean {close}?" if close else "plan scenarios lists them"
        msg = f"there is no shipped scenario '{shipped}'; {meant}"
        raise click.UsageError(msg)
    text = path.read_text(encoding="utf-8")
    return re.sub(r'(?m)^name = ".*"$', lambda _: f'name = "{name}"', text, count=1)


def _about_base(text: str) -> list[str]:
    """Return a remark on the scenario that a copied file extends; empty if it extends none."""
    base = str(tomllib.loads(text).get("extends", "")).removesuffix(".toml")
    if not base:
        return []
    return [f"extends {base}; inherited keys: plan init --from {base} -o -"]


def _written(
    name: str,
    title: str,
    answers: dict[str, str],
    profiles: tuple[Path, ...],
    *,
    stated: Collection[str],
) -> tuple[str, list[str]]:
    """Return the text of a scenario with these answers, and remarks.

    `stated` are the keys that flags set: the batch is then kept, and a key without effect is named.
    """
    from simulator.studies.unused_keys import unused_in

    keep = BATCH in stated
    _checked(name, title, answers, profiles)
    answers, remarks = _fitted(answers, profiles, keep=keep)
    answers = _with_its_batch(answers)
    text = _checked(name, title, answers, profiles)
    while idle := [key for key in unused_in(text, profiles) if key in answers]:
        answers = {key: answer for key, answer in answers.items() if key not in idle}
        text = _checked(name, title, answers, profiles)
        if said := [key for key in idle if key in stated]:
            remarks.append(f"left out, as nothing in this job depends on it: {', '.join(said)}")
    return text, [*remarks, *_about_workers(text, profiles)]


def _with_its_batch(answers: dict[str, str]) -> dict[str, str]:
    """Add ``model.step_time_batch``, the batch size of a measured step time, to the answers."""
    batch = answers.get(BATCH)
    if not answers.get(MEASURED) or batch is None:
        return answers
    return {**answers, "model.step_time_batch": batch}


def _fitted(
    answers: dict[str, str], profiles: tuple[Path, ...], *, keep: bool
) -> tuple[dict[str, str], list[str]]:
    """Fit the job into GPU memory: parallelism for language models, else a smaller batch.

    Returns the answers and remarks on changes. `keep`: don't change the batch size.
    """
    from simulator.physics.transformer import of_tokens

    plain = _read(answers, profiles)
    if not of_tokens(plain.job.model):
        return (answers, []) if keep else _with_batch_that_fits(answers, profiles)
    if keep:
        return _spread(answers, plain, profiles)
    one = {**answers, BATCH: "1"}
    spread, remarks = _spread(one, _read(one, profiles), profiles)
    largest = _largest_batch({**spread, BATCH: answers[BATCH]}, profiles)
    return {**spread, BATCH: str(largest or 1)}, remarks


def _with_batch_that_fits(
    answers: dict[str, str], profiles: tuple[Path, ...]
) -> tuple[dict[str, str], list[str]]:
    """Set the largest batch size that certainly fits; leave it unchanged if none does."""
    usual, largest = int(answers[BATCH]), _largest_batch(answers, profiles)
    if largest in (None, usual):
        return answers, []
    said = f"batch set to {largest} ({usual} may not fit into GPU memory)"
    return {**answers, BATCH: str(largest)}, [said]


def _largest_batch(answers: Mapping[str, str], profiles: tuple[Path, ...]) -> int | None:
    """Return the first batch size that certainly fits into GPU memory, halving the current one.

    None if a batch of 1 may not fit.
    """
    from simulator.physics.footprint import Verdict, memory_fit

    batch = int(answers[BATCH])
    while batch >= 1:
        fit = memory_fit(with_uncertainties(_read({**answers, BATCH: str(batch)}, profiles)))
        if fit is None or fit.verdict is Verdict.YES:
            return batch
        batch //= 2
    return None


def _spread(
    answers: dict[str, str], plain: Scenario, profiles: tuple[Path, ...]
) -> tuple[dict[str, str], list[str]]:
    """Add parallelism if one device cannot hold the model; return the answers and remarks."""
    from simulator.studies.levers.parallelism import first_that_fits

    settings, fits = first_that_fits(plain, lambda more: _read({**answers, **more}, profiles))
    if not fits:
        return answers, [_what_would_hold(answers, profiles)]
    said = ", ".join(f"{key} = {value}" for key, value in settings.items())
    remarks = [f"one device cannot hold the model; parallelism set: {said}"] if settings else []
    return {**answers, **settings}, remarks


def _what_would_hold(answers: Mapping[str, str], profiles: tuple[Path, ...]) -> str:
    """Describe what would hold the model: more machines (powers of two), or shorter sequences."""
    plain = _read(answers, profiles)
    count = plain.cluster.trainers.count
    held = f"the model may not fit on {count} such machine{'s' if count > 1 else ''}"
    ways = []
    for sequence in (None, *_halved(_sequence_of(plain))):
        shorter = {} if sequence is None else {SEQUENCE: str(sequence)}
        with_it = f" with {SEQUENCE} = {sequence}" if sequence else ""
        changed = {**answers, **shorter}
        if shorter and _first_held(changed, profiles, COUNT, [count]):
            ways.append(f"it fits{with_it}")
            break
        more = _first_held(changed, profiles, COUNT, _doubled(count, MAX_MACHINES))
        ways += [f"it fits on {more}{with_it}"] if more and not ways else []
    ways = ways or [f"nor on {MAX_MACHINES}; try LoRA (model.lora_rank)"]
    return "; ".join([f"{held} with any parallelism", *ways])


def _first_held(
    answers: Mapping[str, str], profiles: tuple[Path, ...], key: str, values: Iterable[int]
) -> int | None:
    """Return the first value of `key` with which the model fits, with any parallelism."""
    from simulator.studies.levers.parallelism import first_that_fits

    for value in values:
        changed = {**answers, key: str(value)}

        def read(settings: Mapping[str, str], changed: dict[str, str] = changed) -> Scenario:
            return _read({**changed, **settings}, profiles)

        if first_that_fits(read({}), read)[1]:
            return value
    return None


def _doubled(count: int, most: int) -> Iterator[int]:
    while (count := 2 * count) <= most:
        yield count


def _halved(sequence: int) -> Iterator[int]:
    while (sequence := sequence // 2) >= MIN_SEQUENCE:
        yield sequence


def _sequence_of(scenario: Scenario) -> int:
    """Return the sequence length in tokens; 0 for other models."""
    from simulator.schema.transformers import Transformer

    model = scenario.job.model
    return model.sequence if isinstance(model, Transformer) else 0


def _about_workers(text: str, profiles: tuple[Path, ...]) -> list[str]:
    """Return a remark on the total number of workers of a machine; empty if it is unremarkable."""
    from simulator.reading.scenario import load_scenario

    scenario = load_scenario("-", stdin=io.StringIO(text), profiles=profiles)
    group, each = scenario.cluster.trainers, scenario.job.input.workers
    processes = max(1, group.gpus_per_host)
    total, threads = each * processes, group.host.cpu.threads
    if not each or (processes == 1 and total <= threads):
        return []
    beyond = f"; more than its {threads:,.0f} hardware threads" if total > threads else ""
    whose = f" for each of {processes} GPUs: {total:,} on a machine" if processes > 1 else ""
    workers = "worker" if each == 1 else "workers"
    return [f"{each:,} {workers}{whose}{beyond}"]


def _answers(
    flags: Mapping[str, str | None], profiles: tuple[Path, ...], *, purpose: str
) -> dict[str, str]:
    """Collect the answers from flags, prompts and defaults; return them by key.

    `purpose` is train or prepare, and selects the prompts; if empty, there are no prompts.
    """
    from simulator.reading.starter import preparing_machine

    said = {q.key: _plain(q, given) for q in QUESTIONS if (given := flags[q.name]) is not None}
    for question in QUESTIONS if purpose else ():
        usual = dict(_usual(said, profiles))
        if question.key in said or not applies(question, usual, own=_is_own(said)):
            continue
        if question.key == MACHINE and purpose == _PREPARE:
            usual[MACHINE] = preparing_machine()
        answer = _asked(question, usual, said, profiles)
        while purpose == _PREPARE and question.key == MACHINE and _has_device(answer, profiles):
            complain("data are prepared on machines without GPU; to train on this one begin again")
            answer = _asked(question, usual, said, profiles)
        said |= answer
        if question.key == MACHINE:
            _confirm(said, profiles)
    return _as_meant(_joined(_usual(said, profiles), said))


def _confirm(said: Mapping[str, str], profiles: tuple[Path, ...]) -> None:
    """Print the devices of a named machine, so that the user notices a wrong name at once."""
    from simulator.report.prediction.rows import machine_called

    host = None if _is_own(said) else _host(said, profiles)
    if host is not None:
        click.echo(f"  {machine_called(host, host.gpu_count)}", err=True)


def _plain(question: Question, given: str) -> str:
    """Return an answer as it is written to the file; empty if it selects the default."""
    word = re.sub(r"[\s_-]", "", given).lower()
    empty = (question.key == STORE and word in _OWN_DRIVES) or (
        question.key == MODEL and word == OWN
    )
    return "" if empty else given.strip()


def _is_own(said: Mapping[str, str]) -> bool:
    """Return True if the answers so far describe a machine by its parts, without a name."""
    machine = said.get("hardware.machine")
    return machine == OWN or (machine is None and any(key in said for key in DESCRIBED))


def _as_meant(answers: dict[str, str]) -> dict[str, str]:
    """Replace common words in the answers by names of the catalogue and by keys."""
    from simulator.reading.model_library import called
    from simulator.reading.starter import own_machine

    meant = dict(answers)
    if "model.name" in meant:
        meant["model.name"] = called(meant["model.name"])
    if meant.get("hardware.machine") == OWN:
        meant["hardware.machine"] = own_machine()
    if meant.get("train.precision", "").lower() == _AMP:
        # torch.autocast computes in fp16 on a GPU by default.
        meant |= {"train.precision": "fp16", "train.mixed_precision": "true"}
    return meant


def _host(said: Mapping[str, str], profiles: tuple[Path, ...]) -> Host | None:
    """Return the machine that the answers so far name or describe; None if it is unknown."""
    from simulator.reading.hardware.catalogue import Catalogue
    from simulator.reading.starter import own_machine

    machine, card = said.get(MACHINE), said.get("hardware.gpu")
    if _is_own(said):
        machine = own_machine()
    try:
        catalogue = Catalogue.default(profiles)
        host = None if machine is None else catalogue.host(machine)
        return host if host is None or card is None else catalogue.with_gpu(host, card)
    except PlanError:  # reported when the scenario is loaded
        return None


def _has_device(said: Mapping[str, str], profiles: tuple[Path, ...]) -> bool:
    host = _host(said, profiles)
    return host is not None and host.gpu_count > 0


def _usual(said: Mapping[str, str], profiles: tuple[Path, ...]) -> Mapping[str, str]:
    """Return default answers by key, given the answers so far."""
    from simulator.reading.model_library import called
    from simulator.reading.starter import defaults

    model = called(said.get("model.name", "")) or said.get("model.step_time", "")
    size = said.get("data.bytes_per_sample", "")
    host = _described(_host(said, profiles), said)
    return defaults(host, model, own_machine=_is_own(said), sample=size)


def _described(host: Host | None, said: Mapping[str, str]) -> Host | None:
    """Return a described machine with the number of GPUs and threads from the answers so far."""
    threads, cards = said.get("hardware.vcpus", ""), said.get("hardware.gpus", "1")
    if host is None or not _is_own(said):
        return host
    if threads.isdecimal() and int(threads):
        pool = replace(host.cpu, threads=int(threads), cores=min(host.cpu.cores, float(threads)))
        host = replace(host, cpu=pool)
    counted = cards.isdecimal() and host.gpu_count
    return replace(host, gpu_count=max(1, int(cards))) if counted else host


def _joined(usual: Mapping[str, str], said: Mapping[str, str]) -> dict[str, str]:
    return {key: answer for key, answer in {**usual, **said}.items() if answer}


def _asked(
    question: Question,
    usual: Mapping[str, str],
    said: Mapping[str, str],
    profiles: tuple[Path, ...],
) -> dict[str, str]:
    """Prompt until the answer is valid; return it by key.

    `usual` are default answers, `said` the answers so far, both by key. After an invalid answer,
    Enter accepts the suggestion.
    """
    default = usual.get(question.key, "")
    text = worded(question, usual, _host(said, profiles))
    while True:
        answer = _plain(question, _prompt(text, default))
        found = {question.key: answer}
        if question.key == MACHINE and _is_card(answer, profiles):
            found = {MACHINE: OWN, "hardware.gpu": answer}
        problem = _mistake(question.key, {**said, **found}, profiles)
        if not problem:
            return found
        complain(problem)
        meant = _MEANT.search(problem)
        default = meant[1] if meant else default


def _is_card(name: str, profiles: tuple[Path, ...]) -> bool:
    """Return True if the catalogue has a GPU of this name, and no machine."""
    from simulator.reading.hardware.catalogue import Catalogue

    catalogue = Catalogue.default(profiles)
    try:
        catalogue.gpu(name)
    except PlanError:
        return False
    return _host({MACHINE: name}, profiles) is None


def _mistake(key: str, now: Mapping[str, str], profiles: tuple[Path, ...]) -> str:
    """Return the problem with the answer for a key; an empty string if it is valid.

    `now` are all answers so far by key.
    """
    try:
        _checked("", "", _as_meant(_joined(_usual(now, profiles), now)), profiles)
    except InputError as error:
        own = {key, "model"} if key == MEASURED else {key}
        wrong = next((one for one in error.problems if one.key in own), None)
        if wrong is not None and wrong.key == "model":
            return "a model of your own needs the time of a batch, such as 120 ms"
        if wrong is not None and wrong.key == MODEL:
            return _no_model(now.get(MODEL, ""))
        return "" if wrong is None else wrong.told.replace(" without quotes", "")
    except NotModelled as error:
        return str(error) if key == MEASURED else ""
    return ""


def _no_model(name: str) -> str:
    """Return the message for an unknown model, with the closest name."""
    from simulator.reading.model_library import model_names
    from simulator.schema.fields import nearest

    close = nearest(name, model_names())
    meant = f"; did you mean '{close}'?" if close else ""
    return (
        f"there is no model '{name}'; plan models lists all, and own is one of yours, of which you "
        f"know the time of a batch{meant}"
    )


def _read(answers: Mapping[str, str], profiles: tuple[Path, ...]) -> Scenario:
    """Return the scenario with these answers."""
    from simulator.reading.scenario import load_scenario
    from simulator.reading.starter import starter_text

    text = starter_text("tried", "tried", answers)
    return load_scenario("-", stdin=io.StringIO(text), profiles=profiles)


def _checked(name: str, title: str, answers: Mapping[str, str], profiles: tuple[Path, ...]) -> str:
    """Return the text of the scenario with these answers, after loading it.

    Raises
    ------
    InputError
        If an answer is invalid, with its flag.
    NotModelled
        If the time of the model on this machine is unknown.
    """
    from simulator.pipeline.program import check_modelled
    from simulator.reading.scenario import load_scenario
    from simulator.reading.starter import starter_text

    text = starter_text(name, title, answers)
    try:
        check_modelled(load_scenario("-", stdin=io.StringIO(text), profiles=profiles))
    except InputError as error:
        flag = {question.key: question.flag for question in QUESTIONS}
        raise InputError(
            tuple(
                replace(one, origin=flag.get(one.key or "", "plan init"), line=None)
                for one in error.problems
            )
        ) from None
    return text
