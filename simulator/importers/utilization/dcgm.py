"""Samples that DCGM takes: the table of ``dcgmi dmon`` and the text of dcgm-exporter.

The table repeats its header and bears no time; its first sample may be N/A. The exporter's text is
one scrape after another; a missing value is a number beyond all sense. Fields and units:
NVIDIA/DCGM, dcgmlib/dcgm_fields.h: 203 GPU_UTIL %, 252 FB_USED MiB, 155 POWER_USAGE W, ratios from
0 to 1 for 1001 GR_ENGINE_ACTIVE, 1004 PIPE_TENSOR_ACTIVE and 1005 DRAM_ACTIVE, B/s for 1009
PCIE_TX_BYTES (the GPU sends) and 1010 PCIE_RX_BYTES. DCGM 4.6 calls ratios ..._UTIL_RATIO.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

from simulator.importers.reading import refuse
from simulator.importers.result import Quantity, Utilization
from simulator.importers.utilization.samples import MEBIBYTE, PERCENT, Samples

_FIELDS: Final = {
    "GPU_UTIL": (Quantity.GPU_BUSY, PERCENT),
    "FB_USED": (Quantity.DEVICE_MEMORY, MEBIBYTE),
    "POWER_USAGE": (Quantity.POWER, 1.0),
    "GR_ENGINE": (Quantity.GPU_ENGINE, 1.0),
    "PIPE_TENSOR": (Quantity.TENSOR, 1.0),
    "DRAM": (Quantity.DEVICE_MEMORY_BUSY, 1.0),
    "PCIE_TX_BYTES": (Quantity.FROM_DEVICE, 1.0),
    "PCIE_RX_BYTES": (Quantity.TO_DEVICE, 1.0),
}
"""Field, less its prefix and less what says that it is a ratio: what it says, and its unit."""
_SHORT: Final = {
    "GPUTL": "GPU_UTIL",
    "FBUSD": "FB_USED",
    "POWER": "POWER_USAGE",
    "GRACT": "GR_ENGINE",
    "TENSO": "PIPE_TENSOR",
    "DRAMA": "DRAM",
    "PCITX": "PCIE_TX_BYTES",
    "PCIRX": "PCIE_RX_BYTES",
}
"""Heading in dmon: field."""
_BLANK: Final = 140737488355328.0
"""From here on a number stands for a missing one (32-bit blank; the 64-bit one is larger)."""
_HEADER: Final = re.compile(r"\s*#\s*Entity\s+(.*)")
_ROW: Final = re.compile(r"\s*(GPU(?:-C?I)?|CPU|Switch|Core)\s+(\S+)\s*(.*)")
_LINE: Final = re.compile(r"(DCGM_FI_\w+)\{(.*)\}\s+(\S+)(?:\s+-?\d+)?")
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_PREFIX: Final = re.compile(r"DCGM_FI_(?:DEV|PROF)_")
_RATIO: Final = re.compile(r"_(?:ACTIVE|UTIL_RATIO)$")


def is_table(text: str) -> bool:
    """Whether a text holds the table of ``dcgmi dmon``."""
    return any(_HEADER.match(line) for line in text.split("\n", 200)[:200])


def is_scrape(text: str) -> bool:
    """Whether a text holds what dcgm-exporter serves."""
    return "DCGM_FI_" in text


def parse_table(text: str, origin: str) -> Utilization:
    """Samples in the table of ``dcgmi dmon``.

    Raises
    ------
    InputError
        If no known field was recorded, or rows are cut off or hold impossible values.
    """
    samples = Samples(origin=origin)
    names: list[str] = []
    known = False
    for number, line in enumerate(text.split("\n"), start=1):
        header, row = _HEADER.match(line), _ROW.fullmatch(line)
        if header is not None:
            names = header[1].split()
            known = known or any(_field(name) is not None for name in names)
        elif row is not None and names and row[1] == "GPU":
            _take_row(samples, number, f"GPU {row[2]}", names, row[3].split())
        elif row is not None and row[1] != "GPU":
            note = f"samples of {row[1]} entities (parts of a GPU, or other devices) are left out"
            samples.warnings = list(dict.fromkeys([*samples.warnings, note]))
        elif line.strip() and not line.strip().upper().startswith("ID"):
            samples.fault("is no row of the table", line=number, found=repr(line.strip()[:40]))
    if not known:
        hint = "record with dcgmi dmon -e 203,252,155,1001,1004,1005"
        samples.fault("has no field that says how busy a GPU is", hint=hint)
    elif not samples.rows and not samples.problems:
        samples.fault("holds no sample of a whole GPU", hint="record without -i of a part")
    refuse(samples.problems)
    return samples.utilization()


def _take_row(
    samples: Samples, number: int, device: str, names: Sequence[str], values: Sequence[str]
) -> None:
    if len(values) != len(names):
        message = f"has {len(values)} values where the header has {len(names)}"
        samples.fault(message, line=number, hint="is the file cut off here?")
        return
    row = {}
    for name, value in zip(names, values, strict=True):
        field = _field(name)
        if field is not None:
            row[field[0]] = _sample(samples, field, value, number, name)
    samples.add(device, row)


def parse_scrape(text: str, origin: str) -> Utilization:
    """Samples in one or more scrapes of dcgm-exporter.

    Raises
    ------
    InputError
        As `parse_table`.
    """
    samples = Samples(origin=origin)
    scrape: dict[str, dict[Quantity, float]] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.lstrip().startswith("DCGM_FI_"):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            hint = "is the file cut off here?"
            samples.fault("is no sample", line=number, found=repr(line.strip()[:60]), hint=hint)
            continue
        field = _field(match[1])
        labels = dict(_LABEL.findall(match[2]))
        if field is None or "GPU_I_ID" in labels:
            continue
        device = " ".join(filter(None, [labels.get("Hostname"), f"GPU {labels.get('gpu', '?')}"]))
        if field[0] in scrape.get(device, {}):
            _flush(samples, scrape)
        value = _sample(samples, field, match[3], number, match[1])
        scrape.setdefault(device, {})[field[0]] = value
    _flush(samples, scrape)
    if not samples.rows and not samples.problems:
        hint = "serve DCGM_FI_PROF_GR_ENGINE_ACTIVE or DCGM_FI_DEV_GPU_UTIL"
        samples.fault("has no sample that says how busy a GPU is", hint=hint)
    refuse(samples.problems)
    return samples.utilization()


def _flush(samples: Samples, scrape: dict[str, dict[Quantity, float]]) -> None:
    for device, row in scrape.items():
        samples.add(device, row)
    scrape.clear()


def _field(name: str) -> tuple[Quantity, float] | None:
    """What a field says and its unit, by its short or long name of any version."""
    plain = _RATIO.sub("", _PREFIX.sub("", name))
    return _FIELDS.get(_SHORT.get(name, plain))


def _sample(
    samples: Samples, field: tuple[Quantity, float], text: str, line: int, name: str
) -> float:
    if text == "N/A" or _is_blank(text):
        return math.nan
    return samples.checked(field[0], text, field[1], line=line, name=name)


def _is_blank(text: str) -> bool:
    try:
        return float(text) >= _BLANK
    except ValueError:
        return False
