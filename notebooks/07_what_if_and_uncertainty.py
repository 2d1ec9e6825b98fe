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
# # 7. What if, and how sure?
#
# What is more of each resource worth? Each line is a prediction of its own.

# %%
import simulator
from simulator.cli.main import main

_ = main(["whatif", "resnet50-imagenet-p4d"])

# %% [markdown]
# ## How sure is a prediction?
#
# Rates are not known exactly. Their spread, learned from shipped measurements, gives every figure an
# interval that should hold the truth in four of five cases.

# %%
job = simulator.load("resnet50-imagenet-p4d")
answer = job.simulate()
answer.metrics.dropna(subset=["p10"])[["value", "p10", "p90", "unit"]]

# %% [markdown]
# ## Sliders
#
# Where ipywidgets is installed, the same with sliders; without it this cell shows one setting.

# %%
import IPython.display as notebook


def show(workers: int = 8, decode_ms: float = 5.0) -> None:
    """Predict one setting and show it."""
    settings = {"input.workers": workers, "input.decode": f"{decode_ms} ms"}
    notebook.display(job.with_(settings).simulate(intervals=False))


try:
    from ipywidgets import interact
except ImportError:
    show()
else:
    interact(show, workers=(1, 16), decode_ms=(0.5, 10.0, 0.5))
