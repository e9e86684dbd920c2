"""One call of each operator that kiln.export reads: (operator, arguments, keyword arguments).

Floats of F(), P(), U() and C() require gradients.
"""

import torch

f64 = torch.float64
generator = torch.Generator().manual_seed(7)


def F(*shape, low=-2.0, high=2.0):
    x = torch.rand(shape, generator=generator, dtype=f64) * (high - low) + low
    return x.requires_grad_()


def P(*shape):  # positive
    return F(*shape, low=0.2, high=2.0)


def U(*shape):  # inside of (0, 1)
    return F(*shape, low=0.1, high=0.9)


def N(*shape, low=-2.0, high=2.0):  # without gradient
    return F(*shape, low=low, high=high).detach()


def I(*shape, low=0, high=3):
    return torch.randint(low, high, shape, generator=generator)


def B(*shape):
    return torch.rand(shape, generator=generator) > 0.4


def C(*shape):
    return torch.complex(N(*shape), N(*shape)).requires_grad_()


def SPD(n):
    a = N(n, n)
    return (a @ a.T + n * torch.eye(n, dtype=f64)).requires_grad_()


def unary():
    x = lambda: (F(2, 3),)  # noqa: E731
    names = """abs absolute neg negative positive sign sgn square floor ceil round trunc fix frac relu exp exp2
        expm1 sin cos tan atan arctan sinh cosh tanh asinh arcsinh sinc deg2rad rad2deg erf erfc sigmoid i0
        isnan isinf isfinite isposinf isneginf signbit logical_not nan_to_num isreal"""
    for name in names.split():
        yield f"{name}.default", x(), {}
    for name in "sqrt rsqrt reciprocal log log2 log10 log1p lgamma digamma".split():
        yield f"{name}.default", (P(2, 3),), {}
    for name in "asin acos arcsin arccos atanh arctanh erfinv".split():
        yield f"{name}.default", (F(2, 3, low=-0.9, high=0.9),), {}
    for name in "acosh arccosh".split():
        yield f"{name}.default", (F(2, 3, low=1.2, high=3.0),), {}
    yield "round.decimals", (N(2, 3),), {"decimals": 1}
    yield "logit.default", (U(2, 3),), {}
    yield "logit.default", (U(2, 3), 0.2), {}
    yield "polygamma.default", (1, P(2, 3)), {}
    yield "mvlgamma.default", (F(2, 3, low=2.0, high=4.0), 2), {}
    yield "frexp.Tensor", (N(2, 3),), {}
    yield "bitwise_not.default", (I(2, 3),), {}
    for name in "real imag angle conj _conj conj_physical _conj_physical resolve_conj view_as_real".split():
        yield f"{name}.default", (C(2, 3),), {}
    yield "resolve_neg.default", (F(2, 3),), {}
    yield "view_as_complex.default", (F(2, 3, 2),), {}
    yield "relu_.default", (F(2, 3),), {}
    yield "sigmoid_.default", (F(2, 3),), {}  # in place, by way of the operator itself
    yield "exp_.default", (F(2, 3),), {}


def binary():
    for name in "add sub mul add_ sub_ mul_ subtract multiply rsub".split():
        yield f"{name}.Tensor", (F(2, 3), F(3)), {}
        yield f"{name}.Scalar", (F(2, 3), 3), {}
    for name in "add sub add_ sub_ rsub".split():
        yield f"{name}.Tensor", (F(2, 3), F(3)), {"alpha": 2}
        yield f"{name}.Scalar", (F(2, 3), 1.5, 2), {}
    for name in "div divide true_divide".split():
        yield f"{name}.Tensor", (F(2, 3), P(3)), {}
        yield f"{name}.Scalar", (F(2, 3), 3), {}
    for name in "div divide".split():
        yield f"{name}.Tensor_mode", (F(2, 3), P(3)), {"rounding_mode": "floor"}
        yield f"{name}.Scalar_mode", (F(2, 3), 0.3), {"rounding_mode": "trunc"}
    yield "div_.Tensor", (F(2, 3), P(3)), {}
    yield "floor_divide.default", (N(2, 3), N(3, low=0.2)), {}
    yield "floor_divide.Scalar", (I(2, 3, high=9), 2), {}
    yield "remainder.Tensor", (F(2, 3), N(3, low=0.5)), {}
    yield "remainder.Scalar", (F(2, 3), 0.7), {}
    yield "remainder.Scalar_Tensor", (5, N(3, low=0.5)), {}
    yield "fmod.Tensor", (F(2, 3), N(3, low=0.5)), {}
    yield "fmod.Scalar", (F(2, 3), 0.7), {}
    yield "pow.Tensor_Tensor", (P(2, 3), F(3)), {}
    yield "pow.Tensor_Scalar", (F(2, 3), 3), {}
    yield "pow.Scalar", (2.0, F(3)), {}
    yield "float_power.Tensor_Tensor", (P(2, 3), F(3)), {}
    yield "float_power.Tensor_Scalar", (P(2, 3), 2.5), {}
    yield "float_power.Scalar", (2.0, F(3)), {}
    yield "xlogy.Tensor", (F(2, 3), P(3)), {}
    yield "xlogy.Scalar_Other", (F(2, 3), 2.0), {}
    yield "xlogy.Scalar_Self", (2.0, P(3)), {}
    for name in "atan2 arctan2 maximum minimum fmax fmin hypot logaddexp logaddexp2".split():
        yield f"{name}.default", (F(2, 3), F(3)), {}
    yield "max.other", (F(2, 3), F(3)), {}
    yield "min.other", (F(2, 3), F(3)), {}
    for name in "igamma igammac".split():
        yield f"{name}.default", (N(2, 3, low=0.2), P(3)), {}
    yield "nextafter.default", (N(2, 3), N(3)), {}
    yield "heaviside.default", (N(2, 3), N(3)), {}
    yield "ldexp.Tensor", (F(2, 3), I(3)), {}
    for name in "gcd lcm".split():
        yield f"{name}.default", (I(2, 3, high=20), I(3, low=1, high=20)), {}
    yield "copysign.Tensor", (F(2, 3), N(3)), {}
    yield "copysign.Scalar", (F(2, 3), -1.0), {}
    yield "dist.default", (F(2, 3), F(2, 3), 3), {}
    for name in "eq ne gt ge lt le not_equal greater greater_equal less less_equal".split():
        yield f"{name}.Tensor", (I(2, 3), I(3)), {}
        yield f"{name}.Scalar", (I(2, 3), 1), {}
    yield "isclose.default", (N(2, 3), N(3)), {"rtol": 0.5}
    for name in "logical_and logical_or logical_xor".split():
        yield f"{name}.default", (I(2, 3), B(3)), {}
    for name in "and or xor".split():
        yield f"bitwise_{name}.Tensor", (I(2, 3, high=9), I(3, high=9)), {}
        yield f"bitwise_{name}.Scalar", (I(2, 3, high=9), 5), {}
        yield f"bitwise_{name}.Scalar_Tensor", (5, I(2, 3, high=9)), {}
        yield f"__{name}__.Tensor", (I(2, 3, high=9), I(3, high=9)), {}
        yield f"__{name}__.Scalar", (I(2, 3, high=9), 5), {}
    for name in "left right".split():
        yield f"bitwise_{name}_shift.Tensor", (I(2, 3, high=9), I(3)), {}
        yield f"bitwise_{name}_shift.Tensor_Scalar", (I(2, 3, high=9), 2), {}
        yield f"bitwise_{name}_shift.Scalar_Tensor", (9, I(2, 3)), {}
        yield f"__{name[0]}shift__.Tensor", (I(2, 3, high=9), I(3)), {}
        yield f"__{name[0]}shift__.Scalar", (I(2, 3, high=9), 2), {}
    for name in "clamp clip".split():
        yield f"{name}.default", (F(2, 3), -0.5, 0.7), {}
        yield f"{name}.Tensor", (F(2, 3), F(3), None), {}
    yield "clamp_min.default", (F(2, 3), 0.1), {}
    yield "clamp_min.Tensor", (F(2, 3), F(3)), {}
    yield "clamp_max.default", (F(2, 3), 0.1), {}
    yield "clamp_max.Tensor", (F(2, 3), F(3)), {}
    yield "lerp.Tensor", (F(2, 3), F(2, 3), F(2, 3)), {}
    yield "lerp.Scalar", (F(2, 3), F(2, 3), 0.3), {}
    yield "addcmul.default", (F(2, 3), F(3), F(3)), {"value": 2}
    yield "addcdiv.default", (F(2, 3), F(3), P(3)), {"value": 2}
    yield "where.self", (B(2, 3), F(2, 3), F(3)), {}
    yield "where.ScalarOther", (B(2, 3), F(2, 3), 1.0), {}
    yield "where.ScalarSelf", (B(2, 3), 1.0, F(2, 3)), {}
    yield "where.Scalar", (B(2, 3), 1.0, 2.0), {}
    yield "complex.default", (F(2, 3), F(2, 3)), {}
    yield "polar.default", (P(2, 3), F(2, 3)), {}
    yield "mul.Tensor", (C(2, 3), F(3)), {}


def activations():
    names = """silu gelu elu selu celu mish hardtanh hardswish hardsigmoid relu6 leaky_relu log_sigmoid hardshrink
        softshrink softplus log_sigmoid_forward"""
    for name in names.split():
        yield f"{name}.default", (F(2, 3),), {}
    yield "gelu.default", (F(2, 3),), {"approximate": "tanh"}
    yield "elu.default", (F(2, 3), 1.5, 1.1, 0.7), {}
    yield "celu.default", (F(2, 3), 1.5), {}
    yield "hardtanh.default", (F(2, 3), -0.5, 0.7), {}
    yield "leaky_relu.default", (F(2, 3), 0.2), {}
    yield "softplus.default", (F(2, 3), 2, 1), {}
    yield "glu.default", (F(2, 4), -1), {}
    yield "threshold.default", (F(2, 3), 0.1, 5.0), {}
    yield "prelu.default", (F(2, 3), F(3)), {}
    yield "_prelu_kernel.default", (F(2, 3), F(1, 3)), {}
    yield "rrelu.default", (F(2, 3),), {}
    for name in "softmax log_softmax".split():
        yield f"{name}.int", (F(2, 3), 1), {}
        yield f"_{name}.default", (F(2, 3), 1, False), {}
        yield f"special_{name}.default", (F(2, 3), 1), {}
    yield "_safe_softmax.default", (F(2, 3), 1), {}
    for name in "dropout feature_dropout alpha_dropout feature_alpha_dropout".split():
        yield f"{name}.default", (F(2, 3), 0.5, False), {}
    yield "native_dropout.default", (F(2, 3), 0.5, False), {}


def creation():
    yield "zeros.default", ([2, 3],), {"dtype": f64}
    yield "ones.default", ([2, 3],), {}
    yield "full.default", ([2, 3], 7), {}
    for name in "zeros ones".split():
        yield f"{name}_like.default", (N(2, 3),), {}
    yield "full_like.default", (N(2, 3), 2), {}
    yield "new_zeros.default", (N(2, 3), [4]), {}
    yield "new_ones.default", (N(2, 3), [4]), {"dtype": torch.int64}
    yield "new_full.default", (N(2, 3), [4], 3), {}
    yield "scalar_tensor.default", (3,), {}
    yield "arange.default", (4,), {}
    yield "arange.start", (1, 4), {}
    yield "arange.start_step", (1.0, 4.0, 0.5), {}
    yield "linspace.default", (0, 1, 5), {}
    yield "logspace.default", (0, 1, 5), {}
    yield "eye.default", (3,), {}
    yield "eye.m", (2, 3), {}
    yield "fill.Scalar", (F(2, 3), 2.0), {}
    yield "fill.Tensor", (F(2, 3), F()), {}
    yield "fill_.Scalar", (F(2, 3), 2.0), {}
    yield "fill_.Tensor", (F(2, 3), F()), {}
    yield "zero.default", (F(2, 3),), {}
    yield "zero_.default", (F(2, 3),), {}
    yield "tril_indices.default", (3, 4, 1), {}
    yield "triu_indices.default", (3, 4), {}
    for name in "hann hamming blackman bartlett kaiser".split():
        yield f"{name}_window.default", (6,), {}
        yield f"{name}_window.periodic", (6, False), {}
    yield "hamming_window.periodic_alpha", (6, True, 0.5), {}
    yield "hamming_window.periodic_alpha_beta", (6, True, 0.5, 0.4), {}
    yield "kaiser_window.beta", (6, True, 9.0), {}


def views():
    for name in "view reshape _unsafe_view view_copy".split():
        yield f"{name}.default", (F(2, 3), [3, 2]), {}
    yield "view.dtype", (N(2, 3), torch.int64), {}
    for name in "view_as reshape_as expand_as".split():
        yield f"{name}.default", (F(2, 3), N(2, 3)), {}
    yield "_reshape_alias.default", (F(2, 3), [3, 2], [2, 1]), {}
    yield "expand.default", (F(1, 3), [2, -1]), {}
    yield "broadcast_to.default", (F(1, 3), [2, 3]), {}
    yield "broadcast_tensors.default", ([F(2, 1), F(3)],), {}
    yield "permute.default", (F(2, 3, 4), [2, 0, 1]), {}
    yield "permute_copy.default", (F(2, 3, 4), [2, 0, 1]), {}
    yield "transpose.int", (F(2, 3), 0, -1), {}
    yield "swapaxes.default", (F(2, 3), 0, 1), {}
    yield "swapdims.default", (F(2, 3), 0, 1), {}
    for name in "t numpy_T mT".split():
        yield f"{name}.default", (F(2, 3),), {}
    yield "adjoint.default", (C(2, 3),), {}
    yield "movedim.int", (F(2, 3, 4), 0, 2), {}
    yield "movedim.intlist", (F(2, 3, 4), [0, 1], [2, 0]), {}
    yield "moveaxis.int", (F(2, 3, 4), 0, 2), {}
    yield "moveaxis.intlist", (F(2, 3, 4), [0, 1], [2, 0]), {}
    yield "squeeze.default", (F(2, 1, 3, 1),), {}
    yield "squeeze.dim", (F(2, 1, 3), 1), {}
    yield "squeeze.dims", (F(2, 1, 3, 1), [1, 3]), {}
    yield "unsqueeze.default", (F(2, 3), 1), {}
    yield "flatten.using_ints", (F(2, 3, 4), 1), {}
    yield "unflatten.int", (F(2, 6), 1, [2, 3]), {}
    yield "ravel.default", (F(2, 3),), {}
    yield "select.int", (F(2, 3), 1, -1), {}
    yield "slice.Tensor", (F(5, 3), 0, 1, 9223372036854775807, 2), {}
    yield "narrow.default", (F(5, 3), 0, 1, 2), {}
    yield "split.Tensor", (F(5, 3), 2), {}
    yield "split.sizes", (F(5, 3), [2, 3]), {}
    yield "split_with_sizes.default", (F(3, 5), [2, 3], 1), {}
    yield "unsafe_split.Tensor", (F(5, 3), 2), {}
    yield "unsafe_split_with_sizes.default", (F(5, 3), [2, 3]), {}
    yield "chunk.default", (F(5, 3), 2), {}
    yield "unsafe_chunk.default", (F(5, 3), 2), {}
    yield "tensor_split.sections", (F(5, 3), 2), {}
    yield "tensor_split.indices", (F(5, 3), [1, 3]), {}
    for name, shape in (("hsplit", (2, 4)), ("vsplit", (4, 2)), ("dsplit", (1, 1, 4))):
        yield f"{name}.int", (F(*shape), 2), {}
        yield f"{name}.array", (F(*shape), [1, 2]), {}
    yield "unbind.int", (F(2, 3), 1), {}
    yield "diagonal.default", (F(2, 3, 3), 1, 1, 2), {}
    yield "linalg_diagonal.default", (F(2, 3, 3),), {"offset": 1}
    yield "unfold.default", (F(2, 5), 1, 2, 1), {}
    yield "as_strided.default", (F(2, 3), [2, 2], [3, 1], 1), {}
    for name in "alias clone lift lift_fresh lift_fresh_copy detach atleast_1d atleast_2d atleast_3d".split():
        yield f"{name}.default", (F(2, 3),), {}


def rearranging():
    for name in "cat concat concatenate stack hstack vstack row_stack dstack column_stack block_diag".split():
        yield f"{name}.default", ([F(2, 3), F(2, 3)],), {}
    yield "cat.default", ([F(2, 3), F(0), F(2, 1)], 1), {}
    yield "meshgrid.default", ([F(2), F(3)],), {}
    yield "meshgrid.indexing", ([F(2), F(3)],), {"indexing": "xy"}
    yield "cartesian_prod.default", ([F(2), F(3)],), {}
    yield "repeat.default", (F(2, 3), [2, 1, 2]), {}
    yield "tile.default", (F(2, 3), [2, 2]), {}
    yield "repeat_interleave.self_int", (F(2, 3), 2, 1), {}
    yield "repeat_interleave.self_Tensor", (F(2, 3), torch.tensor([1, 2]), 0), {"output_size": 3}
    yield "roll.default", (F(2, 3), [1], [1]), {}
    yield "flip.default", (F(2, 3), [0, 1]), {}
    yield "fliplr.default", (F(2, 3),), {}
    yield "flipud.default", (F(2, 3),), {}
    yield "rot90.default", (F(2, 3), 1, [0, 1]), {}
    yield "tril.default", (F(3, 3), -1), {}
    yield "triu.default", (F(3, 3), 1), {}
    yield "diag.default", (F(3),), {}
    yield "diag_embed.default", (F(2, 3), 1), {}
    yield "diagflat.default", (F(2, 2),), {}
    yield "select_scatter.default", (F(2, 3), F(2), 1, 0), {}
    yield "slice_scatter.default", (F(4, 3), F(2, 3), 0, 0, 4, 2), {}
    yield "diagonal_scatter.default", (F(3, 3), F(3)), {}
    yield "as_strided_scatter.default", (N(2, 3), F(2, 2), [2, 2], [3, 1], 1), {}
    yield "copy.default", (N(2, 3), N(3)), {}
    yield "copy_.default", (F(2, 3), F(3)), {}
    yield "fill_diagonal_.default", (F(3, 3), 2.0), {}
    for mode in ("constant", "reflect", "replicate", "circular"):
        yield "pad.default", (F(1, 2, 4), [1, 2], mode), {}
    yield "constant_pad_nd.default", (F(2, 3), [1, -1], 0.5), {}
    for dims in (1, 2, 3):
        for kind in ("reflection", "replication"):
            yield f"{kind}_pad{dims}d.default", (F(1, 2, *[3] * dims), [1] * 2 * dims), {}
    yield "_pad_circular.default", (F(1, 2, 4), [1, 2]), {}


def indexing():
    for name in "index _unsafe_index".split():
        yield f"{name}.Tensor", (F(3, 4), [None, torch.tensor([0, 2])]), {}
    for name in "index_put _unsafe_index_put index_put_".split():
        yield f"{name}.default", (F(3, 4), [torch.tensor([0, 2])], F(2, 4)), {}
    yield "index_put.default", (F(3, 4), [torch.tensor([0, 0])], F(2, 4), True), {}
    yield "index_select.default", (F(3, 4), 1, torch.tensor([0, 2])), {}
    yield "index_add.default", (F(3, 4), 0, torch.tensor([0, 2]), F(2, 4)), {"alpha": 2}
    yield "index_copy.default", (F(3, 4), 0, torch.tensor([0, 2]), F(2, 4)), {}
    yield "index_fill.int_Scalar", (F(3, 4), 0, torch.tensor([0, 2]), 5.0), {}
    yield "index_fill.int_Tensor", (F(3, 4), 0, torch.tensor([0, 2]), F()), {}
    yield "index_reduce.default", (F(3, 4), 0, torch.tensor([0, 2]), F(2, 4), "amax"), {}
    yield "gather.default", (F(3, 4), 1, I(3, 2)), {}
    yield "scatter.src", (F(3, 4), 1, torch.tensor([[0, 2]] * 3), F(3, 2)), {}
    yield "scatter.value", (F(3, 4), 1, torch.tensor([[0, 2]] * 3), 5.0), {}
    yield "scatter.reduce", (N(3, 4), 1, torch.tensor([[0, 2]] * 3), N(3, 2)), {"reduce": "multiply"}
    yield "scatter.value_reduce", (N(3, 4), 1, torch.tensor([[0, 2]] * 3), 2.0), {"reduce": "add"}
    yield "scatter_add.default", (F(3, 4), 1, I(3, 2), F(3, 2)), {}
    yield "scatter_reduce.two", (F(3, 4), 1, I(3, 2), F(3, 2), "mean"), {}
    yield "masked_fill.Scalar", (F(3, 4), B(4), 2.0), {}
    yield "masked_fill.Tensor", (F(3, 4), B(4), F()), {}
    yield "masked_scatter.default", (F(3, 4), B(3, 4), F(12)), {}
    yield "take.default", (F(3, 4), I(2, 2, high=12)), {}
    yield "take_along_dim.default", (F(3, 4), I(3, 2), 1), {}
    yield "put.default", (F(3, 4), torch.tensor([1, 5]), F(2)), {}


def reductions():
    for name in "sum mean nansum prod var std var_mean std_mean max min amax amin argmax argmin any all".split():
        yield f"{name}.default", (F(2, 3),), {}
    yield "nanmean.default", (F(2, 3), [1]), {}
    yield "sum.dim_IntList", (F(2, 3), [1], True), {"dtype": torch.float32}
    yield "sum.default", (I(2, 3),), {}
    yield "mean.dim", (F(2, 3), [0]), {}
    yield "nansum.default", (F(2, 3), [0], True), {}
    yield "prod.dim_int", (F(2, 3), 1), {}
    for name in "var std var_mean std_mean".split():
        yield f"{name}.dim", (F(2, 3), [1], False), {}
        yield f"{name}.correction", (F(2, 3), [1]), {"correction": 2, "keepdim": True}
    yield "max.dim", (F(2, 3), 1), {}
    yield "min.dim", (F(2, 3), 1, True), {}
    yield "amax.default", (F(2, 3), [1], True), {}
    yield "aminmax.default", (F(2, 3),), {"dim": 1}
    yield "argmax.default", (F(2, 3), 1), {}
    for name in "any all".split():
        yield f"{name}.dim", (B(2, 3), 1), {}
        yield f"{name}.dims", (B(2, 3), [0, 1]), {}
    yield "count_nonzero.default", (I(2, 3),), {}
    yield "count_nonzero.dim_IntList", (I(2, 3), [1]), {}
    for name in "logsumexp special_logsumexp".split():
        yield f"{name}.default", (F(2, 3), [1]), {}
    yield "norm.Scalar", (F(2, 3), 2), {}
    yield "norm.ScalarOpt_dim", (F(2, 3), 3, [1]), {}
    yield "norm.ScalarOpt_dim_dtype", (N(2, 3), 3, [1], True), {"dtype": f64}
    yield "norm.ScalarOpt_dtype", (N(2, 3), 1), {"dtype": f64}
    yield "frobenius_norm.dim", (F(2, 3), [0, 1]), {}
    yield "renorm.default", (F(2, 3), 2, 0, 1.0), {}
    yield "cumsum.default", (F(2, 3), 1), {}
    yield "cumsum.default", (I(2, 3), 1), {"dtype": f64}
    for name in "cumprod cummax cummin logcumsumexp".split():
        yield f"{name}.default", (F(2, 3), 1), {}
    yield "diff.default", (F(2, 4), 2), {}
    for name in "trapezoid trapz cumulative_trapezoid".split():
        yield f"{name}.x", (F(2, 3), F(3)), {}
        yield f"{name}.dx", (F(2, 3),), {"dx": 0.5}
    yield "histc.default", (N(9), 4, -2, 2), {}


def sorting():
    yield "sort.default", (F(2, 3), 1, True), {}
    yield "sort.stable", (F(2, 3),), {"stable": True, "dim": 0}
    yield "argsort.default", (F(2, 3),), {}
    yield "argsort.stable", (F(2, 3),), {"stable": True}
    yield "msort.default", (F(4, 2),), {}
    yield "topk.default", (F(2, 5), 2), {}
    yield "kthvalue.default", (F(2, 5), 2), {}
    for name in "median nanmedian".split():
        yield f"{name}.default", (F(2, 5),), {}
        yield f"{name}.dim", (F(2, 5), 1), {}
    yield "mode.default", (I(2, 5),), {}
    for name in "quantile nanquantile".split():
        yield f"{name}.default", (F(2, 5), torch.tensor([0.2, 0.6], dtype=f64), 1), {}
        yield f"{name}.scalar", (F(2, 5), 0.3, 1), {"interpolation": "lower"}
    yield "searchsorted.Tensor", (torch.arange(5.0), torch.tensor([1.5, 3.0])), {"right": True}
    yield "searchsorted.Scalar", (torch.arange(5.0), 2.0), {}
    yield "bucketize.Tensor", (torch.tensor([1.5, 3.0]), torch.arange(5.0)), {}
    yield "bucketize.Scalar", (2.5, torch.arange(5.0)), {"out_int32": True}
    yield "isin.Tensor_Tensor", (I(2, 3), torch.tensor([1, 2])), {}
    yield "isin.Tensor_Scalar", (I(2, 3), 1), {}
    yield "isin.Scalar_Tensor", (1, I(2, 3)), {"invert": True}


def products():
    for name in "matmul linalg_matmul mm".split():
        yield f"{name}.default", (F(2, 3), F(3, 4)), {}
    yield "bmm.default", (F(2, 2, 3), F(2, 3, 4)), {}
    yield "mv.default", (F(2, 3), F(3)), {}
    for name in "dot vdot inner".split():
        yield f"{name}.default", (F(3), F(3)), {}
    for name in "outer ger".split():
        yield f"{name}.default", (F(2), F(3)), {}
    yield "addmm.default", (F(4), F(2, 3), F(3, 4)), {"beta": 2, "alpha": 0.5}
    yield "addmv.default", (F(2), F(2, 3), F(3)), {}
    yield "addr.default", (F(2, 3), F(2), F(3)), {}
    yield "baddbmm.default", (F(2, 2, 4), F(2, 2, 3), F(2, 3, 4)), {"alpha": 0.5}
    yield "addbmm.default", (F(2, 4), F(2, 2, 3), F(2, 3, 4)), {}
    yield "linear.default", (F(2, 3), F(4, 3), F(4)), {}
    yield "bilinear.default", (F(2, 3), F(2, 2), F(4, 3, 2), F(4)), {}
    yield "einsum.default", ("ij,jk->ki", [F(2, 3), F(3, 4)]), {}
    yield "tensordot.default", (F(2, 3), F(3, 4), [1], [0]), {}
    yield "kron.default", (F(2, 3), F(2, 2)), {}
    yield "cross.default", (F(2, 3), F(2, 3), 1), {}
    yield "linalg_cross.default", (F(2, 3), F(2, 3)), {}
    yield "trace.default", (F(3, 3),), {}
    yield "chain_matmul.default", ([F(2, 3), F(3, 4), F(4, 2)],), {}
    yield "linalg_multi_dot.default", ([F(2, 3), F(3, 4), F(4, 2)],), {}
    yield "cdist.default", (F(2, 3), F(4, 3)), {}
    yield "_cdist_forward.default", (N(2, 3), N(4, 3), 2.0, 0), {}
    yield "pdist.default", (F(4, 3),), {}
    yield "_pdist_forward.default", (N(4, 3), 2.0), {}
    yield "_weight_norm.default", (F(2, 3), P(2, 1)), {}
    yield "_weight_norm_interface.default", (F(2, 3), P(2, 1)), {}
    qkv = lambda: (F(1, 2, 3, 4), F(1, 2, 5, 4), F(1, 2, 5, 4))  # noqa: E731
    yield "scaled_dot_product_attention.default", qkv(), {}
    yield "scaled_dot_product_attention.default", (*qkv(), B(3, 5) | (torch.arange(5) == 0)), {"scale": 0.3}
    yield "scaled_dot_product_attention.default", (F(1, 2, 3, 4), F(1, 2, 3, 4), F(1, 2, 3, 4)), {"is_causal": True}
    yield "_scaled_dot_product_flash_attention_for_cpu.default", qkv(), {}


def linalg():
    A = lambda: (SPD(3),)  # noqa: E731
    yield "linalg_solve.default", (SPD(3), F(3, 2)), {}
    yield "linalg_solve_ex.default", (SPD(3), F(3, 2)), {}
    yield "linalg_solve_triangular.default", (SPD(3), F(3, 2)), {"upper": True}
    for name in "linalg_inv inverse linalg_det det logdet linalg_matrix_exp matrix_exp linalg_svdvals".split():
        yield f"{name}.default", A(), {}
    for name in "linalg_inv_ex linalg_slogdet slogdet linalg_lu linalg_lu_factor linalg_lu_factor_ex".split():
        yield f"{name}.default", A(), {}
    for name in "linalg_cholesky cholesky linalg_cholesky_ex linalg_qr qr linalg_eigvalsh".split():
        yield f"{name}.default", A(), {}
    for name in "linalg_pinv pinverse linalg_matrix_rank linalg_cond linalg_norm".split():
        yield f"{name}.default", (SPD(3).detach(), *([1e-9] if "rank" in name or name == "linalg_pinv" else [])), {}
    for name in "linalg_ldl_factor linalg_ldl_factor_ex geqrf".split():
        yield f"{name}.default", (SPD(3).detach(),), {}
    lu, pivots = torch.linalg.lu_factor(SPD(3).detach())
    yield "linalg_lu_solve.default", (lu.clone().requires_grad_(), pivots, F(3, 2)), {}
    yield "lu_unpack.default", (lu.clone().requires_grad_(), pivots), {}
    yield "cholesky_solve.default", (F(3, 2), torch.linalg.cholesky(SPD(3).detach())), {}
    yield "cholesky_inverse.default", (torch.linalg.cholesky(SPD(3).detach()),), {}
    ld, pivots = torch.linalg.ldl_factor(SPD(3).detach())
    yield "linalg_ldl_solve.default", (ld, pivots, N(3, 2)), {}
    a, tau = torch.geqrf(N(3, 2))
    for name in "linalg_householder_product orgqr".split():
        yield f"{name}.default", (a.clone().requires_grad_(), tau.clone().requires_grad_()), {}
    yield "ormqr.default", (a, tau, N(3, 2)), {}
    # Bases are unique up to signs only: values alone, of what does not depend on them.
    yield "linalg_eigvals.default", (torch.diag(torch.tensor([1.0, 2.0, 3.0], dtype=f64)),), {}
    yield "linalg_pinv.atol_rtol_float", (SPD(3).detach(),), {"rtol": 1e-9}
    yield "linalg_pinv.atol_rtol_tensor", (SPD(3).detach(),), {"rtol": torch.tensor(1e-9, dtype=f64)}
    yield "linalg_pinv.rcond_tensor", (SPD(3).detach(), torch.tensor(1e-9, dtype=f64)), {}
    yield "linalg_matrix_rank.tol_tensor", (SPD(3).detach(), torch.tensor(1e-9, dtype=f64)), {}
    yield "linalg_matrix_rank.atol_rtol_float", (SPD(3).detach(),), {"atol": 1e-9}
    yield "linalg_matrix_rank.atol_rtol_tensor", (SPD(3).detach(),), {"atol": torch.tensor(1e-9, dtype=f64)}
    yield "linalg_vector_norm.default", (F(2, 3), 3, [1]), {}
    yield "linalg_matrix_norm.default", (F(3, 3), 1), {}
    yield "linalg_matrix_norm.str_ord", (F(3, 3),), {}
    yield "linalg_norm.ord_str", (F(3, 3), "fro"), {}
    yield "linalg_cond.p_str", (SPD(3).detach(), "fro"), {}
    yield "linalg_matrix_power.default", (SPD(3), 2), {}
    yield "matrix_power.default", (SPD(3), 3), {}
    yield "linalg_vecdot.default", (F(2, 3), F(2, 3)), {}
    yield "linalg_vander.default", (F(3),), {}
    yield "linalg_tensorinv.default", (SPD(4).detach().reshape(4, 2, 2).requires_grad_(), 1), {}
    yield "linalg_tensorsolve.default", (SPD(4).detach().reshape(4, 2, 2).requires_grad_(), F(4)), {}


def layers():
    for dims in (1, 2, 3):
        x, w = [4] * dims, [3] * dims
        each = [1] * dims
        yield f"conv{dims}d.default", (F(1, 2, *x), F(4, 1, *w), F(4), each, each, each, 2), {}
        yield f"conv{dims}d.padding", (F(1, 2, *x), F(4, 2, *w), None, each, "same"), {}
        name = f"conv_transpose{dims}d.{'default' if dims == 1 else 'input'}"
        yield name, (F(1, 2, *x), F(2, 3, *w), F(3), [2] * dims, each, each), {}
        yield "convolution.default", (F(1, 2, *x), F(4, 2, *w), F(4), each, each, each, False, [0] * dims, 1), {}
    yield "convolution.default", (F(1, 2, 4), F(2, 3, 3), None, [2], [1], [1], True, [1], 1), {}
    yield "_convolution.default", (F(1, 2, 4), F(3, 2, 3), None, [1], [1], [1], False, [0], 1, *[False] * 4), {}
    yield "_convolution.deprecated", (F(1, 2, 4), F(3, 2, 3), None, [1], [1], [1], False, [0], 1, *[False] * 3), {}
    yield "conv_tbc.default", (F(4, 1, 2), F(3, 2, 3), F(3), 1), {}
    yield "im2col.default", (F(1, 2, 4, 4), [2, 2], [1, 1], [1, 1], [2, 2]), {}
    yield "col2im.default", (F(1, 8, 9), [4, 4], [2, 2], [1, 1], [1, 1], [2, 2]), {}
    for dims in (1, 2, 3):
        x = lambda: F(1, 2, *[5] * dims)  # noqa: B023, E731
        yield f"max_pool{dims}d.default", (x(), [2] * dims), {}
        yield f"max_pool{dims}d_with_indices.default", (x(), [3] * dims, [2] * dims, [1] * dims), {}
        yield f"avg_pool{dims}d.default", (x(), [3] * dims, [2] * dims, [1] * dims, True, False), {}
        yield f"adaptive_avg_pool{dims}d.default", (x(), [3] * dims), {}
        yield f"adaptive_max_pool{dims}d.default", (x(), [3] * dims), {}
        if dims > 1:
            yield f"_adaptive_avg_pool{dims}d.default", (x(), [3] * dims), {}
            samples = torch.rand(1, 2, dims, generator=generator, dtype=f64)
            yield f"fractional_max_pool{dims}d.default", (x(), [2] * dims, [3] * dims, samples), {}
    places = torch.tensor([[[[0, 3], [8, 15]]]])
    yield "max_unpool2d.default", (F(1, 1, 2, 2), places, [4, 4]), {}
    yield "max_unpool3d.default", (F(1, 1, 1, 2, 2), places[None], [1, 4, 4], [1, 2, 2], [0, 0, 0]), {}
    bn = lambda: (F(4, 3, 2), P(3), F(3))  # noqa: E731
    stats = lambda: (N(3), N(3, low=0.5))  # noqa: E731
    yield "batch_norm.default", (*bn(), *stats(), True, 0.1, 1e-5, False), {}
    yield "batch_norm.default", (*bn(), None, None, True, 0.1, 1e-5, False), {}
    yield "batch_norm.default", (*bn(), *stats(), False, 0.1, 1e-5, False), {}
    yield "native_batch_norm.default", (*bn(), *stats(), True, 0.1, 1e-5), {}
    yield "_native_batch_norm_legit.default", (*bn(), *stats(), True, 0.1, 1e-5), {}
    yield "_native_batch_norm_legit.no_stats", (*bn(), True, 0.1, 1e-5), {}
    yield "_native_batch_norm_legit_functional.default", (*bn(), *stats(), True, 0.1, 1e-5), {}
    yield "_native_batch_norm_legit_no_training.default", (*bn(), *stats(), 0.1, 1e-5), {}
    yield "layer_norm.default", (F(2, 3, 4), [3, 4], F(3, 4), F(3, 4)), {}
    yield "native_layer_norm.default", (F(2, 3, 4), [4], F(4), F(4), 1e-5), {}
    yield "rms_norm.default", (F(2, 3, 4), [4], F(4), 1e-5), {}
    yield "_fused_rms_norm.default", (F(2, 3, 4), [4], F(4), 1e-5), {}
    yield "group_norm.default", (F(2, 4, 3), 2, F(4), F(4)), {}
    yield "native_group_norm.default", (F(2, 4, 3), F(4), F(4), 2, 4, 3, 2, 1e-5), {}
    yield "instance_norm.default", (F(2, 3, 4), P(3), F(3), None, None, True, 0.1, 1e-5, False), {}
    yield "embedding.default", (F(5, 3), I(2, 2, high=5), 1), {}
    bag = lambda: (F(5, 3), torch.tensor([0, 2, 4, 1]), torch.tensor([0, 2]))  # noqa: E731
    yield "embedding_bag.default", (*bag(), False, 1), {}
    yield "embedding_bag.padding_idx", (*bag(), False, 0, False, F(4), False, 2), {}
    yield "_embedding_bag.default", (*bag(), False, 2), {}
    yield "_embedding_bag_forward_only.default", (N(5, 3), torch.tensor([0, 2, 4, 1]), torch.tensor([0, 2])), {}
    yield "one_hot.default", (I(4), 4), {}
    yield "pad_sequence.default", ([F(2, 3), F(4, 3)], True, 0.5), {}


def resampling():
    for mode, dims in (("nearest", 1), ("nearest", 2), ("nearest", 3), ("_nearest_exact", 1),
                       ("_nearest_exact", 2), ("_nearest_exact", 3)):  # fmt: skip
        name = f"{'_' if mode[0] == '_' else ''}upsample_{mode.lstrip('_')}{dims}d"
        yield f"{name}.default", (F(1, 2, *[3] * dims), [5] * dims), {}
        yield f"{name}.vec", (F(1, 2, *[3] * dims), None, [2.0] * dims), {}
    for name, dims in (("linear1d", 1), ("bilinear2d", 2), ("bicubic2d", 2), ("trilinear3d", 3)):
        for aligned in (False, True):
            yield f"upsample_{name}.default", (F(1, 2, *[3] * dims), [5] * dims, aligned), {}
        yield f"upsample_{name}.vec", (F(1, 2, *[3] * dims), None, False, [1.7] * dims), {}
    for name in "bilinear2d bicubic2d".split():
        yield f"_upsample_{name}_aa.default", (F(1, 2, 6, 6), [3, 4], False), {}
        yield f"_upsample_{name}_aa.vec", (F(1, 2, 6, 6), [3, 4], False, None), {}
    for name in "grid_sampler grid_sampler_2d".split():
        yield f"{name}.default", (F(1, 2, 4, 4), F(1, 3, 3, 2, low=-1.1, high=1.1), 0, 1, False), {}
    yield "grid_sampler_3d.default", (F(1, 2, 3, 3, 3), F(1, 2, 2, 2, 3, low=-0.9, high=0.9), 0, 0, True), {}
    yield "affine_grid_generator.default", (F(1, 2, 3), [1, 2, 3, 3], False), {}
    yield "pixel_shuffle.default", (F(1, 4, 2, 2), 2), {}
    yield "pixel_unshuffle.default", (F(1, 1, 4, 4), 2), {}
    yield "channel_shuffle.default", (F(1, 4, 2, 2), 2), {}
    yield "native_channel_shuffle.default", (N(1, 4, 2, 2), 2), {}


def losses():
    for name in "mse_loss l1_loss smooth_l1_loss huber_loss".split():
        for reduction in (0, 1, 2):
            yield f"{name}.default", (F(4, 3), F(4, 3), reduction), {}
    yield "nll_loss.default", (F(4, 3), I(4), P(3).detach()), {}
    yield "nll_loss_nd.default", (F(4, 3, 2), I(4, 2)), {}
    yield "nll_loss2d.default", (F(4, 3, 2, 2), I(4, 2, 2)), {}
    yield "nll_loss_forward.default", (F(4, 3), I(4), N(3, low=0.2), 1, -100), {}
    yield "nll_loss2d_forward.default", (F(4, 3, 2, 2), I(4, 2, 2), None, 1, -100), {}
    yield "cross_entropy_loss.default", (F(4, 3), I(4), None, 1, 1, 0.1), {}
    yield "binary_cross_entropy.default", (U(4), U(4).detach()), {}
    yield "binary_cross_entropy_with_logits.default", (F(4), U(4).detach(), None, N(4, low=0.5)), {}
    yield "kl_div.default", (F(4, 3), U(4, 3)), {"log_target": True}
    yield "poisson_nll_loss.default", (F(4), P(4).detach(), True, False, 1e-8, 1), {}
    signs = torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=f64)
    yield "hinge_embedding_loss.default", (F(4), signs), {}
    yield "margin_ranking_loss.default", (F(4), F(4), signs, 0.1), {}
    yield "multi_margin_loss.default", (F(4, 3), I(4)), {}
    for name in "multilabel_margin_loss.default".split():
        yield name, (F(2, 3), torch.tensor([[0, 2, -1], [1, -1, 0]])), {}
    yield "multilabel_margin_loss_forward.default", (N(2, 3), torch.tensor([[0, 2, -1], [1, -1, 0]]), 1), {}
    yield "soft_margin_loss.default", (F(4), signs), {}
    yield "triplet_margin_loss.default", (F(4, 3), F(4, 3), F(4, 3)), {}
    yield "cosine_embedding_loss.default", (F(4, 3), F(4, 3), signs), {}
    yield "cosine_similarity.default", (F(2, 3), F(2, 3)), {}
    yield "pairwise_distance.default", (F(2, 3), F(2, 3)), {}


def recurrences():
    for name, gates in (("lstm", 4), ("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1)):
        weights = lambda n: [F(gates * 3, n), F(gates * 3, 3), F(gates * 3), F(gates * 3)]  # noqa: B023, E731
        state = lambda n: [F(n, 2, 3), F(n, 2, 3)] if name == "lstm" else F(n, 2, 3)  # noqa: B023, E731
        both = weights(4) + weights(4) + weights(6) + weights(6)
        yield f"{name}.input", (F(2, 5, 4), state(4), both, True, 2, 0.0, True, True, True), {}
        hx = [F(2, 3), F(2, 3)] if name == "lstm" else F(2, 3)
        yield f"{name}_cell.default", (F(2, 4), hx, *weights(4)), {}
    yield "_pack_padded_sequence.default", (F(3, 2, 4), torch.tensor([3, 2]), False), {}


def special():
    names = """airy_ai bessel_j0 bessel_j1 modified_bessel_i0 modified_bessel_i1 spherical_bessel_j0 entr erf erfc erfcx
        exp2 expit expm1 i0 i0e i1 i1e log_ndtr ndtr sinc round"""
    has_gradient = "entr erf erfc erfcx exp2 expit expm1 i0 i0e i1 i1e log_ndtr ndtr sinc".split()
    for name in names.split():
        yield f"special_{name}.default", (P(2, 3) if name in has_gradient else N(2, 3, low=0.2),), {}
    for name in "bessel_y0 bessel_y1 modified_bessel_k0 modified_bessel_k1".split():
        yield f"special_{name}.default", (N(2, 3, low=0.3),), {}
    for name in "scaled_modified_bessel_k0 scaled_modified_bessel_k1".split():
        yield f"special_{name}.default", (N(2, 3, low=0.3),), {}
    for name in "digamma psi gammaln log1p".split():
        yield f"special_{name}.default", (P(2, 3),), {}
    for name in "erfinv ndtri logit".split():
        yield f"special_{name}.default", (U(2, 3),), {}
    for name in "gammainc gammaincc".split():
        yield f"special_{name}.default", (N(2, 3, low=0.3), P(3)), {}
    yield "special_multigammaln.default", (F(2, low=2.0, high=4.0), 2), {}
    yield "special_polygamma.default", (1, P(3)), {}
    for name in "xlog1py xlogy".split():
        yield f"special_{name}.default", (F(2, 3), P(3)), {}
        yield f"special_{name}.self_scalar", (2.0, P(3)), {}
        yield f"special_{name}.other_scalar", (F(3), 0.5), {}
    yield "special_zeta.default", (N(3, low=1.5), P(3).detach()), {}
    yield "special_zeta.self_scalar", (2.0, P(3).detach()), {}
    yield "special_zeta.other_scalar", (N(3, low=1.5), 0.7), {}
    for letter in "tuvw":
        for kind in ("", "shifted_"):
            name = f"special_{kind}chebyshev_polynomial_{letter}"
            yield f"{name}.default", (N(3, low=0.1, high=0.8), I(3, high=5)), {}
            yield f"{name}.x_scalar", (0.3, I(3, high=5)), {}
            yield f"{name}.n_scalar", (N(3, low=0.1, high=0.8), 3), {}
    for name in "hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p".split():
        yield f"special_{name}.default", (N(3, low=0.1, high=0.8), I(3, high=5)), {}
        yield f"special_{name}.x_scalar", (0.3, I(3, high=5)), {}
        yield f"special_{name}.n_scalar", (N(3, low=0.1, high=0.8), 3), {}


def spectra():
    for name in "fft ifft hfft irfft".split():
        yield f"fft_{name}.default", (C(2, 4),), {}
    for name in "rfft ihfft".split():
        yield f"fft_{name}.default", (F(2, 4), 6), {"norm": "ortho"}
    for name in "fft2 ifft2 fftn ifftn irfft2 irfftn hfft2 hfftn".split():
        yield f"fft_{name}.default", (C(3, 4),), {}
    for name in "rfft2 rfftn ihfft2 ihfftn".split():
        yield f"fft_{name}.default", (F(3, 4),), {"norm": "forward"}
    yield "fft_fftshift.default", (F(4, 5),), {}
    yield "fft_ifftshift.default", (F(4, 5), [1]), {}
    yield "fft_fftfreq.default", (5, 0.5), {}
    yield "fft_rfftfreq.default", (5,), {}
    for normalization in (0, 1, 2):
        yield "_fft_r2c.default", (F(3, 4), [0, 1], normalization, True), {}
        yield "_fft_c2c.default", (C(3, 4), [0, 1], normalization, False), {}
        yield "_fft_c2c.default", (C(3, 4), [1], normalization, True), {}
        yield "_fft_c2r.default", (C(3, 4), [1], normalization, 6), {}
    yield "_fft_r2c.default", (F(3, 4), [1], 0, False), {}
    window = torch.hann_window(4, dtype=f64)
    yield "stft.center", (F(2, 16), 4, 2, None, window), {"return_complex": True}
    yield "stft.default", (F(2, 16), 4, 2, None, window), {"return_complex": True}
    yield "istft.default", (C(3, 5), 4, 2, None, window), {}


def conversions():
    yield "to.dtype", (F(2, 3), torch.float32), {}
    yield "to.dtype_layout", (F(2, 3),), {"dtype": torch.float32}
    yield "to.device", (F(2, 3), torch.device("cpu"), torch.float32), {}
    yield "to.other", (F(2, 3), torch.zeros(1)), {}
    yield "_to_copy.default", (F(2, 3),), {"dtype": torch.float32}
    yield "type_as.default", (F(2, 3), torch.zeros(1)), {}
    for name in "Float Double Half Long Int".split():
        yield f"_cast_{name}.default", (N(2, 3),), {}
    yield "contiguous.default", (F(2, 3),), {}


def by_hand():
    """What torch.export does not write, for it looks at values or at memory; other versions may."""
    yield "narrow.Tensor", (F(5, 3), 0, torch.tensor(1), 2), {}
    yield "combinations.default", (F(4), 2), {}
    yield "linalg_lstsq.default", (N(4, 2), N(4, 1)), {}
    yield "_shape_as_tensor.default", (N(2, 3),), {}
    lp = lambda: F(5, 2, 4).detach().log_softmax(2).requires_grad_()  # noqa: E731
    targets = torch.tensor([[1, 2], [2, 3]])
    yield "ctc_loss.Tensor", (lp(), targets, torch.tensor([5, 5]), torch.tensor([2, 2])), {}
    yield "ctc_loss.IntList", (lp(), targets, [5, 4], [2, 2]), {}
    yield "cov.default", (F(2, 5),), {}
    yield "corrcoef.default", (F(2, 5),), {}
    for name, gates in (("lstm", 4), ("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1)):
        weights = lambda: [F(gates * 3, 4), F(gates * 3, 3), F(gates * 3), F(gates * 3)]  # noqa: B023, E731
        state = [F(2, 2, 3), F(2, 2, 3)] if name == "lstm" else F(2, 2, 3)
        yield f"{name}.data", (F(5, 4), torch.tensor([2, 2, 1]), state, weights() + weights(), True, 1, 0.0, True, True), {}
    yield "_pad_packed_sequence.default", (F(5, 4), torch.tensor([2, 2, 1]), True, 0.5, 4), {}


# By families; a family is one exported program.
FAMILIES = [
    unary, binary, activations, creation, views, rearranging, indexing, reductions, sorting, products,
    linalg, layers, resampling, losses, recurrences, special, spectra, conversions,
]  # fmt: skip
