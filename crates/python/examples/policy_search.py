"""A linear policy, found by the cross-entropy method with NumPy alone, beside one that acts at random."""

import longhaul as lh
import numpy as np

rng = np.random.default_rng(1)
scenario = lh.Scenario.parse("""
    name = "a lossy satellite link"
    duration = "60 s"
    link.sky = { ends = ["hub", "terminal"], queue.drop-tail.packets = 100, channel = { rate = "5 Mbit/s", delay = "250 ms" } }
    traffic.download.bulk = { from = "hub", to = "terminal" }
""").set("link.sky.channel.errors", {"erasure": {"probability": 0.01}})
env = lh.gym.make(scenario, agent="download", delay_weight=0.1)


def score(policy: np.ndarray | None, seed: int) -> float:
    """The mean reward of an episode: what share of the bound was carried, less what queues cost."""
    observation, _ = env.reset(seed=seed)
    rewards: list[float] = []
    over = False
    while not over:
        act = rng.uniform(-1, 1) if policy is None else np.tanh(policy[:-1] @ observation + policy[-1])
        observation, reward, terminated, truncated, _ = env.step(np.array([act], np.float32))
        rewards, over = [*rewards, reward], terminated or truncated
    return float(np.mean(rewards))


def search(rounds: int = 15, tries: int = 40) -> np.ndarray:
    mean, spread = np.zeros(7), np.ones(7)
    for number in range(rounds):
        policies = rng.normal(mean, spread, (tries, 7))
        best = policies[np.argsort([score(policy, seed=1 + number) for policy in policies])[-8:]]
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.02
    return mean


if __name__ == "__main__":
    found, seeds = search(), range(1001, 1021)  # channels that the search has not seen
    for name, policy in [("random", None), ("found", found)]:
        print(f"{name}: {np.mean([score(policy, seed) for seed in seeds]):.3f}")
