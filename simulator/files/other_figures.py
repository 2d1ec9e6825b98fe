"""A scenario predicted by another set of kernel figures than the one that ships."""

from __future__ import annotations

from dataclasses import replace

from simulator.compute.describe import summed_in
from simulator.files.kernel_figures import KernelFiles
from simulator.files.kernels import Use, kernels, memory_figures
from simulator.files.launches import launching
from simulator.scenario.scenario import Scenario


def use_of(scenario: Scenario) -> Use:
    """What of a scenario's job decides which kernel figures hold."""
    job, network = scenario.job, scenario.cluster.trainers.host.network
    return Use(
        software=job.software,
        precision=job.train.precision,
        summed_in=summed_in(job),
        link=None if network is None else network.link,
    )


def with_kernel_files(scenario: Scenario, files: KernelFiles) -> Scenario:
    """The scenario with what `files` say of kernels, launches, exchanges and memory."""
    job, gpu, use = scenario.job, scenario.cluster.trainers.host.gpu, use_of(scenario)
    software = replace(
        job.software,
        kernels=kernels(gpu, use, files),
        launching=launching(gpu, job.software, files),
        memory=memory_figures(gpu, use, files),
    )
    return replace(scenario, jobs=(replace(job, software=software), *scenario.jobs[1:]))
