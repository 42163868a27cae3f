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


def test_a_method_that_is_missing_is_missed_at_once() -> None:
    class Half(lh.Controller):
        def on_ack(self, sample: lh.AckSample) -> None: ...

    with pytest.raises(TypeError, match="Half has no on_congestion, which every controller needs"):
        path(0, {"half": Half})


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


def made(window: int) -> type[lh.Controller]:
    class Fixed(lh.Controller):
        def on_ack(self, sample: lh.AckSample) -> None:
            self.window = FACTOR * window * self.mss

        def on_congestion(self, event: lh.Congestion) -> None: ...

    return Fixed


FACTOR = 1


def test_classes_of_one_name_are_told_apart() -> None:
    def seconds(scenario: lh.Scenario) -> dict[str, float]:
        table = scenario.set("traffic.get.bulk.size", "500 kB").run(seeds=1).table.to_pydict()
        return dict(zip(table["scheme"], table["seconds"], strict=True))

    small, large = made(5), made(40)
    both = path(0, {"small": small, "large": large})
    assert seconds(both)["small"] > 2 * seconds(both)["large"]
    path(0, {"other": made(20)})
    assert seconds(both.set("seeds", 1)) == seconds(both)

    class One(Aimd):
        version = "1"

    class Two(Aimd):
        version = "1"

    Two.__qualname__ = One.__qualname__
    with pytest.raises(lh.LonghaulError, match="give each its own"):
        path(0, {"one": One, "two": Two})


def test_what_was_kept_is_known_by_what_the_controller_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "measured/sweep.jsonl"

    def lines(controller: type[lh.Controller]) -> int:
        lh.sweep(path(0.01, {"own": controller}), {"link.sky.channel.delay": ["10 ms"]}, seeds=1, store=tmp_path)
        return len(kept.read_text().splitlines())

    assert (lines(Aimd), lines(Aimd)) == (1, 1)

    class Halved(Aimd):
        def on_ack(self, sample: lh.AckSample) -> None:
            self.window = 5 * self.mss

    assert lines(Halved) == 2
    assert (lines(made(7)), lines(made(7)), lines(made(8))) == (3, 3, 4)
    monkeypatch.setattr("test_controllers.FACTOR", 2)
    assert lines(made(8)) == 5

    class Based(Halved):
        version = "3"

    class Further(Based):
        def on_congestion(self, event: lh.Congestion) -> None:
            self.window = 2 * self.mss

    assert (lines(Based), lines(Further)) == (6, 7)
    unknown: dict[str, type[lh.Controller]] = {}
    exec("import longhaul as lh\nclass Unknown(lh.Controller):\n    def on_ack(self, sample): pass\n    on_congestion = on_ack", unknown)
    with pytest.raises(lh.LonghaulError, match="give the class a version"):
        path(0, {"u": unknown["Unknown"]})


def test_a_name_that_nobody_brought_along_is_refused() -> None:
    with pytest.raises(lh.ConfigError, match='no controller "Stranger" is registered'):
        path(0, {"s": {"external": "Stranger"}})
