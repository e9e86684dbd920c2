"""Gradients: accumulation, explicit Gradients, kiln.autograd.grad, hooks, modes, threads."""

import contextlib
import gc
import threading

import numpy as np
import pytest

import kiln
from conftest import HAS_TORCH
from kiln import autograd


def leaf(*values):
    return kiln.tensor(values, requires_grad=True)


def test_backward_accumulates():
    x = leaf(1.0, 2.0)
    assert x.grad is None and x.is_leaf and x.grad_fn is None
    y = x * x
    assert not y.is_leaf and y.grad_fn.name() == "mul" and y.requires_grad
    y.sum().backward()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5.0, 7.0]
    x.grad = None
    assert x.grad is None
    x.grad = kiln.ones(2)
    x.grad.zero_()
    assert x.grad.tolist() == [0, 0]
    (x * x).backward(kiln.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [2.0, 40.0]


def test_backward_errors():
    x = leaf(1.0, 2.0)
    y = x * x
    with pytest.raises(RuntimeError, match="one element"):
        y.backward()
    with pytest.raises(RuntimeError):
        kiln.ones(1).backward()
    y.sum().backward()
    with pytest.raises(RuntimeError):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="floating"):
        kiln.tensor([1]).requires_grad_()
    with pytest.raises(RuntimeError):
        x.grad = kiln.ones(3)


def test_retain_graph_and_inputs():
    x, w = leaf(2.0), leaf(3.0)
    y = x * w
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 6 and w.grad.item() == 4
    x.grad = w.grad = None
    (x * w).backward(inputs=[x])
    assert x.grad.item() == 3 and w.grad is None


def test_gradients_object():
    x, w = leaf(2.0), leaf(3.0)
    g = (x * w * w).gradients()
    assert isinstance(g, autograd.Gradients) and len(g) == 2 and x in g
    assert g[x].item() == 9 and g.get(w).item() == 12 and x.grad is None
    g[x] = kiln.tensor([5.0])
    assert g.remove(x).item() == 5 and x not in g and g.get(x) is None
    with pytest.raises(KeyError):
        g[x]


def test_grad_of_any_order():
    x = leaf(2.0)
    (first,) = autograd.grad(x**4, x, create_graph=True)
    (second,) = autograd.grad(first, x, create_graph=True)
    (third,) = autograd.grad(second, x)
    assert (first.item(), second.item(), third.item()) == (32, 48, 48)
    a, b = leaf(1.0), leaf(1.0)
    with pytest.raises(RuntimeError, match="not used"):
        autograd.grad(a * 2, [a, b])
    assert autograd.grad(a * 2, [a, b], allow_unused=True)[1] is None
    assert autograd.grad(a * 2, [a, b], materialize_grads=True)[1].item() == 0
    m = leaf(1.0, 2.0)
    (g,) = autograd.grad([m * m], [m], grad_outputs=[kiln.tensor([1.0, 2.0])])
    assert g.tolist() == [2, 8] and m.grad is None
    autograd.backward([m.sum(), (m * m).sum()])
    assert m.grad.tolist() == [3, 5]


def test_modes_as_contexts_and_decorators():
    x = leaf(1.0)
    with kiln.no_grad():
        assert not kiln.is_grad_enabled() and not (x * 2).requires_grad
        with kiln.enable_grad():
            assert (x * 2).requires_grad
        assert not kiln.is_grad_enabled()
    assert kiln.is_grad_enabled()

    @kiln.no_grad()
    def f():
        return kiln.is_grad_enabled()

    @kiln.no_grad
    def g():
        "Doc."
        return kiln.is_grad_enabled()

    @kiln.no_grad()
    def numbers():
        received = yield kiln.is_grad_enabled()
        assert received == "sent"
        yield kiln.is_grad_enabled()

    assert f() is False and g() is False and g.__doc__ == "Doc." and kiln.is_grad_enabled()
    generator = numbers()
    assert next(generator) is False and kiln.is_grad_enabled()
    assert generator.send("sent") is False and kiln.is_grad_enabled()
    with kiln.set_grad_enabled(False):
        assert not kiln.is_grad_enabled()
    kiln.set_grad_enabled(False)
    assert not kiln.is_grad_enabled()
    kiln.set_grad_enabled(True)
    with kiln.inference_mode():
        assert not kiln.is_grad_enabled()
    with pytest.raises(ZeroDivisionError), kiln.no_grad():
        1 / 0
    assert kiln.is_grad_enabled()


def test_tensor_hooks():
    x = leaf(1.0, 2.0)
    seen = []
    y = x * 3
    handle = y.register_hook(lambda g: seen.append(g.tolist()))
    doubled = x.register_hook(lambda g: g * 2)
    y.sum().backward(retain_graph=True)
    assert seen == [[1, 1]] and x.grad.tolist() == [6, 6]
    handle.remove()
    doubled.remove()
    y.sum().backward()
    assert len(seen) == 1 and x.grad.tolist() == [9, 9]
    with x.register_hook(lambda g: g * 0):
        x.sum().backward()
    assert x.grad.tolist() == [9, 9]
    x.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        x.sum().backward()
    z = leaf(1.0)
    z.register_hook(lambda g: "no")
    with pytest.raises(TypeError, match="str"):
        z.sum().backward()
    with pytest.raises(RuntimeError):
        kiln.ones(1).register_hook(print)


def test_retain_grad_and_detach():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.retain_grad()
    y.sum().backward()
    assert y.grad.tolist() == [1, 1]
    d = y.detach()
    assert d.is_leaf and not d.requires_grad and d.data_ptr() == y.data_ptr()
    x.data = kiln.tensor([5.0, 6.0])
    assert x.tolist() == [5, 6] and x.requires_grad and x.grad.tolist() == [2, 2]
    x.data.mul_(2)
    assert x.tolist() == [10, 12]
    with pytest.raises(RuntimeError, match="detach"):
        y.requires_grad_(False)


def test_in_place_write_over_a_saved_value_is_found():
    x = leaf(1.0, 2.0)
    y = x * 1
    z = y * y
    with kiln.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError):
        z.sum().backward()


def test_threads_and_hooks_at_once():
    x = kiln.ones(20000, requires_grad=True)
    calls = []
    x.register_hook(lambda g: calls.append(1))

    def work():
        for _ in range(20):
            ((x * x).relu() + x).sum().gradients()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(calls) == 80


def test_graph_holds_nothing_after_it_goes():
    class Seen:
        alive = 0

        def __init__(self):
            Seen.alive += 1

        def __call__(self, grad):
            return None

        def __del__(self):
            Seen.alive -= 1

    x = leaf(1.0)
    y = x * 2
    y.register_hook(Seen())
    assert Seen.alive == 1
    del y
    gc.collect()
    assert Seen.alive == 0


def test_other_threads_run_during_a_kernel():
    x = kiln.rand(600, 600)
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(1)
            done.wait(0.0005)

    t = threading.Thread(target=tick)
    t.start()
    for _ in range(10):
        x @ x
    done.set()
    t.join()
    assert len(ticks) > 1


def test_next_functions_walk_the_graph():
    x, w = kiln.ones(2, requires_grad=True), kiln.ones(2)
    y = x * w
    total = (y + x).sum()
    assert x.grad_fn is None

    def names(function):
        return [function.name(), [(f and names(f), i) for f, i in function.next_functions]]

    leaf = ["AccumulateGrad", []]
    product = ["mul", [(leaf, 0), (None, 0)]]
    assert names(total.grad_fn) == ["sum", [(["add", [(product, 0), (leaf, 0)]], 0)]]
    added = total.grad_fn.next_functions[0][0]
    assert added.next_functions[0][0] == y.grad_fn != added
    assert len({added.next_functions[1][0], y.grad_fn.next_functions[0][0]}) == 1
    assert y.grad_fn != 3
    # The second result of an op.
    q, r = kiln.linalg.qr(kiln.eye(2).requires_grad_())
    assert [a.grad_fn.next_functions[0][1] for a in (q * 2, r * 2)] == [0, 1]


def test_as_subclass():
    class Marked(kiln.Tensor):
        def __init__(self, *_):
            raise AssertionError("not called")

    x = kiln.ones(2, requires_grad=True)
    marked = x.as_subclass(Marked)
    assert type(marked) is Marked and marked.data_ptr() == x.data_ptr()
    with pytest.raises(TypeError, match="subclass of Tensor"):
        x.as_subclass(int)


def test_gradients_stay_when_a_tensor_stops_requiring_them():
    p = kiln.nn.Parameter(kiln.ones(2))
    (p * 2).sum().backward()
    p.requires_grad_(False)
    assert p.grad.tolist() == [2, 2]
    kiln.optim.SGD([p], lr=0.5).step()
    assert p.tolist() == [0, 0]
    p.requires_grad = True
    (p * 3).sum().backward()
    assert p.grad.tolist() == [5, 5]


def test_a_gradient_may_be_set_on_any_leaf_of_floats():
    x = kiln.ones(2)
    x.grad = None
    x.grad = kiln.full((2,), 4.0)
    kiln.optim.SGD([x], lr=0.25).step()
    assert x.tolist() == [0, 0] and not x.requires_grad
    with pytest.raises(RuntimeError):
        kiln.ones(2, dtype=kiln.int64).grad = kiln.ones(2, dtype=kiln.int64)


def test_backward_into_one_tensor_and_into_unused_ones():
    a, b = kiln.ones(3, requires_grad=True), kiln.ones(3, requires_grad=True)
    (a * 2).sum().backward(inputs=a)
    (a * 2).sum().backward(inputs=[a, b])
    assert a.grad.tolist() == [4, 4, 4] and b.grad is None
    with pytest.raises(RuntimeError, match="empty"):
        (a * 2).sum().backward(inputs=[])
    for wrong in (5, [1], [None]):
        with pytest.raises(TypeError, match="iterable|backward: inputs"):
            (a * 2).sum().backward(inputs=wrong)


def test_save_on_cpu_gives_the_same_gradients():
    x = kiln.tensor([0.5, 2.0], requires_grad=True)
    with kiln.autograd.graph.save_on_cpu(pin_memory=True):
        y = x.exp() * x
    y.sum().backward()
    expected = (x.detach().exp() * (1 + x.detach())).tolist()
    assert x.grad.tolist() == pytest.approx(expected)


def test_checkpoint_with_contexts():
    from kiln.utils.checkpoint import checkpoint

    entered = []

    class Context:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            entered.append(self.name)

        def __exit__(self, *_):
            pass

    x = kiln.ones(2, requires_grad=True)
    y = checkpoint(
        lambda x: x * x, x, use_reentrant=False, determinism_check="none", debug=False,
        context_fn=lambda: (Context("first"), Context("again")),
    )  # fmt: skip
    y.sum().backward()
    assert entered == ["first", "again"] and x.grad.tolist() == [2, 2]


# ---- autograd.graph


def multi_grad_cases(lib):
    register = lib.autograd.graph.register_multi_grad_hook
    found = []

    def seen(grads):
        if isinstance(grads, (list, tuple)):
            found.append([None if g is None else g.tolist() for g in grads])
        else:
            found.append(grads.tolist())

    for mode in ("all", "any"):
        a, b, c = (lib.ones(2, requires_grad=True) for _ in range(3))
        middle = a * 2
        handle = register([middle, b, c], seen, mode=mode)
        order = []
        a.register_hook(lambda g, order=order: order.append((len(found), g.tolist())))
        # Which of several gradients is the first depends on the engine.
        both = b * c if mode == "all" else 1
        (middle * both).sum().backward(retain_graph=True)  # the hook runs before that of a
        found.append(list(order))
        (middle * 3 + (b if mode == "all" else 0)).sum().backward(retain_graph=True)
        lib.autograd.grad((middle * 5).sum(), a, retain_graph=True)
        (a * 7).sum().backward()  # reaches none
        handle.remove()
        handle.remove()
        (middle * b * c).sum().backward()
        with register([b], seen, mode=mode) if lib is kiln else contextlib.nullcontext():
            pass
    return found


def test_hooks_on_several_tensors():
    backward, grad = kiln.Tensor.backward, kiln._C.grad
    found = multi_grad_cases(kiln)
    assert found[0] == [[1, 1], [2, 2], [2, 2]]
    assert found[2:4] == [[[3, 3], [1, 1], None], [[5, 5], None, None]]
    assert (kiln.Tensor.backward, kiln._C.grad) == (backward, grad)
    if HAS_TORCH:
        import torch

        assert found == multi_grad_cases(torch)
    with pytest.raises(ValueError, match="'all', 'any'"):
        kiln.autograd.graph.register_multi_grad_hook([], print, mode="some")
    with pytest.raises(AssertionError, match="require"):
        kiln.autograd.graph.register_multi_grad_hook([kiln.ones(1)], print)


def test_a_pass_that_fails_leaves_nothing_to_hooks_on_several_tensors():
    a, b = (kiln.ones(2, requires_grad=True) for _ in range(2))
    found = []

    class Fails(kiln.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            raise KeyError("mine")

    with kiln.autograd.graph.register_multi_grad_hook([a, b], found.append):
        with pytest.raises(KeyError):
            (Fails.apply(a * 1) + b).sum().backward()
        (a * 2).sum().backward()
    assert [[None if g is None else g.tolist() for g in grads] for grads in found] == [
        [[2, 2], None]
    ]


def test_gradient_edges():
    graph = kiln.autograd.graph
    x = kiln.ones(4, requires_grad=True)
    y = x * 3
    first, second = y.split(2)
    edge = graph.get_gradient_edge(second)
    assert isinstance(edge, graph.GradientEdge) and edge.output_nr == 1
    assert edge.node == second.grad_fn and isinstance(edge.node, graph.Node)
    assert graph.get_gradient_edge(x).node.name() == "AccumulateGrad"
    z = (y * y).sum()
    (g,) = kiln.autograd.grad(z, graph.get_gradient_edge(y), retain_graph=True)
    assert g.tolist() == [6, 6, 6, 6]
    (g,) = kiln.autograd.grad([graph.get_gradient_edge(y)], x, kiln.ones(4), retain_graph=True)
    assert g.tolist() == [3, 3, 3, 3]
    kiln.autograd.backward(graph.get_gradient_edge(z), inputs=[graph.get_gradient_edge(x)])
    assert x.grad.tolist() == [18, 18, 18, 18]
    with pytest.raises(RuntimeError, match="does not require gradients"):
        graph.get_gradient_edge(kiln.ones(1))
    y = x * 3
    edge = graph.get_gradient_edge(y)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="written to"):
        kiln.autograd.grad(y.sum(), edge)


def test_backward_takes_gradient_edges(lib):
    graph = lib.autograd.graph
    x, w = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
    for inputs in ([graph.get_gradient_edge(x)], graph.get_gradient_edge(x), (x,), x):
        (x * w * 3).sum().backward(inputs=inputs)
    (x * w * 3).backward(lib.ones(2), None, False, [graph.get_gradient_edge(x)])
    assert x.grad.tolist() == [15, 15] and w.grad is None
    seen = []
    handle = graph.register_multi_grad_hook([x], lambda grads: seen.append(len(grads)))
    (x * w).sum().backward(inputs=[graph.get_gradient_edge(x)])
    handle.remove()
    (x * w).sum().backward(inputs=[graph.get_gradient_edge(x), w])
    assert seen == [1] and x.grad.tolist() == [17, 17] and w.grad.tolist() == [1, 1]


def test_saved_tensors_may_be_written_to_where_it_is_allowed(lib):
    graph = lib.autograd.graph
    with graph.allow_mutation_on_saved_tensors() as kept:
        a = lib.ones(2, 3, requires_grad=True)
        b = a.clone()
        out = (b**2).sum()
        b.sin_()
        (out + b.sum()).backward()
        expected = 2 + np.cos(1.0)
        np.testing.assert_allclose(a.grad.numpy(), np.full((2, 3), expected), rtol=1e-6)
        a.grad = None
        out = (a**3).sum()
        with lib.no_grad():
            a.mul_(5)
        out.backward()
        assert a.grad.tolist() == [[3, 3, 3]] * 2
        kept.clear()
    with graph.allow_mutation_on_saved_tensors():
        c = lib.ones(2, requires_grad=True).clone()
        late = (c**2).sum()
        c.sin_()
    with pytest.raises((AssertionError, RuntimeError)):
        late.backward()
    with graph.allow_mutation_on_saved_tensors():
        with pytest.raises(RuntimeError, match="cannot be nested"):
            with graph.allow_mutation_on_saved_tensors():
                pass
    graph.set_warn_on_accumulate_grad_stream_mismatch(True)


def test_saved_tensors_hooks_may_be_refused():
    graph = kiln.autograd.graph
    with graph.disable_saved_tensors_hooks("one"):
        with graph.disable_saved_tensors_hooks("two"):
            with pytest.raises(RuntimeError, match="two"):
                graph.save_on_cpu().__enter__()
        with pytest.raises(RuntimeError, match="one"):
            graph.saved_tensors_hooks(lambda x: x, lambda x: x).__enter__()
    with graph.save_on_cpu():
        with pytest.raises(RuntimeError, match="three"):
            graph.disable_saved_tensors_hooks("three").__enter__()
    with graph.disable_saved_tensors_hooks("four"):
        pass


def test_versions_grow_when_told_to():
    graph = kiln.autograd.graph
    x = kiln.ones(2, requires_grad=True)
    y = x * 2
    z = (y * y).sum()
    before = y._version
    graph.increment_version(y)
    graph.increment_version([x, y[:1]])
    assert y._version == before + 2
    with pytest.raises(RuntimeError, match="modified in place"):
        z.backward()


def test_several_roots_are_one_pass(lib):
    x = lib.ones(2, requires_grad=True)
    seen, together = [], []
    x.register_hook(lambda g: seen.append(g.tolist()))
    handle = lib.autograd.graph.register_multi_grad_hook([x], lambda g: together.append(len(g)))
    y = x * 2
    lib.autograd.backward([y, (y * 3).sum()], [lib.tensor([1.0, 2.0]), None])
    handle.remove()
    assert x.grad.tolist() == [8, 10] and seen == [[8, 10]] and together == [1]
    z = x.exp()
    lib.autograd.backward([z.sum(), (z * 2).sum()])
    with pytest.raises(RuntimeError):  # the graph is gone
        z.sum().backward()
    # Gradients of gradients, also of those that were given.
    x, w = (lib.ones(2, requires_grad=True) for _ in range(2))
    lib.autograd.backward([x**2, (x**2).sum()], [w, None], create_graph=True)
    first = x.grad.clone()
    x.grad = None
    first.sum().backward()
    assert first.tolist() == [4, 4] and x.grad.tolist() == [4, 4] and w.grad.tolist() == [2, 2]
    for roots, gradients in (([x, x.sum()], None), ([x.sum(), x.sum()], [lib.ones(2), None])):
        with pytest.raises(RuntimeError):
            lib.autograd.backward(roots, gradients)
