"""Linear, Identity and Flatten."""

import math

from .. import _C
from .._C import Parameter
from . import functional as F
from . import init
from .module import Module


class Identity(Module):
    """Gives back its input; takes any arguments."""

    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input):
        return input


class Linear(Module):
    """y = x W^T + b: [.., in_features] -> [.., out_features]."""

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        if in_features < 0 or out_features < 0:
            raise ValueError(
                f"Linear: sizes must not be negative; got in_features {in_features} and "
                f"out_features {out_features}"
            )
        self.in_features = in_features
        self.out_features = out_features
        options = {"device": device, "dtype": dtype}
        self.weight = Parameter(_C.empty(out_features, in_features, **options))
        if bias:
            self.bias = Parameter(_C.empty(out_features, **options))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draws new values: uniform within 1 / sqrt(in_features)."""
        if self.in_features > 0:
            init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input, *, activation="none", residual=None):
        """activation and residual as in nn.functional.linear: applied and added in one go."""
        if residual is None and activation == "none":
            return F.linear(input, self.weight, self.bias)
        return F.linear(
            input, self.weight, self.bias, activation=activation, residual=residual
        )

    def extra_repr(self):
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Flatten(Module):
    """The dims from start_dim to end_dim as one."""

    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input):
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self):
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"
