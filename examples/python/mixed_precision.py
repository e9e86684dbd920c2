"""Training in half precision: products in bfloat16 or float16, parameters in float32.

    python examples/python/mixed_precision.py
"""

import kiln
from kiln import nn

kiln.manual_seed(0)
x = kiln.randn(512, 16)
y = (x[:, 0] * x[:, 1] > 0).long()

for dtype in (kiln.bfloat16, kiln.float16):
    model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 2))
    optimizer = kiln.optim.AdamW(model.parameters(), lr=3e-3)
    # Small gradients of float16 would become 0: the loss is scaled up, gradients down again.
    scaler = kiln.amp.GradScaler("cpu", enabled=dtype == kiln.float16)
    for step in range(200):
        with kiln.autocast("cpu", dtype=dtype):
            logits = model(x)
            loss = nn.functional.cross_entropy(logits, y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    weights = model[0].weight.dtype
    print(f"{dtype}: logits are {logits.dtype}, weights {weights}, loss {loss.item():.3f}")
