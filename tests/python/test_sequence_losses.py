"""ctc_loss and rnnt_loss: against PyTorch, against sums over all alignments, and in graphs."""

import itertools

import numpy as np
import pytest

import kiln
from conftest import HAS_TORCH
from kiln import nn

F = nn.functional
if HAS_TORCH:
    import torch
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")


def batch(steps, sequences, classes, longest, seed=0):
    """Scores, labels other than the blank 0, and lengths, of which the first are the greatest."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(2 * longest, steps + 1, sequences)
    sizes = rng.integers(0, longest + 1, sequences)
    ends[0], sizes[0] = steps, longest
    return (rng.standard_normal((steps, sequences, classes)) * 3,
            rng.integers(1, classes, (sequences, longest)), ends, sizes)  # fmt: skip


@needs_torch
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("steps", "sequences", "classes", "longest"),
    [(12, 3, 5, 4), (200, 5, 29, 30), (64, 2, 500, 9), (33, 4, 3, 16), (9, 1, 2, 1)],
)
def test_ctc_is_pytorchs(steps, sequences, classes, longest, dtype):
    x, labels, ends, sizes = batch(steps, sequences, classes, longest)
    labels[-1, 1:] = labels[-1, 0]  # one label again and again, with blanks between
    scores = torch.tensor(x, requires_grad=True)  # float64
    lengths = [torch.tensor(v) for v in (ends, sizes)]
    expected = torch.nn.functional.ctc_loss(
        scores.log_softmax(2), torch.tensor(labels), *lengths, reduction="none", zero_infinity=True
    )
    expected.sum().backward()
    mine = kiln.tensor(x, dtype=getattr(kiln, dtype)).requires_grad_()
    found = F.ctc_loss(
        mine.log_softmax(2), kiln.tensor(labels), kiln.tensor(ends), kiln.tensor(sizes),
        reduction="none", zero_infinity=True,
    )  # fmt: skip
    found.sum().backward()
    near = {"rtol": 1e-10, "atol": 1e-10} if dtype == "float64" else {"rtol": 2e-6, "atol": 2e-5}
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), **near)
    np.testing.assert_allclose(mine.grad.numpy(), scores.grad.numpy(), **near)


def all_alignments(log_probs, target, blank):
    """log of the sum over every way from (0, 0) through a lattice [T, U + 1, C] to its last blank."""
    steps, columns, _ = log_probs.shape
    sums = []
    for labelled in itertools.combinations(range(steps + columns - 2), columns - 1):
        t = u = 0
        total = 0.0
        for place in range(steps + columns - 2):
            if place in labelled:
                total += log_probs[t, u, target[u]]
                u += 1
            else:
                total += log_probs[t, u, blank]
                t += 1
        sums.append(total + log_probs[t, u, blank])
    return np.logaddexp.reduce(sums)


@pytest.mark.parametrize("softmax", [False, True])
def test_rnnt_is_the_sum_over_all_alignments(softmax):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((3, 5, 4, 6)) - 2
    labels, ends, sizes = np.array([[1, 2, 2], [5, 1, 9], [4, -3, 0]]), [5, 3, 4], [3, 2, 1]

    def expected(x):
        p = x - np.logaddexp.reduce(x, axis=3, keepdims=True) if softmax else x
        return [-all_alignments(p[n, : ends[n], : sizes[n] + 1], labels[n], 0) for n in range(3)]

    mine = kiln.tensor(x).requires_grad_()
    found = F.rnnt_loss(
        mine, kiln.tensor(labels), kiln.tensor(ends), kiln.tensor(sizes), 0, reduction="none",
        fused_log_softmax=softmax,
    )  # fmt: skip
    np.testing.assert_allclose(found.detach().numpy(), expected(x), rtol=1e-12)
    found.sum().backward()
    for at in [(0, 0, 0, 0), (0, 4, 3, 0), (1, 1, 1, 1), (1, 2, 2, 0), (2, 3, 0, 4), (1, 4, 0, 0)]:
        step = np.zeros_like(x)
        step[at] = 1e-5
        slope = (np.sum(expected(x + step)) - np.sum(expected(x - step))) / 2e-5
        np.testing.assert_allclose(mine.grad.numpy()[at], slope, rtol=1e-6, atol=1e-9)


def ctc_step(scores, labels, ends, sizes):
    return F.ctc_loss(scores.log_softmax(2), labels, ends, sizes)


def rnnt_step(scores, labels, ends, sizes):
    return F.rnnt_loss(scores, labels, ends, sizes, blank=0)


@pytest.mark.parametrize(("step", "shape"), [(ctc_step, (8, 2, 5)), (rnnt_step, (2, 8, 4, 5))])
def test_a_graph_takes_other_lengths_and_labels(step, shape):
    def slopes(x, *rest):
        return kiln.autograd.grad(step(x, *rest), x)[0]

    def inputs(labels, ends, sizes):
        x = kiln.linspace(-2, 2, int(np.prod(shape))).sin().reshape(shape).requires_grad_()
        return x, *(kiln.tensor(v) for v in (labels, ends, sizes))

    first = inputs([[1, 2, 3], [4, 1, 1]], [8, 7], [3, 2])
    other = inputs([[4, 4, 2], [2, -1, 9]], [6, 8], [3, 1])
    compiled = kiln.compile(slopes)
    for given in (first, first, other, first):
        np.testing.assert_array_equal(compiled(*given).numpy(), slopes(*given).numpy())
    with pytest.raises(kiln.errors.ValueError, match="no label; got 5"):
        compiled(*inputs([[1, 2, 5], [4, 1, 1]], [8, 7], [3, 2]))
    with pytest.raises(kiln.errors.ValueError, match="lengths are out of range; got 9"):
        compiled(*inputs([[1, 2, 3], [4, 1, 1]], [9, 7], [3, 2]))
    np.testing.assert_array_equal(compiled(*first).numpy(), slopes(*first).numpy())


def test_many_sequences_at_once_by_vmap():
    x = kiln.linspace(-2, 2, 3 * 6 * 2 * 4).sin().reshape(3, 6, 2, 4)
    labels, ends, sizes = kiln.tensor([[1, 2], [3, 3]]), kiln.tensor([6, 5]), kiln.tensor([2, 1])
    found = kiln.vmap(lambda v: ctc_step(v, labels, ends, sizes))(x)
    each = kiln.stack([ctc_step(v, labels, ends, sizes) for v in x])
    np.testing.assert_allclose(found.numpy(), each.numpy(), rtol=1e-5)
