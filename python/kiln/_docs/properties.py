"""Docstrings of properties of compiled classes, which cannot wait to be read: Python keeps them as texts."""

from .. import _C

_TEXTS = {
    "": {
        "Tensor.dtype": "What its elements are, such as kiln.float32.",
        "Tensor.device": "Where it lives, such as device(type='cpu').",
        "Tensor.ndim": "How many dims it has.",
        "Tensor.itemsize": "How many bytes an element takes.",
        "Tensor.nbytes": "How many bytes all elements take.",
        "Tensor.is_cuda": "False: there is no CUDA device.",
        "Tensor.is_cpu": "Whether it is on the CPU.",
        "Tensor.is_quantized": "Whether it holds integers and scales: see kiln.quantize.",
        "Tensor.requires_grad": "Whether operations on it are recorded, for backward().",
        "Tensor.is_leaf": "Whether it was made by the user, and not by a recorded operation.",
        "Tensor.grad_fn": "The operation that made it, where that was recorded; else None.",
        "Generator.device": "Where its numbers are made: the CPU.",
        "device.type": "The name of the backend: 'cpu', 'reference', 'opencl' or 'meta'.",
        "device.index": "Which of several devices of the type; None where none was named.",
        "dtype.is_floating_point": "Whether it is float64, float32, float16 or bfloat16.",
        "dtype.is_complex": "Whether it is complex64 or complex128.",
        "dtype.is_signed": "Whether it holds negative numbers.",
        "Buffer.persistent": "Whether it is in the state dict.",
        "Param.data": "The value, which is made if it is not there yet.",
        "Param.id": "The number by which records know it.",
        "Param.mapper": "What is done to the value when it is saved and loaded.",
        "Param.is_initialized": "Whether the value is there.",
        "Param.defined": "Whether there is a value, or one can be made.",
        "ParamId.value": "The number.",
        "ParamMapper.has_load": "Whether it changes what is loaded.",
        "ParamMapper.has_save": "Whether it changes what is saved.",
        "Record.entries": "(name, id, tensor) of each entry.",
        "Record.values": "The tensors by name.",
        "PrecisionSettings.name": "What it is called.",
        "PrecisionSettings.float_type": "The dtype that floats are written in.",
        "PrecisionSettings.int_type": "The dtype that integers are written in.",
        "RecordItem.settings": "The dtypes that it is written in.",
    },
    "_rl": {
        "BuiltinEnvironment.observation_space": "What observations can be.",
        "BuiltinEnvironment.action_space": "What actions can be.",
        "BuiltinEnvironment.time_limit": "After how many steps an episode is truncated.",
        "VectorEnvironment.observation_space": "What observations of one environment can be.",
        "VectorEnvironment.action_space": "What actions of one environment can be.",
        "PrioritizedReplayBuffer.beta": "How far weights make up for the unequal draws, 0 to 1.",
        "ReplayBuffer.capacity": "How many transitions it keeps.",
        "Progress.steps": "Steps of environments so far.",
        "Progress.updates": "Steps of the optimizer so far.",
        "Progress.episodes": "Episodes that ended so far.",
        "Progress.mean_return": "The mean return of the last episodes.",
        "Progress.mean_length": "The mean length of the last episodes.",
        "Progress.exploration": "How often the agent explores now.",
        "Progress.loss": "The last loss.",
        "Progress.evaluation": "The mean return of the last evaluation.",
        "Progress.solved": "Whether stop_return was reached.",
        "Space.n": "How many choices there are; None of a box.",
        "Space.shape": "The shape of the numbers.",
        "Space.low": "The smallest number of each; None of choices.",
        "Space.high": "The largest number of each; None of choices.",
    },
    "_train": {
        "CheckpointStore.is_copying": "Whether the state is being copied.",
        "CheckpointStore.is_writing": "Whether a checkpoint is being written.",
        "EventFile.position": "How many bytes were written.",
        "RunLog.position": "Where the next line goes: what reopening takes.",
    },
    "_tokenizers": {"SentencePiece.unk_id": "The id of what has no token."},
}


def attach() -> None:
    """Gives all properties of the table their docstrings."""
    for part, texts in _TEXTS.items():
        module = getattr(_C, part) if part else _C
        for path, text in texts.items():
            owner, _, name = path.partition(".")
            vars(getattr(module, owner))[name].__doc__ = text
