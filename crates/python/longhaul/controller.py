"""Congestion controllers of one's own."""

from __future__ import annotations

import hashlib
import inspect
from typing import ClassVar

from . import _native
from ._native import AckSample, Congestion, Start


class Controller:
    """A congestion controller in Python: subclass it, and give the class to a scenario as ``tcp.congestion``.

    A connection makes an instance, which says how much may be in the network by its attributes:

    - ``window``: bytes;
    - ``ssthresh``: the slow start threshold in bytes, or None for controllers without one;
    - ``pacing_rate_bps``: the rate to pace at in bits per second, or None to send as the window allows.

    Which segments are lost, and when they are sent again, is recovery's business. Calls come in virtual time, so a
    controller that goes by a clock or by chance makes results that cannot be repeated; that is found out when a run is
    recorded.

    ``version`` tells kept measurements of one controller from another's. Unless it is given, the class's source does;
    give it, and change it, where what the class calls elsewhere changes.

    >>> import longhaul as lh
    >>> class Fixed(lh.Controller):
    ...     version = "1"
    ...     def on_ack(self, sample: lh.AckSample) -> None:
    ...         self.window = 20 * self.mss
    ...     def on_congestion(self, event: lh.Congestion) -> None:
    ...         pass
    >>> demo = lh.Scenario.load("demo/download").set("traffic.download.bulk.size", "50 kB")
    >>> runs = demo.select("TCP over COTMLL").with_scheme("fixed", {"tcp.congestion": Fixed}).run(seeds=1)
    >>> runs.table.to_pydict()["flow"]
    ['download', 'download']
    """

    version: ClassVar[str | None] = None
    window: float
    ssthresh: float | None = None
    pacing_rate_bps: float | None = None

    def __init__(self, start: Start) -> None:
        """A connection has been established; ``start`` says what is known of it."""
        self.mss = start.mss
        self.window = start.initial_window

    def on_ack(self, sample: AckSample) -> None:
        """An acknowledgement that delivered something, or a duplicate."""
        raise NotImplementedError

    def on_congestion(self, event: Congestion) -> None:
        """A loss (once per recovery), a mark (once per round trip), or a time-out."""
        raise NotImplementedError

    def on_send_opportunity(self, now_s: float, in_flight: int) -> None:
        """New data wait, and ``in_flight`` bytes are out: the window is about to be asked for. Is called only if overridden."""

    def on_recovery_exit(self, now_s: float) -> None:
        """Fast recovery ended. Is called only if overridden."""

    def on_restart(self, now_s: float) -> None:
        """The first data after an idle time longer than the retransmission time-out. Is called only if overridden."""

    def set_window(self, window: int, ssthresh: int | None) -> None:
        """Recovery at its end, or the response to a needless time-out, sets the window in bytes."""
        self.window = window
        if ssthresh is not None:
            self.ssthresh = ssthresh


def name_of(controller: type[Controller]) -> str:
    """What scenarios call a class: its name, and what tells its behaviour."""
    if controller.version is not None:
        behaviour = controller.version
    else:
        parts = [part for part in controller.__mro__ if part not in (Controller, object)]
        behaviour = "".join(_source(part) for part in parts)
    digest = hashlib.sha256(behaviour.encode()).hexdigest()[:12]
    return f"{controller.__qualname__} {digest}"


def _source(part: type) -> str:
    """The source of a class's methods, and its other attributes: a notebook knows no source of whole classes."""
    kept = ""
    for name, value in vars(part).items():
        if inspect.isfunction(value):
            try:
                kept += inspect.getsource(value)
            except OSError:
                raise _native.LonghaulError(
                    f"{part.__name__}.{name} has no source to tell it by; give the class a version, such as version = \"1\""
                ) from None
        elif not name.startswith("__"):
            kept += f"{name} = {value!r}\n"
    return kept


def register(controllers: dict[str, type[Controller]]) -> None:
    """Lets scenarios of this process name these."""
    for name, controller in controllers.items():
        _native.register(name, controller, Controller)
