"""Two networks against each other with an optimizer each, then an optimizer of one's own."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

rng = np.random.default_rng(3)


def noise(*shape: int) -> Tensor:
    return torch.from_numpy(rng.normal(size=shape).astype("float32"))


def weights_init(m: nn.Module) -> None:
    if isinstance(m, nn.Linear):
        m.weight.data.copy_(0.3 * noise(*m.weight.shape))
        m.bias.data.fill_(0)


generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
critic = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
generator.apply(weights_init)
critic.apply(weights_init)
optim_g = torch.optim.Adam(generator.parameters(), lr=0.01, betas=(0.5, 0.999))
# The critic climbs: its score is to rise.
optim_c = torch.optim.Adam(critic.parameters(), lr=0.02, betas=(0.5, 0.999), maximize=True)
schedules = [
    torch.optim.lr_scheduler.ExponentialLR(optim_g, gamma=0.95),
    torch.optim.lr_scheduler.MultiStepLR(optim_c, milestones=[5, 8], gamma=0.3),
]
bce = nn.functional.binary_cross_entropy_with_logits
for epoch in range(10):
    for p in critic.parameters():
        p.requires_grad = True
    real = noise(32, 2) * 0.5 + 1.0
    fake = generator(noise(32, 4)).detach()
    optim_c.zero_grad()
    score = -bce(critic(real), torch.ones(32, 1)) - bce(critic(fake), torch.zeros(32, 1))
    score.backward()
    optim_c.step()
    for p in critic.parameters():
        p.requires_grad = False
    optim_g.zero_grad()
    loss = bce(critic(generator(noise(32, 4))), torch.ones(32, 1))
    loss.backward()
    optim_g.step()
    for schedule in schedules:
        schedule.step()
    print("losses", score.item(), loss.item(), *[s.get_last_lr()[0] for s in schedules])


class Lion(torch.optim.Optimizer):
    """Evolved sign momentum (Chen et al., 2023)."""

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
    ) -> None:
        if not 0.0 <= lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data.mul_(1 - group["lr"] * group["weight_decay"])
                state = self.state[p]
                if len(state) == 0:
                    state["exp_avg"] = torch.zeros_like(p)
                beta1, beta2 = group["betas"]
                update = state["exp_avg"] * beta1 + p.grad * (1 - beta1)
                p.add_(torch.sign(update), alpha=-group["lr"])
                state["exp_avg"].mul_(beta2).add_(p.grad, alpha=1 - beta2)
        return loss


model = nn.Linear(3, 1)
model.apply(weights_init)
x, y = noise(20, 3), noise(20, 1)
model.bias.requires_grad_(False)
lion = Lion([model.weight], lr=0.01, weight_decay=0.1)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(lion, factor=0.5, patience=1)
handle = lion.register_step_post_hook(lambda o, args, kwargs: print("sum", model.weight.sum().item()))


def closure() -> Tensor:
    lion.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    return loss


for i in range(8):
    if i == 3:
        model.bias.requires_grad_(True)
        lion.add_param_group({"params": [model.bias], "lr": 0.02})
    loss = lion.step(closure)
    plateau.step(loss.item())
    print("lion", loss.item(), *[group["lr"] for group in lion.param_groups])
handle.remove()
lion.load_state_dict(lion.state_dict())
lion.step(closure)
print("end", *model.weight.flatten().tolist(), model.bias.item(), lion.state[model.bias]["exp_avg"].item())
