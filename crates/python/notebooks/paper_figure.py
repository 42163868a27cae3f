# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A figure for a paper
#
# Goodput over loss on a path of 5 Mbit/s and 500 ms, for CUBIC, BBR and a pair of gateways as they start, beside what the channel
# allows; as wide as a column of a page with two, with letters of 8 pt.

# %%
import longhaul as lh

base = lh.Scenario.load("demo/download").set(
    {
        "duration": "30 s",
        "traffic.download.bulk.size": "1000 MB",  # more than 30 s can carry: what counts is the rate
        "link.satellite.channel.rate": "5 Mbit/s",
        "link.satellite.channel.errors": {"erasure": {"probability": 0.01}},
        "link.satellite.queue.drop-tail.packets": 200,
    }
)
base = base.select("TCP", "a gateway's defaults").with_scheme("BBR", {"tcp.congestion": "bbr"})

# %%
LOSS = "link.satellite.channel.errors.erasure.probability"
losses = [0.0, 0.001, 0.003, 0.01, 0.03, 0.1]
result = lh.sweep(base, {LOSS: losses}, seeds=4)

# %%
frame = result.runs.to_pandas()
goodput = frame.groupby(["scheme", LOSS])["run_goodput_bps"].agg(["mean", "min", "max"]) / 1e6
goodput["mean"].unstack("scheme").round(2)

# %% [markdown]
# The bound is what the channel lets through, less headers.

# %%
bounds = [lh.bound(base.set(LOSS, loss), scheme="TCP", completed=False) / 1e6 for loss in losses]

# %%
import matplotlib.pyplot as plt

COLUMN_PT = 252
plt.rcParams.update({"font.size": 8, "axes.titlesize": 8, "legend.fontsize": 8, "pdf.fonttype": 42})
fig, axes = plt.subplots(figsize=(COLUMN_PT / 72, COLUMN_PT / 72 * 0.62), layout="constrained")
looks = {"TCP": ("CUBIC", "o-"), "BBR": ("BBR", "s--"), "a gateway's defaults": ("gateways", "^-.")}
for scheme, (label, look) in looks.items():
    curve = goodput.loc[scheme]
    spread = [curve["mean"] - curve["min"], curve["max"] - curve["mean"]]
    axes.errorbar(curve.index, curve["mean"], yerr=spread, fmt=look, label=label, markersize=3, linewidth=1, capsize=2)
axes.plot(losses, bounds, ":", color="black", linewidth=1, label="bound")
axes.set_xscale("symlog", linthresh=1e-3)
axes.set_xlabel("packets lost")
axes.set_ylabel("goodput, Mbit/s")
axes.set_ylim(0)
axes.legend(frameon=False)
fig.savefig("goodput_over_loss.pdf")
plt.show()

# %% [markdown]
# `\includegraphics{goodput_over_loss.pdf}` needs no width: it is as wide as it was made. Every point has a `run_goodput_bps` for each seed in
# `result.runs`; with `store="out/loss"` a second run measures nothing again.
