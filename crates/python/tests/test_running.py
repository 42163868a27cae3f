"""Scenarios, runs and what is recorded of them."""

import json
import os
import pickle
import signal
import subprocess
import threading
import time
from pathlib import Path

import longhaul as lh
import pandas
import polars
import pyarrow
import pytest

SHORT = {"traffic.download.bulk.size": "50 kB"}


def program() -> str:
    """The command line, which results are compared with: of a release build, unless LONGHAUL says which."""
    built = Path(__file__).resolve().parent.parent.parent.parent / "target/release/longhaul"
    return os.environ.get("LONGHAUL", str(built))


def demo() -> lh.Scenario:
    return lh.Scenario.load("demo/download").set(SHORT)


def test_the_demo_is_that_of_the_command_line(tmp_path: Path) -> None:
    printed = subprocess.run(
        [program(), "demo", "--json", "--out", str(tmp_path)], check=True, capture_output=True, text=True
    )
    runs = lh.Scenario.load("demo/download").run()
    assert json.loads(printed.stdout)["trace_hash"] == runs.trace_hash
    ours, theirs = runs.table.to_pandas(), pandas.read_csv(tmp_path / "runs.csv")
    assert list(ours.columns) == list(theirs.columns)
    pandas.testing.assert_frame_equal(ours, theirs, check_dtype=False)


def test_a_mistake_is_told_as_the_command_line_tells_it(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text('name = "a"\nduration = "1 s"\nlinks = 3\n')
    printed = subprocess.run([program(), "run", str(file)], capture_output=True, text=True)
    with pytest.raises(lh.ConfigError) as raised:
        lh.Scenario.load(file)
    assert str(raised.value) in printed.stderr
    assert (raised.value.file, raised.value.line) == (str(file), 3)
    with pytest.raises(lh.ConfigError, match="allowed are delays up to 1 h"):
        demo().set("link.satellite.channel.delay", "2 h")
    with pytest.raises(TypeError, match="set is nothing that a scenario can say"):
        demo().set("seeds", {1, 2})  # type: ignore[arg-type]
    with pytest.raises(lh.ConfigError, match="seed 9 has not run; allowed are 1 to 2"):
        demo().run(seeds=2).series("cwnd", seed=9)


def test_a_scenario_survives_its_file(tmp_path: Path) -> None:
    scenario = demo().with_scheme("BBR", {"tcp.congestion": "bbr"}).set("seeds", 2)
    scenario.save(tmp_path / "mine.toml")
    again = lh.Scenario.load(tmp_path / "mine.toml")
    assert again.to_dict() == scenario.to_dict() == lh.Scenario.from_dict(scenario.to_dict()).to_dict()
    assert again.run().trace_hash == scenario.run(jobs=1).trace_hash


def test_a_saved_scenario_finds_its_recordings(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "o.csv").write_text("1.0,2.0\n")
    recorded = demo().set("link.satellite.channel.errors", {"trace": {"file": str(tmp_path / "o.csv")}}).to_toml()
    scenario = lh.Scenario.parse(recorded.replace(str(tmp_path / "o.csv"), "o.csv"), tmp_path / "mine.toml")
    scenario.save(tmp_path / "there" / "mine.toml")
    assert lh.Scenario.load(tmp_path / "there" / "mine.toml").run(seeds=1).trace_hash == scenario.run(seeds=1).trace_hash


def test_tables_travel_and_are_shown() -> None:
    table = demo().run(seeds=1).table
    again = pickle.loads(pickle.dumps(table))
    assert isinstance(again, type(table)) and again.to_pydict() == table.to_pydict()
    assert len(again) == 5 and "<table" in (table._repr_html_() or "")


def test_what_changes_nothing_is_told() -> None:
    with pytest.warns(UserWarning, match="changes nothing in scheme"):
        demo().set("link.satellite.protocol", "coded")
    for seeds, jobs in [(0, None), (None, 0)]:
        with pytest.raises(lh.LonghaulError, match="= 0; allowed are whole numbers from 1 to"):
            demo().run(seeds=seeds, jobs=jobs)
    alone = lh.Scenario.from_dict({**demo().to_dict(), "scheme": []})
    assert alone.with_scheme("BBR", {"tcp.congestion": "bbr"}).schemes == [alone.name, "BBR"]
    with pytest.raises(lh.ConfigError, match='no scheme "UDP"'):
        demo().select("UDP")


def test_tables_reach_other_libraries() -> None:
    runs = demo().run(seeds=2)
    table = runs.table
    from_arrow = getattr(pandas.DataFrame, "from_arrow")  # which pandas-stubs do not know yet
    frames = polars.DataFrame(table), from_arrow(table), pyarrow.table(table)
    assert [len(frame) for frame in frames] == [len(table)] * 3
    assert polars.DataFrame(table).to_dict(as_series=False) == table.to_pydict()
    events = runs.events()
    frame = polars.DataFrame(events)
    assert frame.height == len(events) and frame["time_s"].is_sorted()
    assert frame["cwnd_bytes"].null_count() == frame.filter(polars.col("event") != "sender").height
    assert runs.events(["frames-flagged"], scheme="TCP").column_names == ["time_s", "place", "event"]
    assert set(runs.events(place="server").to_pydict()["place"]) == {"server"}
    with pytest.raises(lh.ConfigError, match='no events of the kind "sendr"; there are segment, sender'):
        runs.events(["sendr"])
    with pytest.raises(lh.ConfigError, match="moon"):
        runs.packets("moon")


def test_what_is_recorded_is_what_ran(tmp_path: Path) -> None:
    runs = demo().run(seeds=2)
    received = runs.series("received", scheme="TCP over COTMLL", seed=2)
    frame = polars.DataFrame(received)
    assert frame["received_bytes"].max() == 50_000 and frame["received_bytes"].is_sorted()
    with pytest.raises(lh.ConfigError, match='no flow "upload"; there are download'):
        runs.series("received", flow="upload")
    for name in lh.Runs.SERIES:
        assert "time_s" in runs.series(name, scheme="a gateway's defaults").column_names
    assert len(runs.series("tunnel", scheme="a gateway's defaults")) > 0
    with pytest.raises(lh.ConfigError, match='no series "windows"; there are cwnd'):
        runs.series("windows")
    runs.capture(tmp_path / "server.pcapng", "server", scheme="TCP")
    assert (tmp_path / "server.pcapng").read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"
    runs.log(tmp_path / "events.jsonl")
    assert len((tmp_path / "events.jsonl").read_text().splitlines()) >= len(runs.events())
    with pytest.raises(lh.LonghaulError, match="moon"):
        runs.capture(tmp_path / "moon.pcapng", "moon")
    report = runs.write(tmp_path / "report")
    for file in ["runs.csv", "progress-paper.svg", "segments-1.csv"]:
        assert (report.parent / file).exists()


def test_ctrl_c_ends_a_run_soon() -> None:
    scenario = demo().set({"traffic.download.bulk.size": "1 MB", "seeds": 2000})
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        scenario.run()
    assert time.monotonic() - began < 30


def test_python_goes_on_while_runs_do() -> None:
    turns, over = 0, threading.Event()

    def count() -> None:
        nonlocal turns
        while not over.is_set():
            turns += 1
            time.sleep(0.001)

    beside = threading.Thread(target=count)
    beside.start()
    before = turns
    demo().set("traffic.download.bulk.size", "1 MB").run(seeds=10)
    during = turns - before
    over.set()
    beside.join()
    assert during > 10


def test_bounds_hold() -> None:
    runs = demo().select("proxies over coded ARQ").run(seeds=5)
    for goodput, seed in zip(*(runs.table.to_pydict()[name] for name in ("run_goodput_bps", "seed")), strict=True):
        assert goodput < lh.bound(demo(), scheme="proxies over coded ARQ", seed=seed)
    with pytest.raises(TypeError, match="one of ber, erasure and blocked is needed, not none"):
        lh.capacity()
    with pytest.raises(TypeError, match="blockage_s belongs to blocked, not to ber"):
        lh.capacity(ber=0.1, blockage_s=1)
    with pytest.raises(lh.LonghaulError, match="erasure = 2; allowed are 0 to 1"):
        lh.capacity(erasure=2)
