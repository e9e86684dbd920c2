"""Classes derived from Tensor, __torch_function__ and modes. Each runs with PyTorch, too, where it is
installed."""

import copy
import pickle
import threading

import pytest

import kiln


class Marked(kiln.Tensor):
    pass


@pytest.fixture
def marked(lib):
    class Marked(lib.Tensor):
        pass

    return Marked


def of(lib, cls, *values):
    return lib.tensor(list(values)).as_subclass(cls)


def test_results_are_of_the_class(lib, marked):
    x = of(lib, marked, 1.0, 2.0)
    plain = lib.ones(2)
    results = {
        "operators": [x + 1, 1 + x, plain * x, x @ plain, x == x, -x, x[0], x[None], x**2],
        "functions": [
            lib.add(x, 1), lib.cat([plain, x]), lib.stack([x, x]), lib.zeros_like(x), lib.sum(x),
            lib.einsum("i,i->", x, x), lib.where(x > 1, x, 0), lib.exp(input=x),
            lib.nn.functional.relu(x), lib.nn.functional.softmax(x, 0), lib.linalg.norm(x),
            lib.fft.fft(x),
        ],
        "methods": [
            x.mean(), x.new_ones(3), x.detach(), x.to(lib.float64), x.clone(), x.relu_(),
            plain.add_(x),
        ],
        "properties": [x.data, x.reshape(1, 2).T, x.real],
        "layers": [lib.nn.Linear(2, 3)(x), lib.nn.Sequential(lib.nn.Linear(2, 3), lib.nn.ReLU())(x)],
        "several": [*x.split(1), *lib.max(x.reshape(1, 2), 1), *x.unbind(), *x],
    }  # fmt: skip
    for kind, found in results.items():
        assert [type(y) for y in found] == [marked] * len(found), kind
    assert type(lib.max(x.reshape(1, 2), 1)).__name__ == "max"
    assert not isinstance(plain * 2, marked)
    assert type(x.shape) is lib.Size and type(x.item() if x.dim() == 0 else x.tolist()) is list


def test_values_and_gradients_are_those_of_plain_tensors(lib, marked):
    w = lib.tensor([1.0, -2.0], requires_grad=True)
    x = w.as_subclass(marked)
    assert x.requires_grad and not x.is_leaf and x.data_ptr() == w.data_ptr()
    y = (x * x).sum()
    assert type(y) is marked and y.item() == 5
    y.backward()
    assert type(w.grad) is lib.Tensor and w.grad.tolist() == [2, -4]
    (found,) = lib.autograd.grad((x * 3).sum(), [w])
    assert found.tolist() == [3, 3]


def test_gradients_of_leaves_stay_plain(lib, marked):
    x = of(lib, marked, 1.0, 2.0).requires_grad_()
    assert type(x) is marked and x.is_leaf
    (x * 2).sum().backward()
    assert type(x.grad) is lib.Tensor and x.grad.tolist() == [2, 2]


def test_ways_to_make_them(lib, marked):
    class Tagged(lib.Tensor):
        @staticmethod
        def __new__(cls, values, tag, *args, **kwargs):
            return super().__new__(cls, values, *args, **kwargs)

        def __init__(self, values, tag):
            self.tag = tag

    class Called(lib.Tensor):
        def __init__(self, values):
            super().__init__()
            self.called = True

    class Given(lib.Tensor):
        def __new__(cls, values, extra=0):
            out = lib.as_tensor(values).as_subclass(cls)
            out.extra = extra
            return out

    assert marked([1.0, 2.0]).tolist() == [1, 2]
    assert marked(2, 3).shape == (2, 3)
    x = Tagged([1.0, 2.0], "a")
    assert x.tolist() == [1, 2] and x.tag == "a" and type(x + 1) is Tagged
    assert Called([3.0]).tolist() == [3] and Called([3.0]).called
    assert Given([1, 2], extra=4).extra == 4 and Given([1, 2]).tolist() == [1, 2]


def test_slots(lib):
    class Slotted(lib.Tensor):
        __slots__ = ("unit",)

    x = of(lib, Slotted, 1.0, 2.0)
    x.unit = "m"
    assert type(x + 1) is Slotted and (x + 1).tolist() == [2, 3]
    assert [type(part) for part in x.split(1)] == [Slotted] * 2


def test_printing(lib):
    class Metres(lib.Tensor):
        pass

    class M(lib.Tensor):
        pass

    assert repr(of(lib, Metres, 1.0, 2.0)) == "Metres([1., 2.])"
    for cls in (Metres, M):
        x = lib.arange(4.0).reshape(2, 2).as_subclass(cls)
        first, second = repr(x).splitlines()
        assert first == f"{cls.__name__}([[0., 1.],"
        assert second == " " * (len(cls.__name__) + 2) + "[2., 3.]])"


def test_copies_and_pickles_have_the_class():
    x = kiln.tensor([1.0, 2.0]).as_subclass(Marked)
    x.tag = [3]
    for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(y) is Marked and y.tolist() == [1, 2] and y.tag == [3]
    again = copy.deepcopy([x, x])
    assert again[0] is again[1]


def logged(lib):
    calls = []

    class Logged(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append((func, types, args, kwargs or {}))
            return super().__torch_function__(func, types, args, kwargs)

    return Logged, calls


def test_what_a_handler_sees(lib):
    Logged, calls = logged(lib)
    x = of(lib, Logged, 1.0, 2.0)
    other = lib.ones(2)

    def seen(call):
        calls.clear()
        result = call()
        assert len(calls) == 1
        (found,) = calls
        assert set(found[1]) == {Logged}
        return *found, result

    func, _, args, kwargs, result = seen(lambda: lib.add(other, x, alpha=2))
    assert func is lib.add and args[0] is other and args[1] is x and kwargs == {"alpha": 2}
    assert type(result) is Logged and result.tolist() == [3, 5]
    assert seen(lambda: lib.sum(x, dim=0))[3] == {"dim": 0}
    assert seen(lambda: lib.nn.functional.gelu(x))[0] is lib.nn.functional.gelu
    assert seen(lambda: lib.nn.functional.softmax(x, dim=0))[0] == lib.nn.functional.softmax
    assert seen(lambda: lib.stack([other, x]))[0] is lib.stack
    tensor = lib.Tensor
    for expected, call in {
        "add": lambda: x + 1, "mul": lambda: 2 * x, "sub": lambda: x - 1, "div": lambda: x / 2,
        "matmul": lambda: x @ other, "lt": lambda: x < 1, "pow": lambda: x**2, "neg": lambda: -x,
        "remainder": lambda: x % 2, "__eq__": lambda: x == 1, "__getitem__": lambda: x[0],
        "exp": lambda: x.exp(), "__contains__": lambda: 1 in x,
    }.items():  # fmt: skip
        func = seen(call)[0]
        assert func.__name__ == expected
        # PyTorch wraps some of its operators again.
        assert func == getattr(tensor, expected) or lib is not kiln
    assert seen(lambda: x.shape)[0] == tensor.shape.__get__
    assert seen(lambda: x.requires_grad)[0] == tensor.requires_grad.__get__


def test_the_documentations_example(lib):
    """A table of functions, as PyTorch's notes on extending it have."""
    handled = {}

    def implements(function):
        def register(implementation):
            handled[function] = implementation
            return implementation

        return register

    class Diagonal:
        """value * the identity of n rows: no tensor."""

        def __init__(self, n, value):
            self.n, self.value = n, value

        def dense(self):
            return self.value * lib.eye(self.n)

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func not in handled or not all(issubclass(t, (lib.Tensor, cls)) for t in types):
                return NotImplemented
            return handled[func](*args, **(kwargs or {}))

    @implements(lib.mean)
    def mean(x):
        return x.value / x.n

    @implements(lib.mm)
    def mm(a, b):
        return lib.mm(*(x.dense() if isinstance(x, Diagonal) else x for x in (a, b)))

    d = Diagonal(4, 2.0)
    assert lib.mean(d) == 0.5
    assert lib.mm(lib.ones(1, 4), d).tolist() == [[2, 2, 2, 2]]
    with pytest.raises(TypeError, match="Multiple dispatch failed for .*\n\n  - .*Diagonal"):
        lib.add(d, 1)


def test_the_most_derived_class_is_asked_first(lib):
    asked = []

    class Base(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(cls.__name__)
            return NotImplemented

    class Derived(Base):
        pass

    class Other(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(cls.__name__)
            return 7

    a, b, c = (of(lib, cls, 1.0) for cls in (Base, Derived, Other))
    assert lib.cat([a, c, b]) == 7 and asked == ["Derived", "Base", "Other"] or asked == [
        "Base", "Other",
    ]  # fmt: skip
    asked.clear()
    with pytest.raises(TypeError, match="Multiple dispatch failed for .*add"):
        lib.add(a, b)
    assert asked == ["Derived", "Base"]


def test_classes_that_do_not_know_each_other(lib, marked):
    class Other(lib.Tensor):
        pass

    with pytest.raises(TypeError, match="Multiple dispatch failed|unsupported operand"):
        of(lib, marked, 1.0) + of(lib, Other, 1.0)
    with pytest.raises(TypeError, match="(?s)Multiple dispatch failed .* - tensor subclass"):
        lib.add(of(lib, marked, 1.0), of(lib, Other, 1.0))

    class Below(marked):
        pass

    assert type(of(lib, marked, 1.0) + of(lib, Below, 1.0)) is Below


def test_a_handler_that_fails(lib):
    class Broken(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise ZeroDivisionError("mine")

    x = of(lib, Broken, 1.0)
    for call in (lambda: x + 1, lambda: lib.exp(x), lambda: x.shape, lambda: lib.nn.ReLU()(x)):
        with pytest.raises(ZeroDivisionError, match="mine"):
            call()
    assert (lib.ones(1) + 1).item() == 2


def switch(lib, name):
    return getattr(lib._C, name)()


def test_disabled(lib):
    Logged, calls = logged(lib)
    x = of(lib, Logged, 1.0)
    calls.clear()
    for name in ("DisableTorchFunctionSubclass", "DisableTorchFunction"):
        with switch(lib, name):
            assert type(x + 1) is lib.Tensor
    assert not calls
    assert type(x + 1) is Logged and calls
    assert lib.nn.Parameter.__torch_function__ is lib._C._disabled_torch_function_impl

    class Quiet(lib.Tensor):
        __torch_function__ = lib._C._disabled_torch_function_impl

    assert type(of(lib, Quiet, 1.0) + 1) is lib.Tensor


def overrides(lib):
    import importlib

    return importlib.import_module(f"{lib.__name__}.overrides")


def test_modes(lib, marked):
    seen = []

    class Names(overrides(lib).TorchFunctionMode):
        def __init__(self, name):
            self.name = name

        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append((self.name, func.__name__, types))
            return func(*args, **(kwargs or {}))

    x = of(lib, marked, 1.0)
    with Names("outer"):
        y = lib.ones(2)
        with Names("inner"):
            z = lib.add(x, 1)
    assert y.tolist() == [1, 1] and type(z) is marked and z.item() == 2
    found = [(mode, func) for mode, func, _ in seen]
    assert found == [("outer", "ones"), ("inner", "add"), ("outer", "add")]
    assert list(seen[1][2]) == [marked]
    seen.clear()
    lib.ones(1)
    assert not seen

    with pytest.raises(ZeroDivisionError), Names("left by an error"):
        raise ZeroDivisionError
    lib.ones(1)
    assert not seen


def test_a_mode_answers_itself(lib):
    class Zeros(overrides(lib).TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func is lib.ones:
                return lib.zeros(*args, **(kwargs or {}))
            return func(*args, **(kwargs or {}))

    with Zeros():
        assert lib.ones(2).tolist() == [0, 0]
    with switch(lib, "DisableTorchFunction"), Zeros():
        assert lib.ones(2).tolist() == [1, 1]


def test_modes_are_of_their_thread():
    class Wrong(kiln.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return "wrong"

    found = []
    with Wrong():
        thread = threading.Thread(target=lambda: found.append(kiln.ones(1)))
        thread.start()
        thread.join()
        assert kiln.ones(1) == "wrong"
    assert found[0].tolist() == [1]
    with pytest.raises(RuntimeError, match="no mode is on"):
        kiln._C._pop_mode()
    with pytest.raises(NotImplementedError, match="defines no __torch_function__"):
        with kiln.overrides.TorchFunctionMode():
            kiln.ones(1)


def test_functions_of_ones_own(lib, marked):
    o = overrides(lib)
    Logged, calls = logged(lib)

    def double(x):
        if o.has_torch_function_unary(x):
            return o.handle_torch_function(double, (x,), x)
        return x * 2

    x = of(lib, Logged, 1.0)
    calls.clear()
    assert type(double(x)) is Logged and calls[0][0] is double
    assert type(double(lib.ones(1))) is lib.Tensor

    @o.wrap_torch_function(lambda a, b: (a, b))
    def both(a, b):
        return a + b

    assert type(both(lib.ones(1), x)) is Logged and both(1, 2) == 3
    assert o.has_torch_function((1, x)) and not o.has_torch_function((1, lib.ones(1)))
    assert o.has_torch_function_variadic(1, x)
    assert o.is_tensor_like(x) and o.is_tensor_like(lib.ones(1)) and not o.is_tensor_like(1)


def test_what_can_be_overridden(lib):
    o = overrides(lib)
    functions = o.get_overridable_functions()
    assert lib.add in functions[lib] and lib.Tensor.exp in functions[lib.Tensor]
    assert lib.nn.functional.gelu in functions[lib.nn.functional]
    assert lib.manual_seed in o.get_ignored_functions()
    assert lib.Tensor.grad.__get__ in o.get_default_nowrap_functions()
    assert o.resolve_name(lib.Tensor.exp) == f"{lib.__name__}.Tensor.exp"
    assert o.resolve_name(print) is None
    assert o.is_tensor_method_or_property(lib.Tensor.exp)
    assert not o.is_tensor_method_or_property(lib.add)
    assert o.get_testing_overrides()[lib.add](1, 2) == -1


def test_every_function_goes_through_handlers():
    """For every function that is said to be overridable, one call arrives."""
    arrived = []

    class Seen(kiln.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            arrived.append(func)
            return "handled"

    with kiln.overrides.DisableTorchFunctionSubclass():
        x = kiln.ones(1).as_subclass(Seen)
    count = 0
    for place, functions in kiln.overrides.get_overridable_functions().items():
        for function in functions:
            arrived.clear()
            if isinstance(place, type) and issubclass(place, kiln.nn.Module):
                continue
            assert function(x) == "handled", function
            assert arrived == [function]
            count += 1
    assert count > 1000


def test_what_layers_are_to_a_handler(lib):
    Logged, calls = logged(lib)
    F = lib.nn.functional
    x = lib.linspace(-1, 1, 16).reshape(1, 4, 2, 2).as_subclass(Logged)
    flat = lib.ones(3, 4).as_subclass(Logged)
    for layer, given, function in (
        (lib.nn.Conv2d(4, 2, 1), x, F.conv2d), (lib.nn.Linear(4, 2), flat, F.linear),
        (lib.nn.LayerNorm(4), flat, F.layer_norm), (lib.nn.GELU(), x, F.gelu),
        (lib.nn.ReLU(), x, F.relu), (lib.nn.Dropout(0.5), x, F.dropout),
        (lib.nn.CrossEntropyLoss(), (flat, lib.tensor([0, 1, 2])), F.cross_entropy),
    ):  # fmt: skip
        calls.clear()
        out = layer(*given) if isinstance(given, tuple) else layer(given)
        assert type(out) is Logged
        assert function in [func for func, *_ in calls]
        sought = [args for func, _, args, _ in calls if func is function][0]
        assert sought[0] is (given[0] if isinstance(given, tuple) else given)


def test_wrong_calls_of_layers_are_their_own_errors():
    x = kiln.ones(1, 2).as_subclass(Marked)
    with pytest.raises(TypeError, match=r"Linear.forward\(\) takes 2 positional arguments but 3"):
        kiln.nn.Linear(2, 3)(x, x)
    with pytest.raises(TypeError, match="unexpected keyword argument 'inputs'"):
        kiln.nn.ReLU()(inputs=x)


def test_a_weight_that_overrides(lib):
    """A layer's weight of a class of its own, as weights with fewer bits are."""
    used = []

    class Halves(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            used.append(func)
            if func is lib.nn.functional.linear:
                x, weight, bias = args
                return func(x, weight.as_subclass(lib.Tensor) / 2, bias)
            return super().__torch_function__(func, types, args, kwargs or {})

    layer = lib.nn.Linear(2, 1, bias=False)
    del layer.weight
    layer.weight = lib.tensor([[2.0, 4.0]]).as_subclass(Halves)
    used.clear()
    out = layer(lib.ones(1, 2))
    assert type(out) is lib.Tensor
    assert out.tolist() == [[3.0]] and used.count(lib.nn.functional.linear) == 1


def test_forms_of_layers_are_what_the_layers_compute():
    """Bit for bit, with what they leave behind."""
    from layer_cases import CASES

    from kiln.nn._forms import FORMS

    assert FORMS.keys() <= CASES.keys()
    count = 0
    for name, form in FORMS.items():
        legal, inputs, *_ = CASES[name]
        for args, options in legal:
            for training in (True, False):
                layer = getattr(kiln.nn, name)(*args, **options).train(training)
                other = copy.deepcopy(layer)
                kiln.manual_seed(3)
                given = inputs()
                given = given if isinstance(given, tuple) else (given,)
                expected = layer(*[x.clone() for x in given])
                kiln.manual_seed(3)
                found = form(other, *[x.clone() for x in given])
                if found is NotImplemented:
                    continue
                pairs = [(expected, found)] if isinstance(found, kiln.Tensor) else zip(expected, found)
                for a, b in (*pairs, *zip(layer.buffers(), other.buffers())):
                    assert kiln.equal(a.nan_to_num(), b.nan_to_num()), (name, args, options)
                count += 1
    assert count > 250


def test_functions_of_another_framework_refuse_tensors():
    """They ask the class what to do, which leaves the function to itself: once."""
    torch = pytest.importorskip("torch")
    x = kiln.ones(2, 3)
    for given in (x, kiln.nn.Parameter(x), x.as_subclass(Marked)):
        for call in (lambda: torch.add(given, 1), lambda: torch.cat([given, given]),
                     lambda: torch.nn.functional.pairwise_distance(given, given)):  # fmt: skip
            with pytest.raises(TypeError):
                call()
    assert (x.as_subclass(Marked) + 1).sum() == 12


def test_as_a_buffer():
    class Own(kiln.nn.Buffer):
        pass

    x = kiln.ones(2).as_subclass(Own)
    assert type(x) is Own and x.persistent and x.tolist() == [1, 1]
    with pytest.raises(TypeError, match="derived from it"):
        kiln._C._as_subclass(int, x)


def test_wrong_calls():
    with pytest.raises(TypeError, match="derived from it"):
        kiln._C._allocate(int)
    with pytest.raises(TypeError, match="subclass of Tensor"):
        kiln.ones(1).as_subclass(int)
    # Errors of a function itself are what they were.
    x = kiln.ones(2).as_subclass(Marked)
    with pytest.raises(kiln.errors.ShapeError):
        x + kiln.ones(3)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        kiln.add(x)


def test_programs_with_marked_tensors(lib, marked):
    """A training loop whose batches are of a class of their own."""
    lib.manual_seed(0)
    net = lib.nn.Sequential(lib.nn.Linear(2, 8), lib.nn.Tanh(), lib.nn.Linear(8, 1))
    optimizer = lib.optim.SGD(net.parameters(), lr=0.1)
    x = lib.randn(16, 2).as_subclass(marked)
    y = (x[:, :1] * 2).detach()
    losses = []
    for _ in range(20):
        loss = lib.nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    assert type(loss) is marked and losses[-1] < 0.5 * losses[0]
    assert type(net[0].weight) is lib.nn.Parameter and type(net[0].weight.grad) is lib.Tensor
