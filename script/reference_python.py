"""Writes the reference of the Python package: a page for each namespace, from its docstrings.

usage: reference_python.py FOLDER

A page tensor-ops.md beside the folder gets links to them.
"""

import importlib
import inspect
import pathlib
import re
import sys

import kiln

# Namespace, title, what it is.
NAMESPACES = [
    ("kiln", "Functions that make tensors and compute with them, and what belongs to all."),
    ("kiln.Tensor", "The methods of a tensor."),
    ("kiln.nn", "Modules: layers, losses, containers."),
    ("kiln.nn.functional", "Layers and losses as functions."),
    ("kiln.nn.init", "Initial values."),
    ("kiln.nn.attention", "Ways to compute attention."),
    ("kiln.nn.attention.flex_attention", "Attention with scores of your own."),
    ("kiln.nn.parallel", "Modules that hold a module."),
    ("kiln.nn.utils", "Helpers for modules: clipping, fusing, vectors of parameters."),
    ("kiln.nn.utils.rnn", "Sequences of several lengths."),
    ("kiln.nn.utils.prune", "Pruning."),
    ("kiln.nn.utils.parametrize", "Parameters that are computed from others."),
    ("kiln.nn.utils.parametrizations", "Orthogonal weights, weight norms, spectral norms."),
    ("kiln.optim", "Optimizers."),
    ("kiln.optim.lr_scheduler", "Learning-rate schedules."),
    ("kiln.optim.swa_utils", "Averages of models."),
    ("kiln.train", "The Learner: training that is never lost."),
    ("kiln.metrics", "Metrics."),
    ("kiln.utils.data", "Datasets and loaders."),
    ("kiln.utils.tensorboard", "Event files of TensorBoard's."),
    ("kiln.utils.checkpoint", "Activations computed again instead of kept."),
    ("kiln.models", "Models with the keys of public weights."),
    ("kiln.vision", "Images."),
    ("kiln.vision.transforms", "Transforms of images for training."),
    ("kiln.vision.transforms.functional", "The same as functions."),
    ("kiln.audio", "Sound."),
    ("kiln.linalg", "Linear algebra."),
    ("kiln.sparse", "Sparse tensors."),
    ("kiln.fft", "Fourier transforms."),
    ("kiln.signal", "Windows for spectra."),
    ("kiln.signal.windows", "The windows."),
    ("kiln.special", "Special functions."),
    ("kiln.func", "Functions of functions: vmap, jacobians."),
    ("kiln.autograd", "Gradients and custom derivatives."),
    ("kiln.autograd.functional", "Jacobians, Hessians and products with them."),
    ("kiln.autograd.graph", "What an op saves for its gradient."),
    ("kiln.autograd.forward_ad", "Dual tensors."),
    ("kiln.amp", "Mixed precision."),
    ("kiln.utils.flop_counter", "Counts the work of models."),
    ("kiln.utils.benchmark", "Times of statements."),
    ("kiln.onnx", "ONNX files."),
    ("kiln.library", "Ops of your own."),
    ("kiln.overrides", "Classes and modes that override functions."),
    ("kiln.export", "Programs that torch.export.save wrote."),
    ("kiln.distributions", "Probability distributions."),
    ("kiln.distributions.constraints", "Where values of distributions lie."),
    ("kiln.distributions.transforms", "Invertible functions of random variables."),
    ("kiln.record", "Records."),
    ("kiln.rl", "Reinforcement learning."),
    ("kiln.random", "Random numbers."),
    ("kiln.profiler", "What each op costs."),
    ("kiln.compiler", "What concerns kiln.compile."),
    ("kiln.testing", "Whether results are alike."),
    ("kiln.hub", "Weights from the net."),
    ("kiln.jit", "torch.jit's names."),
    ("kiln.multiprocessing", "Processes."),
    ("kiln.futures", "Results that are on their way."),
    ("kiln.distributed", "Groups of processes, their operations and messages."),
    ("kiln.distributed.nn", "Operations with gradients."),
    ("kiln.distributed.nn.functional", "The same under PyTorch's longer name."),
    ("kiln.distributed.optim", "Optimizers whose state is spread over processes."),
    ("kiln.distributed.device_mesh", "Processes in a grid."),
    (
        "kiln.distributed.algorithms.ddp_comm_hooks.default_hooks",
        "How gradients are exchanged: communication hooks.",
    ),
    ("kiln.distributed.run", "The launcher: `python -m kiln.distributed.run`."),
    ("kiln.serialization", "torch.serialization's names."),
    ("kiln.accelerator", "The CUDA device without its kind."),
    ("kiln.opencl", "OpenCL devices."),
    ("kiln.errors", "What Kiln raises."),
]


def find(name: str):
    """The module or class of this name."""
    if name == "kiln.Tensor":
        return kiln.Tensor
    return importlib.import_module(name)


def members(owner) -> list[tuple[str, object]]:
    """What is public in a namespace and can be called, sorted by name."""
    names = getattr(owner, "__all__", None) or dir(owner)
    found = []
    for name in sorted(set(names), key=lambda name: (name.lower(), name)):
        if name.startswith("_") or inspect.ismodule(getattr(owner, name, None)):
            continue
        try:
            value = inspect.getattr_static(owner, name)
            value = getattr(owner, name)
        except AttributeError:
            continue
        origin = getattr(value, "__module__", None) or ""
        if callable(value) and not origin.startswith(("typing", "collections", "functools", "abc")):
            found.append((name, value))
    return found


class Annotation:
    """A type that is shown as it was written."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


def shown(signature: inspect.Signature) -> inspect.Signature:
    """The signature, with annotations that are texts shown without their quotes."""

    def plain(annotation):
        return Annotation(annotation) if isinstance(annotation, str) else annotation

    parameters = [p.replace(annotation=plain(p.annotation)) for p in signature.parameters.values()]
    result = plain(signature.return_annotation)
    return signature.replace(parameters=parameters, return_annotation=result)


def signature_and_text(name: str, value) -> tuple[str, str]:
    """The signature and the description of a function or a class."""
    text = inspect.cleandoc(value.__doc__ or "")
    first, _, rest = text.partition("\n\n")
    if first.startswith(f"{getattr(value, '__name__', name)}("):  # of a compiled function: a line for each form
        return first, rest
    try:
        signature = shown(inspect.signature(value))
        if isinstance(value, type):
            signature = signature.replace(return_annotation=inspect.Signature.empty)
        return f"{name}{signature}", text
    except (TypeError, ValueError):
        return f"{name}(...)", text


def wrapped(signature: str) -> str:
    """A long signature with an argument to a line; of several forms one below the other."""
    if "\n" in signature:
        return "\n".join(map(wrapped, signature.splitlines()))
    inner = re.fullmatch(r"(\w+\()(.*)(\).*)", signature, re.S)
    if len(signature) <= 84 or inner is None:
        return signature
    arguments = re.split(r", (?![^\[(]*[\])])", inner[2])
    return inner[1] + "".join(f"\n    {argument}," for argument in arguments) + "\n" + inner[3]


def markdown_of(text: str) -> str:
    """A docstring as Markdown: short lines stay lines, as of lists; examples become code."""
    lines, in_example = [], False
    for line in text.splitlines():
        if not in_example and line.startswith(">>> "):
            lines += ["", "```pycon"]
            in_example = True
        if in_example and not line.strip():
            lines.append("```")
            in_example = False
        ends = 0 < len(line.strip()) < 70  # a longer one goes on in the next
        plain = re.sub(r"([<*_\[\]])", r"\\\1", line) + ("  " if ends else "")
        lines.append(line if in_example else plain)
    return "\n".join([*lines, "```"] if in_example else lines)


def page(name: str, about: str) -> str:
    """The page of a namespace."""
    out = [f"# {name}", "", about, ""]
    for member, value in members(find(name)):
        signature, text = signature_and_text(member, value)
        out += [f"## {member} {{#{name}.{member}}}", "", "```python", wrapped(signature), "```", "", markdown_of(text), ""]
    return "\n".join(out)


def op_links(table: str, folder: str) -> str:
    """The page of all ops (docs/tensor-ops.md) with links to what the reference says of each."""

    def link(match: re.Match) -> str:
        space, _, op = match[1].rpartition(".")
        if not space and not hasattr(kiln, op):
            space = "Tensor"
        page = f"kiln.{space}" if space else "kiln"
        return f"| [`{match[1]}`]({folder}/{page}.md#{page}.{op}) |"

    return re.sub(r"^\| `([\w.]+)` \|", link, table, flags=re.M)


def main() -> None:
    """Writes all pages and their index, and links the page of all ops to them."""
    folder = pathlib.Path(sys.argv[1])
    index = ["# Python reference", "", "| namespace | what it holds |", "|---|---|"]
    for name, about in NAMESPACES:
        (folder / f"{name}.md").write_text(page(name, about))
        index.append(f"| [`{name}`]({name}.md) | {about} |")
    (folder / "index.md").write_text("\n".join(index) + "\n")
    ops = folder.parent / "tensor-ops.md"
    if ops.exists():
        ops.write_text(op_links(ops.read_text(), folder.name))


if __name__ == "__main__":
    main()
