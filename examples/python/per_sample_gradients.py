"""vmap: the gradient of each sample by itself, in one pass; clipped and with noise they make
private learning (Abadi et al., 2016).

    python examples/python/per_sample_gradients.py
"""

import kiln
from kiln import nn
from kiln.func import functional_call, grad, vmap

kiln.manual_seed(0)
x = kiln.randn(200, 10)
y = (x[:, :2].sum(1) > 0).float()
model = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 1))
parameters = {name: p.detach() for name, p in model.named_parameters()}


def loss_of(parameters, x, y):
    logit = functional_call(model, parameters, (x[None],))[0, 0]
    return nn.functional.binary_cross_entropy_with_logits(logit, y)


for step in range(60):
    each = vmap(grad(loss_of), (None, 0, 0))(parameters, x, y)  # [200, ..] of each parameter
    norms = kiln.stack([g.flatten(1).norm(dim=1) for g in each.values()]).norm(dim=0)
    scale = (1.0 / norms).clamp(max=1.0)  # no sample counts for more than 1
    for name, g in each.items():
        clipped = (g.flatten(1) * scale[:, None]).mean(0).reshape(g.shape[1:])
        parameters[name] = parameters[name] - 1.0 * (clipped + 0.002 * kiln.randn_like(clipped))
logits = functional_call(model, parameters, (x,))[:, 0]
right = ((logits > 0).float() == y).float().mean().item()
print(f"norms of gradients from {norms.min().item():.3f} to {norms.max().item():.3f}")
print(f"{100 * right:.0f} % right")
