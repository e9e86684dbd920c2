"""What a wheel must do where nothing but it and NumPy is installed; script/wheels runs it."""

import numpy as np

import kiln
from kiln import nn

kiln.manual_seed(0)
x = kiln.randn(256, 2)
y = (x[:, 0] * x[:, 1] > 0).to(kiln.int64)
net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = kiln.optim.Adam(net.parameters(), lr=0.02)
for _ in range(200):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
accuracy = (net(x).argmax(1) == y).to(kiln.float32).mean().item()
assert accuracy > 0.95, accuracy

# LAPACK, PNG and zlib are parts of the wheel.
a = np.random.default_rng(0).standard_normal((120, 120))
singular = kiln.linalg.svdvals(kiln.tensor(a)).numpy()
np.testing.assert_allclose(singular, np.linalg.svd(a, compute_uv=False), rtol=1e-10)

# Streams of the wheel's own C++ library read numbers.
memory = kiln.metrics.CpuMemory()
memory.update()
assert memory.compute().item() > 0, memory.compute()

try:
    kiln.zeros(2, 3) + kiln.zeros(4)
except RuntimeError as error:  # an exception of the library reaches Python
    assert "[2, 3]" in str(error), error
else:
    raise AssertionError("no error")
print(f"kiln {kiln.__version__}: trained to {accuracy:.3f}")
