"""Controllers in Python: they are told what ours are told, and kept apart by what they do."""

import os
import signal
import threading
from pathlib import Path

import longhaul as lh
import pytest
from aimd import Aimd


def path(loss: float, schemes: dict[str, object]) -> lh.Scenario:
    channel = {"rate": "10 Mbit/s", "delay": "50 ms", "errors": {"erasure": {"probability": loss}}}
    return lh.Scenario.from_dict(
        {
            "name": "a lossy path",
            "duration": "60 s",
            "link": {"sky": {"ends": ["a", "b"], "channel": channel, "queue": {"drop-tail": {"packets": 50}}}},
            "traffic": {"get": {"bulk": {"from": "a", "to": "b", "size": "5 MB"}}},
            "scheme": [{"name": name, "set": {"tcp": {"congestion": it}}} for name, it in schemes.items()],
        }
    )


@pytest.mark.parametrize("loss", [0.0, 0.02])
def test_aimd_is_our_reno_packet_for_packet(loss: float) -> None:
    runs = path(loss, {"ours": "reno", "theirs": Aimd}).run(seeds=20)
    hashes: dict[str, list[str]] = {}
    for run in runs.summary["runs"]:
        hashes.setdefault(run["scheme"], []).append(run["trace_hash"])
    assert hashes["ours"] == hashes["theirs"] and len(set(hashes["ours"])) == 20
    timeouts = sum(run["transfers"][0]["timeouts"] for run in runs.summary["runs"])
    assert (loss == 0) or timeouts > 0, "losses without a time-out leave a branch untried"


def test_an_error_ends_the_run_as_it_was_raised() -> None:
    class Broken(lh.Controller):
        def on_ack(self, sample: lh.AckSample) -> None:
            raise ZeroDivisionError("mine")

        def on_congestion(self, event: lh.Congestion) -> None: ...

    with pytest.raises(ZeroDivisionError, match="mine") as raised:
        path(0, {"broken": Broken}).run(seeds=2)
    assert raised.traceback[-1].name == "on_ack"

    class Wordy(lh.Controller):
        def on_ack(self, sample: lh.AckSample) -> None:
            self.window = "wide"  # type: ignore[assignment]

        def on_congestion(self, event: lh.Congestion) -> None: ...

    with pytest.raises(TypeError, match="window = wide; allowed are numbers from 0 on"):
        path(0, {"wordy": Wordy}).run()


def test_ctrl_c_is_heard_within_a_run() -> None:
    class Endless(Aimd):
        def on_ack(self, sample: lh.AckSample) -> None:
            super().on_ack(sample)

    scenario = path(0, {"endless": Endless}).set({"duration": "87600 h", "traffic.get.bulk.size": "1000 GB"})
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        scenario.run()


def test_chance_is_found_out() -> None:
    class Fickle(Aimd):
        calls = 0

        def on_ack(self, sample: lh.AckSample) -> None:
            Fickle.calls += 1
            self.window = (5 + Fickle.calls % 7) * self.mss

    runs = path(0.02, {"fickle": Fickle}).run()
    with pytest.raises(lh.LonghaulError, match="does not come out as before"):
        runs.series("cwnd")


def test_what_was_kept_is_known_by_the_controllers_source(tmp_path: Path) -> None:
    def sweep(controller: type[lh.Controller]) -> list[float]:
        scenario = path(0.01, {"own": controller})
        return lh.sweep(scenario, {"link.sky.channel.delay": ["10 ms"]}, seeds=1, store=tmp_path).runs.to_pydict()["seconds"]

    kept = tmp_path / "measured/sweep.jsonl"
    first = sweep(Aimd)
    assert sweep(Aimd) == first and len(kept.read_text().splitlines()) == 1

    class Halved(Aimd):
        def on_ack(self, sample: lh.AckSample) -> None:
            self.window = 5 * self.mss

    assert sweep(Halved) > first and len(kept.read_text().splitlines()) == 1

    class Named(Halved):
        version = "3"

    assert "Named " in str(path(0, {"n": Named}).to_dict()["scheme"])
    made: dict[str, type[lh.Controller]] = {}
    exec("import longhaul as lh\nclass Unknown(lh.Controller):\n    def on_ack(self, sample): pass\n", made)
    unknown = made["Unknown"]
    with pytest.raises(lh.LonghaulError, match="give the class a version"):
        path(0, {"u": unknown})


def test_a_name_that_nobody_brought_along_is_refused() -> None:
    with pytest.raises(lh.ConfigError, match='no controller "Stranger" has been brought along'):
        path(0, {"s": {"external": "Stranger"}})
