"""The default generator of random numbers: seeding it, keeping and restoring its state."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from . import errors
from ._C import default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

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
def fork_rng(
    devices: Any = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str = "cuda",
) -> Iterator[None]:
    """Draws inside the block change nothing for the draws after it.

    devices, device_type: change nothing, for every device draws from the same generator. enabled:
    False does nothing.

    >>> _ = kiln.manual_seed(0)
    >>> with kiln.random.fork_rng():
    ...     _ = kiln.rand(1)
    >>> x = kiln.rand(1)
    >>> _ = kiln.manual_seed(0)
    >>> kiln.equal(x, kiln.rand(1))
    True
    """
    if device_type not in ("cuda", "cpu", "mps", "opencl", "meta", "reference", "xpu", "xla", "hpu", "mtia"):
        raise errors.RuntimeError(f"fork_rng: expected a kind of device; got {device_type!r}")
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
