"""A Gymnasium environment: an agent decides how much of one flow may be in the network.

    env = longhaul.gym.make("demo/download", agent="download", scheme="TCP")

A step is one decision and ``interval_s`` seconds of virtual time, or a smoothed round trip.

- **Action**: one number a from -1 to 1: the window becomes 2**a times what it was.
- **Observation** (float32):

  0. log2 of the window in segments;
  1. the smoothed over the least round trip, less 1, at most 10;
  2. bytes that were delivered over the window, at most 2;
  3. goodput over the physical bound, at most 2;
  4. losses, at most 10;
  5. time-outs, at most 10.

- **Reward**: the flow's own goodput over the bound of this channel realisation (of all traffic together, where there is more), less ``delay_weight`` times observation 1.
- **Terminated** when the traffic has ended; **truncated** at the end of the scenario's duration.

``info`` has the same quantities with their units: ``time_s``, ``window_bytes``, ``srtt_s``, ``goodput_bps``, ``bound_bps`` and so on.
The agent is the only controller of the sending host, and decides in recovery too; which segments are sent again is recovery's business.
"""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from . import _native
from .controller import register
from .scenario import Scenario

LEAST_INTERVAL_S = 0.01
"""Seconds of a step where round trips are shorter, or not known yet."""
MOST_SEGMENTS = 1 << 16
"""The largest window."""


def make(
    scenario: Scenario | str,
    agent: str,
    *,
    scheme: str | None = None,
    interval_s: float | None = None,
    delay_weight: float = 0.0,
    seed: int | None = None,
) -> Environment:
    """An environment in which ``agent``, a bulk transfer or a source of the scenario, is steered.

    ``seed`` is that of the first episode, the scenario's unless given; each further episode has the next one, and another channel
    realisation. ``reset(seed=...)`` chooses anew.

    >>> import longhaul as lh
    >>> env = lh.gym.make("demo/download", agent="download", scheme="TCP over COTMLL", interval_s=0.5)
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step([0.5])
    >>> info["window_bytes"] > 0, terminated or truncated
    (True, False)
    """
    return Environment(scenario, agent, scheme, interval_s, delay_weight, seed)


class Environment(gymnasium.Env[NDArray[np.float32], NDArray[np.float32]]):
    """The environment of one flow; `make` makes them.

    >>> import longhaul as lh
    >>> env = lh.gym.make("demo/download", agent="download", scheme="TCP")
    >>> env.action_space.shape, env.observation_space.shape
    ((1,), (6,))
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        scenario: Scenario | str,
        agent: str,
        scheme: str | None,
        interval_s: float | None,
        delay_weight: float,
        seed: int | None,
    ) -> None:
        scenario = Scenario.load(scenario) if isinstance(scenario, str) else scenario
        register(scenario._controllers)
        if interval_s is not None and not interval_s > 0:
            raise _native.LonghaulError(f"interval_s = {interval_s}; allowed are seconds above 0")
        self._native = _native.Environment(scenario._suite, scheme, agent)
        self._interval_s = interval_s
        self._delay_weight = delay_weight
        self._next_seed = scenario.seed if seed is None else seed
        self._bound_bps = 1.0
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
        high = np.array([math.log2(MOST_SEGMENTS), 10, 2, 2, 10, 10], np.float32)
        self.observation_space = gymnasium.spaces.Box(np.zeros(6, np.float32), high, dtype=np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begins an episode on the channel realisation of ``seed``, or else on the next one.

        >>> import longhaul as lh
        >>> env = lh.gym.make("demo/download", agent="download", scheme="TCP", seed=5)
        >>> env.reset()[1]["seed"], env.reset()[1]["seed"], env.reset(seed=1)[1]["seed"]
        (5, 6, 1)
        """
        super().reset(seed=seed)
        chosen = self._next_seed if seed is None else seed
        self._native.reset(chosen)
        self._next_seed = chosen + 1
        self._bound_bps = max(self._native.bound(chosen), 1.0)
        # Nobody can decide anything before a connection is there.
        over = False
        while not over and self._native.state()["acks"] == 0:
            over = self._native.advance(None, LEAST_INTERVAL_S)
        observation, info = self._look(LEAST_INTERVAL_S)
        return observation, info | {"seed": chosen}

    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Multiplies the window by ``2**action[0]``, and goes on for a step of ``interval_s`` seconds, or a smoothed round trip.

        >>> import longhaul as lh
        >>> env = lh.gym.make("demo/download", agent="download", scheme="TCP", interval_s=0.5)
        >>> before = env.reset(seed=1)[1]
        >>> info = env.step([1.0])[4]
        >>> info["window_bytes"] > before["window_bytes"], round(info["time_s"] - before["time_s"], 3)
        (True, 0.5)
        """
        before = self._native.state()
        factor = 2.0 ** float(np.clip(action, -1, 1)[0])
        most = MOST_SEGMENTS * before["mss_bytes"]
        window = int(min(max(before["window_bytes"] * factor, before["mss_bytes"]), most))
        interval_s = self._interval_s or max(before["srtt_s"] or 0.0, LEAST_INTERVAL_S)
        over = self._native.advance(window, interval_s)
        observation, info = self._look(max(self._native.state()["time_s"] - before["time_s"], 1e-9))
        reward = info["goodput_bps"] / self._bound_bps - self._delay_weight * float(observation[1])
        at_end = info["time_s"] >= self._native.duration_s
        return observation, reward, over and not at_end, over and at_end, info

    def _look(self, interval_s: float) -> tuple[NDArray[np.float32], dict[str, Any]]:
        info: dict[str, Any] = dict(self._native.state())
        info |= {"goodput_bps": info["received_bytes"] * 8 / interval_s, "bound_bps": self._bound_bps}
        srtt, least = info["srtt_s"], info["rtt_min_s"]
        values = [
            math.log2(max(info["window_bytes"] / max(info["mss_bytes"], 1), 1)),
            min(max(srtt / least - 1, 0), 10) if srtt and least else 0,
            min(info["delivered_bytes"] / max(info["window_bytes"], 1), 2),
            min(info["goodput_bps"] / self._bound_bps, 2),
            min(info["losses"], 10),
            min(info["timeouts"], 10),
        ]
        return np.array(values, np.float32), info
