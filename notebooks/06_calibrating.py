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
# # 6. Calibrating with your own measurements
#
# A prediction is as good as the figures it rests on; a few runs of your own make it better. A measurement
# set is a table of runs (what was set, what was measured) beside a TOML file that describes it. Here
# eight runs of a real DataLoader, measured by this project on two cores, stand in for yours.

# %%
import tempfile
from importlib.resources import files
from pathlib import Path

import pandas as pd

shipped = Path(str(files("simulator"))) / "data" / "measured"
runs = pd.read_csv(shipped / "real_loader.csv", dtype=str)
starved = runs[(runs["input.workers"] != "0") & runs["id"].str.contains("sleep-5ms")].head(8).copy()
starved["split"] = ["fit", "test"] * 4
starved[["id", "input.workers", "train.batch_size", "measured.step_time_s.mean", "split"]]

# %%
folder = Path(tempfile.mkdtemp())
starved.drop(columns=["measured.host_ram_bytes.total", "spread.host_ram_bytes.total"]).to_csv(
    folder / "runs.csv", index=False
)
(folder / "runs.toml").write_text(f"""
schema = 1
name = "my-runs"
title = "eight runs of my loader"
data = "runs.csv"
base = "{shipped / "bases" / "real-loader.toml"}"
source = "measured by me"
date = "2026-11"
metrics = ["step_time_s.mean"]
split = "given"
""")

# %% [markdown]
# ## How wrong is the prediction as it is?

# %%
from simulator.cli.main import main

_ = main(["validate", str(folder / "runs.toml")])

# %% [markdown]
# ## Fit one parameter
#
# Only rows marked *fit* are used; rows marked *test* say whether it helps on runs that were not.

# %%
overlay = folder / "mine.toml"
_ = main(["calibrate", str(folder / "runs.toml"), "--fit", "cpu", "-o", str(overlay)])

# %% [markdown]
# The overlay is a text file with the value, its interval and where it came from. `--calibration`, or
# `simulator.load(..., calibration=...)`, applies it; no profile is changed.

# %%
print(overlay.read_text())

# %%
import simulator

plain = simulator.load("resnet18-imagenet-one-worker").simulate()
fitted = simulator.load("resnet18-imagenet-one-worker", calibration=overlay).simulate()
simulator.compare(plain=plain, fitted=fitted).loc[["step_time_s.mean", "utilization.cpu.mean"]]

# %% [markdown]
# A factor near 1 says that the description was right already: these runs were predicted to a few per cent
# from pieces measured beforehand, so there is little left to fit.
