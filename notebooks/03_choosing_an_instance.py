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
# # 3. Choosing an instance
#
# Which machine gives most samples for a dollar? The same job on every AWS machine with NVIDIA
# accelerators whose price is known. No machine is left out for being sold for inference.

# %%
import simulator

job = simulator.load("resnet50-imagenet-p4d").with_({"train.batch_size": 64, "input.workers": 8})
frame = job.sweep({"hardware.machine": "instance/aws/[gp]*"}, where="fits.gpu != 'no'")
known = frame[frame["cost.samples_per_usd"].notna()].copy()
known["hours"] = known["total_time_s"] / 3600
ranked = known.sort_values("cost.samples_per_usd", ascending=False)
ranked[
    [
        "hardware.machine",
        "throughput_samples_per_s",
        "accelerator_utilization",
        "bottleneck",
        "hours",
        "cost.usd_to_train",
        "cost.samples_per_usd",
    ]
].head(10)

# %% [markdown]
# ## Time against money
#
# Nobody needs a machine that is slower *and* dearer than another one. What is left is the Pareto front.

# %%
by_time = known.sort_values("hours")
front = by_time[
    by_time["cost.usd_to_train"]
    < by_time["cost.usd_to_train"].cummin().shift(1, fill_value=float("inf"))
]
axes = known.plot.scatter("hours", "cost.usd_to_train", alpha=0.4, logx=True, logy=True)
front.plot("hours", "cost.usd_to_train", marker="o", ax=axes, logx=True, logy=True, legend=False)
axes.set_xlabel("whole run [h]")
axes.set_ylabel("whole run [$]")
front[["hardware.machine", "hours", "cost.usd_to_train", "bottleneck"]]

# %% [markdown]
# ## Why the big machine loses
#
# Its accelerators wait for the processors:

# %%
lost = known[known["accelerator_utilization"] < 0.5]
lost[["hardware.machine", "accelerator_utilization", "bottleneck"]].head()

# %% [markdown]
# ## A heterogeneous cluster
#
# Where accelerators starve, machines without any can make batches. The published case of AWS (2022): a
# p4d.24xlarge alone, and with two c5.18xlarge beside it.

# %%
alone = simulator.load("heterogeneous-tfdata-alone").simulate()
helped = simulator.load("heterogeneous-tfdata").simulate()
simulator.compare(alone=alone, helped=helped).loc[
    [
        "step_time_s.mean",
        "accelerator_utilization",
        "cost.usd_per_h",
        "cost.usd_per_step",
        "bottleneck",
    ]
]

# %%
saving = 1.0 - helped["cost.usd_per_step"] / alone["cost.usd_per_step"]
print(f"dearer by the hour, cheaper by the step: {saving:.0%} saved")
