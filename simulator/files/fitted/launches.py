"""What kernels cost beside their work, for models that are timed operator by operator."""

from __future__ import annotations

from dataclasses import replace

from simulator.files.fitted.kernel_figures import (
    Figures,
    KernelFile,
    KernelFiles,
    kernel_files,
    launch_factor,
)
from simulator.scenario.hardware.gpu import Gpu, Stack
from simulator.scenario.workload.kernels import LAYER_KERNELS, Launching
from simulator.scenario.workload.software import Software


def launching(
    gpu: Gpu | None, software: Software, files: KernelFiles | None = None
) -> Launching | None:
    """What kernels cost beside their work, whatever the model.

    The host's time for a kernel is that for a transformer's layer over the kernels of one.

    Parameters
    ----------
    gpu : Gpu or None
        The accelerator.
    software : Software
        The framework and its switches.
    files : mapping of str to KernelFile, optional
        Another set of figures than the one that ships.

    Returns
    -------
    Launching or None
        None without an accelerator. Figures were fitted to those of CUDA; others take them over.
    """
    if gpu is None or gpu.emulated:
        return None
    files = kernel_files() if files is None else files
    era, own = _era(software, files)
    found = Figures(files["shared"], era)
    layer = found.value("launch_forward") + found.value("launch_backward")
    factor = launch_factor(found, software)
    fitted = found.sources()["launch_forward"]
    measured = own and gpu.stack is Stack.CUDA
    known = "" if own else "taken over from other frameworks; "
    known += "" if gpu.stack is Stack.CUDA else "taken over from devices of CUDA; "
    return Launching(
        passes=_compiled_passes(files) if software.compiled else 1.0,
        kernel=layer / sum(LAYER_KERNELS) * factor,
        step=found.value("launch_step") * factor,
        start=found.value("start"),
        blend=1.0 if software.blocking_launches else found.value("blend"),
        tile_half=found.value("tile_half"),
        wave=found.value("wave"),
        fill=found.value("fill"),
        source=replace(fitted, reference=f"{known}{fitted.reference}", verified=measured),
    )


def _compiled_passes(files: KernelFiles) -> float:
    """What norms, activations and sums of a compiled model move of what those of an eager one do.

    Both are fitted to language models of the same frameworks.
    """
    eras = [file for file in files.values() if file.kind == "software"]
    compiled = next(file for file in eras if file.compiled)
    eager = next(f for f in eras if f.compiled is False and f.frameworks == compiled.frameworks)
    return compiled.figures["plain"].value / eager.figures["plain"].value


def _era(software: Software, files: KernelFiles) -> tuple[KernelFile, bool]:
    """The file of the framework's launches, and whether it is its own or stands for others.

    Of two that hold, the one that says whether it is compiled.
    """
    name = software.framework.lower()
    eras = [file for file in files.values() if file.kind == "software"]
    fitting = [file for file in eras if file.compiled in (None, software.compiled)]
    own = [file for file in fitting if name in (*file.frameworks, *file.stands_for)]
    others = [file for file in fitting if file.launches_of_others]
    return max(own or others, key=lambda file: file.compiled is not None), bool(own)
