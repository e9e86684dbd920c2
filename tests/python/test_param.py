"""kiln.nn.Param: parameters that wait with their values; as Burn's, and as parts of a module."""

import copy
import pickle
import threading

import pytest

import kiln
from kiln import nn
from kiln.nn import Param, ParamId

REFERENCE = kiln.device("reference")


class Lazy:
    """A Param of ones that notes when it is made."""

    def __init__(self, *shape, dtype=None, **options):
        self.calls = []

        def init(device, require_grad):
            self.calls.append((str(device), require_grad))
            return kiln.ones(shape, device=device, dtype=dtype)

        self.param = Param.uninitialized(ParamId(), init, shape=shape, dtype=dtype, **options)


def test_initialized():
    id = ParamId()
    x = kiln.tensor([1.0, 2.0])
    param = Param.initialized(id, x)
    assert param.is_initialized and param.defined and param.id == id
    assert param.val().data_ptr() == x.data_ptr()
    assert not Param().defined


def test_uninitialized_is_made_once_at_the_first_access():
    lazy = Lazy(2, 3, is_require_grad=True)
    param = lazy.param
    assert not param.is_initialized and lazy.calls == []
    assert param.lazy_shape() == (2, 3) and param.lazy_device() == kiln.device("cpu")
    assert param.lazy_is_require_grad() and param.num_params() == 6
    assert lazy.calls == []
    assert param.val().tolist() == [[1, 1, 1]] * 2 and param.val().requires_grad
    assert lazy.calls == [("cpu", True)]


def test_a_function_that_throws_is_tried_again():
    tries = []

    def init(device, require_grad):
        tries.append(1)
        if len(tries) == 1:
            raise KeyError("later")
        return kiln.zeros(1)

    param = Param.uninitialized(ParamId(), init, shape=(1,))
    with pytest.raises(KeyError):
        param.val()
    assert param.val().tolist() == [0] and len(tries) == 2
    wrong = Param.uninitialized(ParamId(), lambda device, grad: "no tensor", shape=(1,))
    with pytest.raises(TypeError, match="expected a tensor"):
        wrong.val()


def test_threads_meet_one_value():
    made = []
    ready = threading.Event()

    def init(device, require_grad):
        ready.wait(0.05)  # others come to the lock meanwhile
        made.append(1)
        return kiln.ones(3)

    param = Param.uninitialized(ParamId(), init, shape=(3,))
    pointers = []
    threads = [
        threading.Thread(target=lambda: pointers.append(param.val().data_ptr())) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1 and len(pointers) == 8 and len(set(pointers)) == 1


def test_from_tensor_and_from_mapped_value():
    x = kiln.tensor([1.0])
    param = Param.from_tensor(x)
    assert param.val().requires_grad and not x.requires_grad
    assert param.val().data_ptr() == x.data_ptr()
    doubled = Param.from_tensor(x).load_mapper(lambda v: v * 2)
    again = Param.from_mapped_value(param.id, kiln.tensor([3.0]), doubled.mapper)
    assert again.mapper.has_load and not again.mapper.has_save
    assert again.mapper.on_load(kiln.tensor([4.0])).tolist() == [8]
    assert again.mapper.on_save(kiln.tensor([4.0])).tolist() == [4]


def test_from_data():
    param = Param.from_data([[1.0, 2.0]], device="reference")
    assert param.val().tolist() == [[1, 2]] and param.val().requires_grad
    assert param.val().device == REFERENCE
    assert not Param.from_data([1, 2]).val().requires_grad


def test_into_value_consume_map():
    param = Param.from_tensor(kiln.tensor([1.0, 2.0]))
    id = param.id
    assert param.map(lambda x: x * 3) is param and param.val().tolist() == [3, 6]
    taken, value, mapper = copy.copy(param).consume()
    assert taken == id and value.tolist() == [3, 6] and not mapper.has_load
    assert param.into_value().tolist() == [3, 6]
    assert not param.is_initialized and not param.defined


def test_mappers():
    lazy = Lazy(2)
    lazy.param.init_mapper(lambda x: x * 5)
    assert lazy.calls == [] and lazy.param.val().tolist() == [5, 5]
    assert lazy.param.init_mapper(lambda x: x + 1).val().tolist() == [6, 6]
    param = Param.from_tensor(kiln.tensor([1.0]))
    param.load_mapper(lambda x: x * 10).save_mapper(lambda x: x + 1)
    assert param.transform_for_save().val().tolist() == [2]
    id = ParamId()
    loaded = param.transform_for_load(kiln.tensor([7.0]), id)
    assert loaded.val().tolist() == [70] and loaded.id == id and loaded.val().requires_grad


def test_set_require_grad():
    lazy = Lazy(1)
    assert lazy.param.set_require_grad(False) is lazy.param and lazy.calls == []
    assert not lazy.param.val().requires_grad
    assert lazy.param.set_require_grad(True).val().requires_grad
    assert not lazy.param.no_grad().val().requires_grad


def test_copies_are_independent():
    lazy = Lazy(2)
    for twin in (copy.copy(lazy.param), copy.deepcopy(lazy.param), lazy.param.clone()):
        assert not twin.is_initialized and twin.id == lazy.param.id
        assert twin.val().data_ptr() != lazy.param.val().data_ptr() or lazy.calls == []
    made = Param.from_tensor(kiln.tensor([1.0]))
    twin = copy.deepcopy(made)
    twin.val().data.fill_(5)
    assert made.val().tolist() == [1]
    back = pickle.loads(pickle.dumps(Lazy(2).param))
    assert back.is_initialized and back.val().tolist() == [1, 1]


def test_param_id():
    a, b = ParamId(), ParamId()
    assert a != b and a == ParamId.parse(str(a)) and hash(a) == hash(ParamId(a.value))
    assert len(str(a)) == 13
    with pytest.raises(ValueError):
        ParamId.parse("?")


def test_text():
    param = Param.from_tensor(kiln.ones(1)).save_mapper(lambda x: x)
    assert str(param) == f"Param: {param.id}"
    assert repr(param) == f"Param: {param.id} - ParamMapper {{ load: false, save: true }}"


def test_as_a_module_records():
    source = Param.from_tensor(kiln.tensor([1.0, 2.0])).save_mapper(lambda x: x + 1)
    record = source.into_record()
    lazy = Lazy(2)
    lazy.param.load_record(record)
    assert lazy.calls == [] and lazy.param.val().tolist() == [2, 3]
    assert lazy.param.id == source.id
    target = Param.from_tensor(kiln.zeros(2))
    held = target.val()
    assert target.load_record(record) is target and held.tolist() == [2, 3]
    with pytest.raises(RuntimeError, match="another shape"):
        Param.from_tensor(kiln.zeros(3)).load_record(record)
    for values in (kiln.tensor([1.5]), kiln.tensor([3]), kiln.tensor([True])):
        item = Param.from_tensor(values).into_item(kiln.record.HalfPrecisionSettings)
        assert Param.from_item(item).val().tolist() == values.tolist()


def test_as_a_module_files(tmp_path):
    source = Param.from_tensor(kiln.tensor([1.0, 2.0]))
    recorder = kiln.record.NamedMpkFileRecorder()
    source.save_file(str(tmp_path / "x"), recorder)
    lazy = Lazy(2)
    lazy.param.load_file(str(tmp_path / "x"), recorder, device="reference")
    assert lazy.calls == [] and lazy.param.val().device == REFERENCE
    assert lazy.param.val().tolist() == [1, 2]
    with pytest.raises(TypeError, match="recorder of kiln.record"):
        source.save_file(str(tmp_path / "x"), 3)


def test_as_a_module_devices():
    param = Param.from_tensor(kiln.tensor([1.0, 2.0]))
    before = param.val()
    assert param.devices() == [kiln.device("cpu")]
    assert param.collect_devices([REFERENCE]) == [REFERENCE, kiln.device("cpu")]
    param.to_device("reference")
    g = (param.val() * 3).sum().gradients()
    assert g[before].tolist() == [3, 3]
    param.fork("cpu")
    assert param.val().is_leaf and param.val().requires_grad
    valid = param.valid()
    assert not valid.val().requires_grad and valid.val().data_ptr() == param.val().data_ptr()
    assert valid.from_valid().val().requires_grad


def test_as_a_module_visit_and_map():
    seen = []

    class See(nn.ModuleVisitor):
        def visit_float(self, name, param):
            seen.append(("float", name))

        def visit_int(self, name, param):
            seen.append(("int", name))

    class Twice(nn.ModuleMapper):
        def map_float(self, name, param):
            return (param.val() * 2).detach()

    lazy = Lazy(1)
    lazy.param.visit(See())
    Param.from_tensor(kiln.tensor([1])).visit(See())
    assert seen == [("float", ""), ("int", "")] and lazy.calls == []
    assert lazy.param.map(Twice()).val().tolist() == [2]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Lazy(2)  # no part: an object that holds one
        self.scale = self.first.param
        self.fc = nn.Linear(2, 2)
        self.second = Lazy(3)
        self.shift = self.second.param


def test_in_a_module_it_is_a_parameter_at_the_first_access():
    net = Net()
    assert net.first.calls == [] and net.num_params() == 2 + 6 + 3
    assert isinstance(net.scale, nn.Parameter) and net.scale is net.scale
    assert net.first.calls == [("cpu", True)] and net.second.calls == []
    assert [name for name, _ in net.named_parameters()] == [
        "scale", "shift", "fc.weight", "fc.bias",
    ]  # fmt: skip
    assert net.second.calls == [("cpu", True)]
    optimizer = kiln.optim.SGD(net.parameters(), lr=1.0)
    (net.scale * 2).sum().backward()
    optimizer.step()
    assert net.scale.tolist() == [-1, -1]
    assert net.state_dict()["scale"].tolist() == [-1, -1]


def test_in_a_module_loading_makes_no_values_first():
    full = Net()
    full.requires_grad_(True)
    with kiln.no_grad():
        full.scale.fill_(7)
    for load in (
        lambda net: net.load_state_dict(full.state_dict()),
        lambda net: net.load_state_dict(full.state_dict(), assign=True),
        lambda net: net.load_record(full.into_record()),
    ):
        net = Net()
        load(net)
        assert net.first.calls == [] and net.second.calls == []
        assert net.scale.tolist() == [7, 7] and net.scale.requires_grad
        assert isinstance(net.scale, nn.Parameter)
    wrong = Net()
    state = full.state_dict()
    state["shift"] = kiln.ones(4)
    with pytest.raises(RuntimeError, match="size mismatch for shift"):
        wrong.load_state_dict(state)
    assert wrong.first.calls == []


def test_in_a_module_casts_copies_and_pickles():
    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = Param.uninitialized(ParamId(), _ones, shape=(2,))

    assert Plain().to(kiln.float64).w.dtype == kiln.float64
    twin = copy.deepcopy(Plain())
    assert twin._parameters["w"] is None and twin.w.tolist() == [1, 1]
    made = Plain()
    made.w.data.fill_(3)
    other = copy.deepcopy(made)
    assert other.w.tolist() == [3, 3] and other.w is not made.w
    assert [n for n, _ in other.named_parameters()] == ["w"]
    del made.w
    assert not hasattr(made, "w")
    none = Plain()
    none.w = None
    assert none.w is None and none.num_params() == 0


def _ones(device, require_grad):
    return kiln.ones(2, device=device)
