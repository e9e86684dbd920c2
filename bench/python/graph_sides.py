"""A worker of `script/bench --compiled`: one library in one of its forms.

Reads commands as JSON lines and answers each with one, as model_sides.py does. Kiln makes the
weights and the right answer; the others load and compare. For rows that are no times the answer
to "make" has the number: "value", in seconds or bytes.
"""

import sys
import time

import numpy as np
from graph_programs import chain_with, numbers, program_inputs, program_of
from model_sides import (
    Decode,
    ExportedSide,
    Infer,
    KilnSide,
    OnnxRuntimeSide,
    OpenVinoSide,
    Program,
    TorchSide,
    images_of,
    labels_of,
    prompt_of,
    serve,
    torchvision,
)

TEXTS = ("bert", "gpt2")


def same(f):
    return f


def number(loss):
    return float(loss.detach() if hasattr(loss, "detach") else loss)


class Steps(Program):
    """A program of graph_programs.py; the answer is the losses of its first steps."""

    def __init__(self, call):
        self.call = call

    def answer(self):
        return np.array([number(self.call()) for _ in range(3)])


class First(Program):
    """The first call of a step, which captures and compiles."""

    def __init__(self, call):
        self.call = call

    def answer(self):
        start = time.perf_counter()
        loss = number(self.call())
        self.value = time.perf_counter() - start
        return np.array([loss])


class Memory(Program):
    """The most memory of a step behind the first ones, with weights and the optimizer's state."""

    def __init__(self, library, call):
        self.library, self.call = library, call

    def answer(self):
        losses = [number(self.call()) for _ in range(3)]
        self.library.reset_memory_stats()
        self.call()
        self.value = self.library.memory_stats()["peak_bytes_in_use"]
        return np.array(losses)


class CompilingSide:
    """What Kiln and PyTorch have in common: whole() compiles a step, part() a loss."""

    whole = staticmethod(same)
    part = staticmethod(same)

    def compiled_model(self, model):
        return model

    def program(self, row, folder):
        library = self.library
        library.manual_seed(0)
        if row.kind == "chain":
            x = library.from_numpy(numbers(row.size))
            f = self.part(self.whole(lambda x: chain_with(library.sin, x)))

            def run():
                with library.no_grad():
                    return f(x)

            return Infer(run, lambda y: y.numpy()[:: row.size // 4096])
        if row.kind in ("step", "memory", "lean"):
            step = self.small_step(row, folder)
            if step is None:
                return None
            return Steps(step) if row.kind == "step" else Memory(library, step)
        model = self.model(row)
        self.exchange(model, folder)
        if row.kind in ("train", "first"):
            step = self.training(row, model)
            return First(step) if row.kind == "first" else Steps(step)
        if row.kind == "decode":
            return Decode(library, model.eval(), library.from_numpy(prompt_of(row)))
        return Infer(self.inference(row, model), lambda y: y.float().numpy())

    def small_step(self, row, folder):
        program = program_of(self.library, row)
        if getattr(program, "double", False) and not self.second_derivatives:
            return None
        self.exchange(self.library.nn.ModuleDict(program.modules), folder)
        step = program.step(self.whole, self.part)
        inputs = [self.library.from_numpy(x) for x in program_inputs(row)]
        return lambda: step(*inputs)

    def training(self, row, model):
        optimizer, f = self.optimizer(row, model.train()), self.library.nn.functional
        loss_of = self.part(lambda x, y: f.cross_entropy(model(x), y))

        def step(x, y):
            optimizer.zero_grad()
            loss = loss_of(x, y)
            loss.backward()
            optimizer.step()
            return loss

        step = self.whole(step)
        x, y = self.inputs(row)[0], self.library.from_numpy(labels_of(row))
        return lambda: step(x, y)

    def inference(self, row, model):
        library = self.library
        model = self.with_dtype(self.folded_for(row, model.eval()), row.dtype)
        x = self.given(row)
        if row.dtype == "bfloat16" and row.model not in TEXTS:
            x = x.to(library.bfloat16)
        run = self.compiled_model(result_of(library, row, model))

        def call():
            with library.no_grad():
                return run(x)

        return call

    def folded_for(self, row, model):
        return model if row.model in TEXTS else self.folded(model)

    def given(self, row):
        if row.model in TEXTS:
            return self.library.from_numpy(prompt_of(row) % 30000)
        return self.inputs(row)[0]


def result_of(library, row, model):
    """The model with one tensor as its result."""
    if row.model not in TEXTS:
        return model
    name = "last_hidden_state" if row.model == "bert" else "logits"

    class Result(library.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, ids):
            return getattr(self.model(ids), name)

    return Result().eval()


class EagerSide(CompilingSide, KilnSide):
    second_derivatives = True

    def model(self, row):
        models = self.library.models
        return models.BertModel(models.BertConfig()) if row.model == "bert" else super().model(row)


class CompiledSide(EagerSide):
    """Kiln: steps and functions by compile, inference as a captured graph of frozen weights. A
    decoding step has a cache that grows, so that its calls are eager."""

    budget = 1.0

    def program(self, row, folder):
        self.budget = 0.0 if row.kind == "lean" else 1.0
        return super().program(row, folder)

    def whole(self, f):
        return self.library.compile(f, options={"memory_budget": self.budget})

    def inference(self, row, model):
        if row.dtype != "float32":
            return super().inference(row, model)
        model, x = result_of(self.library, row, model.eval()), self.given(row)
        graph = self.library.capture(model, x, freeze=True)
        return lambda: graph(x)

    def compiled_model(self, model):
        return self.library.compile(model, options={"freeze": True})


class TorchEagerSide(CompilingSide, TorchSide):
    second_derivatives = True

    def program(self, row, folder):  # memory is Kiln's own, compiled beside eager
        return None if row.kind in ("memory", "lean") else super().program(row, folder)

    def model(self, row):
        if row.model == "bert":
            torchvision(self.library)  # before transformers, which imports it
            import transformers

            return transformers.BertModel(transformers.BertConfig())
        return super().model(row)


class TorchCompiledSide(TorchEagerSide):
    second_derivatives = False  # torch.compile does not support double backward

    def part(self, f):
        return self.library.compile(f)

    def compiled_model(self, model):
        return self.library.compile(model)

    def program(self, row, folder):
        return None if row.kind == "decode" else super().program(row, folder)


class JaxSide:
    def __init__(self, threads):
        import graph_jax

        self.jax = graph_jax

    def program(self, row, folder):
        if row.kind == "chain":
            return Infer(self.jax.chain_of(numbers(row.size)),
                         lambda y: np.asarray(y)[:: row.size // 4096])
        if row.kind != "step":
            return None
        from safetensors.numpy import load_file

        params = self.jax.params_of(load_file(f"{folder}/weights.safetensors"))
        return Steps(self.jax.step_of(row, params))


class GraphFileSide(ExportedSide):
    def __init__(self, threads):
        super().__init__(threads)
        self.torch = TorchEagerSide(threads)

    def takes(self, row):
        return row.dtype == "float32"

    def program(self, row, folder):
        if row.kind != "infer" or not self.takes(row):
            return None
        self.row = row
        model = self.torch.model(row)
        self.torch.exchange(model, folder)
        model = result_of(self.torch.library, row, model.eval())
        x = prompt_of(row) % 30000 if row.model in TEXTS else images_of(row)
        return Infer(self.compiled(model.eval(), x, folder), np.asarray)


class OnnxRuntimeGraphSide(GraphFileSide, OnnxRuntimeSide):
    def takes(self, row):
        return row.dtype in ("float32", "int8")

    def prepared(self, file):
        if self.row.dtype != "int8":
            return file
        from onnxruntime.quantization import quantize_dynamic

        quantize_dynamic(file, f"{file}.int8")
        return f"{file}.int8"


class OpenVinoGraphSide(GraphFileSide, OpenVinoSide):
    def takes(self, row):
        return row.dtype in ("float32", "bfloat16")

    def precision(self):
        return {"float32": "f32", "bfloat16": "bf16"}[self.row.dtype]


SIDES = {
    "kiln": CompiledSide,
    "eager": EagerSide,
    "torch": TorchEagerSide,
    "compile": TorchCompiledSide,
    "jax": JaxSide,
    "onnxruntime": OnnxRuntimeGraphSide,
    "openvino": OpenVinoGraphSide,
}


if __name__ == "__main__":
    serve(SIDES, reference=sys.argv[3] if len(sys.argv) > 3 else "eager")
