"""Machines that language models were trained on: which of the catalogue, how many."""

from __future__ import annotations

import math

from converters import TableRow
from converters.llm.runs import MachineTable, llm_runs


def machine_cells(row: TableRow) -> dict[str, str]:
    """Machine, accelerators used of each, machines; nothing where the catalogue has none."""
    wires, gpu = row.text("interconnect"), row.text("gpu")
    machine = next((m for m in llm_runs().machine if _fits(m, gpu, wires)), None)
    if machine is None:
        return {}
    total = int(row.number("gpus_total") or 1.0)
    used = min(machine.domain, total)
    rate = next((n.rate for n in llm_runs().network if n.words in wires), "")
    return {
        "hardware.machine": machine.name,
        **({"hardware.gpu": machine.gpu} if machine.gpu else {}),
        "hardware.gpus": str(used),
        "hardware.count": str(math.ceil(total / used)),
        **({"hardware.network_bandwidth": rate} if rate else {}),
    }


def _fits(machine: MachineTable, gpu: str, wires: str) -> bool:
    return gpu.startswith(machine.begins) and (machine.wires or "") in wires
