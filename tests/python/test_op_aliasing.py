"""A result shares memory with an input where PyTorch's does, and nowhere else."""

import itertools
import os

import pytest

import kiln
from conftest import HAS_TORCH
from op_cases import PROGRAM, Table, evaluate

pytestmark = [
    pytest.mark.skipif(not HAS_TORCH, reason="SKIPPED: PyTorch is not installed"),
    pytest.mark.skipif(not os.path.exists(PROGRAM), reason=f"SKIPPED: {PROGRAM} is not built"),
]

TABLE = Table() if os.path.exists(PROGRAM) else None


def memory(x):
    """Where the memory begins that x is a view of; None for what holds no elements."""
    return x.untyped_storage().data_ptr() if x.numel() else None


def shared(results, inputs):
    """Pairs (result, input) of one memory."""
    places = [memory(x) for x in inputs]
    found = [memory(y) for y in results]
    pairs = itertools.product(range(len(found)), range(len(places)))
    return {(i, j) for i, j in pairs if found[i] is not None and found[i] == places[j]}


# Where Kiln copies and PyTorch gives a view: writes to the result do not reach the input.
COPIES = {}
# Where Kiln gives a view and PyTorch copies.


def aliasing_of_cases():
    """(name, expression, Kiln's pairs, PyTorch's pairs) of every case."""
    import torch

    for case in TABLE.cases:
        if "random" in case["name"] or case["peer"] or case["peer_why"]:
            continue
        dtype = case["dtypes"][0]
        found = []
        try:
            for library in (kiln, torch):
                inputs = TABLE.inputs(case, dtype, library)
                found.append(shared(evaluate(case, inputs, library), inputs))
        except Exception:  # what cannot be computed is test_op_cases.py's matter
            continue
        yield case["name"], case["python"], *found


def test_cases():
    wrong, seen = [], set()
    for name, expression, mine, theirs in aliasing_of_cases():
        if mine == theirs:
            continue
        seen.add(name)
        if mine - theirs or name not in COPIES:
            wrong.append(f"{name}: {expression}: shares {mine}, in PyTorch {theirs}")
    assert not wrong, "\n".join(wrong)
    assert not set(COPIES) - seen, "a deviation that no longer happens"


# Arguments for which an op has nothing to do. x is [1, 1, 4], y [2, 3], v [4], s 0-d, i integers [2, 3].
NOTHING_TO_DO = """
    x.repeat(3, 1, 1) | x.repeat(1, 1, 1) | x.repeat(2, 1, 1, 1) | v.repeat(1) | v.repeat(2, 1) | s.repeat(3)
    s.repeat(1) | torch.tile(x, (1, 1, 1)) | torch.tile(x, (4, 1, 1)) | torch.tile(v, (1,)) | y.tile(1)
    v.repeat_interleave(1) | x.repeat_interleave(2, 0) | y.repeat_interleave(1, 0) | s.repeat_interleave(1)
    y.repeat_interleave(torch.tensor([1, 1]), 0) | F.pixel_shuffle(x, 1) | F.pixel_unshuffle(x, 1)
    F.channel_shuffle(x, 1) | torch.roll(y, 0, 0) | torch.roll(y, 0) | torch.flip(y, ()) | torch.flip(x, (0,))
    torch.rot90(y, 0) | torch.rot90(y, 4) | F.pad(y, (0, 0)) | F.pad(x, (0, 0), "circular") | F.pad(y, ())
    F.pad(x, (0, 0), "reflect") | F.pad(y, (-1, 0)) | torch.cat([y]) | torch.cat([y], 1) | torch.stack([v])
    torch.hstack([v]) | torch.vstack([v]) | torch.vstack([y]) | torch.dstack([x]) | torch.column_stack([y])
    torch.block_diag(y) | torch.cartesian_prod(v) | torch.meshgrid(v, indexing="ij") | torch.kron(y, torch.ones(1, 1))
    torch.einsum("ij->ij", y) | torch.einsum("ij->ji", y) | torch.einsum("i->i", v) | torch.einsum("aij->ij", x)
    y.sum(()) | x.sum(0) | x.mean(0) | x.amax(0) | x.prod(0) | x.amin((0, 1)) | s.sum() | s.mean() | s.prod() | s.max() | s.sum(0)
    s.cumsum(0) | s.cumprod(0) | x.cumsum(0) | x.cummax(0) | s.cummax(0) | s.logcumsumexp(0) | s.sort() | s.max(0) | x.sort(0)
    s.median() | s.mode() | s.kthvalue(1) | x.topk(1, 0) | x.median(0) | x.mode(0) | x.nanmedian(0) | torch.quantile(v, 0)
    i.round() | i.ceil() | i.floor() | i.trunc() | i.abs() | i.clone().nan_to_num() | y.nan_to_num() | i.sgn() | y.sgn()
    y.clamp(-100, 100) | y.clamp_min(-100) | torch.fix(i) | y.round(decimals=0) | torch.positive(y) | y.conj() | y.conj_physical()
    y.real | torch.real(y) | y.resolve_conj() | y.resolve_neg() | y.adjoint() | y.mH | y.H | y.mT | y.T | v.t() | y.t() | s.T
    y.contiguous() | y.to(torch.float32) | y.float() | y.cpu() | y.type_as(y) | y.type(torch.float32) | y.to(y) | y.to(y, copy=True)
    y.reshape(2, 3) | y.reshape(-1) | y.view(2, 3) | y.flatten() | v.flatten() | s.flatten() | y.ravel() | v.ravel() | y.t().flatten()
    y.unflatten(1, (3,)) | y.expand(2, 3) | y.expand_as(y) | torch.broadcast_to(y, (2, 3)) | y.squeeze() | x.squeeze() | y.squeeze(0)
    y.unsqueeze(0) | y.permute(0, 1) | y.transpose(0, 0) | y.movedim(0, 0) | y.narrow(0, 0, 2) | y[:] | y[...] | y[0] | y[None]
    y[[0, 1]] | y[torch.tensor([0, 1])] | y[torch.tensor(True)] | y[True] | y.split(5) | y.chunk(1) | y.unbind(0) | y.tensor_split(1)
    y.select(0, 0) | y.diagonal() | torch.diag(v) | torch.diag(y) | torch.diagflat(v) | torch.diag_embed(v) | y.unfold(0, 2, 1)
    y.swapaxes(0, 0) | torch.atleast_1d(s) | torch.atleast_1d(v) | torch.atleast_2d(v) | torch.atleast_3d(x)
    torch.broadcast_tensors(y, y) | y.tril(10) | y.triu(-10) | y.index_select(0, torch.tensor([0, 1])) | y.gather(0, torch.zeros(2, 3, dtype=torch.int64))
    y.take_along_dim(torch.zeros(2, 3, dtype=torch.int64), 0) | y.masked_fill(torch.zeros(2, 3, dtype=torch.bool), 0) | torch.where(torch.ones(2, 3, dtype=torch.bool), y, y)
    y.index_fill(0, torch.zeros(0, dtype=torch.int64), 0.0) | y.index_add(0, torch.zeros(0, dtype=torch.int64), torch.zeros(0, 3))
    y.index_copy(0, torch.zeros(0, dtype=torch.int64), torch.zeros(0, 3)) | y.scatter(0, torch.zeros(0, 3, dtype=torch.int64), 1.0)
    y.index_put((torch.zeros(0, dtype=torch.int64),), torch.zeros(0, 3)) | y.masked_scatter(torch.zeros(2, 3, dtype=torch.bool), y)
    torch.linalg.matrix_power(x.reshape(2, 2), 1) | torch.linalg.multi_dot([y, torch.ones(3, 1)]) | torch.matrix_exp(x.reshape(2, 2))
    torch.linalg.diagonal(y) | torch.diff(v, n=0) | torch.gradient(v) | torch.trapezoid(x, dim=0) | torch.unique(v) | torch.unique_consecutive(v)
    torch.cov(v) | torch.histc(v, 1) | torch.cdist(y, y) | torch.nn.functional.normalize(y) | F.avg_pool1d(x, 1) | F.max_pool1d(x, 1)
    F.adaptive_avg_pool1d(x, 4) | F.adaptive_max_pool1d(x, 4) | F.adaptive_avg_pool1d(x, 1) | F.avg_pool2d(x, 1) | F.interpolate(x, size=4) | F.lp_pool1d(x, 1, 1)
    F.adaptive_avg_pool2d(x, (1, 4)) | F.adaptive_avg_pool2d(x, (1, 1)) | F.interpolate(x, scale_factor=1.0, mode="linear") | F.unfold(x.reshape(1, 1, 2, 2), 1) | F.fold(x, (2, 2), 1)
    F.threshold(y, -1e9, 0.0) | F.hardshrink(y, 0.0) | F.softshrink(y, 0.0) | F.relu(y) | F.leaky_relu(y, 1.0) | F.celu(y) | F.hardtanh(y, -1e9, 1e9)
    F.dropout(y, 0.0, True) | F.dropout(y, 0.5, False) | F.dropout1d(y, 0.0, True) | F.alpha_dropout(y, 0.5, False) | F.dropout2d(x, 0.5, False) | F.feature_alpha_dropout(x, 0.5, False)
    F.linear(y, torch.eye(3)) | F.embedding(torch.tensor([0, 1]), y) | F.one_hot(torch.tensor([0])) | F.l1_loss(y, y * 0, reduction="none") | torch.lerp(y, y, 0.0)
    torch.mul(y, 1) | torch.add(y, 0) | torch.sub(y, 0) | torch.div(y, 1) | torch.pow(y, 1) | torch.float_power(y.double(), 1) | torch.add(y, y, alpha=0)
    torch.addmm(y, y, torch.eye(3), beta=1, alpha=0) | torch.addmm(y, y, torch.eye(3), beta=0) | torch.baddbmm(x, x, torch.ones(1, 4, 4), alpha=0) | torch.addcmul(y, y, y, value=0)
    torch.logsumexp(x, 0) | s.logsumexp(0) | torch.logaddexp(y, y) | x.norm(dim=0) | s.norm() | torch.linalg.vector_norm(s) | torch.renorm(y, 2, 0, 1e9) | x.var(0, correction=0) | torch.std_mean(x, 0, correction=0)
    torch.fft.fftn(y + 0j, dim=()) | torch.fft.ifftn(y + 0j, dim=()) | torch.fft.fftshift(v, ()) | torch.fft.fftshift(x, 0) | torch.fft.ifftshift(s) | torch.fft.fft(torch.ones(1) + 0j)
    torch.view_as_real(y + 0j) | torch.complex(y, y) | torch.polar(y, y) | torch.view_as_complex(torch.ones(3, 2)) | y.as_strided((2, 3), (3, 1)) | torch.fliplr(x) | torch.flipud(x)
    torch.clone(y) | torch.detach(y) | y.detach() | y.data | y.requires_grad_(False) | y.narrow_copy(0, 0, 2) | torch.asarray(y) | torch.as_tensor(y) | torch.tensor(y)
    torch.combinations(v, 1) | torch.vander(v, 1) | torch.take(y, torch.tensor([0])) | y.put(torch.tensor([0]), torch.ones(1)) | y.index_reduce(0, torch.tensor([0]), y[:1], "amax")
    torch.slice_scatter(y, y, 0) | torch.select_scatter(y, y[0], 0, 0) | torch.diagonal_scatter(x.reshape(2, 2), torch.ones(2)) | torch.as_strided_scatter(y, y, (2, 3), (3, 1))
    y.sum_to_size(2, 3) | y.view_as(y) | y.reshape_as(y) | torch.movedim(y, (0, 1), (0, 1)) | torch.swapdims(y, 0, 0) | torch.ravel(s) | y.bool() | i.long() | torch.triu(x.reshape(2, 2), -5) | y.new_tensor([1.0])
    torch.nansum(x, 0) | torch.nanmean(x, 0) | x.aminmax(dim=0) | torch.cummin(x, 0) | torch.searchsorted(v, v) | torch.bucketize(v, v) | torch.trace(x.reshape(2, 2)) | torch.tensordot(s, s, 0) | torch.inner(s, s) | torch.outer(v, torch.ones(1)) | torch.cross(torch.ones(3), torch.ones(3), 0) | torch.chain_matmul(y)
    torch.bitwise_and(i, -1) | torch.bitwise_or(i, 0) | torch.bitwise_left_shift(i, 0) | torch.gcd(i, i * 0) | torch.fmod(y, 1e9) | torch.remainder(i, 1000) | torch.maximum(y, y) | torch.fmax(y, y) | torch.copysign(y, y) | torch.nextafter(y, y) | torch.special.expit(y) | torch.special.logit(y)
"""  # fmt: skip


def environment(library):
    def floats(*shape):
        n = 1
        for size in shape:
            n *= size
        return library.arange(1.0, n + 1.0).reshape(shape).clone()

    return {
        "torch": library, "F": library.nn.functional, "x": floats(1, 1, 4), "y": floats(2, 3), "v": floats(4),
        "s": library.tensor(2.0), "i": library.arange(6).reshape(2, 3).clone(),
    }  # fmt: skip


def expressions():
    return [e.strip() for line in NOTHING_TO_DO.strip().split("\n") for e in line.split("|")]


def flat(result):
    if isinstance(result, (tuple, list)):
        return [x for part in result for x in flat(part)]
    return [result]


@pytest.mark.parametrize("expression", expressions() if HAS_TORCH else [])
def test_nothing_to_do(expression):
    import torch

    found = []
    for library in (torch, kiln):
        names = environment(library)
        inputs = [names[n] for n in "xyvsi"]
        try:
            results = flat(eval(expression, names))
        except (RuntimeError, IndexError, ValueError) as error:
            found.append((type(error).__name__ != "", None))
            continue
        values = [r.tolist() for r in results]
        found.append((values, shared(results, inputs)))
    assert (found[0][1] is None) == (found[1][1] is None), found
    if found[0][1] is not None:
        assert found[1][1] == found[0][1], found
