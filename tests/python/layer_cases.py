"""For each row of kiln/nn/layers.def: how its layer is made and called, for test_layer_rows.py and
test_layers_torch.py."""

import kiln


def x2():
    return kiln.linspace(-2, 3, 12).reshape(3, 4)


def x3():
    return kiln.linspace(-2, 3, 2 * 4 * 6).reshape(2, 4, 6)


def x4():
    return kiln.linspace(-2, 3, 2 * 4 * 6 * 6).reshape(2, 4, 6, 6)


def x5():
    return kiln.linspace(-2, 3, 2 * 4 * 6 * 6 * 5).reshape(2, 4, 6, 6, 5)


def classes():
    return kiln.tensor([1, 0, 3])


def rnnt():
    return (
        kiln.linspace(-1, 1, 1 * 3 * 3 * 4).reshape(1, 3, 3, 4),
        kiln.tensor([[1, 2]]).int(), kiln.tensor([3]).int(), kiln.tensor([2]).int(),
    )  # fmt: skip


def sequence():
    return kiln.linspace(-2, 2, 5 * 2 * 4).reshape(5, 2, 4).sin()


def positive():
    return kiln.linspace(0.1, 0.9, 12).reshape(3, 4)


def signs():
    return kiln.tensor([1.0, -1, 1])


def both(*more):
    """Two matrices that differ, and what follows."""
    return (x2(), x2() * 0.5 + kiln.linspace(1, -1, 12).reshape(3, 4), *more)


def ctc():
    logits = kiln.linspace(-2, 2, 5 * 2 * 4).reshape(5, 2, 4).sin()
    return (kiln.log_softmax(logits, 2), kiln.tensor([[1, 2], [2, 1]]), kiln.tensor([5, 4]),
            kiln.tensor([2, 1]))  # fmt: skip


REDUCTIONS = [((), {}), ((), {"reduction": "sum"}), ((), {"reduction": "none"})]
NO_REDUCTION = [((), {"reduction": "no"}), ((), {"reduction": 3})]


def pads(dims, x, extra=()):
    """A padding layer: one width, and one for each side."""
    sides = (1, 2, 0, 1, 2, 1)[: 2 * dims]
    return ([((1, *extra), {}), ((sides, *extra), {})], lambda: (x(),),
            [(((1,) * 5, *extra), {}), (("a", *extra), {})])  # fmt: skip


# For each row: constructors (positional, named) that are legal; what forward takes; constructors
# that are refused. A row without a case fails test_every_row_has_a_case.
CASES = {
    "Linear": ([((4, 3), {}), ((4, 3), {"bias": False})], lambda: (x2(),), [((-1, 3), {})]),
    "Embedding": (
        [((5, 2), {}), ((5, 2, -1), {}), ((5, 2, 1, 0.5, 1, True), {}),
         ((5, 2), {"_weight": kiln.linspace(-1, 1, 10).reshape(5, 2), "sparse": True})], lambda: (kiln.tensor([[0, 4], [1, 1]]),),
        [((5, 2, 5), {}), ((-5, 2), {}), ((5, 2), {"_weight": kiln.ones(2, 5)})],
    ),
    "Conv2d": (
        [((4, 6, 3), {"stride": 2, "padding": 1, "groups": 2}),
         ((4, 2, (3, 1)), {"bias": False, "padding": "same", "dilation": 2}),
         ((4, 2, 3, 1, "valid"), {}), ((4, 2, 3), {"padding": (1, 2), "padding_mode": "reflect"}),
         ((4, 2, (2, 3)), {"padding": "same", "padding_mode": "circular", "dilation": (3, 1)})],
        lambda: (x4(),),
        [((3, 4, 3), {"groups": 2}), ((4, 4, 3), {"padding": "no"}), ((4, 4, 0), {}),
         ((4, 4, 3, 2, "same"), {}), ((4, 4, 3), {"padding_mode": "mirror"}),
         ((4, 4, (1, 2, 3)), {}), ((4, 4, "3"), {})],
    ),
    "MaxPool2d": (
        [((2,), {}), ((2, 1, 1), {"ceil_mode": True}), (((2, 3),), {"return_indices": True})],
        lambda: (x4(),), [(("2",), {})],
    ),
    "AvgPool2d": ([((3,), {}), (((2, 3), 1, 1), {"ceil_mode": True})], lambda: (x4(),), [((None,), {})]),
    "FractionalMaxPool2d": (
        [((2, 3), {}), ((2,), {"output_ratio": 0.5, "return_indices": True}),
         ((2, 3, None, False, kiln.full((2, 4, 2), 0.3)), {})],
        lambda: (x4(),), [((2,), {}), ((2, 3, 0.5), {})],
    ),
    "FractionalMaxPool3d": (
        [((2, 3), {}), ((2,), {"output_ratio": (0.5, 0.5, 0.6)})], lambda: (x5(),),
        [((2,), {}), ((2, 3, 0.5), {})],
    ),
    "BatchNorm2d": (
        [((4,), {}), ((4, 1e-3, None), {}), ((4,), {"affine": False, "track_running_stats": False}),
         ((4,), {"bias": False})],
        lambda: (x4(),), [((-4,), {}), ((4, "x"), {})],
    ),
    "LayerNorm": (
        [((4,), {}), (((3, 4),), {"elementwise_affine": False}), ((4, 1), {"bias": False})],
        lambda: (x2(),), [(((),), {}), ((-1,), {})],
    ),
    "Dropout": ([((), {}), ((1,), {}), ((0.0, True), {})], lambda: (x2(),), [((1.5,), {}), (("p",), {})]),
    "ReLU": ([((), {}), ((True,), {})], lambda: (x2(),), []),
    "SiLU": ([((), {}), ((True,), {})], lambda: (x2(),), []),
    "GELU": ([((), {}), (("tanh",), {})], lambda: (x2(),), [(("no",), {}), ((1,), {})]),
    "Sigmoid": ([((), {})], lambda: (x2(),), []),
    "Tanh": ([((), {})], lambda: (x2(),), []),
    "Softmax": ([((), {}), ((0,), {})], lambda: (x2(),), [(("a",), {})]),
    "LogSoftmax": ([((), {}), ((0,), {})], lambda: (x2(),), [(("a",), {})]),
    "Threshold": ([((0.1, 20), {}), ((0, -1, True), {})], lambda: (x2(),), [(("a", 1), {})]),
    "PReLU": ([((), {}), ((4, 0.1), {})], lambda: (x2(),), [((0,), {})]),
    "Identity": ([((), {})], lambda: (x2(),), []),
    "Flatten": ([((), {}), ((0, 1), {})], lambda: (x4(),), [(("a",), {})]),
    "CrossEntropyLoss": (
        [((), {}), ((kiln.tensor([1.0, 2, 3, 4]), 1, "sum", 0.1), {})], lambda: (x2(), classes()),
        [((), {"reduction": "no"}), ((3,), {})],
    ),
    "MSELoss": ([((), {}), (("none",), {})], lambda: (x2(), x2() * 2), [(("no",), {})]),
    "RNNTLoss": ([((), {}), ((0, 0.5, "sum", True), {})], rnnt, [((), {"reduction": "no"})]),
    "ELU": ([((), {}), ((0.5, True), {})], lambda: (x2(),), [(("a",), {})]),
    "CELU": ([((), {}), ((2, True), {})], lambda: (x2(),), [(("a",), {})]),
    "SELU": ([((), {}), ((True,), {})], lambda: (x2(),), []),
    "Mish": ([((), {}), ((True,), {})], lambda: (x2(),), []),
    "ReLU6": ([((), {}), ((True,), {})], lambda: (x2() * 3,), []),
    "Hardsigmoid": ([((), {}), ((True,), {})], lambda: (x2() * 2,), []),
    "Hardswish": ([((), {}), ((True,), {})], lambda: (x2() * 2,), []),
    "Hardtanh": ([((), {}), ((-1, 2, True), {})], lambda: (x2(),), [((1, -1), {}), (("a",), {})]),
    "LeakyReLU": ([((), {}), ((0.2, True), {})], lambda: (x2(),), [(("a",), {})]),
    "RReLU": ([((), {}), ((0.2, 0.4, True), {})], lambda: (x2(),), [(("a",), {})]),
    "GLU": ([((), {}), ((1,), {})], lambda: (x2(),), [(("a",), {})]),
    "Hardshrink": ([((), {}), ((1,), {})], lambda: (x2(),), [(("a",), {})]),
    "Softshrink": ([((), {}), ((1,), {})], lambda: (x2(),), [(("a",), {})]),
    "Softmin": ([((1,), {}), ((0,), {})], lambda: (x2(),), [(("a",), {})]),
    "Softmax2d": ([((), {})], lambda: (x4(),), []),
    "Softplus": ([((), {}), ((2, 3), {})], lambda: (x2(),), [(("a",), {})]),
    "LogSigmoid": ([((), {})], lambda: (x2(),), []),
    "Softsign": ([((), {})], lambda: (x2(),), []),
    "Tanhshrink": ([((), {})], lambda: (x2(),), []),
    "Dropout1d": ([((), {}), ((0.2, True), {})], lambda: (x3(),), [((-1,), {}), ((1.5,), {})]),
    "Dropout2d": ([((), {}), ((1,), {})], lambda: (x4(),), [((1.5,), {}), (("p",), {})]),
    "Dropout3d": ([((), {}), ((0.2, True), {})], lambda: (x5(),), [((1.5,), {})]),
    "AlphaDropout": ([((), {}), ((0.2, True), {})], lambda: (x2(),), [((1.5,), {})]),
    "FeatureAlphaDropout": ([((), {}), ((0.2,), {})], lambda: (x4(),), [((1.5,), {})]),
    "GaussianNoise": ([((0.5,), {}), ((0,), {})], lambda: (x2(),), [((-1,), {}), ((float("inf"),), {})]),
    "Unflatten": ([((1, (2, 2)), {}), ((-1, (4, -1, 1)), {})], lambda: (x2(),), [(("a", (1, 2)), {})]),
    "PixelShuffle": ([((2,), {})], lambda: (x4(),), [(("a",), {})]),
    "PixelUnshuffle": ([((3,), {})], lambda: (x4(),), [(("a",), {})]),
    "ChannelShuffle": ([((2,), {})], lambda: (x4(),), [(("a",), {})]),
    "Unfold": ([((2,), {}), (((2, 3), 1, (1, 0)), {"stride": 2})], lambda: (x4(),), [(("a",), {})]),
    "Fold": (
        [(((4, 5), 2), {"stride": 2}), ((5, (2, 2), 2, 0, 2), {})],
        lambda: (kiln.linspace(-2, 3, 2 * 12 * 4).reshape(2, 12, 4),), [(("a", 2), {})],
    ),
    "Upsample": (
        [((), {"scale_factor": 2}), (((4, 8),), {}), ((3, None, "bilinear", True), {}),
         ((), {"scale_factor": (1.5, 2), "mode": "bicubic"})],
        lambda: (x4(),), [(("a",), {})],
    ),
    "UpsamplingNearest2d": ([((), {"scale_factor": 2}), ((8,), {})], lambda: (x4(),), [(("a",), {})]),
    "UpsamplingBilinear2d": (
        [((), {"scale_factor": (2, 1)}), (((8, 3),), {})], lambda: (x4(),), [(("a",), {})],
    ),
    "CosineSimilarity": ([((), {}), ((0, 1e-6), {})], both, [(("a",), {})]),
    "PairwiseDistance": ([((), {}), ((1, 1e-3, True), {})], both, [(("a",), {})]),
    "EmbeddingBag": (
        [((5, 3), {}), ((5, 3), {"mode": "max", "padding_idx": 1}),
         ((5, 3, 0.5, 1, False, "sum"), {})],
        lambda: (kiln.tensor([[0, 4], [1, 1], [2, 3]]),),
        [((5, 3, None, 2, False, "most"), {}), ((5, 3), {"padding_idx": 5}), ((-5, 3), {})],
    ),
    "Bilinear": ([((4, 4, 3), {}), ((4, 4, 2, False), {})], both, [((0, 4, 3), {}), ((4, "a", 3), {})]),
    "MaxPool1d": (
        [((2,), {}), (((3,), 1, 1), {"ceil_mode": True}), ((2,), {"return_indices": True})],
        lambda: (x3(),), [(("2",), {})],
    ),
    "MaxPool3d": ([((2,), {}), (((2, 3, 1), 2, (1, 1, 0)), {"return_indices": True})], lambda: (x5(),),
                  [(("2",), {})]),
    "AvgPool1d": ([((2,), {}), ((3, 1, 1, True, False), {})], lambda: (x3(),), [((None,), {})]),
    "AvgPool3d": ([((2,), {}), (((2, 3, 1), 2, 0, False, True, 3), {})], lambda: (x5(),),
                  [((None,), {})]),
    "LPPool1d": ([((2, 2), {}), ((1.5, 3, 1, True), {})], lambda: (x3() + 3,), [(("a", 2), {})]),
    "LPPool2d": ([((2, 2), {}), ((3, (3, 2), 1), {})], lambda: (x4() + 3,), [(("a", 2), {})]),
    "LPPool3d": ([((2, 2), {}), ((1, (2, 2, 1), (2, 1, 1)), {})], lambda: (x5() + 3,), [((2, "a"), {})]),
    "MaxUnpool1d": ([((2,), {}), (((2,), 2, 0), {})],
                    lambda: (x3()[:, :, :3], kiln.tensor([0, 2, 5]).expand(2, 4, 3).contiguous()),
                    [(((2, 2),), {})]),
    "MaxUnpool2d": ([((2,), {}), (((2, 2), (2, 2)), {})],
                    lambda: (x4()[:, :, :2, :2], kiln.tensor([[0, 3], [9, 15]]).expand(2, 4, 2, 2).contiguous()),
                    [(((2, 2, 2),), {})]),
    "MaxUnpool3d": ([((2,), {})],
                    lambda: (x5()[:, :, :1, :1, :2], kiln.tensor([[[3, 12]]]).expand(2, 4, 1, 1, 2).contiguous()),
                    [(((2, 2),), {})]),
    "AdaptiveMaxPool1d": ([((2,), {}), ((4, True), {})], lambda: (x3(),), [(("a",), {})]),
    "AdaptiveMaxPool2d": ([((4,), {}), (((2, None), True), {})], lambda: (x4(),), [(("a",), {})]),
    "AdaptiveMaxPool3d": ([((2,), {}), (((None, 2, 3),), {})], lambda: (x5(),), [(("a",), {})]),
    "AdaptiveAvgPool1d": ([((4,), {})], lambda: (x3(),), [(("a",), {})]),
    "AdaptiveAvgPool2d": ([((4,), {}), (((2, None),), {})], lambda: (x4(),), [(("a",), {})]),
    "AdaptiveAvgPool3d": ([((2,), {}), (((None, 2, 3),), {})], lambda: (x5(),), [(("a",), {})]),
    "Conv1d": (
        [((4, 6, 3), {"stride": 2, "padding": 1, "groups": 2}),
         ((4, 2, (2,)), {"padding": "same", "padding_mode": "replicate", "dilation": 2}),
         ((4, 2, 3, 1, "valid"), {"bias": False}), ((4, 2, 4, 1, "same"), {})],
        lambda: (x3(),),
        [((3, 4, 3), {"groups": 2}), ((4, 4, 3, 2, "same"), {}), ((4, 4, 3, 1, "no"), {}), ((0, 4, 3), {}),
         ((4, 4, (3, 3)), {}), ((4, 4, 3), {"padding_mode": "mirror"}), ((4, 4, 0), {})],
    ),
    "Conv3d": (
        [((4, 6, 2), {"stride": 2, "padding": 1, "groups": 2}),
         ((4, 2, (2, 3, 1)), {"padding": (1, 2, 0), "padding_mode": "reflect"}),
         ((4, 2, 2, 1, "same"), {"padding_mode": "circular"})],
        lambda: (x5(),), [((4, 4, 3), {"groups": 3}), ((4, 4, (3, 3)), {})],
    ),
    "ConvTranspose1d": (
        [((4, 6, 3), {}), ((4, 2, 3, 2, 1, 1), {"groups": 2, "dilation": 2, "bias": False})],
        lambda: (x3(),), [((4, 4, 3), {"padding_mode": "circular"}), ((4, 4, (1, 2)), {})],
    ),
    "ConvTranspose2d": (
        [((4, 6, 3), {}), ((4, 2, (3, 2), (2, 1), (1, 0), (1, 0)), {"groups": 2})],
        lambda: (x4(),), [((4, 4, 3), {"groups": 3}), ((4, 4, 3, 0), {})],
    ),
    "ConvTranspose3d": ([((4, 2, 2), {}), ((4, 4, 2, 2, 0, (1, 0, 1), 4), {})], lambda: (x5(),),
                        [((4, 4, "a"), {})]),
    "BatchNorm1d": ([((4,), {}), ((4, 1e-3, None), {"bias": False})], lambda: (x3(),),
                    [((-4,), {}), ((4, "x"), {})]),
    "BatchNorm3d": ([((4,), {}), ((4,), {"affine": False, "track_running_stats": False})],
                    lambda: (x5(),), [((-4,), {})]),
    "InstanceNorm1d": ([((4,), {}), ((4, 1e-3, 0.3, True, True), {})], lambda: (x3().sin(),),
                       [((-4,), {}), ((4, "x"), {})]),
    "InstanceNorm2d": ([((4,), {}), ((4,), {"affine": True, "bias": False})], lambda: (x4().sin(),),
                       [((-4,), {})]),
    "InstanceNorm3d": ([((4,), {}), ((4,), {"track_running_stats": True})], lambda: (x5().sin(),),
                       [((-4,), {})]),
    "GroupNorm": ([((2, 4), {}), ((4, 4, 1e-3, False), {}), ((1, 4), {"bias": False})],
                  lambda: (x4().sin(),), [((3, 4), {}), ((0, 4), {})]),
    "RMSNorm": ([((4,), {}), (((3, 4), 1e-3), {}), ((4,), {"elementwise_affine": False})],
                lambda: (x2(),), [(((),), {}), ((-1,), {})]),
    "LocalResponseNorm": ([((3,), {}), ((2, 0.5, 0.5, 2.0), {})], lambda: (x4(),), [((0,), {})]),
    "RNN": (
        [((4, 3), {}), ((4, 3, 2, "relu"), {"bidirectional": True}), ((4, 3, 1), {"bias": False}),
         ((4, 3), {"batch_first": True})],
        lambda: (sequence(),),
        [((0, 3), {}), ((4, 3, 1, "no"), {}), ((4, 3, 0), {}), ((4, 3), {"dropout": 2})],
    ),
    "LSTM": (
        [((4, 3), {}), ((4, 3, 2), {"bidirectional": True, "batch_first": True}),
         ((4, 3, 2, False), {"proj_size": 2}), ((4, 3, 1), {"proj_size": 2, "bidirectional": True})],
        lambda: (sequence(),), [((4, 3), {"proj_size": 3}), ((4, 0), {}), ((4, "a"), {})],
    ),
    "GRU": (
        [((4, 3), {}), ((4, 3, 2), {"bidirectional": True}), ((4, 3, 1, False, True), {})],
        lambda: (sequence(),), [((4, -3), {}), ((4, 3), {"dropout": -1})],
    ),
    "RNNCell": ([((4, 3), {}), ((4, 3, False, "relu"), {})], lambda: (x2(),), [((4, 3, True, "no"), {})]),
    "LSTMCell": ([((4, 3), {}), ((4, 3, False), {})], lambda: (x2(),), [((0, 3), {})]),
    "GRUCell": ([((4, 3), {}), ((4, 3, False), {})], lambda: (x2(),), [((4, 0), {})]),
    "L1Loss": (REDUCTIONS, both, NO_REDUCTION),
    "SmoothL1Loss": ([*REDUCTIONS, (("mean", 0.3), {})], both, NO_REDUCTION),
    "HuberLoss": ([*REDUCTIONS, (("mean", 0.3), {})], both, NO_REDUCTION),
    "NLLLoss": (
        [*REDUCTIONS, ((kiln.tensor([1.0, 2, 3, 4]), 1), {})],
        lambda: (kiln.log_softmax(x2(), 1), classes()), NO_REDUCTION,
    ),
    "BCELoss": ([*REDUCTIONS, ((kiln.tensor([1.0, 2, 3, 4]),), {})],
                lambda: (positive(), 1 - positive().square()), NO_REDUCTION),
    "BCEWithLogitsLoss": (
        [*REDUCTIONS, ((kiln.tensor([1.0, 2, 3, 4]),), {"pos_weight": kiln.tensor([2.0, 1, 1, 3])})],
        lambda: (x2(), positive()), NO_REDUCTION,
    ),
    "KLDivLoss": ([*REDUCTIONS, (("batchmean",), {}), (("mean", True), {})],
                  lambda: (kiln.log_softmax(x2(), 1), positive()), NO_REDUCTION),
    "PoissonNLLLoss": ([*REDUCTIONS, ((False, True, 1e-3), {})], lambda: (positive(), positive() * 5),
                       NO_REDUCTION),
    "GaussianNLLLoss": ([*REDUCTIONS, ((), {"full": True, "eps": 0.5})], lambda: both(positive()),
                        NO_REDUCTION),
    "HingeEmbeddingLoss": ([*REDUCTIONS, ((2,), {})], lambda: (x2()[:, 0], signs()), NO_REDUCTION),
    "MarginRankingLoss": ([*REDUCTIONS, ((0.5,), {})], lambda: (x2()[:, 0], x2()[:, 1] * 0.5, signs()),
                          NO_REDUCTION),
    "CosineEmbeddingLoss": ([*REDUCTIONS, ((0.5,), {})], lambda: both(signs()), NO_REDUCTION),
    "MultiMarginLoss": (
        [*REDUCTIONS, ((2, 0.5, kiln.tensor([1.0, 2, 3, 4])), {})], lambda: (x2(), classes()),
        [*NO_REDUCTION, ((3,), {}), ((1, 1.0, kiln.ones(2, 2)), {})],
    ),
    "MultiLabelMarginLoss": (
        REDUCTIONS, lambda: (x2(), kiln.tensor([[1, 0, -1, 0], [2, -1, 0, 0], [3, 1, 0, 2]])),
        NO_REDUCTION,
    ),
    "MultiLabelSoftMarginLoss": ([*REDUCTIONS, ((kiln.tensor([1.0, 2, 3, 4]),), {})],
                                 lambda: (x2(), (x2() > 0).float()), NO_REDUCTION),
    "SoftMarginLoss": (REDUCTIONS, lambda: (x2(), x2().sign()), NO_REDUCTION),
    "TripletMarginLoss": ([*REDUCTIONS, ((0.5, 1, 1e-4, True), {})], lambda: both(x2().cos()),
                          [*NO_REDUCTION, ((-1,), {})]),
    "FocalLoss": ([*REDUCTIONS, ((-1, 1.5), {})], lambda: (x2(), positive()), NO_REDUCTION),
    "DiceLoss": ([*REDUCTIONS, ((0.5,), {})], lambda: (positive(), 1 - positive()), NO_REDUCTION),
    "InfoNCELoss": ([*REDUCTIONS, ((0.5,), {})], both, NO_REDUCTION),
    "CTCLoss": ([*REDUCTIONS, ((3, "sum", True), {})], ctc, NO_REDUCTION),
}  # fmt: skip

for _dims, _x in ((1, x3), (2, x4), (3, x5)):
    CASES[f"ConstantPad{_dims}d"] = pads(_dims, _x, (0.5,))
    for _kind in ("Zero", "Reflection", "Replication", "Circular"):
        CASES[f"{_kind}Pad{_dims}d"] = pads(_dims, _x)
