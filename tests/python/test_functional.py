"""kiln.nn.functional: what the table of op cases does not show."""

import warnings

import pytest

import kiln
import kiln.nn.functional as F


@pytest.mark.parametrize(
    "name", ["relu6", "elu", "selu", "celu", "leaky_relu", "hardtanh", "hardswish", "mish", "rrelu"]
)
def test_in_place_forms_write_and_are_differentiated(name):
    start = kiln.tensor([-2.0, -0.5, 0.3, 4.0])
    expected = getattr(F, name)(start)
    x = start.clone()
    assert getattr(F, name)(x, inplace=True) is x
    assert kiln.allclose(x, expected)
    y = start.clone()
    assert getattr(F, name + "_")(y) is y
    assert kiln.allclose(y, expected)

    leaf = start.clone().requires_grad_()
    other = start.clone().requires_grad_()
    getattr(F, name)(leaf * 1.0, inplace=True).sum().backward()
    getattr(F, name)(other).sum().backward()
    assert kiln.allclose(leaf.grad, other.grad)


def test_deprecated_arguments_are_not_taken_for_others():
    x = kiln.zeros(2, 3)
    with pytest.raises(TypeError):
        F.mse_loss(x, x, "sum")
    assert F.mse_loss(x, x + 1, reduction="sum").item() == 6
    with pytest.raises(ValueError, match="reduction"):
        F.mse_loss(x, x, reduction="all")


def test_padding_has_many_forms():
    x, w = kiln.randn(1, 1, 5, 6), kiln.randn(1, 1, 2, 3)
    assert F.conv2d(x, w, padding="same").shape == (1, 1, 5, 6)
    assert F.conv2d(x, w, padding=((0, 1), (2, 0))).shape == (1, 1, 5, 6)
    assert F.conv2d(x, w, padding=(1, 0)).shape == (1, 1, 6, 4)
    with pytest.raises(TypeError, match="padding"):
        F.conv2d(x, w, padding=1.5)
    with pytest.raises(ValueError, match="'full'"):
        F.conv2d(x, w, padding="full")


def test_errors_say_what_is_wrong():
    with pytest.raises(RuntimeError, match=r"conv1d: the weight does not fit.*\[1, 2, 5\]"):
        F.conv1d(kiln.zeros(1, 2, 5), kiln.zeros(1, 3, 2))
    with pytest.raises(ValueError, match="num_groups"):
        F.group_norm(kiln.zeros(1, 3), 2)
    with pytest.raises(IndexError, match="embedding_bag"):
        F.embedding_bag(kiln.tensor([[5]]), kiln.zeros(3, 2))
    with pytest.raises(NotImplementedError, match="bicubic"):
        F.interpolate(kiln.zeros(1, 1, 4), size=2, mode="bicubic")


def test_adaptive_sizes_may_be_none():
    x = kiln.randn(1, 2, 5, 6)
    assert F.adaptive_avg_pool2d(x, (None, 3)).shape == (1, 2, 5, 3)
    values, where = F.adaptive_max_pool2d(x, (2, None), return_indices=True)
    assert values.shape == where.shape == (1, 2, 2, 6)


def test_ctc_loss_takes_lengths_as_tuples_and_tensors():
    x = kiln.randn(5, 2, 4).log_softmax(2)
    labels = kiln.tensor([[1, 2], [3, 3]])
    tuples = F.ctc_loss(x, labels, (5, 4), (2, 1))
    tensors = F.ctc_loss(x, labels, kiln.tensor([5, 4]), kiln.tensor([2, 1]))
    assert tuples.item() == tensors.item()


def test_some_names_are_also_at_the_top():
    x, w = kiln.randn(1, 2, 5), kiln.randn(3, 2, 2)
    assert kiln.allclose(kiln.conv1d(x, w), F.conv1d(x, w))
    assert kiln.allclose(kiln.selu(x), F.selu(x))
    assert kiln.group_norm is F.group_norm


def test_rnnt_loss_as_a_function_and_as_a_module():
    x = kiln.randn(2, 3, 3, 4, requires_grad=True)
    targets, steps, sizes = (
        kiln.tensor(v, dtype=kiln.int32) for v in ([[0, 2], [1, 1]], [3, 2], [2, 1])
    )
    each = F.rnnt_loss(x, targets, steps, sizes, blank=3, reduction="none")
    assert each.shape == (2,)
    loss = kiln.nn.RNNTLoss(clamp=0.05)(x, targets, steps, sizes)
    assert kiln.allclose(loss, each.mean())
    loss.backward()
    assert 0 < x.grad.abs().max().item() <= 0.05


def test_fractional_max_pool_as_modules(lib):
    x = lib.arange(2.0 * 3 * 8 * 9).sin().reshape(2, 3, 8, 9)
    samples = lib.arange(12.0).reshape(2, 3, 2) / 13
    pool = lib.nn.FractionalMaxPool2d(
        2, output_size=(4, 5), return_indices=True, _random_samples=samples
    )
    y, i = pool(x)
    assert y.shape == i.shape == (2, 3, 4, 5)
    assert lib.nn.functional.max_unpool2d(y, i, 2, output_size=(8, 9)).shape == x.shape
    assert lib.nn.FractionalMaxPool3d(2, output_ratio=0.5)(x).shape == (2, 1, 4, 4)
    for wrong in ({}, {"output_size": 2, "output_ratio": 0.5}):
        with pytest.raises(ValueError):
            lib.nn.FractionalMaxPool2d(2, **wrong)


def test_fractional_max_pool_gives_what_pytorch_gives():
    torch = pytest.importorskip("torch")

    def pooled(lib):
        x = lib.arange(2.0 * 3 * 8 * 9).sin().reshape(2, 3, 8, 9)
        samples = lib.arange(12.0).reshape(2, 3, 2) / 13
        f = lib.nn.functional.fractional_max_pool2d
        return f(x, (2, 3), (4, 5), return_indices=True, _random_samples=samples)

    (y, i), (expected, places) = pooled(kiln), pooled(torch)
    assert i.tolist() == places.tolist()
    assert y.reshape(-1).tolist() == pytest.approx(expected.reshape(-1).tolist(), rel=1e-6)


@pytest.mark.parametrize("loss", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_losses_of_other_sizes_warn(loss):
    with pytest.warns(UserWarning, match="target size"):
        getattr(kiln.nn.functional, loss)(kiln.ones(4, 1), kiln.ones(4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(kiln.nn.functional, loss)(kiln.ones(4, 1), kiln.ones(4, 1))
