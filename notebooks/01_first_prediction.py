# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 1. A first prediction
#
# The question: does a p4d.24xlarge keep its eight A100s busy when ResNet-50 is trained on ImageNet
# JPEGs? The scenario ships with `plan`; a file of your own works the same (`plan init` writes one).

# %%
import simulator

job = simulator.load("resnet50-imagenet-p4d")
answer = job.simulate()
answer

# %% [markdown]
# The GPUs wait more than half of the time: decoding JPEGs takes more processor time than the machine
# has. Every figure has a name and, where it is not known exactly, an interval that holds it in four
# of five cases.

# %%
answer.metrics.loc[
    ["step_time_s.mean", "throughput_samples_per_s", "total_time_s", "cost.usd_to_train"]
]

# %% [markdown]
# ## Where a step goes

# %%
answer.plot("step")

# %% [markdown]
# ## What if images were decoded beforehand?
#
# `with_` makes another configuration; nothing is changed in place. Here each image takes a tenth of the
# processor time, as when it is stored decoded and cropped.

# %%
prepared = job.with_({"input.decode": "0.5 ms"}).simulate()
simulator.compare(jpeg=answer, prepared=prepared).loc[
    ["step_time_s.mean", "accelerator_utilization", "cost.usd_to_train", "bottleneck"]
]

# %%
print(prepared.verdict)

# %% [markdown]
# The report as one file, to send to somebody: `answer.save("report.html")`, or
# `plan report resnet50-imagenet-p4d -o report.html` with the measured runs most like it.
