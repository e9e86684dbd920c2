"""Layers folded for inference."""

import kiln
import pytest


def layers(bias):
    conv = kiln.nn.Conv2d(4, 6, 3, padding=1, groups=2, bias=bias, dtype=kiln.float64)
    bn = kiln.nn.BatchNorm2d(6, eps=1e-3, dtype=kiln.float64)
    for _ in range(3):
        bn(kiln.randn(4, 6, 5, 5, dtype=kiln.float64) * 2 + 0.5)
    with kiln.no_grad():
        bn.weight.copy_(kiln.randn(6, dtype=kiln.float64))
        bn.bias.copy_(kiln.randn(6, dtype=kiln.float64))
    return conv, bn


@pytest.mark.parametrize("bias", [True, False])
def test_fuse_conv_bn(bias):
    conv, bn = layers(bias)
    with pytest.raises(AssertionError, match="eval"):
        kiln.nn.utils.fuse_conv_bn_eval(conv, bn)
    conv.eval()
    bn.eval()
    fused = kiln.nn.utils.fuse_conv_bn_eval(conv, bn)
    x = kiln.randn(2, 4, 9, 9, dtype=kiln.float64)
    assert kiln.allclose(fused(x), bn(conv(x)), 1e-12, 1e-12)
    assert isinstance(fused.weight, kiln.nn.Parameter) and fused.weight is not conv.weight
    assert (conv.bias is not None) == bias
    with pytest.raises(AssertionError, match="got 5"):
        kiln.nn.utils.fuse_conv_bn_eval(conv, kiln.nn.BatchNorm2d(5).eval())
