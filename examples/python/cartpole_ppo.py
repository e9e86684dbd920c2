"""Proximal policy optimization (Schulman et al., 2017) learns to balance a pole on a cart.

    python examples/python/cartpole_ppo.py

Stops when a hundred episodes last 475 steps of 500 on average.
"""

import argparse
import time

import kiln
from kiln import nn, rl


def network(outputs, last_gain):
    """Two hidden layers."""
    layers = [nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs)]
    for layer, gain in zip(layers[::2], (2**0.5, 2**0.5, last_gain)):
        nn.init.orthogonal_(layer.weight, gain)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(*layers)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=400_000, help="at most so many")
    parser.add_argument("--carts", type=int, default=16)
    options = parser.parse_args()

    kiln.manual_seed(0)
    world = rl.VectorEnvironment(rl.CartPole, options.carts)
    actor, critic = network(2, 0.01), network(1, 1.0)
    optimizer = kiln.optim.Adam([*actor.parameters(), *critic.parameters()], lr=1e-3, eps=1e-5)
    start = time.monotonic()

    def report(progress):
        seconds = time.monotonic() - start
        print(
            f"{progress.steps} steps  {seconds:.0f} s  mean return {progress.evaluation:.1f}",
            flush=True,
        )

    progress = rl.train_ppo(
        lambda seen: (actor(seen), critic(seen)),
        world,
        optimizer,
        steps=options.steps,
        stop_return=475,
        on_progress=report,
    )
    print("solved" if progress.solved else "not solved")


if __name__ == "__main__":
    main()
