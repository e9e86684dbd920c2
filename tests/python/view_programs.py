"""Programs that write in place through views: program(lib, x, w) gives a list of outputs.

`lib` is PyTorch or Kiln; x is a matrix and w a row, both of which require gradients.
"""

X = [[0.5, -1.2, 2.0, 0.3], [1.1, 0.7, -0.4, 1.6], [-0.9, 0.8, 1.3, -1.5]]
W = [0.6, -0.3, 1.4, 0.9]


def columns(lib, x, w):
    out = lib.zeros(3, 4, dtype=lib.float64)
    out[:, 0] = x[:, 0] * 2
    out[:, 1:3] = x[:, 2:].sin()
    return [out]


def rows_added(lib, x, w):
    out = lib.zeros(3, 4, dtype=lib.float64)
    for i in range(3):
        out[i] += x[i] * w
    out[1] += x[0]
    return [out]


def number(lib, x, w):
    y = x * 1
    y[0] = 5
    y[1, 2] = 7
    return [y, y.sin()]


def turned(lib, x, w):
    y = x * w
    y.t().mul_(3)
    return [y]


def sliced(lib, x, w):
    y = x * w
    v = y[:, 1:]
    v.add_(1)
    return [y, v, v * v]


def view_of_view(lib, x, w):
    y = x * 1
    a = y[1:]
    b = a[:, ::2]
    b.mul_(w[:2])
    a.exp_()
    return [y, a, b]


def chain(lib, x, w):
    y = x * 1
    for k in range(4):
        y[:, k].mul_(w[k]).add_(y[:, (k + 1) % 4])
    return [y]


def other_views(lib, x, w):
    y = x * 1
    a, b = y[0], y[:, 0]
    before = (a.clone() * b[0].clone()).sum() + b.sum()
    a.mul_(2)
    return [before, b * a[1], y]


def base_written(lib, x, w):
    y = x * 1
    v = y[1:, 1]
    y.mul_(w)
    return [v, v.sin() * y[1:, 0]]


def base_and_view(lib, x, w):
    y = x * 1
    v = y[1]
    y.add_(1)
    v.mul_(y[0].clone())
    y.mul_(2)
    v.copy_(w)
    return [y, v]


def untracked_base(lib, x, w):
    y = lib.ones(2, 3, 4, dtype=lib.float64)
    y[1].mul_(x)
    y.transpose(0, 2)[3, 0].sub_(x[0, 0])
    return [y]


def view_before_history(lib, x, w):
    y = lib.ones(3, 4, dtype=lib.float64)
    v = y[0]
    y.mul_(x)
    return [v * 2, y]


def diagonal(lib, x, w):
    y = x * 1
    y.diagonal().copy_(w[:3])
    y.diagonal(1).mul_(2)
    return [y]


def reshaped(lib, x, w):
    y = x * 1
    y.view(-1)[3:9].mul_(w[0])
    y.view(2, 6)[:, ::3].add_(w[:2])
    return [y, y.reshape(6, 2)[1]]


def new_dims(lib, x, w):
    y = x * 1
    y.unsqueeze(1)[:, 0, None, 2].add_(w[0])
    y[None].squeeze(0)[2].mul_(w)
    return [y]


def unfolded(lib, x, w):
    y = x * 1
    y.unfold(1, 2, 2)[:, 1].mul_(w[:2])
    return [y]


def strided(lib, x, w):
    y = x * 1
    y.as_strided((2, 2), (5, 2), 1).mul_(w[:2])
    return [y]


def expanded_reader(lib, x, w):
    y = x[:, :1] * 1
    v = y.expand(3, 4)
    y.mul_(2)
    return [v * w, y]


def unfolded_reader(lib, x, w):
    y = x * 1
    v = y.unfold(1, 3, 1)
    y[1] *= w
    return [v.sin(), y]


def permuted_base(lib, x, w):
    y = (x * 1).t().contiguous().t()
    y = y.detach()
    v = y[1:, 2]
    v.mul_(x[1:, 0])
    u = y[:, 1]
    y.add_(x)
    return [y, v, u]


def gappy_base(lib, x, w):
    y = (x * 1).detach()[:, ::2].detach()
    v = y[1]
    v.mul_(w[:2])
    y[:, 1].add_(x[:, 3])
    return [y, v * v]


def detached(lib, x, w):
    y = x * 1
    y.detach()[0].mul_(3)
    z = y * 2
    return [z]


def detached_tracked(lib, x, w):
    y = lib.ones(3, 4, dtype=lib.float64)
    d = y.detach()
    d[0] = w
    return [d]


def mask_number(lib, x, w):
    y = x * 1
    y[x > 0.6] = 2.5
    return [y]


def mask_values(lib, x, w):
    y = x * 1
    y[x.detach() > 1] = w[:4]
    return [y]


def mask_rows(lib, x, w):
    y = x * 1
    y[lib.tensor([True, False, True])] = w * x[1]
    return [y]


def mask_of_view(lib, x, w):
    y = x * 1
    v = y[1:]
    v[v.detach() > 0.5] = w[0]
    return [y, v]


def indices(lib, x, w):
    y = x * 1
    y[lib.tensor([2, 0])] = w
    y[:, lib.tensor([1, 3])] = x[:, :2] * 2
    return [y]


def pairs(lib, x, w):
    y = x * 1
    y[lib.tensor([0, 1, 2]), lib.tensor([3, 1, 0])] = w[1:]
    return [y]


def pairs_apart(lib, x, w):
    y = lib.zeros(3, 2, 4, dtype=lib.float64)
    y[lib.tensor([0, 2]), :, lib.tensor([3, 1])] = x[:2, :2]
    return [y]


def mixed_index(lib, x, w):
    y = x * 1
    y[1:, lib.tensor([0, 2])] = w[:2]
    y[0, lib.tensor([1, 1])] += 3
    return [y]


def accumulated(lib, x, w):
    y = x * 1
    y.index_put_((lib.tensor([0, 0, 2]), lib.tensor([1, 1, 3])), w[:3], accumulate=True)
    y[1:].index_add_(1, lib.tensor([3, 0]), x[:2, :2])
    return [y]


def index_methods(lib, x, w):
    y = x * 1
    y.t().index_copy_(0, lib.tensor([2]), x[:, :1].t())
    y[:2].index_fill_(1, lib.tensor([0]), 4.0)
    return [y]


def scattered(lib, x, w):
    y = x * 1
    i = lib.tensor([[0, 1, 0, 1]])
    y[1:].scatter_(0, i, w[None] * 2)
    y[:2].scatter_add_(0, i, x[2:])
    return [y]


def masked_methods(lib, x, w):
    y = x * 1
    m = x.detach()[:2] > 0.6
    y[1:].masked_fill_(m, 3.0)
    y[:2].masked_scatter_(m, (x * w).reshape(-1))
    return [y]


def elementwise(lib, x, w):
    y = x * 1
    y[0, :2].exp_()
    z = y * 1
    z[1].abs_().sqrt_()
    u = z * 1
    u[2].sigmoid_()
    v = u * 1
    v[:, 3].tanh_()
    y = v * 1
    y[:, 0].neg_().square_()
    y[0, 1:].clamp_(0.5, 1.2)
    return [y]


def fused(lib, x, w):
    y = x * 1
    y[0].addcmul_(w, x[1], value=0.5)
    y[1].addcdiv_(x[0], w, value=2)
    y[2].lerp_(w, 0.3)
    return [y]


def products(lib, x, w):
    y = x * 1
    y[0].div_(w)
    y[1].pow_(2)
    y[:, 2].sub_(x[:, 1], alpha=2)
    return [y, y @ y.t()]


def filled(lib, x, w):
    y = x * 1
    y[0].fill_(2)
    y[:, 1].zero_()
    y[2:, 2:].expand(1, 2).fill_(3)
    return [y]


def broadcast_source(lib, x, w):
    y = x * 1
    y[:] = w
    y[1:] = w[0]
    y[2] = x[:1, :1]
    return [y]


def same_place(lib, x, w):
    y = x * 1
    y[0] = y[1]
    y[:2] = y[1:].clone()
    y[:, 0] += y[:, 1]
    y[1] *= y[1].clone()
    y[2, 1:] -= y[2, :-1].clone()
    return [y]


def activations(lib, x, w):
    y = x * w
    lib.nn.functional.relu(y[:2], inplace=True)
    z = y * 1
    lib.nn.functional.leaky_relu_(z[1:], 0.2)
    return [z]


def activations_over_parts(lib, x, w):
    """Each the only write to its tensor: PyTorch keeps results, which a later write would change."""
    F = lib.nn.functional
    wholes = [x * w * 4 for _ in range(6)]
    F.relu6(wholes[0][0], inplace=True)
    F.elu_(wholes[1][1], 0.5)
    F.hardtanh_(wholes[2][:, 1], -0.7, 0.4)
    F.celu_(wholes[3][0], 1.5)
    F.selu_(wholes[4][:, 2:])
    F.hardswish(wholes[5][1], inplace=True)
    return wholes


def without_recording(lib, x, w):
    y = x * 1
    v = y[1]
    with lib.no_grad():
        v.add_(1)
        y[0, 0] = 3
    return [v * w, y]


def both_without(lib, x, w):
    y = x * 1
    with lib.no_grad():
        y[0].mul_(2)
    return [y * w]


def complex_parts(lib, x, w):
    z = lib.complex(x, x * 2)
    lib.view_as_real(z)[..., 0].mul_(w)
    z.imag.add_(1)
    z[0] *= 2j
    return [z.real, z.imag]


def complex_view(lib, x, w):
    y = x * 1
    z = lib.view_as_complex(y.view(3, 2, 2))
    z[1].mul_(lib.complex(w[:2], w[2:]))
    return [y, z.imag]


def tensor_split(lib, x, w):
    y = x * 1
    a, b = y.tensor_split(2, 1)
    a.mul_(2)
    b.add_(a)
    return [y]


def recurrence(lib, x, w):
    state = lib.zeros(6, 4, dtype=lib.float64)
    state[0] = w
    for t in range(5):
        state[t + 1] = (state[t].clone() * x[t % 3]).tanh()
    return [state]


def dtype_of_the_base(lib, x, w):
    y = (x * 1).to(lib.float32)
    y[0] = w
    y[1].add_(x[0])
    return [y.to(lib.float64)]


PROGRAMS = [
    columns, rows_added, number, turned, sliced, view_of_view, chain, other_views, base_written,
    base_and_view, untracked_base, view_before_history, diagonal, reshaped, new_dims, unfolded,
    strided, expanded_reader, unfolded_reader, permuted_base, gappy_base, detached,
    detached_tracked, mask_number, mask_values, mask_rows, mask_of_view, indices, pairs,
    pairs_apart, mixed_index, accumulated, index_methods, scattered, masked_methods, elementwise,
    fused, products, filled, broadcast_source, same_place, activations, activations_over_parts, without_recording,
    both_without, complex_parts, complex_view, tensor_split, recurrence, dtype_of_the_base,
]  # fmt: skip
