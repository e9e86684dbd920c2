"""torch.amp's names: mixed precision for CUDA devices, which turns itself off where there is none.

A program written for both kinds of machine runs as it does with PyTorch on one without such a
device: autocast changes nothing and GradScaler scales by one. On the CPU neither is there: cast
modules and tensors with to().
"""

import contextlib
import functools
import warnings

from . import errors


def _enabled(name, device_type, enabled):
    """Whether it is to do anything: never, here."""
    if not isinstance(device_type, str):
        raise errors.TypeError(f"{name}: device_type must be a str; got {device_type!r}")
    if not enabled:
        return False
    if device_type.partition(":")[0] != "cuda":
        raise errors.NotImplementedError(
            f"{name}: is not there for {device_type!r}; try to(kiln.bfloat16) on the module and its"
            " inputs, or enabled=False"
        )
    warnings.warn(f"{name}: there is no CUDA device; disabling", UserWarning, stacklevel=3)
    return False


class autocast(contextlib.ContextDecorator):
    """With device_type "cuda": warns, and changes nothing. Raises NotImplementedError for others."""

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        self.device = device_type
        self.fast_dtype = dtype
        self._enabled = _enabled("autocast", device_type, enabled)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """Marks the forward of an autograd.Function: nothing is cast, so that it stays what it is."""
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    return fwd


def custom_bwd(bwd=None, *, device_type):
    """Marks the backward of an autograd.Function: it stays what it is."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    return bwd


def is_autocast_available(device_type):
    """False."""
    return False


class GradScaler:
    """With device "cuda": warns, and then passes everything on: scale(loss) is loss, step(o) steps.

    Raises NotImplementedError for other devices, unless enabled=False.
    """

    def __init__(
        self,
        device="cuda",
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self._enabled = _enabled("GradScaler", device, enabled)

    def scale(self, outputs):
        """What it was given."""
        return outputs

    def unscale_(self, optimizer):
        """Nothing to do: gradients are not scaled."""

    def step(self, optimizer, *args, **kwargs):
        """optimizer.step()."""
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale=None):
        """Nothing to do."""

    def get_scale(self):
        """1.0."""
        return 1.0

    def is_enabled(self):
        """False."""
        return self._enabled

    def state_dict(self):
        """Empty, as PyTorch's when it is not enabled."""
        return {}

    def load_state_dict(self, state_dict):
        """Nothing to do."""
