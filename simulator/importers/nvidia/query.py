"""The XML of ``nvidia-smi -q -x``: what each accelerator is, and how it is plugged in.

Elements by name: power_readings/power_limit up to driver 530, gpu_power_readings or
power_readings/current_power_limit since; ``current_link_gen`` falls when the device idles, so the
largest is taken. Captures: influxdata/telegraf, plugins/inputs/nvidia_smi/testdata.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from xml.etree import ElementTree as ET

from simulator import units
from simulator.errors import Problem, UnitError
from simulator.importers.reading import refuse
from simulator.reading.reading import fail
from simulator.units import Bytes, Hertz, Unit, Watts

_MISSING: Final = ("", "N/A", "[N/A]", "Requested functionality has been deprecated")
_REFUSALS: Final = ("[Not Supported]", "Not Supported", "Unknown Error", "[Unknown Error]")
_WIDEST: Final = 32
_NEWEST: Final = 8
_MOST_GPUS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One accelerator as the driver shows it; None is what it doesn't say."""

    product: str
    memory: Bytes | None
    generation: int | None
    width: int | None
    widest: int | None
    power_cap: Watts | None
    clock: Hertz | None
    split: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """All accelerators of a machine, the driver, and when it was asked (empty: not said)."""

    devices: tuple[Device, ...]
    driver: str
    date: str


def is_query(text: str) -> bool:
    """Whether a text is such XML, or the beginning of it."""
    return text.lstrip().startswith("<")


def parse(text: str, origin: str) -> Query:
    """The accelerators in the XML of one machine.

    Raises
    ------
    InputError
        For XML that is cut off or of another kind, and figures in units of something else.
    """
    root = _root(text, origin)
    problems: list[Problem] = []
    gpus = root.findall("gpu")[:_MOST_GPUS]
    devices = tuple(_device(gpu, i, origin, problems) for i, gpu in enumerate(gpus))
    refuse(problems)
    if not devices:
        fail(origin, "lists no GPU")
    stamp = (root.findtext("timestamp") or "").strip()
    return Query(
        devices=devices,
        driver=(root.findtext("driver_version") or "unknown").strip(),
        date=_day(stamp),
    )


def _root(text: str, origin: str) -> ET.Element:
    if "<!ENTITY" in text:
        fail(origin, "declares entities, which nvidia-smi never does")
    try:
        root = ET.fromstring(text.strip())  # noqa: S314 - no entities, no fetched DTD
    except ET.ParseError as error:
        line, _ = error.position
        if "no element found" in str(error) or "unclosed token" in str(error):
            fail(origin, "is cut off: the XML stops before its end", line=line)
        fail(origin, f"is not valid XML: {error}", line=line)
    except ValueError as error:
        fail(origin, f"is not valid XML: {error}")
    if root.tag != "nvidia_smi_log":
        hint = "nvidia-smi -q -x writes <nvidia_smi_log>"
        fail(origin, f"is XML of another kind: <{root.tag[:40]}>", hint=hint)
    return root


def _device(gpu: ET.Element, index: int, origin: str, problems: list[Problem]) -> Device:
    fields = _Fields(gpu, f"gpu[{index}]", origin, problems)
    product = fields.text("product_name")
    if product is None:
        fields.fault("product_name", "is missing")
    width = fields.count("pci/pci_gpu_link_info/link_widths/current_link_width", _WIDEST)
    widest = fields.count("pci/pci_gpu_link_info/link_widths/max_link_width", _WIDEST)
    return Device(
        product=product or "",
        memory=fields.quantity("fb_memory_usage/total", units.BYTE),
        generation=fields.count("pci/pci_gpu_link_info/pcie_gen/max_link_gen", _NEWEST),
        width=width or widest,
        widest=widest,
        power_cap=next(fields.powers("current_power_limit", "power_limit"), None),
        clock=fields.quantity("max_clocks/sm_clock", units.HERTZ),
        split=fields.text("mig_mode/current_mig") == "Enabled",
    )


@dataclass(frozen=True, slots=True)
class _Fields:
    """The elements below one GPU by path."""

    gpu: ET.Element
    name: str
    origin: str
    problems: list[Problem]

    def fault(self, path: str, message: str, found: str | None = None) -> None:
        """Note a problem with an element."""
        key = f"{self.name}/{path}"
        self.problems.append(Problem(origin=self.origin, key=key, message=message, found=found))

    def text(self, path: str) -> str | None:
        """What the element says; None if it is missing or says nothing."""
        found = (self.gpu.findtext(path) or "").strip()
        return None if found in _MISSING or found in _REFUSALS else found

    def quantity(self, path: str, unit: Unit) -> float | None:
        """A quantity such as ``81559 MiB``; a problem if it measures something else."""
        found = self.text(path)
        if found is None:
            return None
        try:
            value = units.parse(found, unit)
        except UnitError as error:
            self.fault(path, str(error).partition(";")[0], found)
            return None
        if value < 0.0:
            self.fault(path, "is negative", found)
            return None
        return value or None

    def powers(self, *names: str) -> Iterator[float]:
        """The power under the first of `names`, whatever this driver calls their group."""
        for group in ("gpu_power_readings", "power_readings"):
            for name in names:
                found = self.quantity(f"{group}/{name}", units.WATT)
                if found is not None:
                    yield found

    def count(self, path: str, most: int) -> int | None:
        """A whole number such as ``5`` or ``16x``; a problem if it is no such thing."""
        found = self.text(path)
        if found is None:
            return None
        match = re.fullmatch(r"(\d{1,4})x?", found)
        if match is None or not 0 < int(match[1]) <= most:
            self.fault(path, f"is no count from 1 to {most}", found)
            return None
        return int(match[1])


def _day(stamp: str) -> str:
    """``Mon Jan  5 10:00:00 2026`` as an ISO date; empty if it is none."""
    try:
        return (
            datetime.strptime(stamp, "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC).date().isoformat()
        )
    except ValueError:
        return ""
