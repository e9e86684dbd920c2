"""Kiln: tensors, gradients and neural networks.

The names and what they do are PyTorch's:

    import kiln
    x = kiln.randn(3, 4, requires_grad=True)
    (x * x).sum().backward()
    print(x.grad)
"""

from typing import TYPE_CHECKING

from . import _C
from ._size import Size as Size

_C._register_size(Size)

if TYPE_CHECKING:
    from ._compositions import asarray as asarray, multinomial as multinomial
from ._C import *  # type: ignore[assignment]  # noqa: E402,F403
from ._C import (  # noqa: E402,F401  names that a star leaves out, or hides
    Tensor as Tensor,
    device as device,
    dtype as dtype,
)
from . import _docs, _overrides, _signatures  # noqa: E402,F401
from . import _keywords, _older_calls  # noqa: E402,F401  what the functions understand beside their arguments
from ._aliases import *  # noqa: E402,F401,F403
from ._dtypes import *  # noqa: E402,F401,F403
from ._layouts import *  # noqa: E402,F401,F403
from math import e as e, inf as inf, nan as nan, pi as pi  # noqa: E402,F401
from . import _pickle, errors as errors  # noqa: E402,F401
from ._io import load as load, save as save  # noqa: E402,F401
from .amp import GradScaler as GradScaler, autocast as autocast  # noqa: E402,F401
from .amp.autocast_mode import (  # noqa: E402,F401
    get_autocast_dtype as get_autocast_dtype,
    is_autocast_cache_enabled as is_autocast_cache_enabled,
    is_autocast_enabled as is_autocast_enabled,
    set_autocast_cache_enabled as set_autocast_cache_enabled,
    set_autocast_dtype as set_autocast_dtype,
    set_autocast_enabled as set_autocast_enabled,
)
from .autograd import (  # noqa: E402,F401
    enable_grad as enable_grad,
    inference_mode as inference_mode,
    is_grad_enabled as is_grad_enabled,
    no_grad as no_grad,
    set_grad_enabled as set_grad_enabled,
)
from ._compositions import (  # noqa: E402,F401
    _assert as _assert,
    _assert_async as _assert_async,
    clone as clone,
    detach as detach,
    finfo as finfo,
    iinfo as iinfo,
    is_same_size as is_same_size,
    pdist as pdist,
    split_with_sizes as split_with_sizes,
    unravel_index as unravel_index,
)

if not TYPE_CHECKING:
    from ._compositions import asarray, multinomial  # in the place of _C's
from ._device import (  # noqa: E402,F401
    get_default_device as get_default_device,
    set_default_device as set_default_device,
)
from ._overrides import (  # noqa: E402,F401
    DisableTorchFunction as DisableTorchFunction,
    DisableTorchFunctionSubclass as DisableTorchFunctionSubclass,
)
from ._names import *  # noqa: E402,F401,F403
from .errors import (  # noqa: E402,F401
    Error as Error,
    OutOfMemoryError as OutOfMemoryError,
)
from . import (  # noqa: E402,F401
    amp as amp,
    autograd as autograd,
    backends as backends,
    compiler as compiler,
    cuda as cuda,
    fft as fft,
    func as func,
    linalg as linalg,
    nn as nn,
    opencl as opencl,
    optim as optim,
    profiler as profiler,
    random as random,
    record as record,
    return_types as return_types,
    special as special,
    utils as utils,
)
from . import __config__ as __config__  # noqa: E402,F401
from .func import vmap as vmap  # noqa: E402,F401
from ._compile import compile as compile  # noqa: E402,F401
from ._graph_model import (  # noqa: E402,F401
    GraphModel as GraphModel,
    capture as capture,
    load_graph as load_graph,
)
from ._sparse_creation import (  # noqa: E402,F401
    sparse_coo_tensor as sparse_coo_tensor,
    sparse_csr_tensor as sparse_csr_tensor,
)
from ._statistics import (  # noqa: E402,F401
    histogramdd as histogramdd,
    pca_lowrank as pca_lowrank,
    svd_lowrank as svd_lowrank,
)
from .nn.functional import (  # noqa: E402,F401  names that PyTorch has in both places
    adaptive_avg_pool1d as adaptive_avg_pool1d,
    adaptive_max_pool1d as adaptive_max_pool1d,
    alpha_dropout as alpha_dropout,
    avg_pool1d as avg_pool1d,
    batch_norm as batch_norm,
    bilinear as bilinear,
    celu as celu,
    celu_ as celu_,
    channel_shuffle as channel_shuffle,
    conv1d as conv1d,
    conv2d as conv2d,
    conv3d as conv3d,
    conv_transpose1d as conv_transpose1d,
    conv_transpose2d as conv_transpose2d,
    conv_transpose3d as conv_transpose3d,
    cosine_similarity as cosine_similarity,
    dropout as dropout,
    group_norm as group_norm,
    hardshrink as hardshrink,
    instance_norm as instance_norm,
    layer_norm as layer_norm,
    max_pool1d as max_pool1d,
    max_pool1d_with_indices as max_pool1d_with_indices,
    max_pool2d as max_pool2d,
    max_pool3d as max_pool3d,
    pairwise_distance as pairwise_distance,
    pixel_shuffle as pixel_shuffle,
    pixel_unshuffle as pixel_unshuffle,
    prelu as prelu,
    rms_norm as rms_norm,
    rrelu as rrelu,
    rrelu_ as rrelu_,
    selu as selu,
    selu_ as selu_,
    threshold as threshold,
    threshold_ as threshold_,
)

__version__ = _C.__version__

# What belongs elsewhere: kiln.autograd.grad, kiln.nn.Parameter, kiln.record.Record, ...
for _name in """
    grad Parameter Buffer Param ParamId ParamMapper ModuleBase CppHandle GradFn Gradients Record RecordItem
    PrecisionSettings FullPrecisionSettings HalfPrecisionSettings DoublePrecisionSettings
""".split():
    del globals()[_name]
from .cuda import Event as Event, Stream as Stream  # noqa: E402,F401  the only kind that has them
from ._foreach import FUNCTIONS as _foreach_functions  # noqa: E402

globals().update(_foreach_functions)
for _class in (Tensor, device, dtype):
    _class.__module__ = "kiln"
del _name, _class

strided = "strided"
# The layouts of sparse tensors. No tensor here has one of the last three.
sparse_coo, sparse_csr, sparse_csc = "sparse_coo", "sparse_csr", "sparse_csc"
sparse_bsr, sparse_bsc = "sparse_bsr", "sparse_bsc"
contiguous_format = "contiguous_format"
preserve_format = "preserve_format"
channels_last = "channels_last"
channels_last_3d = "channels_last_3d"

newaxis = None

_LAZY = frozenset(
    """_dynamo accelerator audio distributed distributions export functional futures hub jit library metrics models mps
    multiprocessing onnx ops overrides rl serialization signal sparse storage testing train types version vision""".split()
)
if TYPE_CHECKING:
    from . import (
        accelerator as accelerator,
        audio as audio,
        distributed as distributed,
        distributions as distributions,
        export as export,
        functional as functional,
        futures as futures,
        hub as hub,
        jit as jit,
        library as library,
        metrics as metrics,
        models as models,
        mps as mps,
        multiprocessing as multiprocessing,
        onnx as onnx,
        ops as ops,
        overrides as overrides,
        rl as rl,
        serialization as serialization,
        signal as signal,
        sparse as sparse,
        storage as storage,
        testing as testing,
        train as train,
        types as types,
        version as version,
        vision as vision,
    )
    from .storage import TypedStorage as TypedStorage, UntypedStorage as UntypedStorage, is_storage as is_storage
else:

    def __getattr__(name):
        # What most programs do not need.
        if name in _LAZY:
            from importlib import import_module

            return import_module(f".{name}", __name__)
        if name.endswith("Storage") or name == "is_storage":
            from . import storage

            if name in storage.__all__:
                return getattr(storage, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
