# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A controller of one's own
#
# A class with two methods is a congestion controller. This one keeps twice what the path has delivered within its least round trip
# in the network, and takes no loss for congestion unless round trips have grown. It is compared with CUBIC and BBR on five channels.

# %%
import longhaul as lh


class Steady(lh.Controller):
    """Twice the delivery rate times the least round trip, but for queues that grow."""

    def __init__(self, start: lh.Start) -> None:
        super().__init__(start)
        self.most_bps = 0.0

    def on_ack(self, sample: lh.AckSample) -> None:
        least = sample.rtt_min_s
        if sample.delivery_rate_bps and not sample.app_limited:
            self.most_bps = max(self.most_bps * 0.999, sample.delivery_rate_bps)
        if least is None or sample.srtt_s is None:
            return
        target = max(2 * self.most_bps * least / 8, 10 * self.mss)
        if sample.srtt_s > 1.5 * least:
            target *= 1.5 * least / sample.srtt_s
        self.window += (target - self.window) / 8

    def on_congestion(self, event: lh.Congestion) -> None:
        if event.cause == "timeout":
            self.window = 10 * self.mss


# %% [markdown]
# The channels: what is lost, and how. All have 5 Mbit/s and 250 ms one way.

# %%
CHANNELS: dict[str, dict[str, object]] = {
    "clean": {"erasure": {"probability": 0.0}},
    "1 % lost": {"erasure": {"probability": 0.01}},
    "5 % lost": {"erasure": {"probability": 0.05}},
    "bit errors": {"bit-errors": {"ber": 1e-6}},
    "blocked 10 %": {"gilbert-elliott": {"f": 0.1, "d": "200 ms"}},
}


def scenario(errors: dict[str, object]) -> lh.Scenario:
    return lh.Scenario.from_dict(
        {
            "name": "five channels",
            "duration": "60 s",
            "tcp": {"preset": "linux"},
            "link": {
                "sky": {
                    "ends": ["hub", "terminal"],
                    "protocol": "plain",
                    "queue": {"drop-tail": {"packets": 200}},
                    "channel": {"rate": "5 Mbit/s", "delay": "250 ms", "errors": errors},
                }
            },
            "traffic": {"download": {"bulk": {"from": "hub", "to": "terminal"}}},
            "scheme": [
                {"name": "CUBIC", "set": {"tcp": {"congestion": "cubic"}}},
                {"name": "BBR", "set": {"tcp": {"congestion": "bbr"}}},
                {"name": "Steady", "set": {"tcp": {"congestion": Steady}}},
            ],
        }
    )


# %%
import pandas as pd

frames = []
for name, errors in CHANNELS.items():
    frame = scenario(errors).run(seeds=5).table.to_pandas()
    frame["channel"] = name
    frames.append(frame)
table = pd.concat(frames)
means = table.pivot_table(index="channel", columns="scheme", values="run_goodput_bps", sort=False) / 1e6
means["bound"] = [lh.bound(scenario(errors), scheme="CUBIC", completed=False) / 1e6 for errors in CHANNELS.values()]
means.round(2)

# %%
import matplotlib.pyplot as plt

ax = means.drop(columns="bound").plot.bar(figsize=(7, 3), rot=0)
for place, bound in enumerate(means["bound"]):
    ax.hlines(bound, place - 0.3, place + 0.3, colors="black", linestyles="dotted")
ax.set_ylabel("goodput, Mbit/s")
plt.show()

# %% [markdown]
# What it does on the channel with 1 % lost, beside BBR:

# %%
runs = scenario(CHANNELS["1 % lost"]).run(seeds=1)
fig, axes = plt.subplots(figsize=(7, 3))
for scheme in ["BBR", "Steady"]:
    cwnd = runs.series("cwnd", scheme=scheme).to_pandas()
    axes.plot(cwnd["time_s"], cwnd["cwnd_bytes"] / 1e3, label=scheme)
axes.set_xlabel("time, s")
axes.set_ylabel("window, kB")
axes.legend()
plt.show()
