"""Kiln: tensors, gradients and neural networks.

The names and what they do are PyTorch's:

    import kiln
    x = kiln.randn(3, 4, requires_grad=True)
    (x * x).sum().backward()
    print(x.grad)
"""

from . import _C
from ._size import Size

_C._register_size(Size)

from ._C import *  # noqa: E402,F403
from ._C import (  # noqa: E402,F401  names that a star leaves out, or hides
    Tensor,
    device,
    dtype,
)
from . import _signatures  # noqa: E402,F401
from . import _keywords  # noqa: E402,F401  what the functions understand beside their arguments
from ._aliases import *  # noqa: E402,F401,F403
from math import e, inf, nan, pi  # noqa: E402,F401
from . import _pickle, errors  # noqa: E402,F401
from ._io import load, save  # noqa: E402,F401
from .amp import GradScaler, autocast  # noqa: E402,F401
from .amp.autocast_mode import (  # noqa: E402,F401
    get_autocast_dtype,
    is_autocast_cache_enabled,
    is_autocast_enabled,
    set_autocast_cache_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)
from .autograd import (  # noqa: E402,F401
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from ._compositions import (  # noqa: E402,F401
    clone,
    detach,
    finfo,
    iinfo,
    is_same_size,
    pdist,
    split_with_sizes,
    unravel_index,
)
from ._device import get_default_device, set_default_device  # noqa: E402,F401
from ._names import *  # noqa: E402,F401,F403
from .errors import Error  # noqa: E402,F401
from . import (  # noqa: E402,F401
    amp,
    autograd,
    backends,
    compiler,
    cuda,
    fft,
    func,
    linalg,
    nn,
    opencl,
    optim,
    profiler,
    random,
    record,
    special,
    utils,
)
from .func import vmap  # noqa: E402,F401
from ._compile import compile  # noqa: E402,F401
from ._graph_model import GraphModel, capture, load_graph  # noqa: E402,F401
from ._statistics import histogramdd, pca_lowrank, svd_lowrank  # noqa: E402,F401
from .nn.functional import (  # noqa: E402,F401  names that PyTorch has in both places
    adaptive_avg_pool1d,
    adaptive_max_pool1d,
    alpha_dropout,
    avg_pool1d,
    batch_norm,
    bilinear,
    celu,
    celu_,
    channel_shuffle,
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    cosine_similarity,
    dropout,
    group_norm,
    hardshrink,
    instance_norm,
    layer_norm,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool3d,
    pairwise_distance,
    pixel_shuffle,
    pixel_unshuffle,
    prelu,
    rms_norm,
    rrelu,
    rrelu_,
    selu,
    selu_,
    threshold,
    threshold_,
)

__version__ = _C.__version__

# What belongs elsewhere: kiln.autograd.grad, kiln.nn.Parameter, kiln.record.Record, ...
for _name in """
    grad Parameter Buffer Param ParamId ParamMapper ModuleBase CppHandle GradFn Gradients Record RecordItem
    PrecisionSettings FullPrecisionSettings HalfPrecisionSettings DoublePrecisionSettings
""".split():
    del globals()[_name]
for _class in (Tensor, device, dtype):
    _class.__module__ = "kiln"
del _name, _class

strided = "strided"
contiguous_format = "contiguous_format"
preserve_format = "preserve_format"
channels_last = "channels_last"
channels_last_3d = "channels_last_3d"

newaxis = None


def __getattr__(name):
    # What most programs do not need.
    if name in ("audio", "metrics", "models", "onnx", "rl", "train", "vision"):
        from importlib import import_module

        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
