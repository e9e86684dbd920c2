"""Networks of deep Q learning (Mnih et al., 2015)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kiln import nn

from ._vision import positive

if TYPE_CHECKING:
    from .._C import Tensor


class DQN(nn.Module):
    """Observations [N, n_observations] -> a value for each action, [N, n_actions]. With `dueling`
    the values are a state's value plus each action's advantage (Wang et al., 2016).

    >>> kiln.models.DQN(4, 2)(kiln.zeros(3, 4)).shape
    kiln.Size([3, 2])
    """

    def __init__(
        self, n_observations: int, n_actions: int, hidden: int = 128, dueling: bool = False
    ) -> None:
        super().__init__()
        positive("DQN", n_observations=n_observations, n_actions=n_actions, hidden=hidden)
        self.layer1 = nn.Linear(n_observations, hidden)
        self.layer2 = nn.Linear(hidden, hidden)
        self.layer3 = nn.Linear(hidden, n_actions)
        self.value = nn.Linear(hidden, 1) if dueling else None

    def forward(self, x: Tensor) -> Tensor:
        x = self.layer2(self.layer1(x).relu()).relu()
        advantage = self.layer3(x)
        if self.value is None:
            return advantage
        return self.value(x) + advantage - advantage.mean(-1, keepdim=True)


class AtariDQN(nn.Module):
    """Stacks of frames [N, in_channels, 84, 84] of bytes or of numbers from 0 to 255 -> a value for
    each action.

    >>> kiln.models.AtariDQN(6)(kiln.zeros(1, 4, 84, 84)).shape
    kiln.Size([1, 6])
    """

    def __init__(self, n_actions: int, in_channels: int = 4) -> None:
        super().__init__()
        positive("AtariDQN", n_actions=n_actions, in_channels=in_channels)
        self.network = nn.Sequential(
            nn.Conv2d(in_channels, 32, 8, stride=4),
            nn.ReLU(),
            nn.Conv2d(32, 64, 4, stride=2),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3, stride=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(3136, 512),
            nn.ReLU(),
            nn.Linear(512, n_actions),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.network(x.to(self.network[0].weight.dtype) / 255.0)
