"""kiln.nn.functional: what the table of op cases does not show."""

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
