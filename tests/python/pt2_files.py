"""Writing, running and comparing programs of torch.export, for the tests of kiln.export."""

import io
import json
import warnings
import zipfile

import numpy as np
import torch

import kiln
import kiln.export


def export(module, args, kwargs=None, decompose=False, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(module, args, kwargs, **options)
        return program.run_decompositions() if decompose else program


def saved(program, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(program, str(path))
    return path


def given(x, grad=False):
    """A value of PyTorch's in Kiln."""
    if isinstance(x, torch.Tensor):
        wants = x.requires_grad and grad
        if x.dtype == torch.bfloat16:
            out = kiln.tensor(x.detach().float().numpy().copy()).to(kiln.bfloat16)
        else:
            out = kiln.tensor(x.detach().resolve_conj().numpy().copy())
        return out.requires_grad_() if wants else out
    if isinstance(x, (list, tuple)):
        return type(x)(given(y, grad) for y in x)
    if isinstance(x, dict):
        return {k: given(y, grad) for k, y in x.items()}
    return x


def same(found, expected, rtol=1e-5, atol=1e-6, where="result"):
    """Asserts that two values are equal, with the same types, dtypes and shapes."""
    if isinstance(expected, torch.Tensor):
        assert isinstance(found, kiln.Tensor), where
        assert str(found.dtype).split(".")[-1] == str(expected.dtype).split(".")[-1], where
        assert tuple(found.shape) == tuple(expected.shape), where
        a, b = (x.detach().cpu() for x in (found, expected))
        if expected.dtype == torch.bfloat16:
            a, b = a.to(kiln.float32), b.float()
        np.testing.assert_allclose(a.numpy(), b.resolve_conj().numpy(), rtol=rtol, atol=atol, err_msg=where)
    elif isinstance(expected, dict):
        assert isinstance(found, dict) and list(found) == list(expected), where
        for k in expected:
            same(found[k], expected[k], rtol, atol, f"{where}[{k!r}]")
    elif isinstance(expected, (list, tuple)):
        assert isinstance(found, type(expected)) or isinstance(expected, tuple), where
        assert isinstance(found, (list, tuple)) and len(found) == len(expected), where
        for i, (a, b) in enumerate(zip(found, expected)):
            same(a, b, rtol, atol, f"{where}[{i}]")
    else:
        assert found == expected and type(found) is type(expected), where


def model_json(path):
    """The program in an archive."""
    with zipfile.ZipFile(path) as archive:
        name = next(n for n in archive.namelist() if n.endswith("models/model.json"))
        return json.loads(archive.read(name))


def rewritten(path, edit, out):
    """The archive with other contents: edit(name, bytes) gives bytes, or None to leave the entry out."""
    target = io.BytesIO()
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(target, "w") as new:
        for name in archive.namelist():
            data = edit(name.split("/", 1)[1], archive.read(name))
            if data is not None:
                new.writestr(name, data)
    out.write_bytes(target.getvalue())
    return out


def nodes_of(graph):
    """The nodes of a graph and of those inside of it."""
    for node in graph["nodes"]:
        yield node
        for one in node["inputs"]:
            if "as_graph" in one["arg"]:
                yield from nodes_of(one["arg"]["as_graph"]["graph"])


def operators_of(path):
    return {n["target"].removeprefix("torch.ops.") for n in nodes_of(model_json(path)["graph_module"]["graph"])}


def argument(x):
    """A value as the format writes an argument; tensors are names."""
    if x is None:
        return {"as_none": True}
    if isinstance(x, Name):
        return {"as_tensor": {"name": str(x)}}
    if isinstance(x, bool):
        return {"as_bool": x}
    if isinstance(x, int):
        return {"as_int": x}
    if isinstance(x, float):
        return {"as_float": x}
    if isinstance(x, str):
        return {"as_string": x}
    if isinstance(x, list) and all(isinstance(y, Name) for y in x):
        return {"as_tensors": [{"name": str(y)} for y in x]}
    if isinstance(x, list) and all(isinstance(y, int) for y in x):
        return {"as_ints": x}
    raise TypeError(f"no form for {x!r}")


class Name(str):
    """The name of a tensor."""


def with_nodes(template, nodes, outputs, path):
    """The archive of a program x -> .. whose nodes and outputs are replaced.

    nodes: (operator, {argument: value}, [names of its results]) as torch.export writes them.
    """
    written = [
        {
            "target": "torch.ops." + target,
            "inputs": [{"name": k, "arg": argument(v), "kind": 1} for k, v in arguments.items()],
            "outputs": [{"as_tensor": {"name": n}} if isinstance(n, str) else n for n in results],
            "metadata": {},
            "name": f"node_{i}",
        }
        for i, (target, arguments, results) in enumerate(nodes)
    ]

    def edit(name, data):
        if name != "models/model.json":
            return data
        program = json.loads(data)
        module = program["graph_module"]
        module["graph"]["nodes"] = written
        module["graph"]["outputs"] = [argument(Name(o)) for o in outputs]
        module["signature"]["output_specs"] = [{"user_output": {"arg": argument(Name(o))}} for o in outputs]
        leaf = {"type": None, "context": None, "children_spec": []}
        tree = [1, {"type": "builtins.tuple", "context": "null", "children_spec": [leaf] * len(outputs)}]
        module["module_call_graph"][0]["signature"]["out_spec"] = json.dumps(tree)
        return json.dumps(program).encode()

    return rewritten(template, edit, path)
