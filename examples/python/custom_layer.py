"""A layer of one's own, and a function with a derivative of one's own.

    python examples/python/custom_layer.py
"""

import kiln
from kiln import nn


class Sign(kiln.autograd.Function):
    """The sign of x, whose gradient passes where x is small (Bengio et al., 2013)."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * (x.abs() <= 1)


class BinaryLinear(nn.Module):
    """A linear layer that multiplies by the signs of its weights."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(0.1 * kiln.randn(outputs, inputs))
        self.scale = nn.Parameter(kiln.ones(outputs))

    def forward(self, x):
        return nn.functional.linear(x, Sign.apply(self.weight)) * self.scale

    def extra_repr(self):
        return "{1}, {0}".format(*self.weight.shape)


kiln.manual_seed(0)
model = nn.Sequential(BinaryLinear(8, 32), nn.Tanh(), BinaryLinear(32, 1))
print(model)
x = kiln.randn(256, 8)
y = x[:, :3].sum(1, keepdim=True)
optimizer = kiln.optim.Adam(model.parameters(), lr=1e-2)
for step in range(300):
    loss = nn.functional.mse_loss(model(x), y)
    if step == 0:
        print(f"loss before {loss.item():.3f}")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss after {loss.item():.3f}")
