# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A recorded link
#
# A channel can be blocked when a recording was: a file with a line for each outage, `start,end` in seconds. Whoever has logged when a
# link was down can ask what other schemes would have made of those very outages.

# %%
import tempfile
from pathlib import Path

import longhaul as lh

folder = Path(tempfile.mkdtemp())
outages = """\
2.1,2.9
7.4,9.0
9.3,9.4
15.0,18.2
26.5,27.1
40.2,44.8
"""
(folder / "outages.csv").write_text(outages)

# %%
recorded = lh.Scenario.load("demo/download").set("link.satellite.channel.errors", {"trace": {"file": str(folder / "outages.csv")}})
runs = recorded.run(seeds=1)
frame = runs.table.to_pandas()
frame[["scheme", "seconds", "run_goodput_bps", "run_bound_bps"]]

# %% [markdown]
# The outages that the log has are those of the file, and goodput stands still in them.

# %%
blocked = runs.events(["blockage"], place="satellite", scheme="TCP").to_pandas()
down = blocked[blocked["place"] == "satellite/down"]
down.head(6)

# %%
import matplotlib.pyplot as plt

fig, axes = plt.subplots(figsize=(7, 3))
for scheme in ["TCP", "TCP over COTMLL", "a gateway's defaults"]:
    received = runs.series("received", scheme=scheme).to_pandas()
    axes.plot(received["time_s"], received["received_bytes"] / 1e6, label=scheme)
for line in outages.splitlines():
    start, end = (float(part) for part in line.split(","))
    axes.axvspan(start, end, color="0.85", linewidth=0)
axes.set_xlabel("time, s")
axes.set_ylabel("received, MB")
axes.set_xlim(0, 70)
axes.legend()
plt.show()

# %% [markdown]
# What would a longer frame, or another queue have made of it? The recording stays the same; everything else can be swept.

# %%
queues = {"link.satellite.queue.drop-tail.packets": [10, 30, 100]}
result = lh.sweep(recorded.select("TCP", "TCP over COTMLL"), queues, seeds=4)
print(result)
