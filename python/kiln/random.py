"""The default generator of random numbers: seeding it, keeping and restoring its state."""

import contextlib

from ._C import default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state

__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True):
    """Draws inside the block change nothing for the draws after it."""
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
