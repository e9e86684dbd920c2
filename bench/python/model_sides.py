"""A worker of `script/bench models`: one library, which makes the models and runs them.

Reads commands as JSON lines and answers each with one: {"make": row, "folder": F}, {"repeats": n}.
Kiln makes a row's weights, its input and the right answer in the folder; peers load the weights and
compare their answer.
"""

import json
import os
import pathlib
import sys
import time
import warnings

import numpy as np
from model_recipes import RECIPES
from model_rows import Row
from ops import bound_to_parent

PROMPT_SEED = 7
DECODED = 32  # tokens after a prompt before it is read anew


def images_of(row):
    rng = np.random.default_rng(row.size)
    return rng.standard_normal((row.batch, 3, row.size, row.size), dtype=np.float32)


def labels_of(row):
    return np.arange(row.batch) % 1000


def inputs_of(row):
    """As NumPy's arrays: of a recipe, or images."""
    return RECIPES[row.model].inputs(row) if row.model in RECIPES else [images_of(row)]


def loss_of(row, library):
    """f(output, inputs)"""
    if row.model in RECIPES:
        loss = RECIPES[row.model].loss
        return lambda out, inputs: loss(library, out, inputs)
    labels = library.from_numpy(labels_of(row))
    return lambda out, inputs: library.nn.functional.cross_entropy(out, labels)


def prompt_of(row):
    return np.random.default_rng(PROMPT_SEED).integers(0, 50257, (row.batch, row.size))


class Program:
    """What a row runs: prepare() is not timed, call() is; answer() is compared between libraries."""

    def prepare(self):
        pass


class Infer(Program):
    def __init__(self, call, to_numpy):
        self.call = call
        self.to_numpy = to_numpy

    def answer(self):
        return self.to_numpy(self.call())


class Train(Program):
    """Steps with a loss, on one batch."""

    def __init__(self, model, optimizer, inputs, loss):
        self.model, self.optimizer, self.inputs, self.loss = model, optimizer, inputs, loss

    def call(self):
        self.optimizer.zero_grad()
        loss = self.loss(self.model(*self.inputs), self.inputs)
        loss.backward()
        self.optimizer.step()
        return loss

    def answer(self):
        return np.array([self.call().item()])


class Decode(Program):
    """One token at a time, the likeliest one."""

    def __init__(self, library, model, prompt):
        self.library, self.model, self.prompt = library, model, prompt
        self.cache = None
        self.left = 0

    def prepare(self):
        if self.left == 0:
            self.restart()

    def restart(self):
        with self.library.no_grad():
            out = self.model(self.prompt, use_cache=True)
        self.left = DECODED
        self.cache, self.logits = out.past_key_values, out.logits[:, -1]

    def call(self):
        with self.library.no_grad():
            token = self.logits.argmax(-1, keepdim=True)
            out = self.model(token, past_key_values=self.cache, use_cache=True)
        self.cache, self.logits = out.past_key_values, out.logits[:, -1]
        self.left -= 1

    def answer(self):
        self.restart()
        self.call()
        return self.logits.float().numpy()


class ImperativeSide:
    """Kiln and PyTorch, whose programs read the same."""

    def program(self, row, folder):
        library = self.library
        library.manual_seed(0)
        model = self.model(row)
        self.exchange(model, folder)
        if row.kind == "decode":
            model = self.with_dtype(model.eval(), row.dtype)
            return Decode(library, model, library.from_numpy(prompt_of(row)))
        inputs = self.inputs(row)
        if row.kind == "infer":
            model = self.folded(model.eval())
        if row.kind == "train":
            optimizer = self.optimizer(row, model)
            return Train(model.train(), optimizer, inputs, loss_of(row, library))

        def call():
            with library.no_grad():
                return model(*inputs)

        return Infer(call, lambda out: out.numpy())

    def optimizer(self, row, model):
        options = {"fused": True}
        if row.model in RECIPES:
            return self.library.optim.Adam(model.parameters(), lr=1e-3, **options)
        if row.model.startswith(("vit", "convnext")):
            return self.library.optim.AdamW(model.parameters(), lr=1e-3, **options)
        return self.library.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9, **options)


def linear_of(conv1d, library):
    """A Linear for a layer whose weight is [in, out]."""
    weight = conv1d.weight.detach().t().contiguous()
    layer = library.nn.Linear(weight.shape[1], weight.shape[0])
    layer.weight.data.copy_(weight)
    layer.bias.data.copy_(conv1d.bias.detach())
    return layer


def with_linear_layers(module, library):
    for name, child in list(module.named_children()):
        if type(child).__name__ == "Conv1D":
            setattr(module, name, linear_of(child, library))
        else:
            with_linear_layers(child, library)
    return module


class KilnSide(ImperativeSide):
    def __init__(self, threads):
        import kiln
        import kiln.models

        self.library = kiln
        kiln.set_num_threads(threads)

    def model(self, row):
        if row.model in RECIPES:
            return RECIPES[row.model].build(self.library, row)
        models = self.library.models
        if row.model == "gpt2":
            return models.GPT2LMHeadModel(models.GPT2Config())
        return getattr(models, row.model)(**row.options)

    def exchange(self, model, folder):
        for name, value in model.named_parameters():
            if name.endswith("layer_scale"):
                value.data.fill_(0.3)  # as it comes, whole blocks hardly count
            elif name == "heads.head.weight":
                self.library.nn.init.normal_(value, std=0.02)  # it comes as zeros
        self.library.save(model.state_dict(), f"{folder}/weights.safetensors")

    def inputs(self, row):
        return [self.library.from_numpy(x) for x in inputs_of(row)]

    def folded(self, model):
        return self.library.nn.utils.fuse_(model)

    def with_dtype(self, model, dtype):
        if dtype == "int8":
            model = with_linear_layers(model, self.library)
            self.library.nn.quantize_(model, level="channel", activations="dynamic")
            return model
        return model.to(getattr(self.library, dtype))


class CompiledSide(KilnSide):
    """Kiln's graphs, for inference alone."""

    def program(self, row, folder):
        return super().program(row, folder) if row.kind == "infer" else None

    def exchange(self, model, folder):
        model.load_state_dict(self.library.load(f"{folder}/weights.safetensors"))

    def folded(self, model):
        return self.library.compile(model, options={"freeze": True})


class TorchSide(ImperativeSide):
    """Set up as its best users do: channels last, fused optimizers, norms folded for inference,
    dynamic quantization."""

    def __init__(self, threads):
        import torch

        self.library = torch
        self.memory_format = torch.channels_last
        torch.set_num_threads(threads)

    def model(self, row):
        if row.model in RECIPES:
            return RECIPES[row.model].build(self.library, row)
        vision = torchvision(self.library)  # before transformers, which imports it
        if row.model == "gpt2":
            import transformers

            return transformers.GPT2LMHeadModel(transformers.GPT2Config())
        models = vision.models
        if row.model == "vit_tiny_16":
            sizes = {"num_layers": 12, "num_heads": 3, "hidden_dim": 192, "mlp_dim": 768}
            return models.VisionTransformer(image_size=224, patch_size=16, **sizes)
        if row.model == "convnext_atto":
            setting = models.convnext.CNBlockConfig
            widths = [(40, 80, 2), (80, 160, 2), (160, 320, 6), (320, None, 2)]
            blocks = [setting(*width) for width in widths]
            return models.ConvNeXt(blocks, stochastic_depth_prob=0.1)
        return getattr(models, row.model)(**row.options)

    def exchange(self, model, folder):
        from safetensors.torch import load_file

        weights = load_file(f"{folder}/weights.safetensors")
        model.load_state_dict(weights, strict=False)
        missing = set(model.state_dict()) - set(weights) - {"lm_head.weight"}
        if missing:
            raise ValueError(f"weights that Kiln's model has not: {sorted(missing)[:3]}")
        volumes = any(x.dim() == 5 for x in model.parameters())
        if volumes:
            self.memory_format = self.library.channels_last_3d
        model.to(memory_format=self.memory_format)

    def inputs(self, row):
        inputs = [self.library.from_numpy(x) for x in inputs_of(row)]
        dims = 5 if self.memory_format is self.library.channels_last_3d else 4
        return [x.to(memory_format=self.memory_format) if x.dim() == dims else x for x in inputs]

    def folded(self, model):
        """Normalizations folded into convolutions, as torch.fx's pass does it."""
        from torch.fx.experimental.optimization import fuse

        norm = self.library.nn.BatchNorm2d
        if not any(isinstance(each, norm) for each in model.modules()):
            return model
        try:
            model = fuse(model)
        except (TypeError, self.library.fx.proxy.TraceError):
            pass  # what the pass cannot trace stays as it is
        return model.to(memory_format=self.memory_format)

    def with_dtype(self, model, dtype):
        torch = self.library
        if dtype == "int8":
            model = with_linear_layers(model, torch)
            return torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, torch.qint8)
        return model.to(getattr(torch, dtype))


def torchvision(torch):
    """The module, whose compiled part (which detection alone needs) may be for another PyTorch."""
    try:
        import torchvision
    except RuntimeError:
        for name in [n for n in sys.modules if n.startswith("torchvision")]:
            del sys.modules[name]
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        torchvision_library.append(library)
        import torchvision
    return torchvision


torchvision_library = []


class ExportedSide:
    """A peer for inference alone: it runs what PyTorch exports."""

    def __init__(self, threads):
        self.threads = threads
        self.torch = TorchSide(threads)

    def program(self, row, folder):
        recipe = RECIPES.get(row.model)
        if row.kind != "infer" or (recipe and not recipe.exports) or len(inputs_of(row)) != 1:
            return None
        model = self.torch.model(row)
        self.torch.exchange(model, folder)
        (x,) = inputs_of(row)
        return Infer(self.compiled(model.eval(), x, folder), np.asarray)


    def exported(self, model, x, folder):
        """The path of the model as ONNX."""
        torch, file = self.torch.library, f"{folder}/model.onnx"
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(
            model.to(memory_format=torch.contiguous_format),
            (torch.from_numpy(x),),
            file,
            input_names=["x"],
            dynamo=False,
        )
        return file


class OnnxRuntimeSide(ExportedSide):
    def compiled(self, model, x, folder):
        import onnxruntime

        file = self.exported(model, x, folder)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        file, providers = self.prepared(file), ["CPUExecutionProvider"]
        session = onnxruntime.InferenceSession(file, options, providers=providers)
        return lambda: session.run(None, {"x": x})[0]

    def prepared(self, file):
        return file


class OpenVinoSide(ExportedSide):
    def compiled(self, model, x, folder):
        import openvino

        example = self.torch.library.from_numpy(x)
        try:
            converted = openvino.convert_model(model, example_input=example, input=list(x.shape))
        except RuntimeError:  # it traces models of its own accord, but not all of them
            converted = openvino.convert_model(self.exported(model, x, folder))
        settings = {"INFERENCE_NUM_THREADS": self.threads, "PERFORMANCE_HINT": "LATENCY"}
        settings["INFERENCE_PRECISION_HINT"] = self.precision()
        request = openvino.compile_model(converted, "CPU", settings).create_infer_request()
        return lambda: request.infer({0: x}, share_inputs=True)[0]

    def precision(self):
        return "f32"


SIDES = {
    "kiln": KilnSide,
    "compiled": CompiledSide,
    "torch": TorchSide,
    "onnxruntime": OnnxRuntimeSide,
    "openvino": OpenVinoSide,
}


def compared(answer, path, is_reference):
    """An error when a peer's answer is another one."""
    if is_reference:
        np.save(path, answer)
        return None
    expected = np.load(path)
    scale = np.abs(expected).max()
    worst = np.abs(answer - expected).max() / scale
    tolerance = 0.1 if "int8" in str(path) or "bfloat16" in str(path) else 1e-2
    return None if worst < tolerance else f"the answer differs by {worst:.2g} of {scale:.3g}"


def timed(program, repeats, clock):
    """Seconds for a call. The first one is not counted: the other libraries ran meanwhile, and left
    nothing of this one in the caches."""
    program.prepare()
    program.call()
    spent = 0.0
    for _ in range(repeats):
        program.prepare()
        start = clock()
        program.call()
        spent += clock() - start
    return spent / repeats


def made(side, is_reference, row, folder):
    """(program, what the driver is told)"""
    program = side.program(row, folder)
    if program is None:
        return None, {"none": True}
    path = pathlib.Path(folder) / f"{row.name}.npy"
    error = compared(program.answer(), path, is_reference)
    reply = {"error": error} if error else {}
    if hasattr(program, "value"):
        reply["value"] = program.value
    return program, reply


def serve(sides, reference):
    if not bound_to_parent():
        return
    name = sys.argv[2]
    threads = int(os.environ["KILN_BENCH_THREADS"])
    clock = time.process_time if threads == 1 else time.perf_counter
    # Libraries print to the standard output as well; what is answered goes where it went before.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    side = program = None
    for line in sys.stdin:
        command = json.loads(line)
        reply = {}
        try:
            side = side or sides[name](threads)
            if "make" in command:
                program = None
                row = Row(**command["make"])
                program, reply = made(side, name == reference, row, command["folder"])
            elif "repeats" in command:
                reply["ns"] = timed(program, command["repeats"], clock) * 1e9
        except Exception as error:
            reply["error"] = f"{type(error).__name__}: {error}".splitlines()[0]
        print(json.dumps(reply), file=answers, flush=True)


if __name__ == "__main__":
    serve(SIDES, reference="kiln")
