"""A trained network with its weights in 8 and in 4 bits.

    python examples/python/quantized.py
"""

import copy

import kiln
from kiln import nn

kiln.manual_seed(0)
x = kiln.randn(1000, 64)
y = (x @ kiln.randn(64, 5)).argmax(1)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 5))
optimizer = kiln.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(150):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def share_right(net):
    with kiln.no_grad():
        return 100 * (net(x).argmax(1) == y).float().mean().item()


print(f"float32: {share_right(model):.1f} % right")
for bits in (8, 4):
    small = copy.deepcopy(model)
    report = nn.quantize_(small, bits=bits, level="block", block=32)
    print(f"{bits} bits: {share_right(small):.1f} % right\n{report}")
