"""The store of outcomes: what is in it stays, whoever opens it and whatever goes wrong."""

from __future__ import annotations

import math
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.results.metrics import Value
from simulator.studies.search import store as module
from simulator.studies.search.outcome import Candidate, Outcome, Status
from simulator.studies.search.store import MEMORY, Store, StoreError, default_path

NOBODY = Candidate(index=0, settings={})


def outcome(key: str, **figures: Value) -> Outcome:
    """A finished one."""
    return Outcome(candidate=NOBODY, status=Status.PREDICTED, figures=figures, key=key)


@given(
    st.dictionaries(
        st.text(), st.none() | st.integers() | st.text() | st.floats(allow_nan=False), max_size=8
    ),
    st.text(),
)
def test_what_goes_in_comes_out(figures: dict[str, Value], reason: str) -> None:
    """Every float to the last bit, infinity and odd characters included."""
    kept = Outcome(
        candidate=NOBODY,
        status=Status.INFEASIBLE,
        figures={**figures, "items": {"a": 0.1, "b": math.inf}},
        intervals={"total_time_s": {"p10": 0.1 + 0.2}},
        reason=reason,
        key="k",
    )
    with Store(Path(":memory:")) as store:
        store.add([kept])
        assert store.found(["k", "other"]) == {"k": kept}


def test_the_first_row_of_a_key_stays(tmp_path: Path) -> None:
    """A second one of the same key changes nothing, and more keys than a query takes are found."""
    path = tmp_path / "deep" / "er" / "s.sqlite"
    with Store(path) as store:
        store.add([outcome(str(n), total=float(n)) for n in range(1200)])
        store.add([outcome("3", total=99.0)])
    with Store(path) as store:
        found = store.found(str(n) for n in range(1200))
    assert len(found) == 1200
    assert found["3"].figures == {"total": 3.0}


def test_without_resuming_new_rows_take_the_place_of_old_ones(tmp_path: Path) -> None:
    """What is there is not answered, what comes is kept."""
    path = tmp_path / "s.sqlite"
    with Store(path) as store:
        store.add([outcome("a", total=1.0), outcome("b", total=1.0)])
    with Store(path, resume=False) as store:
        assert store.found(["a"]) == {}
        store.add([outcome("a", total=2.0)])
    with Store(path) as store:
        totals = {key: o.figures["total"] for key, o in store.found(["a", "b"]).items()}
    assert totals == {"a": 2.0, "b": 1.0}


def foreign(path: Path) -> None:
    """A database of another program."""
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE songs (name TEXT)")
    other.close()


def newer(path: Path) -> None:
    """A store of a later version."""
    Store(path).close()
    with sqlite3.connect(path) as later:
        later.execute("PRAGMA user_version = 99")
    later.close()


def text(path: Path) -> None:
    """No database at all."""
    path.write_text("this is a shopping list\n" * 50, encoding="utf-8")


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (foreign, "a database of something else"),
        (newer, "a newer plan has written it"),
        (text, "file is not a database"),
        (Path.mkdir, "unable to open database file"),
    ],
)
def test_what_is_no_store_is_refused_and_left_alone(
    tmp_path: Path, make: object, told: str
) -> None:
    """One message that names the file; the file is as before."""
    path = tmp_path / "s.sqlite"
    make(path)  # type: ignore[operator] # a function of the path
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(StoreError, match=told) as caught:
        Store(path)
    assert str(path) in str(caught.value)
    assert "--store" in str(caught.value)
    assert (path.read_bytes() if path.is_file() else b"") == before


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """A file stands where the folder should be."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(StoreError, match="its folder cannot be made"):
        Store(tmp_path / "file" / "s.sqlite")


def test_a_full_disk_loses_nothing_finished(tmp_path: Path) -> None:
    """What was added before stays, of what did not fit nothing is half there."""
    path = tmp_path / "s.sqlite"
    with Store(path) as store:
        store.add([outcome("a", total=1.0)])
        store._open.execute("PRAGMA max_page_count = 8")  # noqa: SLF001 - a disk of eight pages
        with pytest.raises(StoreError, match=r"full; what was finished is kept"):
            store.add([outcome(f"{n}", text="x" * 5000) for n in range(20)])
        store.add([outcome("b", total=2.0)])
    with Store(path) as store:
        assert set(store.found(["a", "b", *map(str, range(20))])) == {"a", "b"}


def test_a_row_that_cannot_be_read(tmp_path: Path) -> None:
    """Somebody changed it by hand: it is forgotten, and what takes its place is kept."""
    path = tmp_path / "s.sqlite"
    with Store(path) as store:
        store.add([outcome("a"), outcome("b")])
        store._open.execute("UPDATE outcomes SET outcome = '{}' WHERE key = 'a'")  # noqa: SLF001 - by hand
        assert set(store.found(["a", "b"])) == {"b"}
        assert store.damaged == 1
        store.add([outcome("a", total=7.0)])
    with Store(path) as store:
        assert store.found(["a"])["a"].figures["total"] == 7.0
        assert store.damaged == 0


ODD = {
    "figures of text": '{"status":"predicted","figures":"x","intervals":{},"reason":"",'
    '"warnings":[]}',
    "intervals of a number": '{"status":"predicted","figures":{},"intervals":3,"reason":"",'
    '"warnings":[]}',
    "5,000 lists": "[" * 5000 + "]" * 5000,
    "digits": "9" * 5000,
    "null": '{"status":"predicted","figures":null,"intervals":{},"reason":"","warnings":[]}',
    "nothing": "",
    "bytes": b"\xff\x00",
    "a number": 7,
}


@pytest.mark.parametrize("row", list(ODD.values()), ids=list(ODD))
def test_a_row_of_another_program_is_predicted_again(row: object) -> None:
    """Whatever it holds, its digest is not that of its contents."""
    with Store(MEMORY) as store:
        store.add([outcome("a"), outcome("b")])
        store._open.execute("UPDATE outcomes SET outcome = ? WHERE key = 'a'", (row,))  # noqa: SLF001 - by hand
        assert set(store.found(["a", "b"])) == {"b"}
        assert store.damaged == 1


@given(st.integers(0, 10**6), st.integers(32, 126))
def test_one_changed_character_is_noticed(place: int, code: int) -> None:
    """In the digest or in the contents: the row is predicted again, or is what it was."""
    with Store(MEMORY) as store:
        store.add([outcome("a", total=1.0)])
        ((text,),) = store._open.execute("SELECT outcome FROM outcomes").fetchall()  # noqa: SLF001 - by hand
        place %= len(text)
        changed = text[:place] + chr(code) + text[place + 1 :]
        store._open.execute("UPDATE outcomes SET outcome = ?", (changed,))  # noqa: SLF001 - by hand
        found = store.found(["a"])
    assert (found == {"a": outcome("a", total=1.0)}) == (changed == text)
    assert found in ({}, {"a": outcome("a", total=1.0)})


def test_a_row_under_another_key_is_predicted_again() -> None:
    """The key is part of the digest."""
    with Store(MEMORY) as store:
        store.add([outcome("a", total=1.0)])
        store._open.execute("UPDATE outcomes SET key = 'b'")  # noqa: SLF001 - by hand
        assert store.found(["b"]) == {}


def test_a_store_in_memory_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept there ends with it."""
    monkeypatch.chdir(tmp_path)
    with Store(MEMORY) as store:
        store.add([outcome("a")])
        assert set(store.found(["a"])) == {"a"}
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_stays_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while the message says that another program has it."""
    monkeypatch.setattr(module, "LOCK_TIMEOUT", 0.05)
    path = tmp_path / "s.sqlite"
    with Store(path) as one, Store(path) as two:
        one._open.execute("BEGIN IMMEDIATE")  # noqa: SLF001 - another program that never ends
        with pytest.raises(StoreError, match="another program has kept it locked"):
            two.add([outcome("a")])


WRITER = """
import sys
from pathlib import Path
from simulator.studies.search.outcome import Candidate, Outcome, Status
from simulator.studies.search.store import MEMORY, Store

with Store(Path(sys.argv[1])) as store:
    for n in range(150):
        one = Outcome(candidate=Candidate(index=0, settings={}), status=Status.PREDICTED,
                      figures={"n": n, "text": "x" * 2000}, key=str(n))
        store.add([one])
"""


def test_two_writers_at_once(tmp_path: Path, root: Path) -> None:
    """Two processes write the same rows at the same time; each is there once."""
    path = tmp_path / "s.sqlite"
    writers = [
        subprocess.Popen(  # noqa: S603 - our own interpreter and code
            [sys.executable, "-c", WRITER, str(path)], cwd=root
        )
        for _ in range(2)
    ]
    assert [writer.wait(timeout=120.0) for writer in writers] == [0, 0]
    with sqlite3.connect(path) as store:
        rows = store.execute("SELECT key FROM outcomes").fetchall()
        assert store.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    store.close()
    assert sorted(int(key) for (key,) in rows) == list(range(150))


def test_a_new_store_is_opened_by_several_at_once(tmp_path: Path) -> None:
    """Whoever comes second to a file just being made waits, and finds it ready."""
    together = 4
    start = threading.Barrier(together)

    def opened(path: Path) -> bool:
        start.wait()
        with Store(path) as store:
            return store.found(["none"]) == {}

    with ThreadPoolExecutor(together) as pool:
        for turn in range(25):
            paths = [tmp_path / f"{turn}.sqlite"] * together
            assert all(pool.map(opened, paths))


def test_where_the_store_lies() -> None:
    """$PLAN_STORE, else the user's cache folder."""
    assert default_path({"PLAN_STORE": "here.sqlite"}) == Path("here.sqlite")
    assert default_path({"XDG_CACHE_HOME": "caches"}) == Path("caches/plan/results.sqlite")
    assert default_path({}).is_relative_to(Path.home())
