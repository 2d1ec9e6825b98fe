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
# %% [markdown]
# # 5. Scaling a language model
#
# GPT-3 175B with Megatron-LM on A100s: how long does a step take, where does the time go, and which way
# of splitting the model is best?

# %%
import simulator

job = simulator.load("gpt3-175b-megatron")
answer = job.simulate()
answer

# %% [markdown]
# Published for this configuration: see the comment at the top of the scenario's file. The parts that a
# larger cluster makes worse are communication and the bubble of the pipeline:

# %%
answer.metrics.filter(like="step_split_s", axis="index")

# %% [markdown]
# ## Which degrees of parallelism?
#
# 64 GPUs to a replica, split in different ways; those that do not fit into memory are kept with the
# reason.

# %%
frame = job.sweep(
    {
        "parallelism.tensor,parallelism.pipeline,parallelism.interleave": [
            [2, 32, 1],
            [4, 16, 1],
            [8, 8, 1],
            [8, 8, 2],
            [8, 8, 3],
            [4, 16, 3],
        ]
    }
)
frame[
    [
        "parallelism.tensor",
        "parallelism.pipeline",
        "parallelism.interleave",
        "status",
        "step_time_s.mean",
        "step_split_s.bubble",
        "step_split_s.communication",
        "gpu_memory_bytes.total",
    ]
]

# %% [markdown]
# ## More machines
#
# Twice the machines at the same global batch are half the batches for each pipeline. The bubble stays as
# long as it is, so it weighs more: time falls by less than half, and the bill grows.

# %%
machines = job.scenario.cluster.trainers.count
batches = job.scenario.job.train.accumulation
more = job.sweep(
    {
        "hardware.count,train.accumulation": [
            [machines, batches],
            [2 * machines, batches // 2],
            [4 * machines, batches // 4],
        ]
    }
)
more["efficiency"] = (
    more["step_time_s.mean"].iloc[0]
    * machines
    / (more["step_time_s.mean"] * more["hardware.count"])
)
more[["hardware.count", "step_time_s.mean", "step_split_s.bubble", "efficiency"]]

# %% [markdown]
# ## Does it fit?

# %%
answer.plot("memory")
