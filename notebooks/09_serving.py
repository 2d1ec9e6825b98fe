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
# # 9. Serving: how many machines for so many users
#
# A file with `mode = "serve"` is a service: machines, a model, an engine, the requests, their limits. The engine is
# simulated iteration by iteration, and every figure has an interval that carries the doubt of the forward pass
# through the queue.

# %%
import pandas as pd

import simulator

chat = simulator.load("llama3-8b-chat-h100")
answer = chat.simulate()
print(answer.verdict)
shown = ["first_token_s.p50", "first_token_s.p99", "per_token_s.p99", "saturation.requests_per_s"]
answer.metrics.loc[shown].round(3)

# %% [markdown]
# ## Latency against load
#
# Close to saturation small doubts move latencies far; beyond it there is no latency, only a queue that grows.

# %%
rates = ["2 /s", "5 /s", "10 /s", "15 /s", "20 /s", "30 /s"]
against = chat.sweep({"load.rate": rates})
figures = [
    "load.rate",
    "first_token_s.p50",
    "first_token_s.p99",
    "per_token_s.p99",
    "slo.attainment",
    "saturation.drift_per_s",
]
against[figures].round(3)

# %%
known = against.dropna(subset=["first_token_s.p99"])
_ = known.plot.line(
    x="requests_per_s", y=["first_token_s.p50", "first_token_s.p99"], marker="o", logy=True
)

# %% [markdown]
# ## The cheapest machines that keep the limits
#
# For the rate at the peak: users over the time between their messages. 2,000 people who send one every two minutes
# are 17 requests a second.

# %%
peak = chat.with_({"load.rate": "17 /s"})
choices = peak.recommend()
choices[
    [
        "machine",
        "machines",
        "weights",
        "usd_per_hour",
        "machines_in_9_of_10_cases",
        "first_token_p99_s",
    ]
].head(4).round(2)

# %% [markdown]
# ## What else the engine can do
#
# Guessing tokens helps where few requests run at once; prompts that are in the cache help everywhere.

# %%
ways = {
    "as it is": {},
    "three guesses": {"serving.speculation": "{drafts=3, acceptance=0.7}"},
    "half of each prompt cached": {"load.prefix_hit_rate": 0.5},
}
pd.DataFrame(
    {
        name: {
            "first token, ms": 1e3 * one["first_token_s.p50"],
            "a token, ms": 1e3 * one["per_token_s.p50"],
            "saturation, requests/s": one["saturation.requests_per_s"],
        }
        for name, way in ways.items()
        for one in [chat.with_({"load.rate": "5 /s", **way}).simulate(intervals=False)]
    }
).T.round(1)

# %% [markdown]
# ## Prompts on replicas of their own
#
# Half of a machine of eight H200 computes prompts, the other half writes answers: the time per token gets steady, and
# the machine completes fewer requests.

# %%
sides = {
    name: simulator.load(name).simulate() for name in ("qwen3-235b-h200", "qwen3-235b-h200-split")
}
pd.DataFrame(
    {
        name: {
            "a token, P50, ms": 1e3 * one["per_token_s.p50"],
            "a token, P99, ms": 1e3 * one["per_token_s.p99"],
            "saturation, requests/s": one["saturation.requests_per_s"],
        }
        for name, one in sides.items()
    }
).T.round(1)

# %% [markdown]
# ## Replicas that come and go over a day

# %%
office = simulator.load("llama3-8b-office-autoscaled")
targets = {"serving.autoscaling.target": [2, 5, 10]}
day = office.sweep(targets)
day[
    [
        "serving.autoscaling.target",
        "replicas.mean",
        "first_token_s.p99",
        "slo.attainment",
        "cost.usd_per_thousand_requests",
    ]
].round(3)

# %% [markdown]
# ## Pictures: an accelerator, or cores?
#
# Models that answer in one pass are gathered into batches. What cores reach is a guess until a batch is timed:
# see the interval.

# %%
for name in ("image-classifier-t4", "image-classifier-cpu"):
    one = simulator.load(name).simulate()
    band = one.interval("saturation.requests_per_s")
    print(
        f"{name}: {one['saturation.requests_per_s']:.0f} pictures/s at most "
        f"({band['p10']:.0f} to {band['p90']:.0f}), {1e3 * one['end_to_end_s.p99']:.0f} ms at P99"
    )

# %% [markdown]
# Cameras send at equal gaps, so that they queue less than as many pictures by chance.

# %%
cameras = simulator.load("cameras-32")
cameras.sweep({"load.cameras": "16..56 step 8"})[
    [
        "load.cameras",
        "end_to_end_s.p50",
        "end_to_end_s.p99",
        "slo.attainment",
        "utilization.accelerator",
    ]
].round(3)
