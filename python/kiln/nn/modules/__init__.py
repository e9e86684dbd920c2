"""PyTorch's paths to the layers: kiln.nn.modules.Linear, kiln.nn.modules.linear.Linear."""

import sys
import types
from typing import TYPE_CHECKING

from .. import (
    attention,
    container,
    layers,
    losses,
    module,
    module_hooks,
    parameter_container,
    transformer,
)
from .. import lazy as _lazy
from .._constants import constants
from ..module_state import _IncompatibleKeys
from . import utils as utils
from ._sync import SyncBatchNorm as SyncBatchNorm
from ._families import families_of

if TYPE_CHECKING:
    from typing import Any

    def __getattr__(name: str) -> Any: ...


# PyTorch's files, with what is written in Python of each.
_FILES = {
    "activation": {"MultiheadAttention": attention.MultiheadAttention},
    "batchnorm": {"SyncBatchNorm": SyncBatchNorm},
    "container": {
        "ModuleDict": container.ModuleDict,
        "ModuleList": container.ModuleList,
        "ParameterDict": parameter_container.ParameterDict,
        "ParameterList": parameter_container.ParameterList,
        "Sequential": container.Sequential,
    },
    "lazy": {"LazyModuleMixin": _lazy.LazyModuleMixin},
    "module": {
        "Module": module.Module,
        "_IncompatibleKeys": _IncompatibleKeys,
        **{
            name: hook
            for name, hook in vars(module_hooks).items()
            if name.startswith("register_module_")
        },
    },
    "adaptive": {"AdaptiveLogSoftmaxWithLoss": losses.AdaptiveLogSoftmaxWithLoss},
    "loss": {
        "LinearCrossEntropyLoss": losses.LinearCrossEntropyLoss,
        "TripletMarginWithDistanceLoss": losses.TripletMarginWithDistanceLoss,
    },
    "transformer": {
        "Transformer": transformer.Transformer,
        "TransformerDecoder": transformer.TransformerDecoder,
        "TransformerDecoderLayer": transformer.TransformerDecoderLayer,
        "TransformerEncoder": transformer.TransformerEncoder,
        "TransformerEncoderLayer": attention.TransformerEncoderLayer,
    },
}  # fmt: skip
_all: dict[str, type] = {}
for _known in (*_FILES.values(), *layers.homes.values(), *_lazy.homes.values()):
    _all.update(_known)  # type: ignore[call-overload]
for _name, _options in constants().items():
    if _name in _all and "__constants__" not in vars(_all[_name]):
        setattr(_all[_name], "__constants__", _options)
for _home in {**_FILES, **layers.homes}:
    _file = types.ModuleType(f"{__name__}.{_home}")
    _classes: dict[str, type] = {
        **_FILES.get(_home, {}),  # type: ignore[dict-item]
        **layers.homes.get(_home, {}),
        **_lazy.homes.get(_home, {}),
    }
    vars(_file).update(_classes)
    vars(_file).update(families_of(_home, _all))
    setattr(_file, "__all__", sorted(_classes))
    globals().update(_classes)
    sys.modules[_file.__name__] = globals()[_home] = _file
del _home, _file, _classes, _all, _known, _name, _options, constants, families_of, sys, types

if not TYPE_CHECKING:
    __all__ = [name for name, value in globals().items() if isinstance(value, type)]
