"""Workers of Dask: they measure what is asked, once, and may be lost."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import longhaul as lh
import polars
import pytest
from distributed import Client, LocalCluster, WorkerPlugin
from aimd import Aimd
from test_controllers import path
from test_running import demo

RATES = [f"{rate} kbit/s" for rate in range(100, 500, 10)]
AXES = {"link.satellite.channel.rate": RATES, "scheme": ["TCP over COTMLL"]}


class Log(WorkerPlugin):
    """Writes what each worker has measured."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        if (start, finish) == ("executing", "memory") and str(key).startswith("measure"):
            with (self.folder / str(os.getpid())).open("a") as out:
                out.write(f"{key}\n")


@pytest.fixture
def client() -> Iterator[Client]:
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        yield client


def scenario() -> lh.Scenario:
    return demo().set("traffic.download.bulk.size", "2 MB")


def same(one: lh.Sweep, other: lh.Sweep) -> bool:
    return polars.DataFrame(one.measurements).equals(polars.DataFrame(other.measurements))


def test_a_lost_worker_costs_its_own_cases(client: Client, tmp_path: Path) -> None:
    logs, store = tmp_path / "logs", tmp_path / "store"
    logs.mkdir()
    client.register_plugin(Log(logs))
    victim = next(iter(client.run(os.getpid).values()))

    def kill() -> None:
        until = time.monotonic() + 60
        while not (logs / str(victim)).exists() and time.monotonic() < until:
            time.sleep(0.01)
        os.kill(victim, signal.SIGKILL)

    threading.Thread(target=kill).start()
    shared = lh.sweep(scenario(), AXES, seeds=5, client=client, store=store)
    kept = (store / "measured/sweep.jsonl").read_text().splitlines()
    assert len(kept) == len(set(kept)) == len(RATES) * 5
    measured = {file.name: file.read_text().splitlines() for file in logs.iterdir()}
    everything = [key for keys in measured.values() for key in keys]
    repeated = [key for key in set(everything) if everything.count(key) > 1]
    assert set(repeated) <= set(measured[str(victim)])
    assert same(shared, lh.sweep(scenario(), AXES, seeds=5))
    # What is kept is not measured again.
    again = lh.sweep(scenario(), AXES, seeds=5, client=client, store=store)
    assert sum(len(file.read_text().splitlines()) for file in logs.iterdir()) == len(everything)
    assert same(shared, again)


def test_a_store_behind_a_url(client: Client, tmp_path: Path) -> None:
    url = f"file://{tmp_path}/parts"
    client.run(os.makedirs, tmp_path / "parts", exist_ok=True)
    first = lh.sweep(scenario(), AXES, seeds=1, client=client, store=url)
    parts = sorted((tmp_path / "parts").iterdir())
    assert parts
    written = [part.stat().st_mtime_ns for part in parts]
    assert same(first, lh.sweep(scenario(), AXES, seeds=1, client=client, store=url))
    assert [part.stat().st_mtime_ns for part in sorted((tmp_path / "parts").iterdir())] == written
    # Other seeds have parts of their own.
    lh.sweep(scenario(), AXES, seeds=1, seed=100, client=client, store=url)
    assert len(list((tmp_path / "parts").iterdir())) > len(parts)
    # A torn part, as of a worker that was killed while it wrote, is measured again.
    parts[0].write_text(parts[0].read_text()[:-40])
    assert same(first, lh.sweep(scenario(), AXES, seeds=1, client=client, store=url))


def test_workers_may_come_late_and_all_be_lost(tmp_path: Path) -> None:
    with LocalCluster(n_workers=0, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:

        def come_go_and_come() -> None:
            cluster.scale(1)
            client.wait_for_workers(1)
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

        threading.Timer(1.0, come_go_and_come).start()
        shared = lh.sweep(scenario(), AXES, seeds=3, client=client)
    assert same(shared, lh.sweep(scenario(), AXES, seeds=3))


def test_controllers_travel(client: Client) -> None:
    own = path(0.01, {"ours": "reno", "theirs": Aimd})
    result = lh.sweep(own, {"link.sky.channel.delay": ["10 ms", "50 ms"]}, seeds=2, client=client)
    seconds = polars.DataFrame(result.runs).pivot("scheme", index=["link.sky.channel.delay_s", "seed"], values="seconds")
    assert seconds["ours"].to_list() == seconds["theirs"].to_list()


def test_an_error_of_a_worker_is_raised_here(client: Client) -> None:
    class Broken(lh.Controller):
        version = "1"

        def on_ack(self, sample: lh.AckSample) -> None:
            raise ZeroDivisionError("mine")

        def on_congestion(self, event: lh.Congestion) -> None: ...

    with pytest.raises(ZeroDivisionError, match="mine"):
        lh.sweep(path(0.01, {"broken": Broken}), {"link.sky.channel.delay": ["10 ms"]}, seeds=1, client=client)


def test_a_study_measures_elsewhere_what_it_measures_here(client: Client) -> None:
    study = lh.Study.load("kojo")
    here = study.run(quick=True, reading="default", figure="table2")
    there = study.run(quick=True, reading="default", figure="table2", client=client)
    assert here.claims == there.claims
