"""TCP/IP over satellite and lossy wireless links, in virtual time.

Everything runs the protocol machines of the Longhaul gateway, deterministically: a scenario and a seed are a result.

>>> import longhaul as lh
>>> scenario = lh.Scenario.load("demo/download").set("traffic.download.bulk.size", "100 kB")
>>> runs = scenario.run(seeds=2)
>>> sorted(set(runs.table.to_pydict()["scheme"]))
['TCP', 'TCP over COTMLL', 'TCP over SLACP', "a gateway's defaults", 'proxies over coded ARQ']
"""

from typing import TYPE_CHECKING, Any

from ._native import AckSample, ConfigError, Congestion, LonghaulError, Start, Table, __version__
from .bounds import bound, capacity
from .controller import Controller
from .scenario import Runs, Scenario
from .study import Study, StudyResult
from .sweep import Sweep, sweep

if TYPE_CHECKING:
    from . import gym

__all__ = [
    "AckSample",
    "ConfigError",
    "Congestion",
    "Controller",
    "LonghaulError",
    "Runs",
    "Scenario",
    "Start",
    "Study",
    "StudyResult",
    "Sweep",
    "Table",
    "__version__",
    "bound",
    "capacity",
    "gym",
    "sweep",
]


def __getattr__(name: str) -> Any:
    # Gymnasium need not be there before somebody asks for it.
    if name == "gym":
        import importlib

        return importlib.import_module(".gym", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
