"""Burn's view of Python modules: visitors, mappers, devices, records, valid."""

import numpy as np
import pytest

import kiln
from kiln import nn, record

REFERENCE = kiln.device("reference")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2, bias=False)
        self.table = nn.Parameter(kiln.tensor([1, 2, 3]), requires_grad=False)
        self.mask = nn.Parameter(kiln.tensor([True, False]), requires_grad=False)
        self.register_buffer("mean", kiln.zeros(2))
        self.blocks = nn.ModuleList([nn.Linear(2, 2, bias=False)])

    def forward(self, x):
        return self.blocks[0](self.fc(x))


class See(nn.ModuleVisitor):
    def __init__(self):
        self.seen = []

    def visit_float(self, name, param):
        self.seen.append("float " + self.path(name))

    def visit_int(self, name, param):
        self.seen.append("int " + self.path(name))

    def visit_bool(self, name, param):
        self.seen.append("bool " + self.path(name))

    def visit_buffer(self, name, buffer):
        self.seen.append("buffer " + self.path(name))

    def enter_module(self, name, type_name):
        self.seen.append(f"enter {name} {type_name}")

    def exit_module(self, name, type_name):
        self.seen.append(f"exit {name} {type_name}")


def test_visit():
    see = See()
    Net().visit(see)
    # What the C++ visitor sees of the same tree, tests/nn/module_visitor.cpp.
    assert see.seen == [
        "int table", "bool mask", "buffer mean",
        "enter fc Linear", "float fc.weight", "exit fc Linear",
        "enter blocks ModuleList", "enter 0 Linear", "float blocks.0.weight", "exit 0 Linear",
        "exit blocks ModuleList",
    ]  # fmt: skip


class Change(nn.ModuleMapper):
    def __init__(self):
        self.paths = []

    def map_float(self, name, param):
        self.paths.append(self.path(name))
        return (param * 2).detach().requires_grad_(param.requires_grad)

    def map_int(self, name, param):
        return param + 1

    def map_bool(self, name, param):
        return ~param


def test_map():
    net = Net()
    net.blocks[0].weight = net.fc.weight
    before = net.fc.weight.tolist()
    change = Change()
    assert net.map(change) is net
    assert change.paths == ["fc.weight"]  # a tied one once
    assert net.fc.weight is net.blocks[0].weight and isinstance(net.fc.weight, nn.Parameter)
    np.testing.assert_allclose(net.fc.weight.tolist(), 2 * np.array(before))
    assert net.table.tolist() == [2, 3, 4] and net.mask.tolist() == [False, True]
    assert len(list(net.parameters())) == 3 and net.fc.weight.requires_grad

    class Wrong(nn.ModuleMapper):
        def map_float(self, name, param):
            return 3

    with pytest.raises(TypeError, match="a mapper returns a tensor"):
        net.map(Wrong())
    assert net.map(nn.ModuleMapper()) is net  # changes nothing


def test_devices_to_device_fork():
    net = Net()
    assert net.devices() == [kiln.device("cpu")]
    assert net.collect_devices([REFERENCE]) == [REFERENCE, kiln.device("cpu")]
    weight = net.fc.weight
    assert net.to_device("reference") is net
    assert net.devices() == [REFERENCE] and not net.fc.weight.is_leaf
    g = net(kiln.ones(1, 2, device="reference")).sum().gradients()
    assert g.get(weight) is not None  # the first tensors get the gradients
    assert net.fork("cpu").devices() == [kiln.device("cpu")]
    assert net.fc.weight.is_leaf and net.fc.weight.requires_grad
    assert isinstance(net.fc.weight, nn.Parameter) and net.mean.device == kiln.device("cpu")


def test_no_grad_and_num_params():
    net = Net()
    assert net.num_params() == 4 + 3 + 2 + 4
    net.blocks[0].weight = net.fc.weight
    assert net.num_params() == 4 + 3 + 2
    assert net.no_grad() is net and not any(p.requires_grad for p in net.parameters())


def test_valid_and_back():
    net = Net()
    net.fc.weight.requires_grad_(False)
    valid = net.valid()
    assert not valid.training and net.training
    assert not any(p.requires_grad for p in valid.parameters())
    assert valid.fc.weight.data_ptr() == net.fc.weight.data_ptr()
    assert valid.mean.data_ptr() == net.mean.data_ptr()
    assert valid.valid().from_valid().from_valid().training
    back = valid.from_valid()
    assert [p.requires_grad for p in back.parameters()] == [False, False, False, True]
    assert [p.requires_grad for p in net.parameters()] == [False, False, False, True]
    net.blocks[0].weight = net.fc.weight
    tied = net.valid()
    assert tied.blocks[0].weight is tied.fc.weight


def test_into_record_and_load_record():
    net, other = Net(), Net()
    saved = net.into_record()
    assert [path for path, _, _ in saved.entries] == list(net.state_dict())
    assert saved.find("fc.weight")[1] == net.param_id("fc.weight")
    assert saved.find("mean")[1] is None and saved.find("nothing") is None
    weight = other.fc.weight
    assert other.load_record(saved) is other
    assert other.fc.weight is weight and kiln.equal(weight, net.fc.weight)
    assert other.param_id("fc.weight") == net.param_id("fc.weight")
    assert other.table.tolist() == [1, 2, 3]
    before = kiln.clone(other.fc.weight)
    with pytest.raises(RuntimeError, match="Missing key"):
        other.load_record(nn.Linear(2, 2).into_record())
    assert kiln.equal(before, other.fc.weight)


def test_record_mappers_of_params():
    net = nn.Module()
    net.w = nn.Param.from_tensor(kiln.tensor([1.0])).save_mapper(lambda x: x + 1)
    saved = net.into_record()
    assert saved.find("w")[2].tolist() == [2]
    net.w = nn.Param.from_tensor(kiln.zeros(1)).load_mapper(lambda x: x * 10)
    net.load_record(saved)
    assert net.w.tolist() == [20] and net.param_id("w") == saved.find("w")[1]


def test_record_values_parts_and_items():
    saved = nn.Linear(2, 2).into_record()
    for name, value in (("epoch", 7), ("lr", 0.5), ("done", True), ("note", "late")):
        saved.set_value(name, value)
    assert saved.values == {"epoch": 7, "lr": 0.5, "done": True, "note": "late"}
    with pytest.raises(TypeError, match="bool, int, float or str"):
        saved.set_value("x", [1])
    both = record.Record()
    both.merge("model", saved)
    assert "model.weight" in both and both.values["model.epoch"] == 7 and len(both) == 2
    assert both.part("model").find("bias") is not None
    with pytest.raises(ValueError, match="there already"):
        both.add("model.weight", kiln.ones(1))
    item = saved.into_item(record.HalfPrecisionSettings)
    assert item.settings.name == "HalfPrecisionSettings"
    assert all(x.dtype == kiln.float16 for _, _, x in item.entries)
    layer = nn.Linear(2, 2).load_record(record.Record.from_item(item, device="cpu"))
    assert layer.weight.dtype == kiln.float32
    with pytest.raises(ValueError, match="does not fit"):
        big = record.Record()
        big.add("x", kiln.tensor([1e30]))
        big.into_item(record.HalfPrecisionSettings)


RECORDERS = [
    record.SafetensorsRecorder,
    record.NamedMpkFileRecorder,
    record.NamedMpkGzFileRecorder,
    record.CborFileRecorder,
    record.PrettyJsonFileRecorder,
    record.JsonFileRecorder,
    record.JsonGzFileRecorder,
]


@pytest.mark.parametrize("recorder", RECORDERS)
def test_save_file_and_load_file(recorder, tmp_path):
    net, other = Net(), Net()
    net.save_file(tmp_path / "model", recorder())
    files = list(tmp_path.iterdir())
    assert [f.name for f in files] == ["model." + recorder().extension]
    assert other.load_file(tmp_path / "model", recorder(), device="reference") is other
    for name, value in net.state_dict().items():
        assert other.state_dict()[name].tolist() == value.tolist()
    assert other.fc.weight.device == REFERENCE
    files[0].write_bytes(files[0].read_bytes()[:20])
    with pytest.raises(kiln.errors.IoError):
        net.load_file(tmp_path / "model", recorder())


def test_records_in_memory():
    recorder = record.NamedMpkBytesRecorder(record.DoublePrecisionSettings)
    net = nn.Linear(2, 2)
    data = recorder.record(net.into_record())
    assert isinstance(data, bytes)
    other = nn.Linear(2, 2).load_record(recorder.load(data))
    assert kiln.equal(other.weight, net.weight)
    with pytest.raises(kiln.errors.IoError):
        recorder.load(b"no record")
    with pytest.raises(TypeError, match="abstract"):
        record.Recorder()


def test_gradients_replace():
    x = kiln.tensor([1.0, 2.0], requires_grad=True)
    y = kiln.tensor([1.0], requires_grad=True)
    g = (x * x).sum().gradients()
    g.replace(x, kiln.tensor([5.0, 6.0]))
    assert g[x].tolist() == [5, 6] and g.remove(x).tolist() == [5, 6] and x not in g
    g.replace(y, kiln.tensor([3.0]))  # there was none
    assert g.get(y).tolist() == [3]
    with pytest.raises(RuntimeError, match="the tensor's shape"):
        g.replace(x, kiln.ones(3))
    with pytest.raises(RuntimeError, match="the tensor's dtype"):
        g.replace(x, kiln.ones(2, dtype=kiln.float64))
    with pytest.raises(RuntimeError, match="does not require a gradient"):
        g.replace(kiln.ones(2), kiln.ones(2))
