# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # First steps
#
# A scenario is a network, its traffic and the schemes to compare. With a seed it is a result: the same on any machine, and the same
# as the command line's. This one is a download of 1 MB to a terminal that is blocked 30 % of the time.

# %%
import longhaul as lh

demo = lh.Scenario.load("demo/download")
demo.schemes

# %%
runs = demo.run()
print(runs)
runs.trace_hash

# %% [markdown]
# `longhaul demo` prints the same hash. Results are tables, which pandas, polars and others take as they are; columns have their units
# in their names.

# %%
frame = runs.table.to_pandas()
frame.groupby("scheme", sort=False)[["seconds", "run_goodput_bps", "run_bound_bps"]].median()

# %% [markdown]
# What happened in a run is found out afterwards: the run is repeated, watched. Here is what the receiver had, when, in the first run.

# %%
import matplotlib.pyplot as plt

fig, axes = plt.subplots(figsize=(7, 3))
for scheme in demo.schemes:
    received = runs.series("received", flow="download", scheme=scheme).to_pandas()
    axes.plot(received["time_s"], received["received_bytes"] / 1e6, label=scheme)
axes.set_xlabel("time, s")
axes.set_ylabel("received, MB")
axes.legend()
plt.show()

# %% [markdown]
# Any key of the scenario can be set, and swept; a mistake says what is allowed.

# %%
try:
    demo.set("link.satellite.channel.delay", "100 miles")
except lh.ConfigError as error:
    print(error)

# %%
delays = {"link.satellite.channel.delay": ["10 ms", "100 ms", "250 ms"]}
sweep = lh.sweep(demo.select("TCP", "a gateway's defaults"), delays, seeds=8)
print(sweep)

# %%
data = sweep.to_xarray()
data["run_goodput_bps"].mean("seed").to_pandas()
