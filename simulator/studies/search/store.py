"""A store of finished outcomes: one SQLite file, so that no prediction is made twice.

Rows go by the content hash of what was predicted. They are written at once and never
changed, so a killed search loses only what it had not finished, and two searches may share a file.
Each begins with a digest of its key and contents: a row that another program changed is predicted
again.

Write-ahead logging lets readers and a writer work at once. A commit is handed to the operating
system but not forced to the disk (``synchronous=NORMAL``): it outlives the death of this process,
which is what happens, while a power failure may take the last few rows, never the file. Those rows
can be worked out again; forcing every one to the disk would slow all searches down to save them.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from simulator.errors import PlanError
from simulator.studies.search.outcome import Candidate, Outcome, Status

SCHEMA: Final = 1
"""Layout of the file; a store of a later one is left alone."""
OURS: Final = 0x706C616E
"""SQLite's application id of a store: "plan" in ASCII."""
LOCK_TIMEOUT: Final = 30.0
"""How long to wait for another search that writes [s]."""
_DIGEST_SIZE: Final = 16
"""Length of the digest of a row [B]."""
AT_ONCE: Final = 500
"""Keys asked for in one query."""
MEMORY: Final = Path(":memory:")
"""A store that ends with this process."""
VARIABLE: Final = "PLAN_STORE"
"""Environment variable that names the store."""

TABLE: Final = "CREATE TABLE IF NOT EXISTS outcomes (key TEXT PRIMARY KEY, outcome TEXT NOT NULL)"
ADD: Final = "INSERT OR IGNORE INTO outcomes (key, outcome) VALUES (?, ?)"
RENEW: Final = "INSERT OR REPLACE INTO outcomes (key, outcome) VALUES (?, ?)"


class StoreError(PlanError):
    """A store that cannot be opened, read or written; its contents are unchanged."""


def default_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the default path of the store.

    Raises
    ------
    StoreError
        If the user's data folder is unknown.
    """
    named = environment.get(VARIABLE)
    if named:
        return Path(named)
    try:
        home = Path.home()
    except RuntimeError as error:
        msg = "there is no home folder for the store; name a file with --store"
        raise StoreError(msg) from error
    usual = home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"
    return Path(environment.get("XDG_CACHE_HOME") or usual) / "plan" / "results.sqlite"


class Store:
    """Outcomes by key, in a file that survives the death of this process.

    A row whose digest is not that of its contents is deleted and predicted again; `damaged` is
    their number.

    Parameters
    ----------
    path : pathlib.Path
        Path of the file; file and folder are created if they are missing.
        `MEMORY` keeps outcomes only until it is closed.
    resume : bool
        If true, return stored outcomes; if not, replace them by new ones.

    Raises
    ------
    StoreError
        If the file cannot be made or written, or is not a store of this version.
    """

    def __init__(self, path: Path, *, resume: bool = True) -> None:
        self.path = path
        self.damaged = 0
        self._resume = resume
        self._add = ADD if resume else RENEW
        with self._told():
            self._folder()
            self._open = sqlite3.connect(path, timeout=LOCK_TIMEOUT, isolation_level=None)
        try:
            with self._told():
                self._prepare()
        except BaseException:
            self._open.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, if it is open."""
        self._open.close()

    def found(self, keys: Iterable[str]) -> dict[str, Outcome]:
        """Return the stored outcomes among `keys`, without their candidates."""
        if not self._resume:
            return {}
        wanted = list(dict.fromkeys(keys))
        rows: list[tuple[str, object]] = []
        with self._told():
            for start in range(0, len(wanted), AT_ONCE):
                part = wanted[start : start + AT_ONCE]
                marks = ",".join("?" * len(part))
                query = f"SELECT key, outcome FROM outcomes WHERE key IN ({marks})"  # noqa: S608 - only question marks are put in
                rows += self._open.execute(query, part).fetchall()
        read = {key: _from_text(key, text) for key, text in rows}
        self._forget([key for key, outcome in read.items() if outcome is None])
        return {key: outcome for key, outcome in read.items() if outcome is not None}

    def _forget(self, keys: Sequence[str]) -> None:
        self.damaged += len(keys)
        with self._told():
            for key in keys:
                self._open.execute("DELETE FROM outcomes WHERE key = ?", (key,))

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """Store finished outcomes in one transaction; equal keys have equal contents.

        Raises
        ------
        StoreError
            If they cannot be written: no room, no permission, or locked for too long.
        """
        with self._told():
            self._open.execute("BEGIN IMMEDIATE")
            try:
                self._open.executemany(self._add, [(o.key, _to_text(o)) for o in outcomes])
                self._open.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise

    def _roll_back(self) -> None:
        # After some errors, a full disk among them, SQLite has rolled back by itself.
        if self._open.in_transaction:
            self._open.execute("ROLLBACK")

    def _folder(self) -> None:
        if self.path == MEMORY:
            return
        try:
            self.path.absolute().parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            msg = f"its folder cannot be made: {error.strerror}"
            raise sqlite3.OperationalError(msg) from error

    def _prepare(self) -> None:
        """Create the table in an empty file; raise an error for a file of another format.

        Both are done in one transaction, as another process may open the same new file.
        """
        self._open.execute("BEGIN IMMEDIATE")
        try:
            self._refuse_others()
            self._open.execute(TABLE)
            self._open.execute(f"PRAGMA application_id = {OURS}")
            self._open.execute(f"PRAGMA user_version = {SCHEMA}")
            self._open.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise
        self._write_ahead()
        self._open.execute("PRAGMA synchronous = NORMAL")

    def _refuse_others(self) -> None:
        tables = self._open.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if self._pragma("application_id") != OURS and tables:
            msg = "it is a database of something else"
            raise sqlite3.DatabaseError(msg)
        if self._pragma("user_version") > SCHEMA:
            msg = "a newer plan has written it; name another file, or update plan"
            raise sqlite3.DatabaseError(msg)

    def _write_ahead(self) -> None:
        """Switch to a write-ahead log, so that a reader and a writer do not wait for each other.

        SQLite does not wait for other connections at this switch, with any timeout: ask
        again until the others have let go. Where the file system has no shared memory, SQLite
        keeps to its rollback journal.
        """
        until = time.monotonic() + LOCK_TIMEOUT
        while True:
            try:
                self._open.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > until:
                    raise
                time.sleep(0.01)
            else:
                return

    def _pragma(self, name: str) -> int:
        return int(self._open.execute(f"PRAGMA {name}").fetchone()[0])

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            msg = f"the store {self.path} cannot be used: {error}{_hint(error)}"
            raise StoreError(msg) from error


def _hint(error: sqlite3.Error) -> str:
    """Return advice for an error of the store."""
    told = str(error)
    if "full" in told or "disk I/O" in told:
        return "; what was finished is kept: make room, or name another file with --store"
    if "locked" in told:
        return "; another program has kept it locked"
    return "; name another file with --store"


def _to_text(outcome: Outcome) -> str:
    """Return an outcome without its candidate as JSON; floats are read back to the last bit."""
    tree = {
        "status": str(outcome.status),
        "reason": outcome.reason,
        "figures": outcome.figures,
        "intervals": outcome.intervals,
        "warnings": outcome.warnings,
    }
    text = json.dumps(tree, ensure_ascii=False, separators=(",", ":"))
    return f"{_digest(outcome.key, text)} {text}"


def _digest(key: str, text: str) -> str:
    content = f"{key}\n{text}".encode(errors="surrogatepass")
    return hashlib.blake2b(content, digest_size=_DIGEST_SIZE).hexdigest()


def _from_text(key: str, row: object) -> Outcome | None:
    """Parse a stored outcome; return None if it is not what was stored under this key."""
    digest, _, text = row.partition(" ") if isinstance(row, str) else ("", "", "")
    if digest != _digest(key, text):
        return None
    try:
        tree = json.loads(text)
        return Outcome(
            candidate=Candidate(index=0, settings={}),
            status=Status(tree["status"]),
            figures=tree["figures"],
            intervals=tree["intervals"],
            reason=tree["reason"],
            warnings=tuple(tree["warnings"]),
            key=key,
        )
    except (ValueError, KeyError, TypeError):
        return None
