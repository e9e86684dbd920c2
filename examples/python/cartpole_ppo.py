"""Proximal policy optimization (Schulman et al., 2017) learns to balance a pole on a cart.

    python examples/python/cartpole_ppo.py

Stops when a hundred episodes last 475 steps of 500 on average.
"""

import argparse
import time

import numpy as np

import kiln
from kiln import nn


class CartPole:
    """Many carts at once (Barto, Sutton and Anderson, 1983): place, speed, angle, spin. An episode
    ends when a pole leans by 12 degrees or a cart leaves the track, and after 500 steps."""

    def __init__(self, count, rng):
        self.rng = rng
        self.state = rng.uniform(-0.05, 0.05, (count, 4))
        self.age = np.zeros(count, int)

    def step(self, action):
        """action [count], 0 to the left and 1 to the right -> (observations, fell, over)."""
        x, v, angle, spin = self.state.T
        force = np.where(action == 1, 10.0, -10.0)
        push = (force + 0.05 * spin**2 * np.sin(angle)) / 1.1
        turn = (9.8 * np.sin(angle) - np.cos(angle) * push) / (
            0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1)
        )
        pull = push - 0.05 * turn * np.cos(angle) / 1.1
        self.state = self.state + 0.02 * np.stack([v, pull, spin, turn], 1)
        self.age += 1
        fell = (abs(self.state[:, 0]) > 2.4) | (abs(self.state[:, 2]) > 12 * np.pi / 180)
        return self.observe(), fell, fell | (self.age >= 500)

    def observe(self):
        return kiln.from_numpy(self.state.astype(np.float32))

    def reset(self, where):
        """New episodes where it is true."""
        self.state[where] = self.rng.uniform(-0.05, 0.05, (int(where.sum()), 4))
        self.age[where] = 0


def network(outputs, last_gain):
    """Two hidden layers."""
    layers = [nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs)]
    for layer, gain in zip(layers[::2], (2**0.5, 2**0.5, last_gain)):
        nn.init.orthogonal_(layer.weight, gain)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(*layers)


@kiln.no_grad()
def mean_return(actor, seed=1, count=100):
    """How long `count` episodes last on average when the likelier action is taken."""
    world = CartPole(count, np.random.default_rng(seed))
    alive = np.ones(count, bool)
    total = 0
    while alive.any():
        total += alive.sum()
        _, _, over = world.step(actor(world.observe()).argmax(1).numpy())
        alive &= ~over
    return total / count


@kiln.no_grad()
def collect(world, actor, critic, steps, gamma=0.99, lam=0.95):
    """What happens in some steps: observations, actions, their log probabilities, advantages, and
    returns, each [steps * carts, ..]."""
    rows = []
    for _ in range(steps):
        seen = world.observe()
        log_probability = actor(seen).log_softmax(1)
        action = kiln.multinomial(log_probability.exp(), 1)
        value = critic(seen)[:, 0]
        after, fell, over = world.step(action[:, 0].numpy())
        fell, over = (kiln.from_numpy(x.astype(np.float32)) for x in (fell, over))
        # A pole that fell has no future; one that stood to the end would have had one.
        target = 1.0 + gamma * (1 - fell) * critic(after)[:, 0]
        chosen = log_probability.gather(1, action)[:, 0]
        rows.append((seen, action[:, 0], chosen, value, target - value, over))
        world.reset(over.numpy() > 0)
    seen, action, chosen, value, error, over = (kiln.stack(column) for column in zip(*rows))
    advantage = kiln.zeros_like(error)
    last = kiln.zeros_like(error[0])
    for t in reversed(range(steps)):  # generalized advantages (Schulman et al., 2016)
        last = error[t] + gamma * lam * (1 - over[t]) * last
        advantage[t] = last
    return [x.flatten(0, 1) for x in (seen, action, chosen, advantage, advantage + value)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=400, help="at most so many")
    parser.add_argument("--carts", type=int, default=16)
    parser.add_argument("--steps", type=int, default=64, help="of each cart between updates")
    options = parser.parse_args()

    kiln.manual_seed(0)
    rng = np.random.default_rng(0)
    world = CartPole(options.carts, rng)
    actor, critic = network(2, 0.01), network(1, 1.0)
    parameters = [*actor.parameters(), *critic.parameters()]
    optimizer = kiln.optim.Adam(parameters, lr=1e-3, eps=1e-5)
    start = time.monotonic()
    for update in range(1, options.updates + 1):
        data = collect(world, actor, critic, options.steps)
        for _ in range(4):
            order = kiln.randperm(len(data[0]))
            for index in order.split(256):
                seen, action, before, advantage, returns = (x[index] for x in data)
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                log_probability = actor(seen).log_softmax(1)
                ratio = (log_probability.gather(1, action[:, None])[:, 0] - before).exp()
                gain = kiln.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
                entropy = -(log_probability.exp() * log_probability).sum(1).mean()
                error = nn.functional.mse_loss(critic(seen)[:, 0], returns)
                loss = 0.5 * error - gain - 0.01 * entropy
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(parameters, 0.5)
                optimizer.step()
        if update % 10 == 0 or update == options.updates:
            result = mean_return(actor)
            seconds = time.monotonic() - start
            print(f"update {update}  {seconds:.0f} s  mean return {result:.1f}", flush=True)
            if result >= 475:
                print("solved")
                return
    print("not solved")


if __name__ == "__main__":
    main()
