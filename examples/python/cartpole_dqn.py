"""Deep Q learning (Mnih et al., 2015) learns to balance a pole on a cart.

    python examples/python/cartpole_dqn.py

Stops when a hundred episodes last 475 steps of 500 on average.
"""

import argparse

import kiln
from kiln import rl


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200_000, help="at most so many")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    kiln.manual_seed(options.seed)
    network = kiln.models.DQN(n_observations=4, n_actions=2)
    progress = rl.train_dqn(
        network,
        rl.VectorEnvironment(rl.CartPole, 8, seed=options.seed),
        kiln.optim.Adam(network.parameters(), lr=2.3e-3),
        steps=options.steps,
        train_every=64,
        updates=32,
        target_every=64,
        epsilon=rl.Epsilon(1.0, 0.04, 8000),
        seed=options.seed,
        report_every=2500,
        stop_return=475,
        on_progress=lambda p: print(f"{p.steps} steps  mean return {p.evaluation:.1f}", flush=True),
    )
    print("solved" if progress.solved else "not solved")


if __name__ == "__main__":
    main()
