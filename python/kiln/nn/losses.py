"""The losses that take a function or consist of other layers, and SwiGLU."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from .. import _C
from . import functional as F
from .container import ModuleList, Sequential
from .layers import Linear, PairwiseDistance
from .module import Module

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .._C import Tensor, dtype
    from .._typing import DeviceLike


class TripletMarginWithDistanceLoss(Module):
    """max(0, d(a, p) - d(a, n) + margin) with a distance of one's own.

    distance_function: takes two tensors. swap: the smaller of anchor's and positive's distance to
    negative. reduction: "mean", "sum" or "none".

    >>> loss = nn.TripletMarginWithDistanceLoss(distance_function=lambda x, y: (x - y).abs(), margin=5.)
    >>> loss(kiln.tensor([[0.]]), kiln.tensor([[0.]]), kiln.tensor([[3.]]))
    tensor(2.)
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        if not margin > 0:
            raise ValueError(
                f"TripletMarginWithDistanceLoss: margin must be greater than 0; got {margin}"
            )
        self.distance_function = PairwiseDistance() if distance_function is None else distance_function
        self.margin = margin
        self.swap = swap
        self.reduction = reduction

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class LinearCrossEntropyLoss(Module):
    """cross_entropy of a linear layer's outputs: input [N, in_features] and classes [N].

    num_classes: how many classes; out_features: several targets of so many classes each. bias:
    whether the layer has one. weight: a factor for each class. reduction, ignore_index,
    label_smoothing: as in CrossEntropyLoss.

    >>> nn.LinearCrossEntropyLoss(4, 3)(kiln.zeros(2, 4), kiln.tensor([0, 2])).exp().round().item()
    3.0
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: Sequence[int] = (),
        bias: bool = False,
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__()
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(
                f"LinearCrossEntropyLoss: expected a weight of shape {(num_classes,)}; got "
                f"{tuple(weight.shape)}"
            )
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(
                "LinearCrossEntropyLoss: expected label_smoothing between 0 and 1; got "
                f"{label_smoothing}"
            )
        self.reduction = reduction
        self.register_buffer("weight", weight)
        self.num_classes = num_classes
        self.out_features = tuple(out_features)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        # Of two dims, as Linear has it; forward() gives it those of the classes.
        rows = math.prod(self.out_features, start=num_classes)
        self.linear = Linear(in_features, rows, bias=bias, device=device, dtype=dtype)
        self.options = None

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        places = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*places, self.linear.in_features),
            target,
            linear_bias=None if bias is None else bias.reshape(places),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )



class ASMoutput(NamedTuple):
    """What AdaptiveLogSoftmaxWithLoss gives: log-probabilities of the targets, and their loss."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """The log-probabilities of many classes, of which the rare ones stand in clusters with smaller
    layers of their own (Grave et al., 2017). The classes are in the order of their frequency, and
    cutoffs are where clusters begin.

    in_features: of the input. n_classes: how many there are. div_value: how many times smaller each
    cluster's layer is. head_bias: whether the first layer has a bias.

    >>> loss = nn.AdaptiveLogSoftmaxWithLoss(4, 10, cutoffs=[2, 5])
    >>> loss.log_prob(kiln.zeros(3, 4)).shape
    kiln.Size([3, 10])
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        ends = [0, *cutoffs, n_classes]
        if (
            not cutoffs
            or any(int(c) != c for c in cutoffs)
            or any(a >= b for a, b in zip(ends, ends[1:]))
        ):
            raise ValueError(
                "AdaptiveLogSoftmaxWithLoss: cutoffs must be integers that grow, from 1 to "
                f"n_classes - 1 = {n_classes - 1}; got {cutoffs}"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = cutoffs[0]
        self.n_clusters = len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        options: dict[str, Any] = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for i, (begin, end) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            hidden = int(in_features // div_value ** (i + 1))
            self.tail.append(
                Sequential(
                    Linear(in_features, hidden, bias=False, **options),
                    Linear(hidden, end - begin, bias=False, **options),
                )
            )

    def reset_parameters(self) -> None:
        """Draws new initial values."""
        self.head.reset_parameters()
        for cluster in self.tail:
            for layer in cluster.children():
                layer.reset_parameters()

    def forward(self, input: Tensor, target: Tensor) -> ASMoutput:
        """The log-probability of each target, and the mean of their negatives."""
        batched = target.dim() == 1
        if not (batched and input.dim() == 2 or target.dim() == 0 and input.dim() == 1):
            raise RuntimeError(
                "AdaptiveLogSoftmaxWithLoss: expected input [N, in_features] and target [N], or both "
                f"without N; got {list(input.shape)} and {list(target.shape)}"
            )
        if not batched:
            input, target = input.unsqueeze(0), target.unsqueeze(0)
        if len(input) != len(target):
            raise RuntimeError(
                "AdaptiveLogSoftmaxWithLoss: input and target must have one batch size; got "
                f"{len(input)} and {len(target)}"
            )
        if bool(((target < 0) | (target >= self.n_classes)).any()):
            raise RuntimeError(
                f"AdaptiveLogSoftmaxWithLoss: targets must be from 0 to {self.n_classes - 1}; got "
                f"{target.min().item()} to {target.max().item()}"
            )
        head = F.log_softmax(self.head(input), 1)
        place = target.clone()  # the class in the head: of the shortlist, or the cluster
        parts = []
        for i, (begin, end) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            rows = ((target >= begin) & (target < end)).nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            place = place.index_fill(0, rows, self.shortlist_size + i)
            inner = F.log_softmax(self.tail[i](input[rows]), 1)
            parts.append((rows, inner.gather(1, (target[rows] - begin).unsqueeze(1)).squeeze(1)))
        output = head.gather(1, place.unsqueeze(1)).squeeze(1)
        for rows, value in parts:
            output = output.index_add(0, rows, value)
        loss = -output.mean()
        return ASMoutput(output if batched else output.squeeze(0), loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes: [N, n_classes]."""
        head = F.log_softmax(self.head(input), 1)
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            own = head[:, self.shortlist_size + i].unsqueeze(1)
            parts.append(F.log_softmax(cluster(input), 1) + own)
        return _C.cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each row."""
        return self.log_prob(input).argmax(1)


class SwiGLU(Module):
    """silu(linear_inner(x)) linear_outer(x): a linear layer gated by another (Shazeer, 2020).

    d_input, d_output: features before and behind. bias: whether layers have one.

    >>> nn.SwiGLU(4, 3)(kiln.zeros(2, 4)).shape
    kiln.Size([2, 3])
    """

    def __init__(
        self,
        d_input: int,
        d_output: int,
        bias: bool = False,
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        options: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        self.linear_inner = Linear(d_input, d_output, **options)
        self.linear_outer = Linear(d_input, d_output, **options)

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(self.linear_inner(input)) * self.linear_outer(input)
