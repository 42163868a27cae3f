"""What a channel can carry at all."""

from __future__ import annotations

from . import _native
from .scenario import Scenario


def capacity(
    *,
    ber: float | None = None,
    erasure: float | None = None,
    blocked: float | None = None,
    blockage_s: float | None = None,
    rate_bps: int | None = None,
    blocked_ber: float = 0.5,
    open_ber: float = 0.0,
) -> float:
    """The capacity of a channel, as a fraction of its rate.

    Give one of:

    - ``ber``: the bit error rate of a binary symmetric channel;
    - ``erasure``: the probability that a frame is lost;
    - ``blocked``: the fraction of time in which the channel is blocked. Its state is known unless ``blockage_s``, the
      mean length of a blockage in seconds, and ``rate_bps``, the line's rate in bits per second, are given: then nobody
      tells it, and the channel is Gilbert's, without errors while it is open. ``blocked_ber`` and ``open_ber`` are the
      bit error rates in its two states.

    >>> import longhaul as lh
    >>> lh.capacity(erasure=0.02)
    0.98
    >>> round(lh.capacity(ber=1e-5), 6)
    0.999819
    >>> round(lh.capacity(blocked=0.3, blockage_s=0.2, rate_bps=262_144), 4)
    0.6998
    """
    given = [name for name, value in [("ber", ber), ("erasure", erasure), ("blocked", blocked)] if value is not None]
    if len(given) != 1:
        raise TypeError(f"one of ber, erasure and blocked is needed, not {' and '.join(given) or 'none'}")
    beside = {"blockage_s": blockage_s, "rate_bps": rate_bps}
    if blocked is None and (given_too := [name for name, value in beside.items() if value is not None]):
        raise TypeError(f"{given_too[0]} belongs to blocked, not to {given[0]}")
    shares = {"ber": ber, "erasure": erasure, "blocked": blocked, "blocked_ber": blocked_ber, "open_ber": open_ber}
    for name, value in shares.items():
        if value is not None and not 0 <= value <= 1:
            raise _native.LonghaulError(f"{name} = {value}; allowed are 0 to 1")
    if ber is not None:
        return _native.of_bit_errors(ber)
    if erasure is not None:
        return _native.of_erasure(erasure)
    assert blocked is not None
    if (blockage_s is None) != (rate_bps is None):
        raise TypeError("blockage_s and rate_bps belong together")
    if blockage_s is None or rate_bps is None:
        return _native.of_blockage(1 - blocked, blocked_ber, open_ber)
    if open_ber != 0:
        raise TypeError("with blockage_s an open channel has no errors: leave open_ber out")
    return _native.of_gilbert(blocked, blockage_s, rate_bps, 1 - blocked_ber)


def bound(scenario: Scenario | str, *, scheme: str | None = None, seed: int | None = None, completed: bool = True) -> float:
    """Goodput in bits per second that the channel of a scenario would allow, less headers, for this very realisation.

    ``completed``: whether every transfer ends before the run does; the bound is then over that time alone.

    >>> import longhaul as lh
    >>> scenario = lh.Scenario.load("demo/download")
    >>> 150_000 < lh.bound(scenario, seed=1) < 262_144
    True
    """
    scenario = Scenario.load(scenario) if isinstance(scenario, str) else scenario
    return scenario._suite.bound(scheme, scenario.seed if seed is None else seed, completed)
