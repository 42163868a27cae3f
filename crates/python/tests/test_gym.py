"""The environment: Gymnasium's own checker, and what an agent needs."""

import longhaul as lh
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from policy_search import score, search
from test_controllers import path


def scenario() -> lh.Scenario:
    return path(0.01, {"agent": "reno"}).set({"duration": "20 s", "link.sky.channel.delay": "250 ms"})


def test_gymnasium_finds_nothing(recwarn: pytest.WarningsRecorder) -> None:
    env = lh.gym.make(scenario(), agent="get")
    check_env(env, skip_render_check=True)
    assert [str(warning.message) for warning in recwarn] == []


def episode(env: object, windows: list[float], seed: int) -> list[tuple[float, float, bool, bool]]:
    observation, info = env.reset(seed=seed)  # type: ignore[attr-defined]
    assert info["seed"] == seed
    seen = []
    for action in windows:
        observation, reward, terminated, truncated, info = env.step(np.array([action], np.float32))  # type: ignore[attr-defined]
        seen.append((float(observation[0]), reward, terminated, truncated))
        if terminated or truncated:
            break
    return seen


def test_an_episode_is_its_seed_and_its_actions() -> None:
    actions = [0.7, -0.2] * 30
    one, other = lh.gym.make(scenario(), agent="get"), lh.gym.make(scenario(), agent="get")
    assert episode(one, actions, 5) == episode(other, actions, 5) != episode(one, actions, 6)


def test_many_environments_do_not_meet() -> None:
    environments = [lh.gym.make(scenario(), agent="get") for _ in range(8)]
    alone = [episode(lh.gym.make(scenario(), agent="get"), [0.5] * 6, seed) for seed in range(8)]
    for seed, env in enumerate(environments):
        env.reset(seed=seed)
    together: list[list[tuple[float, float, bool, bool]]] = [[] for _ in environments]
    for _ in range(6):
        for env, seen in zip(environments, together, strict=True):
            observation, reward, terminated, truncated, _ = env.step(np.array([0.5], np.float32))
            seen.append((float(observation[0]), float(reward), terminated, truncated))
    assert together == alone


def test_a_reward_is_the_share_of_the_bound_that_the_flow_itself_carries() -> None:
    near = {"rate": "1 Gbit/s", "delay": "1 ms"}
    lans = {ends[0]: {"ends": list(ends), "channel": near} for ends in ["aw", "cw", "be", "de"]}
    sky = {"ends": ["w", "e"], "channel": {"rate": "10 Mbit/s", "delay": "250 ms"}}
    flows = {name: {"bulk": {"from": ends[0], "to": ends[1]}} for name, ends in [("get", "ab"), ("other", "cd")]}
    two = lh.Scenario.from_dict({"name": "two", "duration": "20 s", "link": {"sky": sky, **lans}, "traffic": flows})
    rewards = [reward for _, reward, _, _ in episode(lh.gym.make(two, agent="get", interval_s=1.0), [0.0] * 30, 1)]
    assert 0 < sum(rewards) / len(rewards) < 0.2, "a window of ten segments cannot carry more"
    short = scenario().set("traffic.get.bulk.size", "1 MB")
    assert all(reward <= 1.5 for _, reward, _, _ in episode(lh.gym.make(short, agent="get", interval_s=1.0), [1.0] * 30, 1))


def test_a_seed_that_is_refused_changes_nothing() -> None:
    env = lh.gym.make(scenario(), agent="get")
    with pytest.raises(OverflowError):
        env.reset(seed=2**64)
    assert env.reset()[1]["seed"] == scenario().seed


def test_it_ends_with_the_transfer_or_with_time() -> None:
    last = episode(lh.gym.make(scenario(), agent="get", interval_s=1.0), [1.0] * 30, 1)[-1]
    assert last[2:] == (False, True)
    short = scenario().set("traffic.get.bulk.size", "200 kB")
    last = episode(lh.gym.make(short, agent="get", interval_s=1.0), [1.0] * 30, 1)[-1]
    assert last[2:] == (True, False)


def test_a_policy_can_be_found() -> None:
    policy = search(rounds=6, tries=30)
    seeds = range(1001, 1006)
    assert sum(score(policy, seed) for seed in seeds) > 2 * sum(score(None, seed) for seed in seeds)


def test_what_an_agent_cannot_have_is_refused() -> None:
    with pytest.raises(lh.ConfigError, match='no traffic "put"; there are get'):
        lh.gym.make(scenario(), agent="put")
    for traffic in [{"rate": {"from": "a", "to": "b", "rate": "1 Mbit/s", "record": "1 kB", "transport": "udp"}}]:
        with pytest.raises(lh.ConfigError, match="no single controller to take the place of"):
            lh.gym.make(scenario().set("traffic.get", traffic), agent="get")
    with pytest.raises(lh.ConfigError, match="no single controller"):
        lh.gym.make(scenario().set("traffic.get.bulk.connections", 4), agent="get")
    two = scenario().set("traffic.other.bulk", {"from": "a", "to": "b", "size": "1 MB"})
    with pytest.raises(lh.ConfigError, match='"other" has an end at "a" too'):
        lh.gym.make(two, agent="get")
