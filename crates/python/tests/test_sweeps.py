"""Sweeps and studies, and the store that they share with the command line."""

import subprocess
from pathlib import Path

import longhaul as lh
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


def test_schemes_are_an_axis_like_others(tmp_path: Path) -> None:
    result = lh.sweep(demo(), {**AXES, "scheme": ["TCP", "TCP over COTMLL"]}, seeds=3, out=tmp_path)
    data = result.to_xarray()
    assert dict(data.sizes) == {"scheme": 2, "link.satellite.channel.delay_s": 2, "seed": 3, "flow": 1}
    mean = data["run_goodput_bps"].mean(["seed", "flow"])
    assert float(mean.sel(scheme="TCP over COTMLL")[0]) > float(mean.sel(scheme="TCP over COTMLL")[1])
    assert (tmp_path / "report.html").exists()
    assert "goodput" in str(result)
    with pytest.raises(lh.ConfigError, match="UDP"):
        lh.sweep(demo(), {"scheme": ["UDP"]})
    with pytest.raises(lh.ConfigError, match="seed is no axis"):
        lh.sweep(demo(), {"seed": [1, 2]})
    with pytest.raises(TypeError, match="Controllers, and keys that go together, are schemes"):
        lh.sweep(demo(), {"tcp.congestion": [lh.Controller]})  # type: ignore[list-item]


def test_a_paper_is_a_study() -> None:
    study = lh.Study.load("kojo")
    assert study.experiments
    result = study.run(quick=True, reading="default", figure="table2")
    assert result.claims and result.cells and len(result.measurements) > 0
    assert {claim["verdict"] for claim in result.claims} <= {"holds", "fails", "undecided"}
    with pytest.raises(lh.ConfigError, match='no figure, table or experiment "table9"'):
        study.run(figure="table9")
    with pytest.raises(lh.ConfigError):
        lh.Study.load("nobody's")
