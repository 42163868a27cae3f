"""Congestion controllers of one's own."""

from __future__ import annotations

import hashlib
import inspect
from typing import Any, ClassVar, NoReturn

from . import _native
from ._native import AckSample, Congestion, Start


class Controller:
    """A congestion controller in Python: subclass it, and give the class to a scenario as ``tcp.congestion``.

    Each end of a connection makes an instance, and another one once the size of segments is agreed. It says how much may
    be in the network by its attributes:

    - ``window``: bytes;
    - ``ssthresh``: the slow start threshold in bytes, or None for controllers without one;
    - ``pacing_rate_bps``: the rate to pace at in bits per second, or None (or 0) to send as the window allows.

    Which segments are lost, and when they are sent again, is recovery's business. Calls come in virtual time, so a
    controller that goes by a clock or by chance makes results that cannot be repeated; that is found out when a run is
    recorded.

    ``version`` tells kept measurements of one controller from another's. Unless the class itself gives it, the source of
    its methods does, with the functions, globals and defaults that they refer to; give it, and change it, where what
    the class does follows from more than that: other modules, files.

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
    """What tells kept measurements of this class from another's; None goes by its source."""
    window: float
    """How much may be in the network, in bytes; at least a segment is."""
    ssthresh: float | None = None
    """The slow start threshold in bytes; None for controllers without one."""
    pacing_rate_bps: float | None = None
    """The rate to pace at in bits per second; None (or 0) sends as the window allows.

    >>> import longhaul as lh
    >>> class Paced(lh.Controller):
    ...     version = "1"
    ...     pacing_rate_bps = 100_000
    ...     ssthresh = None
    ...     def on_ack(self, sample: lh.AckSample) -> None:
    ...         self.window = 50 * self.mss
    ...     def on_congestion(self, event: lh.Congestion) -> None:
    ...         pass
    >>> demo = lh.Scenario.load("demo/download").select("TCP").set("duration", "10 s")
    >>> demo.set("tcp.congestion", Paced).run(seeds=1).table["run_goodput_bps"][0] < 100_000
    True
    """

    def __init__(self, start: Start) -> None:
        """A connection has been established; ``start`` says what is known of it.

        >>> import longhaul as lh
        >>> class Twice(lh.Controller):
        ...     def __init__(self, start: lh.Start) -> None:
        ...         super().__init__(start)
        ...         self.window = 2 * start.initial_window
        """
        self.mss = start.mss
        self.window = start.initial_window

    def on_ack(self, sample: AckSample) -> None:
        """An acknowledgement that delivered something, or a duplicate. Every controller has this method.

        >>> import longhaul as lh
        >>> class SlowStart(lh.Controller):
        ...     def on_ack(self, sample: lh.AckSample) -> None:
        ...         self.window += sample.opening_bytes  # bytes
        """
        raise NotImplementedError

    def on_congestion(self, event: Congestion) -> None:
        """A loss (once per recovery), a mark (once per round trip), or a time-out. Every controller has this method.

        >>> import longhaul as lh
        >>> class Halving(lh.Controller):
        ...     def on_congestion(self, event: lh.Congestion) -> None:
        ...         self.window = max(event.flight_size / 2, 2 * self.mss)  # bytes
        """
        raise NotImplementedError

    def on_send_opportunity(self, now_s: float, in_flight: int) -> None:
        """New data wait, and ``in_flight`` bytes are out: the window is about to be asked for. ``now_s`` is virtual time in seconds.
        Is called only if overridden.

        >>> import longhaul as lh
        >>> class Ramp(lh.Controller):
        ...     def on_send_opportunity(self, now_s: float, in_flight: int) -> None:
        ...         self.window = max(self.window, 10_000 * now_s)  # 10 kB more each second
        """

    def on_recovery_exit(self, now_s: float) -> None:
        """Fast recovery ended, at ``now_s`` seconds of virtual time. Is called only if overridden.

        >>> import longhaul as lh
        >>> class Timed(lh.Controller):
        ...     def on_recovery_exit(self, now_s: float) -> None:
        ...         self.recovered_s = now_s
        """

    def on_restart(self, now_s: float) -> None:
        """The first data after an idle time longer than the retransmission time-out, at ``now_s`` seconds of virtual time. Is called
        only if overridden.

        >>> import longhaul as lh
        >>> class Restarting(lh.Controller):
        ...     def on_restart(self, now_s: float) -> None:
        ...         self.window = min(self.window, 10 * self.mss)  # bytes
        """

    def set_window(self, window: int, ssthresh: int | None) -> None:
        """Recovery at its end, or the response to a needless time-out, sets the window in bytes.

        >>> import longhaul as lh
        >>> class AtLeastTwo(lh.Controller):
        ...     def set_window(self, window: int, ssthresh: int | None) -> None:
        ...         super().set_window(max(window, 2 * self.mss), ssthresh)
        """
        self.window = window
        if ssthresh is not None:
            self.ssthresh = ssthresh


def name_of(controller: type[Controller]) -> str:
    """What scenarios call a class: its name, and what tells its behaviour."""
    own = vars(controller).get("version")
    told = f"version {own}" if own is not None else _Source(controller).text
    digest = hashlib.sha256(told.encode()).hexdigest()[:12]
    return f"{controller.__qualname__} {digest}"


class _Source:
    """All that a class's behaviour follows from: its methods and those of its bases, and what these refer to."""

    def __init__(self, controller: type[Controller]) -> None:
        self.text = ""
        self._seen: set[int] = set()
        self._name = controller.__name__
        for part in controller.__mro__:
            if part not in (Controller, object):
                self._class(part)

    def _class(self, part: type) -> None:
        # A notebook knows no source of whole classes.
        for name, value in vars(part).items():
            if name == "version" or (name.startswith("__") and not inspect.isfunction(value)):
                continue
            self._value(name, value)

    def _value(self, name: str, value: object) -> None:
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        if isinstance(value, property):
            for function in (value.fget, value.fset):
                self._value(name, function)
        elif inspect.isfunction(value):
            self._function(value)
        elif inspect.ismodule(value) or inspect.isclass(value) or inspect.isbuiltin(value):
            self.text += f"{name} is {value.__name__}\n"
        else:
            shown = repr(value)
            if " at 0x" in shown:
                self._refuse(name)
            self.text += f"{name} = {shown}\n"

    def _function(self, function: Any) -> None:
        if id(function) in self._seen:
            return
        self._seen.add(id(function))
        try:
            self.text += inspect.getsource(function)
        except (OSError, TypeError):
            self._refuse(function.__qualname__)
        self.text += f"{function.__defaults__!r} {function.__kwdefaults__!r}\n"
        around = inspect.getclosurevars(function)
        for name, value in [*around.nonlocals.items(), *around.globals.items()]:
            if name != "__class__":
                self._value(name, value)

    def _refuse(self, what: str) -> NoReturn:
        raise _native.LonghaulError(
            f"{self._name}: nothing tells how {what} behaves; give the class a version, such as version = \"1\""
        )


def register(controllers: dict[str, type[Controller]]) -> None:
    """Lets scenarios of this process name these."""
    for name, controller in controllers.items():
        _native.register(name, controller, Controller)
