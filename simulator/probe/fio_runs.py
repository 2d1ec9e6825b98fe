"""fio, run on the test file for one case at a time."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from typing import Any, Final

from simulator import units
from simulator.probe.requests import Case, Unable, Volume
from simulator.units import Seconds

_MILLISECOND: Final = units.parse("1 ms", units.SECOND)
_NANOSECOND: Final = units.parse("1 ns", units.SECOND)
_PATIENCE: Final = 20.0
"""Time fio may take beside its run time [s]."""
_SHOWN: Final = 200


def fio_reads(fio: str, volume: Volume, case: Case, seconds: Seconds) -> tuple[float, str]:
    """The figure of a case by fio, and how it was had; see `requests.own_reads`.

    Raises
    ------
    Unable
        If fio fails, hangs, or prints something else than its JSON.
    """
    try:
        done = subprocess.run(  # noqa: S603 - the program the user installed, our own arguments
            _command(fio, volume, case, seconds),
            pass_fds=(volume.handle,),
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds + _PATIENCE,
        )
        told = json.loads(done.stdout[done.stdout.index("{") :])
        return _figure(told, case, volume)
    except OSError as error:
        raise Unable(error.strerror or str(error)) from error
    except subprocess.TimeoutExpired as error:
        msg = "it did not end in time"
        raise Unable(msg) from error
    except (ValueError, KeyError, IndexError, TypeError) as error:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise Unable(lines[-1][:_SHOWN] if lines else "it printed nothing") from error


def _command(fio: str, volume: Volume, case: Case, seconds: Seconds) -> list[str]:
    pattern = ("rand" if case.random else "") + ("write" if case.write else "read")
    return [
        fio,
        "--name=plan-probe",
        f"--filename={volume.path}",
        f"--rw={pattern}",
        f"--bs={case.size}",
        f"--iodepth={case.depth}",
        f"--direct={int(volume.direct)}",
        f"--size={volume.size}",
        f"--runtime={max(1, round(seconds / _MILLISECOND))}ms",
        "--ioengine=libaio",
        "--time_based",
        "--thread",
        "--allow_file_create=0",
        "--output-format=json",
    ]


def _figure(told: Mapping[str, Any], case: Case, volume: Volume) -> tuple[float, str]:
    job = told["jobs"][0]
    if job["error"]:
        msg = f"error {job['error']}"
        raise Unable(msg)
    side = job["write" if case.write else "read"]
    latency = side["clat_ns"]
    tail = float(latency["percentile"]["99.000000"]) * _NANOSECOND
    how = f"{told['fio version']}, {volume.way}, p99 {units.show(tail, units.SECOND)}"
    if case.depth == 1:
        return _positive(latency["mean"]) * _NANOSECOND, how
    return _positive(side["iops"] if case.random else side["bw_bytes"]), how


def _positive(value: object) -> float:
    number = float(str(value))
    if not number > 0.0:
        msg = "no request was answered in time"
        raise Unable(msg)
    return number
