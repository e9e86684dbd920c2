"""The methods of the contract and the layers' constructors have PyTorch's signatures."""

import inspect

import pytest

from conftest import HAS_TORCH
from kiln import nn

pytestmark = pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")

METHODS = (
    "add_module apply bfloat16 buffers children cpu cuda double eval extra_repr float "
    "get_buffer get_extra_state get_parameter get_submodule half load_state_dict modules "
    "named_buffers named_children named_modules named_parameters parameters "
    "register_backward_hook register_buffer register_forward_hook register_forward_pre_hook "
    "register_full_backward_hook register_full_backward_pre_hook "
    "register_load_state_dict_post_hook register_load_state_dict_pre_hook register_module "
    "register_parameter register_state_dict_post_hook register_state_dict_pre_hook "
    "requires_grad_ set_extra_state set_submodule share_memory state_dict to to_empty train type "
    "zero_grad"
).split()

CLASSES = (
    "AvgPool2d BatchNorm2d Conv2d CrossEntropyLoss Dropout Flatten GELU Identity LayerNorm Linear "
    "LogSoftmax MSELoss MaxPool2d Module ModuleDict ModuleList PReLU ParameterDict ParameterList "
    "ReLU Sequential SiLU Sigmoid Softmax Tanh Threshold"
).split()

# Arguments of PyTorch's that are deprecated or of layers' features that Kiln lacks.
WITHOUT = {
    "size_average", "reduce", "max_norm", "norm_type", "scale_grad_by_freq", "sparse", "_weight",
    "_freeze", "divisor_override",
}  # fmt: skip


def parameters(function):
    """Names, kinds and defaults, without annotations."""
    return [
        (p.name, p.kind, p.default)
        for p in inspect.signature(function).parameters.values()
        if p.name not in WITHOUT
    ]


@pytest.mark.parametrize("name", METHODS)
def test_method(name):
    import torch

    assert parameters(getattr(nn.Module, name)) == parameters(getattr(torch.nn.Module, name))


@pytest.mark.parametrize("name", CLASSES)
def test_constructor(name):
    import torch

    mine, theirs = getattr(nn, name).__init__, getattr(torch.nn, name).__init__
    assert parameters(mine) == parameters(theirs)


def test_embedding():
    names = [name for name, _, _ in parameters(nn.Embedding.__init__)]
    assert names == ["self", "num_embeddings", "embedding_dim", "padding_idx", "device", "dtype"]
