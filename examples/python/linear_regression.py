"""The smallest training loop: a line through noisy points.

    python examples/python/linear_regression.py
"""

import kiln
from kiln import nn

kiln.manual_seed(0)
x = kiln.linspace(-1, 1, 200)[:, None]
y = 3 * x - 0.5 + 0.1 * kiln.randn(200, 1)

model = nn.Linear(1, 1)
optimizer = kiln.optim.SGD(model.parameters(), lr=0.1)
for step in range(200):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"y = {model.weight.item():.2f} x {model.bias.item():+.2f}")
