"""Neural networks: modules, parameters, layers."""

from .._C import Buffer, Parameter
from . import functional, init, utils
from .activation import (
    GELU,
    LogSoftmax,
    PReLU,
    ReLU,
    Sigmoid,
    SiLU,
    Softmax,
    Tanh,
    Threshold,
)
from .attention import MultiheadAttention, TransformerEncoderLayer
from .container import ModuleDict, ModuleList, Sequential
from .conv import AvgPool2d, Conv2d, FractionalMaxPool2d, FractionalMaxPool3d, MaxPool2d
from .cpp_module import CppModule
from .linear import Flatten, Identity, Linear
from .loss import CrossEntropyLoss, MSELoss, RNNTLoss
from .module import Module
from .module_hooks import (
    register_module_backward_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
)
from .norm import BatchNorm2d, LayerNorm
from .parameter_container import ParameterDict, ParameterList
from .sparse import Dropout, Embedding

Parameter.__module__ = Buffer.__module__ = "kiln.nn"

__all__ = [name for name in dir() if not name.startswith("_")]
