"""Sweeps and studies, and the store that they share with the command line."""

import subprocess
from pathlib import Path

import longhaul as lh
import numpy
import pandas
import pytest
from test_running import demo, program

AXES = {"link.satellite.channel.delay": ["50 ms", "250 ms"]}


def test_one_store_with_the_command_line(tmp_path: Path) -> None:
    scenario = demo().set("seeds", 2)
    scenario.save(tmp_path / "mine.toml")
    axis = "link.satellite.channel.delay=50 ms,250 ms"
    command = [program(), "sweep", str(tmp_path / "mine.toml"), "--axis", axis, "--out", str(tmp_path / "out")]
    subprocess.run(command, check=True, capture_output=True)
    kept = (tmp_path / "out/measured/sweep.jsonl").read_bytes()
    result = lh.sweep(lh.Scenario.load(tmp_path / "mine.toml"), AXES, store=tmp_path / "out")
    assert (tmp_path / "out/measured/sweep.jsonl").read_bytes() == kept
    for ours, theirs in [(result.runs, "runs.csv"), (result.measurements, "measurements.csv")]:
        written = pandas.read_csv(tmp_path / "out" / theirs)
        assert list(written.columns) == ours.column_names
        pandas.testing.assert_frame_equal(ours.to_pandas(), written, check_dtype=False)
    # And the other way round: another value is measured, what is known is not.
    lh.sweep(scenario, {"link.satellite.channel.delay": ["50 ms", "100 ms", "250 ms"]}, store=tmp_path / "out")
    grown = (tmp_path / "out/measured/sweep.jsonl").read_bytes()
    assert grown.startswith(kept) and grown.count(b"\n") == kept.count(b"\n") * 3 // 2


def test_the_command_line_goes_on_from_a_store(tmp_path: Path) -> None:
    scenario = demo().set("seeds", 2)
    scenario.save(tmp_path / "mine.toml")
    lh.sweep(lh.Scenario.load(tmp_path / "mine.toml"), AXES, store=tmp_path / "out")
    kept = (tmp_path / "out/measured/sweep.jsonl").read_bytes()
    axis = "link.satellite.channel.delay=50 ms,250 ms"
    command = [program(), "sweep", str(tmp_path / "mine.toml"), "--axis", axis, "--out", str(tmp_path / "out")]
    subprocess.run(command, check=True, capture_output=True)
    assert (tmp_path / "out/measured/sweep.jsonl").read_bytes() == kept


def test_a_store_keeps_what_others_measured(tmp_path: Path) -> None:
    def kept() -> int:
        return len((tmp_path / "measured/sweep.jsonl").read_text().splitlines())

    lh.sweep(demo().select("TCP"), AXES, seeds=2, store=tmp_path)
    lh.sweep(demo().select("TCP over COTMLL"), AXES, seeds=2, store=tmp_path)
    assert kept() == 8
    lh.sweep(demo().select("TCP"), AXES, seeds=2, store=tmp_path)
    assert kept() == 8


def test_results_of_another_call_are_kept(tmp_path: Path) -> None:
    def call(*delays: str, force: bool = False) -> None:
        lh.sweep(demo(), {"link.satellite.channel.delay": delays}, seeds=1, out=tmp_path, force=force)

    call("50 ms")
    call("50 ms")
    with pytest.raises(lh.LonghaulError, match=r"has the results of `longhaul.sweep\(.*50 ms.*; name another directory"):
        call("60 ms")
    call("60 ms", force=True)
    demo().run(seeds=1)
    with pytest.raises(lh.LonghaulError, match="out = .* has the results of"):
        lh.Study.load("kojo").run(quick=True, reading="default", figure="table2", out=tmp_path)


def test_schemes_are_an_axis_like_others(tmp_path: Path) -> None:
    result = lh.sweep(demo(), {**AXES, "scheme": ["TCP", "TCP over COTMLL"]}, seeds=3, out=tmp_path)
    data = result.to_xarray()
    assert dict(data.sizes) == {"scheme": 2, "link.satellite.channel.delay_s": 2, "seed": 3, "flow": 1}
    assert (data["run_goodput_bps"].units, data["link.satellite.channel.delay_s"].units) == ("bit/s", "s")
    assert "units" not in data["retransmissions"].attrs
    mean = data["run_goodput_bps"].mean("seed")
    assert float(mean.sel(scheme="TCP over COTMLL")[0]) > float(mean.sel(scheme="TCP over COTMLL")[1])
    assert (tmp_path / "report.html").exists()
    assert "goodput" in str(result)
    with pytest.raises(lh.ConfigError, match="UDP"):
        lh.sweep(demo(), {"scheme": ["UDP"]})
    with pytest.raises(lh.ConfigError, match="seed is no axis"):
        lh.sweep(demo(), {"seed": [1, 2]})
    with pytest.raises(lh.ConfigError, match='"TCP over COTMLL" sets link.satellite.protocol itself'):
        lh.sweep(demo(), {"link.satellite.protocol": ["coded", "slacp"]})
    with pytest.raises(lh.LonghaulError, match="store = memory://x; allowed are folders"):
        lh.sweep(demo(), AXES, store="memory://x")
    with pytest.raises(TypeError, match="write a list of values"):
        lh.sweep(demo(), {"link.satellite.channel.delay": "50 ms"})
    sizes = numpy.arange(20, 60, 20)
    assert len(lh.sweep(demo().select("TCP"), {"link.satellite.queue.drop-tail.packets": sizes}, seeds=1).runs) == 2
    with pytest.raises(TypeError, match="Controllers, and keys that go together, are schemes"):
        lh.sweep(demo(), {"tcp.congestion": [lh.Controller]})


def test_a_paper_is_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = lh.Study.load("kojo")
    assert study.experiments
    (tmp_path / "scenarios/kojo").mkdir(parents=True)
    (tmp_path / "scenarios/kojo/claims.toml").write_text("# mine")
    monkeypatch.chdir(tmp_path)
    with pytest.warns(UserWarning, match="claims.toml was edited"):
        lh.Study.load("kojo")
    result = study.run(quick=True, reading="default", figure="table2")
    assert result.claims and result.cells and len(result.measurements) > 0
    assert {claim["verdict"] for claim in result.claims} <= {"holds", "fails", "undecided"}
    with pytest.raises(lh.ConfigError, match='no figure, table or experiment "table9"'):
        study.run(figure="table9")
    with pytest.raises(lh.ConfigError):
        lh.Study.load("nobody's")
