"""kiln.func and gradcheck, beside torch.func and torch.autograd where PyTorch is installed."""

import importlib

import pytest

import kiln


def func_of(lib):
    return importlib.import_module(lib.__name__ + ".func")


def test_grad_nests(lib):
    func = func_of(lib)
    f = lambda x: (x**4).sum()  # noqa: E731
    x = lib.tensor(2.0)
    assert func.grad(f)(x).item() == 32
    assert func.grad(func.grad(f))(x).item() == 48
    assert func.grad(func.grad(func.grad(f)))(x).item() == 48
    assert not func.grad(f)(x).requires_grad
    # What an inner function captured of an outer one counts.
    g = func.grad(lambda x: func.grad(lambda y: x**2 * y)(lib.tensor(5.0)))
    assert g(lib.tensor(3.0)).item() == 6


def test_grad_arguments(lib):
    func = func_of(lib)
    f = lambda x, y, scale=1: ((x * y).sum() * scale, x * 7)  # noqa: E731
    x, y = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0])
    (gx, gy), aux = func.grad(f, argnums=(0, 1), has_aux=True)(x, y, scale=2)
    assert gx.tolist() == [6, 8] and gy.tolist() == [2, 4] and aux.tolist() == [7, 14]
    grads, (value, aux) = func.grad_and_value(f, argnums=1, has_aux=True)(x, y)
    assert grads.tolist() == [1, 2] and value.item() == 11 and not aux.requires_grad
    weights = {"w": x, "b": [y]}
    grads = func.grad(lambda p: (p["w"] * 3 + p["b"][0] ** 2).sum())(weights)
    assert grads["w"].tolist() == [3, 3] and grads["b"][0].tolist() == [6, 8]
    with pytest.raises(RuntimeError):
        func.grad(lambda x: x)(x)


def test_grad_of_tensors_that_require_one(lib):
    x = lib.tensor(3.0, requires_grad=True)
    g = func_of(lib).grad(lambda x: x**3)(x)
    assert g.requires_grad and g.item() == 27
    g.backward()
    assert x.grad.item() == 18


def test_vjp_and_jvp(lib):
    func = func_of(lib)
    x, y = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 5.0])
    value, pull = func.vjp(lambda a, b: a * b, x, y)
    assert value.tolist() == [3, 10] and not value.requires_grad
    a, b = pull(lib.tensor([1.0, 2.0]))
    assert a.tolist() == [3, 10] and b.tolist() == [1, 4]
    assert pull(lib.tensor([1.0, 0.0]))[0].tolist() == [3, 0]
    value, pull, aux = func.vjp(lambda a: ((a * a, a), a * 7), x, has_aux=True)
    assert pull((lib.ones(2), lib.ones(2)))[0].tolist() == [3, 5] and aux.tolist() == [7, 14]
    value, along = func.jvp(lambda a, b: a * b, (x, y), (lib.ones(2), lib.zeros(2)))
    assert value.tolist() == [3, 10] and along.tolist() == [3, 5]
    second = func.jvp(func.grad(lambda a: (a**3).sum()), (x,), (lib.ones(2),))[1]
    assert second.tolist() == [6, 12]
    with pytest.raises(RuntimeError):
        pull((lib.ones(3), lib.ones(2)))


def test_jacobians_and_hessians(lib):
    func = func_of(lib)
    x, y = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 5.0])
    for jacobian in (func.jacrev, func.jacfwd):
        assert jacobian(lambda a: a * a.sum())(x).tolist() == [[4, 1], [2, 5]]
        ja, jb = jacobian(lambda a, b: a * b, argnums=(0, 1))(x, y)
        assert ja.tolist() == [[3, 0], [0, 5]] and jb.tolist() == [[1, 0], [0, 2]]
        result, aux = jacobian(lambda a: (a * 2, a * 7), has_aux=True)(x)
        assert result.tolist() == [[2, 0], [0, 2]] and aux.tolist() == [7, 14]
    assert func.hessian(lambda a: (a**3).sum())(x).tolist() == [[6, 0], [0, 12]]
    assert func.hessian(lambda a: a**2)(x).tolist() == [[[2, 0], [0, 0]], [[0, 0], [0, 2]]]
    assert func.jacrev(func.jacfwd(lambda a: (a**3).sum()))(x).tolist() == [[6, 0], [0, 12]]


def test_functional_call(lib):
    func = func_of(lib)
    net = lib.nn.Sequential(lib.nn.Linear(2, 3), lib.nn.Linear(3, 1))
    x = lib.ones(4, 2)
    values = {n: lib.zeros_like(p) + 0.5 for n, p in net.named_parameters()}
    before = net(x)
    assert func.functional_call(net, values, (x,)).tolist() == [[2.75]] * 4
    assert lib.equal(net(x), before)
    grads = func.grad(lambda v: func.functional_call(net, v, x).sum())(values)
    assert grads["1.bias"].tolist() == [4] and grads["0.weight"].tolist() == [[2, 2]] * 3
    assert all(p.grad is None for p in net.parameters())
    assert lib.equal(func.functional_call(net, {}, (x,)), before)
    with pytest.raises(RuntimeError):
        func.functional_call(net, {"0.bias": values["0.bias"]}, (x,), strict=True)
    with pytest.raises(AttributeError):
        func.functional_call(net, {"2.bias": values["0.bias"]}, (x,))


# ---- gradcheck


class Wrong(kiln.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


def test_gradcheck(lib):
    check = lib.autograd.gradcheck
    x = lib.tensor([[0.5, 1.0], [2.0, -1.0]], dtype=lib.float64, requires_grad=True)
    y = lib.tensor([0.3, 0.7], dtype=lib.float64, requires_grad=True)
    kept = x.tolist()
    assert check(lambda a, b: (a * b.sin(), a.sum() * b), (x, y))
    assert x.tolist() == kept and x.grad is None
    z = lib.tensor([1 + 2j, 0.5 - 1j], dtype=lib.complex128, requires_grad=True)
    assert check(lambda a: a * a.conj() + a.abs(), z)
    assert lib.autograd.gradgradcheck(lambda a, b: (a * b).exp().sum(0), (x, y))
    with pytest.raises(ValueError):
        check(lambda a: a, x.detach())


def test_gradcheck_finds_what_is_wrong():
    x = kiln.tensor([0.5, 1.0], dtype=kiln.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="Jacobian mismatch for output 0"):
        kiln.autograd.gradcheck(Wrong.apply, x)
    assert not kiln.autograd.gradcheck(Wrong.apply, x, raise_exception=False)


def test_vmap_of_one_hot_with_the_number_of_classes():
    x = kiln.tensor([1, 3, 0])
    y = kiln.func.vmap(lambda i: kiln.nn.functional.one_hot(i, 4))(x)
    assert kiln.equal(y, kiln.nn.functional.one_hot(x, 4))
    with pytest.raises(IndexError):
        kiln.func.vmap(lambda i: kiln.nn.functional.one_hot(i, 3))(x)


def test_jacobians_lie_in_a_row():
    def f(x):
        return x.sin().sum() * x.pow(2).sum()

    for g in (kiln.func.hessian(f), kiln.func.jacfwd(lambda x: x * x.sum())):
        assert g(kiln.ones(5)).is_contiguous()


def test_trees():
    from kiln.utils import _pytree as pytree

    tree = {"a": [1, (2, 3)], "b": 4}
    leaves, spec = pytree.tree_flatten(tree)
    assert leaves == [1, 2, 3, 4] and pytree.tree_unflatten([5, 6, 7, 8], spec) == {
        "a": [5, (6, 7)], "b": 8,
    }  # fmt: skip
    assert pytree.tree_map(lambda x, y: x + y, tree, tree) == {"a": [2, (4, 6)], "b": 8}
    assert spec == pytree.tree_flatten({"a": [0, (0, 0)], "b": 0})[1]
    with pytest.raises(ValueError):
        pytree.tree_unflatten([1], spec)


def test_trees_of_registered_types(lib):
    import collections
    import dataclasses
    import importlib

    pytree = importlib.import_module(f"{lib.__name__}.utils._pytree")

    @dataclasses.dataclass
    class Pair:
        first: object
        second: object

    class Box:
        def __init__(self, inside):
            self.inside = inside

    pytree.register_dataclass(Pair)
    pytree.register_pytree_node(Box, lambda box: ([box.inside], "context"), lambda parts, _: Box(*parts))
    with pytest.raises(ValueError):
        pytree.register_pytree_node(Box, lambda box: ([], None), lambda parts, _: Box(None))
    point = collections.namedtuple("point", "x y")
    tree = [Pair(1, Box(2)), point(3, (4,)), collections.deque([5]), {"a": 6}]
    tree.append(collections.defaultdict(list, {"b": 7}))
    assert pytree.tree_leaves(tree) == [1, 2, 3, 4, 5, 6, 7]
    doubled = pytree.tree_map(lambda leaf: 2 * leaf, tree)
    assert doubled[0].first == 2 and doubled[0].second.inside == 4 and doubled[1] == point(6, (8,))
    assert doubled[2:] == [collections.deque([10]), {"a": 12}, {"b": 14}]
    assert doubled[4].default_factory is list
    leaves, spec = pytree.tree_flatten(tree)
    assert spec.num_leaves == 7 and spec.num_children == 5 and spec.type is list
    assert spec == pytree.tree_structure(doubled) != pytree.tree_structure(tree[:3])
    assert pytree.tree_unflatten(leaves, spec)[0].second.inside == 2
    boxes = pytree.tree_leaves(tree[0], is_leaf=lambda node: isinstance(node, Box))
    assert boxes == [1, tree[0].second]
    only = pytree.tree_map_only(int, lambda leaf: -leaf, [1, 2.0, "a"])
    assert only == [-1, 2, "a"] and pytree.tree_any(lambda leaf: leaf == 2, only)
    assert not pytree.tree_all(lambda leaf: leaf == 2, only)
    paths = [pytree.keystr(path) for path, _ in pytree.tree_leaves_with_path([Pair(1, 2), *tree[1:]])]
    assert paths == ["[0].first", "[0].second", "[1].x", "[1].y[0]", "[2][0]", "[3]['a']", "[4]['b']"]
    named = pytree.tree_map_with_path(lambda path, leaf: (path[-1], leaf), {"a": 1})
    assert named["a"][0].key == "a" and named["a"][1] == 1
    with pytest.raises(ValueError, match="flatten_with_keys_fn"):
        pytree.tree_flatten_with_path(tree)
    rows = lib.func.vmap(lambda x: Pair(x, Box(2 * x)))(lib.arange(3.0))
    assert rows.second.inside.tolist() == [0, 2, 4]
