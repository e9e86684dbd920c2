"""Where a run stands in its random streams and in its data."""

from __future__ import annotations

import itertools
import random
import sys
from typing import TYPE_CHECKING

from .. import _C, errors
from ..random import get_rng_state, set_rng_state
from ..utils.data import DataLoader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from .._C import Generator

# ---- Random streams


def generators_of(*sources: Any) -> list[Generator]:
    """The generators of loaders and their samplers, each once, in an order that stays the same."""
    found: list[Generator] = []
    for source in sources:
        samplers = [source]
        for name in ("sampler", "batch_sampler"):
            sampler = getattr(source, name, None)
            samplers += [sampler, getattr(sampler, "sampler", None)]
        for owner in samplers:
            generator = (
                owner if isinstance(owner, _C.Generator) else getattr(owner, "generator", None)
            )
            if isinstance(generator, _C.Generator) and all(g is not generator for g in found):
                found.append(generator)
    return found


def random_state(generators: Sequence[Generator]) -> dict[str, Any]:
    """The state of the default generators of Kiln, Python and NumPy, and of these."""
    state = {
        "kiln": get_rng_state(),
        "python": random.getstate(),
        "generators": [g.get_state() for g in generators],
    }
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        name, keys, *rest = numpy.random.get_state()
        state["numpy"] = (str(name), _C.from_numpy(keys.astype("int64")), *rest)
    return state


def set_random_state(state: Mapping[str, Any], generators: Sequence[Generator]) -> None:
    """Sets what random_state() gave."""
    set_rng_state(state["kiln"])
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    if len(state["generators"]) != len(generators):
        raise errors.ValueError(
            "Learner: the loaders have other generators than when the checkpoint was made; got"
            f" {len(generators)}; expected {len(state['generators'])}"
        )
    for generator, saved in zip(generators, state["generators"]):
        generator.set_state(saved)
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy" in state:
        name, keys, *rest = state["numpy"]
        numpy.random.set_state((name, keys.numpy().astype("uint32"), *rest))


def seed_everything(seed: int) -> None:
    """Seeds the default generators of Kiln, Python and NumPy."""
    _C.manual_seed(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)


# ---- Data


def set_epoch(loader: Any, epoch: int) -> None:
    """Tells samplers of kinds that want to know which epoch comes."""
    for owner in (loader, getattr(loader, "sampler", None), getattr(loader, "batch_sampler", None)):
        method = getattr(owner, "set_epoch", None)
        if callable(method):
            method(epoch)


def batches_from(loader: Any, first: int) -> Iterator[Any]:
    """An epoch's batches from number `first` on. The random streams are as the epoch began with.

    What a loader's workers draw follows from what they drew before: they make the first batches
    again. Without workers the numbers of the first samples are passed over.
    """
    if first == 0:
        return iter(loader)
    here = isinstance(loader, DataLoader) and loader.num_workers == 0 and not loader._iterable
    source = iter(loader._numbers() if here else loader)
    passed = sum(1 for _ in itertools.islice(source, first))
    if passed < first:
        raise errors.ValueError(
            f"Learner: the data has fewer batches than when the checkpoint was made; got {passed};"
            f" expected {first} or more"
        )
    return loader._here(source) if here else source


def length_of(loader: Any) -> int | None:
    """How many batches it has; None where nobody knows."""
    try:
        return len(loader)
    except TypeError:
        return None


def batch_size(batch: Any) -> int:
    """The samples in a batch: the first dim of the first tensor in it."""
    while not isinstance(batch, _C.Tensor):
        if isinstance(batch, dict):
            batch = next(iter(batch.values()), None)
        elif isinstance(batch, (list, tuple)) and len(batch) > 0:
            batch = batch[0]
        else:
            return 1
    return batch.shape[0] if batch.dim() > 0 else 1
