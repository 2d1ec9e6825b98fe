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
# # 4. Storage: files, shards, an object store, the page cache
#
# The same 147 GB of images, read in different ways.

# %%
import simulator

shards = simulator.load("imagenet-object-store-g5").simulate()
print(shards.verdict)

# %% [markdown]
# ## One object an image
#
# Streamed in shards the GPU is the limit. As single objects, read in random order, every image waits for
# the first byte of its own request:

# %%
settings = {"hardware.storage": "storage/s3"}
objects = simulator.load("nvme-cache-object-store").simulate()
first, later = objects.prediction.timing.first_epoch_time, objects["epoch_time_s"]
print(
    f"first epoch, from the store: {first / 60:.0f} min; later ones, from the drive: {later / 60:.0f} min"
)

# %% [markdown]
# More requests at a time hide the wait; the drive that keeps what was read makes it matter once only.

# %%
store = simulator.load("nvme-cache-object-store")
frame = store.sweep({"data.readers": [1, 2, 4, 8]})
frame[["data.readers", "first_step_s", "epoch_time_s", "total_time_s"]]

# %% [markdown]
# ## The page cache
#
# What fits into free RAM is read from the store once. With half of the data in RAM, random replacement
# answers less than half of the reads. The curve over the machine's RAM:

# %%
cache = simulator.load("imagenet-page-cache-g4dn")
ram = cache.sweep({"hardware.ram": "32 GiB..192 GiB step 32 GiB"})
ram["epoch_min"] = ram["epoch_time_s"] / 60
axes = ram.plot.bar(
    x="hardware.ram", y="epoch_min", legend=False, ylabel="warm epoch [min]", xlabel="RAM"
)

# %%
ram[["hardware.ram", "store_bytes_per_epoch", "epoch_min", "bottleneck"]]

# %% [markdown]
# ## Copy first, or stream?
#
# Copying to the machine's own drive costs time once; `break_even_epochs` says after how many epochs it
# has paid for itself.

# %%
stage = simulator.load("stage-or-stream").simulate()
stream = simulator.load("stage-or-stream", {"data.placement": "stream"}).simulate()
print(f"copying pays after {stage['break_even_epochs']:.1f} epochs")
simulator.compare(stage=stage, stream=stream).loc[["epoch_time_s", "total_time_s", "bottleneck"]]
