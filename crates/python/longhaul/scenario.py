"""Scenarios and their runs."""

from __future__ import annotations

import json
import os
import tomllib
import warnings
from collections.abc import Iterable, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

from . import _native
from ._native import Table
from ._progress import bar
from .controller import Controller, name_of, register

Value = str | int | float | bool | list[Any] | dict[str, Any] | type[Controller]
"""What a key of a scenario may be set to: quantities are texts with units, such as "50 ms"."""


class Scenario:
    """A network, its traffic and the schemes to compare, as a scenario file describes them. It never changes: what sets a key
    gives a new one.

    >>> import longhaul as lh
    >>> scenario = lh.Scenario.load("demo/download")
    >>> scenario.name, scenario.schemes[:2]
    ('A 1 MB download through a blocked satellite link', ['TCP', 'TCP over COTMLL'])
    >>> scenario.set("link.satellite.channel.delay", "100 ms").to_dict()["link"]["satellite"]["channel"]["delay"]
    '100 ms'
    >>> scenario.set("link.satelite.channel.delay", "100 ms")
    Traceback (most recent call last):
    longhaul.ConfigError: demo/download: with --set 'link.satelite.channel.delay="100 ms"': no link "satelite"; the scenario has satellite
    """

    def __init__(self, suite: _native.Suite, controllers: Mapping[str, type[Controller]] | None = None) -> None:
        """Not for callers: use `load`, `parse` or `from_dict`."""
        self._suite = suite
        self._controllers = dict(controllers or {})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Scenario:
        """Reads a scenario file, or one that is built in by its name, such as "demo/download".

        >>> import longhaul as lh
        >>> lh.Scenario.load("demo/voice").schemes[0]
        'All sent until it has come'
        """
        return cls(_native.Suite.load(Path(path)))

    @classmethod
    def parse(cls, text: str, path: str | os.PathLike[str] = "scenario.toml") -> Scenario:
        """Reads what a scenario file would say. Files that it names are looked up beside ``path``, which complaints name.

        >>> import longhaul as lh
        >>> lh.Scenario.parse('name = "nothing yet"')
        Traceback (most recent call last):
        longhaul.ConfigError: scenario.toml: missing key `duration`
        """
        return cls(_native.Suite.parse(Path(path), text))

    @classmethod
    def from_dict(cls, scenario: Mapping[str, Any], path: str | os.PathLike[str] = "scenario.toml") -> Scenario:
        """Makes a scenario of a dict with what its file would say.

        >>> import longhaul as lh
        >>> scenario = lh.Scenario.from_dict({
        ...     "name": "two hosts", "duration": "30 s",
        ...     "link": {"sky": {"ends": ["a", "b"], "channel": {"rate": "1 Mbit/s", "delay": "250 ms"}}},
        ...     "traffic": {"get": {"bulk": {"from": "a", "to": "b", "size": "100 kB"}}},
        ... })
        >>> round(scenario.run().table.to_pydict()["seconds"][0])
        4
        """
        controllers: dict[str, type[Controller]] = {}
        plain = _plain(dict(scenario), controllers)
        return cls(_native.Suite.build(Path(path), plain), controllers)

    def set(self, key: str | Mapping[str, Value], value: Value | None = None) -> Scenario:
        """The same with a key set, which is a dotted path, or with several keys set.

        >>> import longhaul as lh
        >>> demo = lh.Scenario.load("demo/download")
        >>> demo.set({"seeds": 3, "tcp.preset": "linux"}).seeds
        3
        """
        if isinstance(key, Mapping) == (value is not None):
            raise TypeError("write set(key, value), or set({key: value, ...})")
        if not isinstance(key, Mapping):
            assert value is not None
            key = {key: value}
        controllers = dict(self._controllers)
        changes = [(path, _plain(value, controllers)) for path, value in key.items()]
        register(controllers)
        suite = self._suite.with_set(changes)
        for notice in suite.notices:
            warnings.warn(notice, stacklevel=2)
        return Scenario(suite, controllers)

    def with_scheme(self, name: str, set: Mapping[str, Value]) -> Scenario:
        """The same with one more scheme, which sets these keys.

        >>> import longhaul as lh
        >>> demo = lh.Scenario.load("demo/download")
        >>> demo.with_scheme("BBR", {"tcp.congestion": "bbr", "link.satellite.protocol": "plain"}).schemes[-1]
        'BBR'
        """
        controllers = dict(self._controllers)
        nested: dict[str, Any] = {}
        for key, value in set.items():
            *path, last = key.split(".")
            table = nested
            for part in path:
                table = table.setdefault(part, {})
            table[last] = _plain(value, controllers)
        scenario = self.to_dict()
        # Without schemes the scenario itself is the only one.
        scenario["scheme"] = [*(scenario.get("scheme") or [{"name": self.name}]), {"name": name, "set": nested}]
        register(controllers)
        return Scenario(_native.Suite.build(self.path, scenario), controllers)

    def select(self, *schemes: str) -> Scenario:
        """The same with these schemes alone.

        >>> import longhaul as lh
        >>> lh.Scenario.load("demo/download").select("TCP").schemes
        ['TCP']
        """
        if any(not isinstance(name, str) for name in schemes):
            raise TypeError("write select(name, other): names, not a list of them")
        if not schemes:
            raise TypeError(f"no scheme is named; there are {', '.join(self.schemes)}")
        for name in schemes:
            self._suite.resolved(name)
        scenario = self.to_dict()
        register(self._controllers)
        scenario["scheme"] = [scheme for scheme in scenario.get("scheme", []) if scheme["name"] in schemes]
        return Scenario(_native.Suite.build(self.path, scenario), self._controllers)

    @property
    def path(self) -> Path:
        """Where its file is, or would be.

        >>> import longhaul as lh
        >>> lh.Scenario.load("demo/download").path.as_posix()
        'demo/download'
        """
        return self._suite.path

    @property
    def name(self) -> str:
        """Its name, as in tables and reports.

        >>> import longhaul as lh
        >>> lh.Scenario.load("demo/download").name
        'A 1 MB download through a blocked satellite link'
        """
        return self._suite.name

    @property
    def schemes(self) -> list[str]:
        """The names of the schemes that it compares; its own without any.

        >>> import longhaul as lh
        >>> lh.Scenario.load("demo/download").schemes[:2]
        ['TCP', 'TCP over COTMLL']
        """
        return self._suite.schemes

    @property
    def seed(self) -> int:
        """The first seed.

        >>> import longhaul as lh
        >>> lh.Scenario.load("demo/download").set("seed", 7).seed
        7
        """
        return self._suite.seed

    @property
    def seeds(self) -> int:
        """With how many seeds each scheme runs unless `run` is told otherwise.

        >>> import longhaul as lh
        >>> lh.Scenario.load("demo/download").seeds
        24
        """
        return self._suite.seeds

    @property
    def warnings(self) -> list[str]:
        """What is odd about it: links that a window keeps from being filled, as `longhaul run` says it.

        >>> import longhaul as lh
        >>> lh.Scenario.load("demo/download").warnings
        []
        """
        return self._suite.warnings()

    def to_toml(self) -> str:
        """What its file would say.

        >>> import longhaul as lh
        >>> lh.Scenario.load("demo/download").to_toml().splitlines()[0]
        'name = "A 1 MB download through a blocked satellite link"'
        """
        return self._suite.to_toml()

    def to_dict(self) -> dict[str, Any]:
        """The same as a dict.

        >>> import longhaul as lh
        >>> lh.Scenario.load("demo/download").to_dict()["seeds"]
        24
        """
        return tomllib.loads(self.to_toml())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes its file, which `longhaul run` takes too unless a controller in Python is in it.

        >>> import longhaul as lh, tempfile
        >>> file = tempfile.mkdtemp() + "/mine.toml"
        >>> lh.Scenario.load("demo/download").set("seeds", 3).save(file)
        >>> lh.Scenario.load(file).seeds
        3
        """
        scenario = _with_absolute_recordings(self.to_dict(), self.path.parent)
        register(self._controllers)
        Path(path).write_text(_native.Suite.build(self.path, scenario).to_toml())

    def resolved(self, scheme: str | None = None) -> dict[str, Any]:
        """A scheme's scenario with every default spelled out; the first scheme's unless one is named.

        >>> import longhaul as lh
        >>> lh.Scenario.load("demo/download").resolved("TCP")["network"]
        'ipv4'
        """
        return tomllib.loads(self._suite.resolved(scheme))

    def run(
        self,
        *,
        seeds: int | None = None,
        seed: int | None = None,
        jobs: int | None = None,
        progress: bool | None = None,
    ) -> Runs:
        """Runs every scheme with every seed: ``seeds`` of them, from ``seed`` on.

        ``jobs`` runs go on at the same time, one a core unless given; with controllers in Python one at a time. Ctrl-C
        ends it after the runs that have begun. ``progress``: whether to draw a bar; None draws it where somebody looks.

        >>> import longhaul as lh
        >>> runs = lh.Scenario.load("demo/download").set("duration", "20 s").run(seeds=2)
        >>> len(runs.table)
        10
        """
        check_counts(seeds, jobs, seed)
        changes: list[tuple[str, Any]] = []
        if seeds is not None:
            changes.append(("seeds", seeds))
        if seed is not None:
            changes.append(("seed", seed))
        register(self._controllers)
        suite = self._suite.with_set(changes) if changes else self._suite
        with bar(self.name, progress) as tell:
            return Runs(suite.run(jobs, bool(self._controllers), tell), bool(self._controllers))

    def __repr__(self) -> str:
        return f"<longhaul.Scenario: {self.name}, {len(self.schemes)} schemes>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (str(self.path), self.to_toml(), self._controllers)


def _rebuild(path: str, text: str, controllers: dict[str, type[Controller]]) -> Scenario:
    register(controllers)
    return Scenario(_native.Suite.parse(Path(path), text), controllers)


def _plain(value: Any, controllers: dict[str, type[Controller]]) -> Any:
    """A value without classes: scenarios name these, and know them once they are registered."""
    if isinstance(value, type) and issubclass(value, Controller):
        for method in ("on_ack", "on_congestion"):
            if getattr(value, method) is getattr(Controller, method):
                raise TypeError(f"{value.__name__} has no {method}, which every controller needs")
        name = name_of(value)
        if controllers.setdefault(name, value) is not value and vars(value).get("version") is not None:
            raise _native.LonghaulError(f"two classes are called {value.__qualname__} and have one version; give each its own")
        controllers[name] = value
        register({name: value})
        return {"external": name}
    if isinstance(value, Mapping):
        return {key: _plain(item, controllers) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, controllers) for item in value]
    return value


def check_counts(seeds: int | None, jobs: int | None, seed: int | None) -> None:
    """The command line's limits."""
    for name, value, least, most in [("seeds", seeds, 1, 100_000), ("jobs", jobs, 1, 1024), ("seed", seed, 0, 2**63 - 1)]:
        if value is not None and not (isinstance(value, Integral) and least <= value <= most):
            raise _native.LonghaulError(f"{name} = {value!r}; allowed are whole numbers from {least} to {most}")


def _with_absolute_recordings(value: Any, folder: Path) -> Any:
    """A scenario whose recordings are found wherever its file is."""
    if isinstance(value, dict):
        made = {key: _with_absolute_recordings(item, folder) for key, item in value.items()}
        trace = made.get("trace")
        if isinstance(trace, dict) and "file" in trace:
            trace["file"] = str((folder / trace["file"]).absolute())
        return made
    if isinstance(value, list):
        return [_with_absolute_recordings(item, folder) for item in value]
    return value


class Runs:
    """What the runs of a scenario came to.

    What happened in a run is found out when somebody asks: the run is repeated, watched, and comes out the same.
    ``scheme`` and ``seed`` say which one; the first of each unless given.

    >>> import longhaul as lh
    >>> runs = lh.Scenario.load("demo/download").set("duration", "20 s").run(seeds=1)
    >>> sorted(runs.series("cwnd", flow="download").column_names)[:2]
    ['cwnd_bytes', 'flow']
    """

    SERIES = tuple(_native.SERIES)
    """What `series` may be asked for.

    >>> import longhaul as lh
    >>> "cwnd" in lh.Runs.SERIES
    True
    """

    def __init__(self, runs: _native.Runs, calls_python: bool) -> None:
        """Not for callers: use `Scenario.run`."""
        self._runs = runs
        self._calls_python = calls_python

    @property
    def table(self) -> Table:
        """A row for each run and flow: scheme, seed, flow, what the flow came to, and what the run came to (``run_...``). Columns have
        their units in their names.

        >>> import longhaul as lh
        >>> runs = lh.Scenario.load("demo/download").select("TCP").set("traffic.download.bulk.size", "50 kB").run(seeds=2)
        >>> [seconds > 0.25 for seconds in runs.table["seconds"]]
        [True, True]
        """
        return self._runs.table()

    @property
    def trace_hash(self) -> str:
        """One hash over everything that happened: the one that `longhaul run` prints.

        >>> import longhaul as lh
        >>> short = lh.Scenario.load("demo/download").set("duration", "5 s")
        >>> short.run(seeds=1).trace_hash == short.run(seeds=1).trace_hash
        True
        """
        return self._runs.trace_hash

    @property
    def summary(self) -> dict[str, Any]:
        """What `longhaul run --json` prints, schemes and every run with all counters.

        >>> import longhaul as lh
        >>> runs = lh.Scenario.load("demo/download").set("duration", "5 s").run(seeds=2)
        >>> len(runs.summary["schemes"])
        5
        """
        result: dict[str, Any] = json.loads(self._runs.to_json())
        return result

    def series(self, name: str, *, flow: str | None = None, scheme: str | None = None, seed: int | None = None) -> Table:
        """What changes over time in a run: one of `SERIES`.

        - "cwnd": ``cwnd_bytes`` and ``ssthresh_bytes`` of TCP's senders, at every change;
        - "flight_size": ``flight_size_bytes``, sent and not acknowledged;
        - "rtt": ``srtt_s``, ``rttvar_s`` and ``rto_s``, as senders know them;
        - "received": ``received_bytes`` that applications had;
        - "latency": ``latency_s`` of every record and transaction, by when it was sent;
        - "segments": what senders sent, with ``offset_bytes``, ``len_bytes``, and whether ``again``;
        - "queue": ``packets`` and ``bytes`` in the queues of links, by ``place``;
        - "tunnel": what gateways found out about their paths, by ``place``.

        >>> import longhaul as lh
        >>> runs = lh.Scenario.load("demo/download").set("traffic.download.bulk.size", "50 kB").run(seeds=1)
        >>> max(runs.series("received", flow="download").to_pydict()["received_bytes"])
        50000
        """
        check_counts(None, None, seed)
        return self._runs.series(name, flow, scheme, seed, self._calls_python)

    def events(
        self,
        kinds: str | Iterable[str] | None = None,
        *,
        place: str | None = None,
        scheme: str | None = None,
        seed: int | None = None,
    ) -> Table:
        """Everything that happened in a run, or events of these kinds, at one host or link: a row each, with a column for each
        field that any of them has. docs/events.md lists them.

        >>> import longhaul as lh
        >>> runs = lh.Scenario.load("demo/download").set("duration", "20 s").run(seeds=1)
        >>> set(runs.events(["sender"]).to_pydict()["event"])
        {'sender'}
        """
        chosen = [kinds] if isinstance(kinds, str) else None if kinds is None else list(kinds)
        check_counts(None, None, seed)
        return self._runs.events(chosen, place, scheme, seed, self._calls_python)

    def packets(self, at: str, *, scheme: str | None = None, seed: int | None = None) -> Table:
        """What passed at a host, segment by segment, or over a link, packet by packet and step by step.

        >>> import longhaul as lh
        >>> runs = lh.Scenario.load("demo/download").set("duration", "20 s").run(seeds=1)
        >>> {"time_s", "step", "bytes"} <= set(runs.packets("satellite").column_names)
        True
        """
        return self.events(["segment", "packet"], place=at, scheme=scheme, seed=seed)

    def capture(self, path: str | os.PathLike[str], at: str, *, scheme: str | None = None, seed: int | None = None) -> None:
        """Writes a run's packets at a host, or its frames on a link, for Wireshark (pcapng).

        >>> import longhaul as lh, os, tempfile
        >>> file = tempfile.mkdtemp() + "/server.pcapng"
        >>> lh.Scenario.load("demo/download").set("duration", "5 s").run(seeds=1).capture(file, "server")
        >>> os.path.getsize(file) > 1000
        True
        """
        self._runs.capture(Path(path), at, scheme, seed, self._calls_python)

    def log(self, path: str | os.PathLike[str], *, scheme: str | None = None, seed: int | None = None) -> None:
        """Writes all events of a run, one JSON object a line, however many there are.

        >>> import longhaul as lh, os, tempfile
        >>> file = tempfile.mkdtemp() + "/events.jsonl"
        >>> lh.Scenario.load("demo/download").set("duration", "5 s").run(seeds=1).log(file)
        >>> os.path.getsize(file) > 1000
        True
        """
        self._runs.log(Path(path), scheme, seed, self._calls_python)

    def write(self, directory: str | os.PathLike[str]) -> Path:
        """Writes a report with figures and data, as `longhaul run --out` does; the path of its page.

        >>> import longhaul as lh, tempfile
        >>> runs = lh.Scenario.load("demo/download").set("traffic.download.bulk.size", "50 kB").run(seeds=1)
        >>> runs.write(tempfile.mkdtemp()).name
        'report.html'
        """
        return self._runs.write(Path(directory), "longhaul.Scenario.run", self._calls_python)

    def __str__(self) -> str:
        return self._runs.text()

    def __repr__(self) -> str:
        return f"<longhaul.Runs: trace hash {self.trace_hash}>"
