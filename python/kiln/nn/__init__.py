"""Neural networks: modules, parameters, layers."""

from .._C import Buffer, Param, ParamId, ParamMapper, Parameter, Record
from . import functional, init, parameter, utils
from .attention import MultiheadAttention, TransformerEncoderLayer
from .container import ModuleDict, ModuleList, Sequential
from .cpp_module import CppModule
from .finetuning import (
    Lora,
    Quantized,
    QuantizeReport,
    dequantize_,
    lora,
    lora_parameters,
    merge,
    merge_and_unload,
    qlora,
    quantize_,
    unload,
    unmerge,
)
from .initializer import Initializer
from .layers import *
from .lazy import *
from .lazy import UninitializedParameter
from .losses import (
    AdaptiveLogSoftmaxWithLoss,
    LinearCrossEntropyLoss,
    SwiGLU,
    TripletMarginWithDistanceLoss,
)
from .module import Module
from .module_hooks import (
    register_module_backward_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
)
from .parameter_container import ParameterDict, ParameterList
from .transformer import (
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
)
from .visitor import ModuleMapper, ModuleVisitor

from . import layer_methods as _layer_methods  # isort: skip  (it adds to the classes above)
from . import modules  # isort: skip  (it lists the classes above)

for _class in (Buffer, Param, ParamId, ParamMapper, Parameter, Record):
    _class.__module__ = "kiln.nn"

__all__ = [name for name in dir() if not name.startswith("_")]
