"""Calls that must fail: with an error that a user of PyTorch catches, and that says what to do."""

import pytest

import kiln
from conftest import HAS_TORCH

# L is kiln or torch.
CALLS = """
L.ones(2,3)+L.ones(4)
L.ones(2,3)@L.ones(2,3)
L.matmul(L.ones(3), L.ones(4))
L.mm(L.ones(3), L.ones(3,3))
L.bmm(L.ones(2,2), L.ones(2,2,2))
L.cat([])
L.cat([L.ones(2,3), L.ones(2,4)])
L.cat([L.ones(2,3), L.ones(2,3)], dim=5)
L.cat(L.ones(2))
L.stack([L.ones(2), L.ones(3)])
L.stack([])
L.ones(2,3).reshape(4)
L.ones(2,3).reshape(-1,-1)
L.ones(2,3).view(5)
L.ones(2,3).t().view(6)
L.ones(2,3).permute(0,0)
L.ones(2,3).permute(0)
L.ones(2,3).transpose(0,5)
L.ones(2,3).squeeze(7)
L.ones(2,3).unsqueeze(9)
L.ones(2,3).expand(3,3)
L.ones(2,3).expand(3)
L.ones(2,3).sum(4)
L.ones(2,3).sum((0,0))
L.ones(2,3).sum('x')
L.ones(0).max()
L.ones(0,3).max(0)
L.ones(3).argmax(2)
L.ones(3)[5]
L.ones(3)[1,2]
L.ones(3)['a']
L.ones(3)[1.5]
L.ones(3)[L.tensor([5])]
L.ones(3)[L.tensor([True,False])]
L.ones(3).__setitem__(7, 1)
L.ones(3).__setitem__(slice(0,2), L.ones(3))
L.ones(3).index_select(0, L.tensor([9]))
L.ones(3).index_select(0, L.tensor([0.5]))
L.ones(3).gather(0, L.tensor([[0]]))
L.ones(3).gather(0, L.tensor([7]))
L.ones(3).scatter(0, L.tensor([7]), 1.0)
L.ones(3).take(L.tensor([9]))
L.ones(2,2).item()
L.ones(2,2).__bool__()
int(L.ones(2))
L.tensor('abc')
L.tensor([[1,2],[3]])
L.tensor([1,'a'])
L.zeros(-1)
L.zeros(2.5)
L.zeros('a')
L.full((2,), 'a')
L.arange(0, 5, 0)
L.arange(0, 5, -1)
L.linspace(0, 1, -2)
L.eye(-1)
L.randint(5, 2, (3,))
L.randperm(-1)
L.multinomial(L.tensor([0.5,0.5]), 5)
L.multinomial(L.tensor([-1.0,0.5]), 1)
L.bernoulli(L.tensor([2.0]))
L.normal(0.0, -1.0, (2,))
L.ones(3).requires_grad_().numpy()
L.ones(3, dtype=L.int64).requires_grad_()
L.ones(3).backward()
L.ones(3, requires_grad=True).backward()
L.ones(3, requires_grad=True).add_(1)
L.autograd.grad(L.ones(1), L.ones(1))
L.nn.functional.linear(L.ones(2,3), L.ones(4,5))
L.nn.functional.conv2d(L.ones(1,3,4,4), L.ones(2,2,3,3))
L.nn.functional.conv2d(L.ones(3,4), L.ones(2,2,3,3))
L.nn.functional.conv2d(L.ones(1,2,2,2), L.ones(2,2,3,3))
L.nn.functional.conv2d(L.ones(1,2,4,4), L.ones(2,2,3,3), stride=0)
L.nn.functional.max_pool2d(L.ones(1,1,2,2), 5)
L.nn.functional.max_pool2d(L.ones(1,1,4,4), 2, padding=3)
L.nn.functional.cross_entropy(L.ones(2,3), L.tensor([0,5]))
L.nn.functional.cross_entropy(L.ones(2,3), L.tensor([0]))
L.nn.functional.nll_loss(L.ones(2,3), L.ones(2))
L.nn.functional.embedding(L.tensor([9]), L.ones(3,2))
L.nn.functional.embedding(L.tensor([0.5]), L.ones(3,2))
L.nn.functional.layer_norm(L.ones(2,3), (4,))
L.nn.functional.batch_norm(L.ones(2,3), None, None)
L.nn.functional.group_norm(L.ones(2,3), 2)
L.nn.functional.dropout(L.ones(2), 1.5)
L.nn.functional.softmax(L.ones(2), 3)
L.nn.functional.one_hot(L.tensor([5]), 3)
L.nn.functional.one_hot(L.tensor([-1]))
L.nn.functional.pad(L.ones(2,2), (1,))
L.nn.functional.pad(L.ones(2,2), (1,1), mode='nope')
L.nn.functional.interpolate(L.ones(1,1,2,2))
L.nn.functional.interpolate(L.ones(1,1,2,2), size=(3,3), mode='nope')
L.nn.functional.pixel_shuffle(L.ones(1,3,2,2), 2)
L.nn.functional.mse_loss(L.ones(2), L.ones(2), reduction='nope')
L.nn.functional.gumbel_softmax(L.ones(2), tau='a')
L.nn.functional.glu(L.ones(3))
L.nn.functional.scaled_dot_product_attention(L.ones(1,2,3), L.ones(1,2,4), L.ones(1,2,4))
L.linalg.inv(L.ones(2,3))
L.linalg.inv(L.zeros(2,2))
L.linalg.cholesky(-L.eye(2))
L.linalg.solve(L.ones(2,2), L.ones(3))
L.linalg.norm(L.ones(2,2), 'bad')
L.linalg.eigh(L.ones(2,3))
L.linalg.matrix_power(L.ones(2,3), 2)
L.fft.fft(L.ones(3), n=0)
L.fft.fft(L.ones(3), norm='bad')
L.fft.fft(L.ones(3), dim=4)
L.einsum('ij,jk', L.ones(2,3))
L.einsum('ij->ik', L.ones(2,3))
L.einsum('ij,jk->ik', L.ones(2,3), L.ones(4,5))
L.tensordot(L.ones(2,3), L.ones(4,5), dims=1)
L.split(L.ones(5), [2,2])
L.split(L.ones(5), 0)
L.chunk(L.ones(5), 0)
L.topk(L.ones(3), 5)
L.kthvalue(L.ones(3), 9)
L.sort(L.ones(3), dim=4)
L.where(L.ones(2), L.ones(2), L.ones(3))
L.masked_select(L.ones(3), L.ones(2, dtype=L.bool))
L.ones(3).masked_fill(L.ones(3), 0)
L.clamp(L.ones(3))
L.cumsum(L.ones(3), 3)
L.flip(L.ones(3), [2])
L.roll(L.ones(3), 1, 4)
L.repeat_interleave(L.ones(3), L.tensor([1,2]))
L.ones(2,3).repeat(2)
L.tile(L.ones(2), 'a')
L.ones(3).to('nodtype')
L.ones(3).to(L.device('cuda'))
L.device('nope')
L.add(L.ones(2), None)
L.add(L.ones(2))
L.exp('a')
L.exp(L.ones(2), 1, 2)
L.ones(2).nope
L.bitwise_and(L.ones(2), L.ones(2))
L.ones(2) << L.ones(2)
~L.ones(2)
-L.ones(2, dtype=L.bool)
L.tensor([1]) // 0
L.tensor([1]) % 0
L.quantile(L.ones(3), 2.0)
L.histc(L.ones(3), bins=0)
L.bincount(L.tensor([-1]))
L.searchsorted(L.ones(2,3), L.ones(3,3))
L.diag(L.ones(2,2,2))
L.tril(L.ones(3))
L.from_numpy([1,2])
L.load('/nonexistent.pt')
L.nn.Linear(2,3)(L.ones(4))
L.nn.Linear(2,3).load_state_dict({})
L.optim.SGD([], lr=0.1)
L.optim.SGD([L.ones(2, requires_grad=True)], lr=-1)
L.optim.Adam([L.ones(2)], lr='a')
L.nn.Linear(-1, 2)
L.nn.Sequential(1)
len(L.tensor(1))
iter(L.tensor(1))
L.ones(2,2).unflatten(0, (3,))
L.ones(4).unfold(0, 5, 1)
L.ones(2).as_strided((5,), (1,))
L.cross(L.ones(2), L.ones(2))
L.dot(L.ones(2), L.ones(3))
L.dot(L.ones(2,2), L.ones(2))
L.ones(2).copy_(L.ones(3))
L.ones(2).fill_(L.ones(2))
L.complex(L.ones(2), L.ones(2, dtype=L.float64))
L.ones(2, dtype=L.complex64) < 1
L.view_as_complex(L.ones(3))
L.stft(L.ones(10), 20, return_complex=True)
L.poisson(L.tensor([-1.0]))
L.vander(L.ones(2,2))
L.combinations(L.ones(2,2))
L.trapezoid(L.tensor(1.0))
L.set_default_dtype(L.int64)
L.manual_seed('a')
"""

# Where PyTorch's error is another one, or none.
DEVIATIONS = {
    "L.cat(L.ones(2))": "a tensor is a sequence of its slices",
    "L.ones(0,3).max(0)": "a shape is at fault, not an index",
    "L.trapezoid(L.tensor(1.0))": "a shape is at fault, not an index",
    "L.nn.functional.pad(L.ones(2,2), (1,1), mode='nope')": "a wrong value; nobody will implement it",
    "L.ones(3).to(L.device('cuda'))": "PyTorch fails an assertion",
    "L.manual_seed('a')": "no number is a TypeError",
}


def error_of(call, library):
    try:
        eval(call, {"L": library})
    except Exception as error:
        return error


def builtin_of(error):
    """The builtin exception that a user would name."""
    return next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS.strip().splitlines())
def test_a_bad_call_fails_as_in_pytorch(call):
    import torch

    mine, theirs = error_of(call, kiln), error_of(call, torch)
    assert mine is not None and str(mine)
    if call not in DEVIATIONS:
        assert theirs is not None and isinstance(mine, builtin_of(theirs)), repr(theirs)
    else:
        assert theirs is None or not isinstance(mine, builtin_of(theirs)), "it is none any more"


def test_a_missing_file():
    with pytest.raises(FileNotFoundError, match="nowhere.pt"):
        kiln.load("nowhere.pt")
    with pytest.raises(kiln.errors.IoError):
        kiln.load("nowhere.safetensors")
