"""A study of 10,000 cases: 25 delays, 20 loss rates, two controllers, ten seeds; on any of Dask's clusters, or on this machine."""

from __future__ import annotations

import sys

import longhaul as lh
from distributed import Client, LocalCluster

DELAYS = [f"{delay} ms" for delay in range(10, 510, 20)]
LOSSES = [0.0, *(round(10 ** (-4 + 3 * step / 18), 6) for step in range(19))]


def scenario() -> lh.Scenario:
    channel = {"rate": "2 Mbit/s", "delay": "250 ms", "errors": {"erasure": {"probability": 0.01}}}
    return lh.Scenario.from_dict(
        {
            "name": "one download over delay and loss",
            "duration": "60 s",
            "seeds": 10,
            "tcp": {"preset": "linux"},
            "link": {"sky": {"ends": ["hub", "terminal"], "protocol": "plain", "channel": channel}},
            "traffic": {"download": {"bulk": {"from": "hub", "to": "terminal", "size": "1 MB"}}},
            "scheme": [
                {"name": "CUBIC", "set": {"tcp": {"congestion": "cubic"}}},
                {"name": "BBR", "set": {"tcp": {"congestion": "bbr"}}},
            ],
        }
    )


def run(client: Client | None, store: str) -> lh.Sweep:
    """Measures what ``store`` does not have yet."""
    axes: dict[str, list[str | float]] = {
        "link.sky.channel.delay": list(DELAYS),
        "link.sky.channel.errors.erasure.probability": list(LOSSES),
    }
    return lh.sweep(scenario(), axes, client=client, store=store)


if __name__ == "__main__":
    with LocalCluster(threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        print(run(client, sys.argv[1] if len(sys.argv) > 1 else "out/campaign").to_xarray())
