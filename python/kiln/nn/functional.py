"""The neural ops without modules."""

from .. import _C
from .._C import _functional
from .._C import one_hot as one_hot

linear = _functional.linear
conv2d = _functional.conv2d
max_pool2d = _functional.max_pool2d
avg_pool2d = _functional.avg_pool2d
batch_norm = _functional.batch_norm
layer_norm = _functional.layer_norm
embedding = _functional.embedding
dropout = _functional.dropout
relu = _functional.relu
silu = _functional.silu
gelu = _functional.gelu
threshold = _functional.threshold
prelu = _functional.prelu
cross_entropy = _functional.cross_entropy
mse_loss = _functional.mse_loss
sigmoid = _C.sigmoid
tanh = _C.tanh
relu_ = _C.Tensor.relu_


def softmax(input, dim, dtype=None):
    """exp(x) / sum(exp(x)) over dim."""
    return _C.softmax(input, dim, dtype)


def log_softmax(input, dim, dtype=None):
    """log(softmax(x)) over dim, without overflow."""
    return _C.log_softmax(input, dim, dtype)
