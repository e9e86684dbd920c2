"""kiln.train.summary: shapes, parameters and multiply-adds, worked out by hand."""

import pytest

import kiln
from kiln import nn
from kiln.train import summary


def test_a_convolutional_network():
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, groups=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(128, 10),
    )
    net[1].weight.requires_grad_(False)
    found = summary(net, kiln.zeros(2, 3, 4, 4))
    conv, norm, relu, flat, linear = found.layers[1:]
    assert conv.output_shape == [2, 8, 4, 4] and conv.parameters == 8 * 27 + 8
    assert conv.multiply_adds == 2 * 16 * 8 * 27
    assert norm.multiply_adds == 2 * 16 * 8 and norm.trainable == 8
    assert relu.multiply_adds == 0 and flat.output_shape == [2, 128]
    assert linear.multiply_adds == 2 * 128 * 10
    assert found.parameters == 224 + 16 + 1290 and found.trainable == found.parameters - 8
    assert found.input_bytes == 2 * 48 * 4 and found.parameter_bytes == 4 * found.parameters
    assert found.activation_bytes == 4 * (3 * 256 + 256 + 20)
    assert "multiply-adds: 9,728" in str(found) and "0 (Conv2d)" in str(found)
    assert net.training and not net[0]._forward_hooks


def test_other_kinds():
    found = summary(nn.ConvTranspose2d(2, 3, 2, stride=2), kiln.zeros(1, 2, 4, 4))
    assert found.multiply_adds == 32 * 3 * 4
    found = summary(nn.Conv2d(4, 4, 3, groups=4), kiln.zeros(1, 4, 5, 5))
    assert found.multiply_adds == 36 * 9
    found = summary(nn.LSTM(4, 8, batch_first=True), kiln.zeros(2, 5, 4))
    assert found.multiply_adds == 10 * (4 * 8 * 4 + 4 * 8 * 8)
    assert found.layers[0].output_shape == [[2, 5, 8], [1, 2, 8], [1, 2, 8]]
    found = summary(nn.Embedding(7, 3), kiln.zeros(2, 5, dtype=kiln.int64))
    assert found.multiply_adds == 0 and found.parameters == 21
    found = summary(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), kiln.zeros(1, 5, 8))
    attention = 5 * 3 * 64 + 2 * 25 * 8
    assert found.multiply_adds == attention + 5 * 64 + 2 * 5 * 8 * 16 + 2 * 40


def test_shared_parameters_count_once_and_arguments_by_name():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(6, 4)
            self.head = nn.Linear(4, 6, bias=False)
            self.head.weight = self.embedding.weight

        def forward(self, tokens, scale):
            return self.head(self.embedding(tokens)) * scale

    found = summary(Tied(), {"tokens": kiln.zeros(1, 3, dtype=kiln.int64), "scale": 2.0})
    assert found.parameters == 24 and found.multiply_adds == 3 * 24
    with pytest.raises(TypeError, match="summary"):
        summary(3, kiln.ones(1))
