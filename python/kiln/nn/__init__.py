"""Neural networks: modules, parameters, layers."""

from typing import TYPE_CHECKING

from .._C import (
    Buffer as Buffer,
    Param as Param,
    ParamId as ParamId,
    ParamMapper as ParamMapper,
    Parameter as Parameter,
    Record as Record,
)
from . import _reduction as _reduction
from . import functional as functional, init as init, parameter as parameter, utils as utils
from .attention import (
    MultiheadAttention as MultiheadAttention,
    TransformerEncoderLayer as TransformerEncoderLayer,
)
from .container import ModuleDict as ModuleDict, ModuleList as ModuleList, Sequential as Sequential
from .cpp_module import CppModule as CppModule
from .finetuning import (
    Lora as Lora,
    Quantized as Quantized,
    QuantizeReport as QuantizeReport,
    dequantize_ as dequantize_,
    lora as lora,
    lora_parameters as lora_parameters,
    merge as merge,
    merge_and_unload as merge_and_unload,
    qlora as qlora,
    quantize_ as quantize_,
    unload as unload,
    unmerge as unmerge,
)
from .initializer import Initializer as Initializer
from .layers import *
from .lazy import *
from .lazy import UninitializedParameter as UninitializedParameter
from .losses import (
    AdaptiveLogSoftmaxWithLoss as AdaptiveLogSoftmaxWithLoss,
    LinearCrossEntropyLoss as LinearCrossEntropyLoss,
    SwiGLU as SwiGLU,
    TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss,
)
from .module import Module as Module
from .module_hooks import (
    register_module_backward_hook as register_module_backward_hook,
    register_module_forward_hook as register_module_forward_hook,
    register_module_forward_pre_hook as register_module_forward_pre_hook,
    register_module_full_backward_hook as register_module_full_backward_hook,
    register_module_full_backward_pre_hook as register_module_full_backward_pre_hook,
)
from .parameter_container import ParameterDict as ParameterDict, ParameterList as ParameterList
from .transformer import (
    Transformer as Transformer,
    TransformerDecoder as TransformerDecoder,
    TransformerDecoderLayer as TransformerDecoderLayer,
    TransformerEncoder as TransformerEncoder,
)
from .visitor import ModuleMapper as ModuleMapper, ModuleVisitor as ModuleVisitor

from . import layer_methods as _layer_methods  # isort: skip  (it adds to the classes above)
from . import modules as modules  # isort: skip  (it lists the classes above)
from . import parallel as parallel  # isort: skip
from .modules._sync import SyncBatchNorm as SyncBatchNorm  # isort: skip
from .parallel import DataParallel as DataParallel  # isort: skip

for _class in (Buffer, Param, ParamId, ParamMapper, Parameter, Record):
    _class.__module__ = "kiln.nn"

if not TYPE_CHECKING:
    __all__ = [name for name in dir() if not name.startswith("_") and name != "TYPE_CHECKING"]
