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
# # 2. How many workers, how much RAM?
#
# More DataLoader workers make batches faster until the processors are busy; each one costs RAM: its own
# memory, and the batches it makes ahead.

# %%
import simulator

job = simulator.load("resnet50-imagenet-p4d")
frame = job.sweep({"input.workers": "2..20 step 2", "input.prefetch": [2, 4]})
few = frame[
    [
        "input.workers",
        "input.prefetch",
        "step_time_s.mean",
        "accelerator_utilization",
        "host_ram_bytes.total",
        "fits.host",
    ]
]
few

# %%
wide = few.pivot_table(
    index="input.workers", columns="input.prefetch", values="step_time_s.mean", observed=True
)
axes = wide.plot(marker="o", ylabel="mean step [s]", xlabel="workers of each GPU's process")
_ = axes.set_ylim(bottom=0)

# %% [markdown]
# With 8 processes, 12 workers each are one for every hardware thread. From there on nothing is gained:
# the processors are the limit, not the number of workers.

# %%
ram = few.pivot_table(
    index="input.workers", columns="input.prefetch", values="host_ram_bytes.total", observed=True
)
(ram / 1e9).plot(marker="o", ylabel="host RAM [GB]", xlabel="workers of each GPU's process")

# %% [markdown]
# ## The fewest workers that are enough
#
# On a machine whose processors can keep up, the question is how few will do. The smallest setting within
# 1% of the best:

# %%
light = job.with_({"input.decode": "1 ms"})
tried = light.sweep({"input.workers": "1..12"})
best = tried["step_time_s.mean"].min()
enough = tried[tried["step_time_s.mean"] <= 1.01 * best].iloc[0]
print(
    f"{enough['input.workers']} workers: step {enough['step_time_s.mean']:.3f} s, "
    f"{enough['host_ram_bytes.total'] / 1e9:.1f} GB of RAM"
)

# %% [markdown]
# `plan advise input` answers the same question in the terminal, with the RAM that each setting costs.
