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
# # 8. The long run: failures, checkpoints, the bill
#
# A step time is not yet a bill. A run of weeks stops for failures, waits for checkpoints and reads them again. With
# a `[failures]` section a scenario is predicted with all of that.

# %%
import pandas as pd

import simulator

job = simulator.load(
    "llama3-405b-megatron",
    {
        "train.epochs": 1,
        "cost.price": "$80/h",
        "failures.like": "rsc-1",
        "run.deadline": "36 d",
        "run.draws": 400,
    },
)
answer = job.simulate()
run = answer.outlook
print(f"{run.goodput:.1%} of the time is work that counts")
pd.DataFrame({"days": pd.Series(run.finish) / 86400, "bill, M$": pd.Series(run.bill) / 1e6})

# %% [markdown]
# `total_time_s` stays the time of the undisturbed run; what failures add is under `run`.

# %%
days = answer["total_time_s"] / 86400
print(
    f"{days:.1f} days if nothing happens; {answer['run.deadline_chance']:.0%} to keep the deadline"
)

# %% [markdown]
# ## Where the time goes

# %%
shares = pd.Series(run.parts)
_ = shares[shares > 0.001].sort_values().plot.barh(title="share of the run's time")

# %% [markdown]
# ## How to write checkpoints
#
# In the background, and first into the memory of a neighbour: less is lost, and restarts load faster.

# %%
ways = {
    "training waits": {},
    "in the background": {"checkpoint.asynchronous": True},
    "own drives first": {"checkpoint.asynchronous": True, "checkpoint.to": "local"},
    "a neighbour's memory first": {"checkpoint.asynchronous": True, "checkpoint.to": "peer"},
}
found = {name: job.with_(way).simulate() if way else answer for name, way in ways.items()}
pd.DataFrame(
    {
        name: {
            "goodput": one["run.goodput"],
            "an interval, min": one["run.checkpoint_interval_s"] / 60,
            "ends, 90%, days": one["run.finish_s.p90"] / 86400,
            "bill, 90%, M$": one["run.usd.p90"] / 1e6,
        }
        for name, one in found.items()
    }
).T.round(3)

# %% [markdown]
# ## How often
#
# The best interval is found by simulation; the equations of Young and Daly stand beside it. The curve is flat.

# %%
behind = job.with_({"checkpoint.asynchronous": True})
known = behind.simulate().outlook.intervals
print({name: f"{getattr(known, name) / 60:.1f} min" for name in ("young", "daly", "simulated")})
behind.sweep({"checkpoint.interval": ["5 min", "10 min", "30 min", "2 h"]}, jobs=1)[
    ["checkpoint.interval", "run.goodput", "run.usd.p50"]
]

# %% [markdown]
# ## What rests on what
#
# Clusters of one size differ by a factor of two in how often they fail. Give rates of your own logs, and per job as
# well as per machine.

# %%
rates = {"rates halved": 0.5, "as published": 1.0, "rates doubled": 2.0}
for name, factor in rates.items():
    settings = {
        "failures.per_machine": f"{0.0065 * factor} /d",
        "failures.per_job": f"{0.0917 * factor} /h",
    }
    one = behind.with_(settings).simulate()
    print(
        f"{name}: {one['run.goodput']:.1%}, {one['run.usd.p90'] / 1e6:.1f} M$ with a chance of 90%"
    )
