"""Workers: the same answers from wherever, and a task whose worker died goes to another one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from simulator.studies.search.workers import MAX_DEATHS, Lost, Workers, local_workers


def doubled(number: int) -> int:
    """What a task asks."""
    return 2 * number


def deadly(task: tuple[Path, int]) -> int:
    """Ends its process three times for task 5, once for task 9."""
    folder, number = task
    if number in (5, 9):
        with (folder / str(number)).open("a", encoding="utf-8") as log:
            log.write("x")
        if (folder / str(number)).stat().st_size <= (MAX_DEATHS if number == 5 else 1):
            os._exit(3)
    return number


@pytest.mark.parametrize("processes", [1, 2])
def test_answers_stand_in_order_of_the_tasks(processes: int) -> None:
    """However many processes there are, and progress never goes back."""
    told: list[float] = []
    with local_workers(processes, worth=0.0) as workers:
        assert workers.map(doubled, range(40), told.append) == [2 * n for n in range(40)]
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1.0)


def test_a_lost_task_is_tried_again_and_given_up_in_the_end(tmp_path: Path) -> None:
    """One death is bad luck; a task over which three workers die is lost, the others are not."""
    tasks = [(tmp_path, number) for number in range(12)]
    with local_workers(2, worth=0.0) as workers:
        found = dict(workers.answers(deadly, tasks))
    assert found.pop(5) == Lost(MAX_DEATHS)
    assert found == {number: number for number in range(12) if number != 5}


def test_a_study_that_needs_every_answer_says_what_happened(tmp_path: Path) -> None:
    """A lost task is an error there."""
    with (
        local_workers(2, worth=0.0) as workers,
        pytest.raises(RuntimeError, match="3 processes died"),
    ):
        workers.map(deadly, [(tmp_path, 5)])


def test_little_work_starts_no_process() -> None:
    """Below its worth a process is not started: the answer comes from this one."""
    with local_workers(2, worth=10.0) as workers:
        assert workers.map(os_process, [None] * 9) == [os.getpid()] * 9
        assert os.getpid() not in workers.map(os_process, [None] * 10)


def os_process(_: None) -> int:
    """Whose work it was."""
    return os.getpid()


def test_no_workers_but_this_process() -> None:
    """Without a team everything is done here."""
    assert Workers(None).map(os_process, [None] * 50) == [os.getpid()] * 50


def test_a_failing_task_ends_the_pool() -> None:
    """What goes wrong in a process comes out, and no process is left behind."""
    with local_workers(2) as workers:
        with pytest.raises(ValueError, match="could not convert"):
            workers.map(float, ["1"] * 30 + ["x"])
        workers.end()
        assert workers.map(float, ["2"]) == [2.0]


SLEEPERS = """
import os
import time
from simulator.studies.search.workers import local_workers

def work(_):
    print(os.getpid(), flush=True)
    time.sleep(60)

if __name__ == "__main__":
    with local_workers(2) as workers:
        workers.map(work, list(range(100)))
"""


@pytest.fixture
def asleep(tmp_path: Path, root: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A run in a session of its own, both of its workers asleep over their tasks."""
    script = tmp_path / "sleepers.py"
    script.write_text(SLEEPERS, encoding="utf-8")
    with subprocess.Popen(  # noqa: S603 - our own interpreter and code
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as run:
        assert run.stdout is not None
        yield run, [int(run.stdout.readline()) for _ in range(2)]
        with suppress(ProcessLookupError):  # a failed test leaves nothing behind
            os.killpg(run.pid, signal.SIGKILL)


def test_workers_end_with_a_killed_parent(
    asleep: tuple[subprocess.Popen[str], list[int]],
) -> None:
    """SIGKILL leaves no time to tidy up; the workers notice and go."""
    run, workers = asleep
    run.send_signal(signal.SIGKILL)
    run.wait()
    for worker in workers:
        wait_until_gone(worker)


@pytest.mark.slow
def test_ctrl_c_ends_all_processes(asleep: tuple[subprocess.Popen[str], list[int]]) -> None:
    """An interrupt ends the run and its workers at once."""
    run, workers = asleep
    os.killpg(run.pid, signal.SIGINT)
    run.wait(timeout=30.0)
    for worker in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)


def wait_until_gone(process: int) -> None:
    """Until no such process runs, for half a minute at most."""
    for _ in range(300):
        status = Path(f"/proc/{process}/stat")
        try:
            os.kill(process, 0)
            if status.exists() and status.read_text(encoding="utf-8").split()[2] == "Z":
                return
        except (ProcessLookupError, FileNotFoundError):
            return
        time.sleep(0.1)
    pytest.fail(f"process {process} still runs")
