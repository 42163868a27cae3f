"""Studies: experiments, figures, tables and claims as data, a paper's or one's own."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from . import _native
from ._native import Table
from ._plan import Plan, asked
from ._progress import bar
from .scenario import check_counts
from .sweep import _path, folder_of

if TYPE_CHECKING:
    from distributed import Client


class StudyResult:
    """What a study came to.

    >>> import longhaul as lh
    >>> result = lh.Study.load("kojo").run(quick=True, reading="default", figure="table2")
    >>> result.claims[0]["verdict"] in ("holds", "fails", "undecided")
    True
    """

    def __init__(self, outcome: _native.Outcome) -> None:
        """Not for callers: use `Study.run`."""
        self._outcome = outcome
        self.summary: dict[str, Any] = json.loads(outcome.json)
        """What `longhaul reproduce --json` prints."""

    @property
    def claims(self) -> list[dict[str, Any]]:
        """A dict for each claim: its id, what it says, what was measured, the verdict and what that rests on.

        >>> import longhaul as lh
        >>> result = lh.Study.load("kojo").run(quick=True, reading="default", figure="table2")
        >>> {claim["verdict"] for claim in result.claims} <= {"holds", "fails", "undecided"}
        True
        """
        result: list[dict[str, Any]] = self.summary["verdicts"]
        return result

    @property
    def cells(self) -> list[dict[str, Any]]:
        """A dict for each cell of a table: what the paper prints there and what was measured, with its interval.

        >>> import longhaul as lh
        >>> result = lh.Study.load("kojo").run(quick=True, reading="default", figure="table2")
        >>> result.cells[0]["table"], result.cells[0]["ours"] > 0
        ('2', True)
        """
        result: list[dict[str, Any]] = self.summary["cells"]
        return result

    @property
    def measurements(self) -> Table:
        """A row for each measurement: readings, experiment, axes, seed, quantity, value and unit.

        >>> import longhaul as lh
        >>> result = lh.Study.load("kojo").run(quick=True, reading="default", figure="table2")
        >>> result.measurements.column_names[-2:]
        ['value', 'unit']
        """
        return self._outcome.measurements

    @property
    def runs(self) -> Table:
        """A row for each run and flow.

        >>> import longhaul as lh
        >>> result = lh.Study.load("kojo").run(quick=True, reading="default", figure="table2")
        >>> "seed" in result.runs.column_names
        True
        """
        return self._outcome.runs

    def __str__(self) -> str:
        return self._outcome.text

    def __repr__(self) -> str:
        return f"<longhaul.StudyResult: {len(self.claims)} claims, {len(self.measurements)} measurements>"


class Study:
    """A study, read and checked.

    >>> import longhaul as lh
    >>> lh.Study.load("kojo").title
    'Kojo et al. 2005, Improving TCP Performance over Wireless WANs Using TCP/IP-Friendly Link Layer'
    """

    def __init__(self, study: _native.Study, path: str) -> None:
        """Not for callers: use `load`."""
        self._study = study
        self._path = path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Study:
        """Reads a study by its file or folder, or a paper's by its short name, such as "kojo".

        >>> import longhaul as lh
        >>> lh.Study.load("kojo").experiments["table2"]["dama"]
        ['CRA', 'RBDC', 'VBDC']
        """
        study = _native.Study.load(Path(path))
        if study.edited is not None:
            warnings.warn(f"{study.edited} was edited; {path} is the study in the package. Name its folder to run that", stacklevel=2)
        return cls(study, os.fspath(path))

    @property
    def name(self) -> str:
        """Its short name.

        >>> import longhaul as lh
        >>> lh.Study.load("kojo").name
        'kojo'
        """
        return self._study.name

    @property
    def title(self) -> str:
        """Its subject: authors, title and year of a paper.

        >>> import longhaul as lh
        >>> lh.Study.load("peng").title.startswith("Peng")
        True
        """
        return self._study.title

    @property
    def experiments(self) -> dict[str, dict[str, list[str]]]:
        """Its experiments, each with its axes and their values' labels.

        >>> import longhaul as lh
        >>> lh.Study.load("kojo").experiments["table2"]["dama"]
        ['CRA', 'RBDC', 'VBDC']
        """
        return {name: {axis: values for axis, _, values in axes} for name, axes in self._study.experiments}

    def run(
        self,
        *,
        quick: bool = False,
        figure: str | None = None,
        reading: Literal["all", "default"] = "all",
        axes: Mapping[str, Sequence[str | float]] | None = None,
        seeds: int | None = None,
        seed: int | None = None,
        jobs: int | None = None,
        store: str | os.PathLike[str] | None = None,
        out: str | os.PathLike[str] | None = None,
        force: bool = False,
        client: Client | None = None,
        progress: bool | None = None,
    ) -> StudyResult:
        """Measures what the study asks, and decides its claims.

        - ``quick``: less of everything, as the study says;
        - ``figure``: only what this figure, table or experiment needs;
        - ``reading``: "default" for the default choice alone wherever a paper leaves something unsaid;
        - ``axes``: only these values of these axes;
        - ``seeds`` and ``seed``: how many of each experiment, and the first.

        ``jobs``, ``store``, ``out``, ``force``, ``client`` and ``progress`` are as in `longhaul.sweep`. With ``client`` the workers measure what is known to be
        needed; seeds that undecided claims ask for afterwards are measured here, and not kept behind a URL.

        >>> import longhaul as lh
        >>> len(lh.Study.load("kojo").run(quick=True, reading="default", figure="table2").cells) > 0
        True
        """
        check_counts(seeds, jobs, seed)
        plan: Plan = {"seeds": seeds, "seed": seed, "quick": quick, "figure": figure}
        if reading not in ("all", "default"):
            raise _native.LonghaulError(f'reading = {reading!r}; allowed are "all" and "default"')
        plan["default_reading_only"] = reading == "default"
        chosen = {name: list(values) for name, values in (axes or {}).items()}
        where = (_path(out), f"longhaul reproduce {self.name}", force, jobs, False)
        if client is not None:
            from ._dask import Spec, measured

            with measured(client, Spec.of_study(self._path), plan, chosen, store, progress) as folder:
                what = asked(plan, folder)
                return StudyResult(self._study.run(what, chosen, *where, None))
        with bar(self.name, progress) as tell:
            what = asked(plan, folder_of(store))
            return StudyResult(self._study.run(what, chosen, *where, tell))

    def __repr__(self) -> str:
        return f"<longhaul.Study: {self.title}>"
