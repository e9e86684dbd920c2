"""kiln.export: operators, nodes, programs and archives that are not read, and damaged ones."""

import json
import random

import pytest

torch = pytest.importorskip("torch")

from pt2_files import export, given, rewritten, same, saved  # noqa: E402
from pt2_models import Branches, all_models  # noqa: E402

import kiln  # noqa: E402
import kiln.export  # noqa: E402

MODELS = all_models()


def test_operators_that_are_not_there_are_named_together(tmp_path):
    @torch.library.custom_op("kiln_tests::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @twice.register_fake
    def _(x):
        return torch.empty_like(x)

    class Lacks(torch.nn.Module):
        def forward(self, x):
            y = torch.cond(x.sum() > 0, lambda x: twice(x), lambda x: x + 1, (x,))
            return y + twice(x) + torch.ops.aten._sample_dirichlet.default(x.abs())

    path = saved(export(Lacks(), (torch.ones(3),)), tmp_path / "m.pt2")
    with pytest.raises(kiln.errors.NotImplementedError) as error:
        kiln.export.load(path)
    text = str(error.value)
    assert "Kiln lacks 2 operators: aten._sample_dirichlet.default, kiln_tests.twice.default" in text
    assert "the first is at node" in text and "m.pt2" in text


def test_what_a_node_lacks_is_named(tmp_path):
    class Shifted(torch.nn.Module):
        def forward(self, x):
            return x.to(torch.uint16).to(torch.float32)

    path = saved(export(Shifted(), (torch.ones(3),)), tmp_path / "m.pt2")
    with pytest.raises(kiln.errors.NotImplementedError, match=r"node 1 'to' \(aten.to.dtype.*ScalarType 28"):
        kiln.export.load(path)

    class Held(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", torch.ones(3).to(torch.float8_e4m3fn))

        def forward(self, x):
            return x + self.table.float()

    path = saved(export(Held(), (torch.ones(3),)), tmp_path / "h.pt2")
    with pytest.raises(kiln.errors.NotImplementedError, match=r"'table'.*ScalarType 29"):
        kiln.export.load(path)


def simple(tmp_path):
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    return module, saved(export(module, (torch.ones(2, 3),)), tmp_path / "simple.pt2")


def edited(path, out, change):
    """The archive with a changed program; change(program) works on its JSON."""
    def edit(name, data):
        if name != "models/model.json":
            return data
        program = json.loads(data)
        change(program)
        return json.dumps(program).encode()

    return rewritten(path, edit, out)


def graph_of(program):
    return program["graph_module"]["graph"]


def set_at(*path):
    """Sets what stands at a path of keys of a program's graph to the last argument."""

    def change(program):
        at = graph_of(program)
        for key in path[:-2]:
            at = at[key]
        at[path[-2]] = path[-1]

    return change


def nest(program):
    inner = graph_of(program)["nodes"][0]["inputs"][0]
    for _ in range(30):
        inner = {"name": "", "arg": {"as_graph": {"name": "g", "graph": {
            "inputs": [], "outputs": [], "nodes": [
                {"target": "torch.ops.higher_order.cond", "inputs": [inner], "outputs": [], "metadata": {}}]}}}}  # fmt: skip
    graph_of(program)["nodes"][0]["inputs"][0] = inner


BAD = {
    "version": (lambda p: p["schema_version"].update(major=9), "schema version 9"),
    "no graph": (lambda p: p["graph_module"].pop("graph"), "'graph' is missing"),
    "unknown name": (
        set_at("nodes", 1, "inputs", 0, "arg", {"as_tensor": {"name": "nowhere"}}),
        r"node 1 'relu' \(aten.relu.default\): nothing before it makes 'nowhere'",
    ),
    "circle": (
        set_at("nodes", 0, "inputs", 0, "arg", {"as_tensor": {"name": "linear_1"}}),
        r"node 0 .*nothing before it makes 'linear_1'",
    ),
    "twice": (set_at("nodes", 1, "outputs", [{"as_tensor": {"name": "linear"}}]), "'linear' is there twice"),
    "no argument": (set_at("nodes", 1, "inputs", []), r"node 1 .*aten.relu"),
    "mistyped": (set_at("nodes", 0, "inputs", 1, "arg", {"as_string": "w"}), "argument 'weight' is 'w'; expected a tensor"),
    "a number": (set_at("nodes", 1, "inputs", 0, "arg", {"as_int": 3}), "argument 'self' is an integer; expected a tensor"),
    "two members": (
        set_at("nodes", 0, "inputs", 0, "arg", {"as_int": 3, "as_float": 2.0}),
        "expected one member",
    ),
    "a kind that is not there": (set_at("nodes", 0, "inputs", 0, "arg", {"as_nonsense": 3}), "kind 'as_nonsense'"),
    "a custom object": (
        set_at("nodes", 0, "inputs", 0, "arg", {"as_custom_obj": {"name": "a", "class_fqn": "b"}}),
        "kind 'as_custom_obj'",
    ),
    "another argument": (
        lambda p: graph_of(p)["nodes"][1]["inputs"].append({"name": "alpha", "arg": {"as_int": 2}}),
        r"node 1 .*argument 'alpha'",
    ),
    "many arguments": (
        lambda p: graph_of(p)["nodes"][1]["inputs"].extend([{"name": "alpha", "arg": {"as_int": 2}}] * 99),
        "100 arguments",
    ),
    "more results": (
        lambda p: graph_of(p)["nodes"][1]["outputs"].append({"as_tensor": {"name": "more"}}),
        "it gives 1 results; expected 2",
    ),
    "a list": (set_at("nodes", 1, "outputs", [{"as_tensors": [{"name": "relu"}]}]), "it gives 1 tensors|expected 1"),
    "output": (
        lambda p: p["graph_module"]["signature"]["output_specs"][0]["user_output"].update(arg={"as_tensor": {"name": "q"}}),
        "output 0: nothing before it makes 'q'",
    ),
    "parameter": (
        lambda p: p["graph_module"]["signature"]["input_specs"][0]["parameter"].update(parameter_name="q"),
        "the archive does not hold 'q'",
    ),
    "fewer inputs": (lambda p: graph_of(p)["inputs"].pop(), "the signature has 5 inputs; the graph has 4"),
    "nested": (nest, "nests deeper than 64 levels"),
    "tree": (
        lambda p: p["graph_module"]["module_call_graph"][0]["signature"].update(out_spec="[1, 2]"),
        "is the integer 2; expected an object|'type'|children_spec",
    ),
    "deep tree": (
        lambda p: p["graph_module"]["module_call_graph"][0]["signature"].update(out_spec="[" * 5000),
        "more than 64|levels|nested",
    ),
    "wide": (
        set_at("tensor_values", "input", "sizes", [{"as_int": 2}] * 40),
        "40 dims",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_malformed_programs(name, tmp_path):
    _, path = simple(tmp_path)
    change, message = BAD[name]
    bad = edited(path, tmp_path / "bad.pt2", change)
    with pytest.raises(kiln.errors.Error, match=message):
        kiln.export.load(bad)(kiln.ones(2, 3))


def test_malformed_archives(tmp_path):
    _, path = simple(tmp_path)

    def without(entry):
        return lambda name, data: None if name == entry else data

    def instead(entry, text):
        return lambda name, data: text if name == entry else data

    def meta(**changes):
        def edit(name, data):
            if not name.endswith("weights_config.json"):
                return data
            config = json.loads(data)
            first = next(iter(config["config"].values()))
            first["tensor_meta"].update(changes)
            first.update({k: v for k, v in changes.items() if k in first})
            return json.dumps(config).encode()

        return edit

    huge = [{"as_int": 1 << 35}, {"as_int": 3}]
    for edit, message in (
        (without("archive_format"), "no entry 'archive_format'"),
        (without("archive_version"), "archive_version"),
        (without("models/model.json"), "no program"),
        (without("data/weights/weight_0"), "'0.weight': the archive has no entry"),
        (without("data/weights/model_weights_config.json"), "does not hold"),
        (instead("archive_format", b"zip"), "archive_format is 'zip'"),
        (instead("archive_version", b"7"), "archive_version '7'"),
        (instead("byteorder", b"middle"), "byteorder is 'middle'"),
        (instead("models/model.json", b"{"), "model.json"),
        (instead("models/model.json", b"[" * 100000), "model.json"),
        (instead("data/weights/weight_0", b"12345"), "cut off"),
        (instead("data/weights/weight_0", b"1234"), "does not lie in the storage"),
        (meta(sizes=huge), "more than 64 times its size"),
        (meta(sizes=huge, strides=[{"as_int": 0}, {"as_int": 0}]), "more than 64 times its size"),
        (meta(sizes=[{"as_int": -4}, {"as_int": 3}]), "negative"),
        (meta(strides=[{"as_int": 1}]), "ranks"),
        (meta(layout=1), "sparse"),
        (meta(dtype=999), "ScalarType 999"),
        (meta(use_pickle=True), "pickled object"),
        (meta(path_name="../../etc/passwd"), "no entry"),
    ):
        bad = rewritten(path, edit, tmp_path / "bad.pt2")
        with pytest.raises(kiln.errors.Error, match=message):
            kiln.export.load(bad)
    with pytest.raises(kiln.errors.IoError, match="missing.pt2"):
        kiln.export.load(tmp_path / "missing.pt2")
    torch.save({"a": torch.ones(2)}, tmp_path / "weights.pt")
    with pytest.raises(kiln.errors.IoError, match="archive_format"):
        kiln.export.load(tmp_path / "weights.pt")


def test_the_other_byte_order(tmp_path):
    module, path = simple(tmp_path)

    def swap(name, data):
        if name == "byteorder":
            return b"big"
        if name.startswith("data/weights/weight_"):
            return b"".join(data[i : i + 4][::-1] for i in range(0, len(data), 4))
        return data

    mine = kiln.export.load(rewritten(path, swap, tmp_path / "big.pt2"))
    same(dict(mine.state_dict()), dict(module.state_dict()))


def damaged_json(value, rng):
    """A copy of a JSON value with one place of it changed."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        out = dict(value)
        if rng.random() < 0.05:
            del out[key]
        elif rng.random() < 0.03:
            out[rng.choice(["as_int", "as_none", "as_tensor", "name", "x"])] = out.pop(key)
        else:
            out[key] = damaged_json(value[key], rng)
        return out
    if isinstance(value, list) and value and rng.random() < 0.9:
        i = rng.randrange(len(value))
        out = list(value)
        if rng.random() < 0.05:
            del out[i]
        elif rng.random() < 0.05:
            out.insert(i, rng.choice(value))
        else:
            out[i] = damaged_json(value[i], rng)
        return out
    return rng.choice([None, -1, 0, 1, 2, 3, 7, 1 << 40, -(1 << 62), 0.5, "", "x", "relu", "NaN", True, [], {}, [value], {"as_int": 3}])


@pytest.mark.parametrize("name", ["bert", "resnet", "dlrm", "lstm", "unet", "branches"])
def test_damaged_archives(name, tmp_path):
    """Kiln's errors and nothing else; what still runs gives something."""
    module, args = (Branches(), (torch.ones(2, 3),)) if name == "branches" else MODELS[name]
    path = saved(export(module, args), tmp_path / "good.pt2")
    data, mine = path.read_bytes(), given(args)
    rng = random.Random(name)
    refused = ran = 0
    for i in range(100):
        bad = tmp_path / "bad.pt2"
        if i % 4 == 0:  # bytes of the archive
            broken = bytearray(data)
            for _ in range(rng.choice([1, 1, 4])):
                broken[rng.randrange(len(broken))] = rng.randrange(256)
            bad.write_bytes(bytes(broken[: rng.randrange(len(broken))] if rng.random() < 0.3 else broken))
        else:

            def edit(entry, content):
                which = "models/model.json" if i % 8 else "data/weights/model_weights_config.json"
                if entry != which:
                    return content
                value = json.loads(content)
                for _ in range(rng.choice([1, 1, 2, 8])):
                    value = damaged_json(value, rng)
                return json.dumps(value).encode()

            rewritten(path, edit, bad)
        try:
            kiln.export.load(bad)(*mine)
            ran += 1
        except kiln.errors.Error:
            refused += 1
    assert refused > 30 and ran + refused == 100
