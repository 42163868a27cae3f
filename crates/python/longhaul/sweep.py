"""Sweeps: a scenario over the values of some of its keys."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from ._native import Table
from ._plan import Plan, asked
from ._progress import bar
from .controller import register
from .scenario import Scenario, check_counts

if TYPE_CHECKING:
    import xarray
    from distributed import Client


UNITS = {"_s": "s", "seconds": "s", "_bps": "bit/s", "_bytes": "bytes", "_packets": "packets"}
"""What the ends of columns' names mean."""


class Sweep:
    """What a sweep measured.

    >>> import longhaul as lh
    >>> demo = lh.Scenario.load("demo/download").set("traffic.download.bulk.size", "50 kB")
    >>> result = lh.sweep(demo, {"link.satellite.channel.delay": ["50 ms", "250 ms"]}, seeds=2)
    >>> len(result.runs)
    20
    >>> result.runs.column_names[1:3]
    ['scheme', 'link.satellite.channel.delay_s']
    """

    def __init__(self, study: _native.Study, outcome: _native.Outcome) -> None:
        """Not for callers: use `sweep`."""
        self._study = study
        self._outcome = outcome

    @property
    def runs(self) -> Table:
        """A row for each run and flow: each axis, seed, flow, what the flow came to, and what the run came to (``run_...``).

        >>> import longhaul as lh
        >>> demo = lh.Scenario.load("demo/download").set("traffic.download.bulk.size", "50 kB")
        >>> runs = lh.sweep(demo, {"link.satellite.channel.delay": ["50 ms"], "scheme": ["TCP"]}, seeds=2).runs
        >>> runs["link.satellite.channel.delay_s"]
        [0.05, 0.05]
        """
        return self._outcome.runs

    @property
    def measurements(self) -> Table:
        """A row for each measurement: each axis, seed, quantity, what it is called with, value and unit.

        >>> import longhaul as lh
        >>> demo = lh.Scenario.load("demo/download").set("traffic.download.bulk.size", "50 kB")
        >>> measured = lh.sweep(demo, {"link.satellite.channel.delay": ["50 ms"], "scheme": ["TCP"]}, seeds=1).measurements
        >>> units = dict(zip(measured["quantity"], measured["unit"]))
        >>> units["goodput"], units["seconds"]
        ('bps', 's')
        """
        return self._outcome.measurements

    @property
    def summary(self) -> dict[str, Any]:
        """What `longhaul sweep --json` prints: tables with intervals.

        >>> import longhaul as lh
        >>> demo = lh.Scenario.load("demo/download").set("traffic.download.bulk.size", "50 kB")
        >>> result = lh.sweep(demo, {"link.satellite.channel.delay": ["50 ms"], "scheme": ["TCP"]}, seeds=3)
        >>> cell = result.summary["cells"][0]
        >>> low, high = cell["interval"]
        >>> cell["table"], low <= cell["ours"] <= high
        ('goodput, kbit/s', True)
        """
        result: dict[str, Any] = json.loads(self._outcome.json)
        return result

    def to_xarray(self) -> xarray.Dataset:
        """The runs as an xarray Dataset with a dimension for each axis, the seed and, but for what is the whole run's (``run_...``), the flow; texts
        are left out. ``attrs["units"]`` says what each is in.

        >>> import longhaul as lh
        >>> demo = lh.Scenario.load("demo/download").set("traffic.download.bulk.size", "50 kB")
        >>> data = lh.sweep(demo, {"link.satellite.channel.delay": ["50 ms", "250 ms"]}, seeds=2).to_xarray()
        >>> dict(data.sizes)
        {'scheme': 5, 'link.satellite.channel.delay_s': 2, 'seed': 2, 'flow': 1}
        """
        frame = self.runs.to_pandas().drop(columns="experiment")
        columns = [column for _, column, _ in self._study.experiments[0][1]]
        indexed = frame.set_index([*columns, "seed", "flow"])
        dataset: xarray.Dataset = indexed.select_dtypes("number").to_xarray()
        # What is the whole run's is the same for each of its flows.
        dataset = dataset.assign({name: it.max("flow") for name, it in dataset.items() if str(name).startswith("run_")})
        dataset.attrs = {"title": self._study.title}
        # The axes keep the order in which they were written.
        dataset = dataset.reindex({name: list(dict.fromkeys(frame[name])) for name in columns})
        for name, it in dataset.variables.items():
            it.attrs |= {"units": unit for ending, unit in UNITS.items() if str(name).endswith(ending)}
        return dataset

    def __str__(self) -> str:
        return self._outcome.text

    def __repr__(self) -> str:
        return f"<longhaul.Sweep: {self._study.title}, {len(self.runs)} runs and flows>"


def sweep(
    scenario: Scenario | str,
    axes: Mapping[str, Iterable[Any]],
    *,
    seeds: int | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    store: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    client: Client | None = None,
    progress: bool | None = None,
) -> Sweep:
    """Runs a scenario for every combination of some keys' values, every scheme with every seed.

    - ``axes``: dotted keys of the scenario, each with its values; "scheme" chooses among the scenario's schemes.
    - ``seeds`` and ``seed``: how many, and the first; the scenario's unless given.
    - ``store``: a folder in which measurements are kept: what is there is not measured again. The ``--out`` of
      `longhaul sweep` is one, and a store is an ``--out`` for it. With ``client`` it may be any URL that fsspec knows.
    - ``out``: a folder for what `longhaul sweep` writes: a report, figures, tables. Another call's results there are
      replaced if ``force`` says so.
    - ``client``: a `distributed.Client`, whose workers measure; otherwise ``jobs`` threads of this process do, one a core.

    Ctrl-C ends it after the runs that have begun; with ``store`` they are kept, and the same call goes on from there.

    >>> import longhaul as lh
    >>> demo = lh.Scenario.load("demo/download").set("traffic.download.bulk.size", "50 kB")
    >>> axes = {"link.satellite.channel.rate": ["256 kbit/s", "1 Mbit/s"], "scheme": ["TCP"]}
    >>> lh.sweep(demo, axes, seeds=3).runs.to_pandas().groupby("link.satellite.channel.rate_bps")["seconds"].count().to_dict()
    {256000.0: 3, 1000000.0: 3}
    """
    scenario = Scenario.load(scenario) if isinstance(scenario, str | os.PathLike) else scenario
    check_counts(seeds, jobs, seed)
    keys = {key: _values(key, values) for key, values in axes.items()}
    chosen = {"scheme": keys.pop("scheme")} if "scheme" in keys else {}
    register(scenario._controllers)
    calls_python = bool(scenario._controllers)
    study = _native.Study.of_scenario(scenario._suite, keys)
    command = f"longhaul.sweep({str(scenario.path)!r}, {keys | chosen})"
    where = (_path(out), command, force, jobs, calls_python)
    plan: Plan = {"seeds": scenario.seeds if seeds is None else seeds, "seed": seed}
    if client is not None:
        from ._dask import Spec, measured

        spec = Spec.of_scenario(scenario, keys)
        with measured(client, spec, plan, chosen, store, progress) as folder:
            outcome = study.run(asked(plan, folder), chosen, *where, None)
        return Sweep(study, outcome)
    with bar(scenario.name, progress) as tell:
        return Sweep(study, study.run(asked(plan, folder_of(store)), chosen, *where, tell))


def _values(key: str, values: Iterable[Any]) -> list[Any]:
    """An axis's values, as Python has them; NumPy's numbers count."""
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise TypeError(f"the axis {key} is {values!r}; write a list of values")
    plain = [value.item() if hasattr(value, "item") else value for value in values]
    for value in plain:
        if not isinstance(value, str | int | float | bool):
            raise TypeError(
                f"{value!r} is no value of the axis {key}; allowed are str, int, float and bool. "
                "Controllers, and keys that go together, are schemes: Scenario.with_scheme"
            )
    if len(set(plain)) < len(plain):
        raise TypeError(f"the axis {key} has a value twice: {plain}")
    return plain


def folder_of(store: str | os.PathLike[str] | None) -> str | None:
    """Where measurements are kept without workers."""
    if store is None:
        return None
    if "://" in os.fspath(store):
        raise _native.LonghaulError(f"store = {store}; allowed are folders, and with client URLs")
    return os.fspath(store)


def _path(out: str | os.PathLike[str] | None) -> Path | None:
    return None if out is None else Path(out)
