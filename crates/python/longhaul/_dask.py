"""Studies measured by Dask's workers. Cases go out in tasks of about half a second; what comes back are lines of the store."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from . import _native
from ._plan import Asked, Plan, asked
from ._progress import bar
from .controller import Controller, register
from .scenario import Scenario

if TYPE_CHECKING:
    from distributed import Client

BATCH_MS = 500
"""Milliseconds of one core in a task, roughly: a hundred times what it costs to hand one out, and little to lose."""

PROBES = 8
"""Cases that go out alone before all others: from them is learned how long the work of a case takes on the workers."""


@dataclass(frozen=True)
class Spec:
    """A study, as workers need it to read it themselves."""

    path: str
    text: str | None
    axes: str
    controllers: bytes = b""
    """By `cloudpickle`, and by value: workers need not have the modules."""
    token: str = ""
    """Of this call: what a worker has read for an earlier one may have changed since."""

    @classmethod
    def of_scenario(cls, scenario: Scenario, axes: Mapping[str, list[Any]]) -> Spec:
        """Of a sweep. Recordings that the scenario names are looked up at the same place by workers."""
        controllers = _by_value(scenario._controllers) if scenario._controllers else b""
        return cls(os.path.abspath(scenario.path), scenario.to_toml(), json.dumps(axes), controllers, uuid4().hex)

    @classmethod
    def of_study(cls, path: str) -> Spec:
        """Of a study's file or folder, which workers have to reach at the same path, or of a paper's name."""
        return cls(os.path.abspath(path) if os.path.exists(path) else path, None, "{}", token=uuid4().hex)

    def study(self) -> _native.Study:
        """Reads it, once in a process."""
        return _read(self)


@lru_cache(maxsize=8)
def _read(spec: Spec) -> _native.Study:
    if spec.controllers:
        register(pickle.loads(spec.controllers))
    if spec.text is None:
        return _native.Study.load(Path(spec.path))
    return _native.Study.of_scenario(_native.Suite.parse(Path(spec.path), spec.text), json.loads(spec.axes))


def _by_value(controllers: dict[str, type[Controller]]) -> bytes:
    import cloudpickle

    names = {part.__module__ for controller in controllers.values() for part in controller.__mro__}
    own = [sys.modules[name] for name in names if name.split(".")[0] not in ("longhaul", "builtins", "__main__")]
    for module in own:
        cloudpickle.register_pickle_by_value(module)
    try:
        made: bytes = cloudpickle.dumps(controllers)
    finally:
        for module in own:
            cloudpickle.unregister_pickle_by_value(module)
    return made


@dataclass(frozen=True)
class Measured:
    """What comes back of a batch."""

    lines: list[tuple[str, str]]
    """For each task a file of the store, and the line that belongs there."""
    milliseconds: float
    """What they took, without what the worker had to read first."""


def measure(spec: Spec, what: Asked, tasks: list[str], url: str | None) -> Measured:
    """A worker's part. What it measures is written to ``url`` too, where others find it should the caller be gone by then."""
    study = spec.study()
    began = time.perf_counter()
    lines = study.measure(what, tasks, bool(spec.controllers))
    milliseconds = (time.perf_counter() - began) * 1000
    if url is not None:
        import fsspec

        for file in {file for file, _ in lines}:
            text = "".join(line for other, line in lines if other == file)
            name = f"{file.removesuffix('.jsonl')}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.jsonl"
            with fsspec.open(f"{url.rstrip('/')}/{name}", "w") as out:
                out.write(text)
    return Measured(lines, milliseconds)


@contextmanager
def measured(
    client: Client,
    spec: Spec,
    plan: Plan,
    chosen: dict[str, list[Any]],
    store: str | os.PathLike[str] | None,
    progress: bool | None,
) -> Iterator[str]:
    """A folder with all that ``plan`` asks for, measured by the client's workers unless it was there."""
    url = os.fspath(store) if store is not None and "://" in os.fspath(store) else None
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch if store is None or url else store)
        kept = folder / "measured"
        kept.mkdir(parents=True, exist_ok=True)
        if url is not None:
            _fetch(url, kept)
        here = asked(plan, os.fspath(folder))
        tasks = spec.study().tasks(here, chosen, bool(spec.controllers))
        _hand_out(client, spec, asked(plan, None), tasks, url, kept, progress)
        if left := spec.study().tasks(here, chosen, bool(spec.controllers)):
            raise _native.LonghaulError(
                f"{len(left)} cases came back under another stamp than they have here: the workers have another longhaul than "
                f"{_native.__version__}, or a controller is not deterministic"
            )
        yield os.fspath(folder)


def _fetch(url: str, kept: Path) -> None:
    """Puts together what workers have written."""
    import fsspec

    for part in fsspec.open_files(f"{url.rstrip('/')}/*.jsonl", "r"):
        stem = part.path.rsplit("/", 1)[-1].rsplit("-", 1)[0]
        with part as lines, (kept / f"{stem}.jsonl").open("a") as out:
            # A part that was torn off has no end of its last line.
            out.write(lines.read().rstrip("\n") + "\n")


def _hand_out(
    client: Client,
    spec: Spec,
    what: Asked,
    tasks: list[tuple[str, int]],
    url: str | None,
    kept: Path,
    progress: bool | None,
) -> None:
    """Has tasks measured, and keeps each line as it comes."""
    from distributed import as_completed

    if not tasks:
        return
    # Cases do not depend on each other, so Dask may repeat a lost worker's anywhere.
    ask = partial(client.submit, measure, spec, what, url=url, pure=False)
    step = -(-len(tasks) // PROBES)
    probes, rest = tasks[::step], [task for number, task in enumerate(tasks) if number % step]
    futures = {ask([task]): work for task, work in probes}
    total, done, took = sum(work for _, work in tasks), 0, 0.0
    coming = as_completed(list(futures), with_results=True)
    try:
        with bar(f"{len(tasks)} cases", progress) as tell:
            for future, measured in coming:
                _keep(kept, measured.lines)
                done, took = done + futures.pop(future), took + measured.milliseconds
                tell(done, total)
                # With half of the probes back nobody waits for the slowest.
                if rest and 2 * len(futures) <= len(probes):
                    more = {ask(batch): work for batch, work in _batches(rest, took / max(done, 1))}
                    coming.update(list(more))
                    futures, rest = futures | more, []
    finally:
        client.cancel(list(futures))


def _keep(kept: Path, lines: list[tuple[str, str]]) -> None:
    files: dict[str, str] = {}
    for file, line in lines:
        files[file] = files.get(file, "") + line
    for file, text in files.items():
        with (kept / file).open("a") as out:
            out.write(text)


def _batches(tasks: list[tuple[str, int]], pace: float) -> Iterator[tuple[list[str], int]]:
    """Tasks in batches, each with its work, of which one unit takes ``pace`` milliseconds."""
    batch: list[str] = []
    sum_work = 0
    for task, work in tasks:
        batch.append(task)
        sum_work += work
        if sum_work * pace >= BATCH_MS:
            yield batch, sum_work
            batch, sum_work = [], 0
    if batch:
        yield batch, sum_work
