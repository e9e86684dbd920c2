"""Deep Q learning on a pole: a replay memory, a target network that follows, clipped gradients."""

import math
import random
from collections import deque
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch import Tensor



class Transition(NamedTuple):
    state: Any
    action: Any
    next_state: Any
    reward: Any


random.seed(0)
rng = np.random.default_rng(9)


class CartPole:
    def reset(self) -> npt.NDArray[np.float32]:
        self.state = rng.uniform(-0.05, 0.05, 4)
        return self.state.astype(np.float32)

    def step(self, action: int) -> tuple[npt.NDArray[np.float32], float, bool]:
        x, v, angle, spin = self.state
        force = 10.0 if action == 1 else -10.0
        push = (force + 0.05 * spin**2 * math.sin(angle)) / 1.1
        turn = (9.8 * math.sin(angle) - math.cos(angle) * push) / (
            0.5 * (4 / 3 - 0.1 * math.cos(angle) ** 2 / 1.1)
        )
        pull = push - 0.05 * turn * math.cos(angle) / 1.1
        self.state = np.array(
            [x + 0.02 * v, v + 0.02 * pull, angle + 0.02 * spin, spin + 0.02 * turn]
        )
        done = bool(abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.2095)
        return self.state.astype(np.float32), 1.0, done


class ReplayMemory(object):
    def __init__(self, capacity: int) -> None:
        self.memory: deque[Transition] = deque([], maxlen=capacity)

    def push(self, *args: Any) -> None:
        self.memory.append(Transition(*args))

    def sample(self, batch_size: int) -> list[Transition]:
        return random.sample(self.memory, batch_size)

    def __len__(self) -> int:
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, n_observations: int, n_actions: int) -> None:
        super(DQN, self).__init__()
        self.layer1 = nn.Linear(n_observations, 32)
        self.layer2 = nn.Linear(32, 32)
        self.layer3 = nn.Linear(32, n_actions)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.layer1(x))
        x = F.relu(self.layer2(x))
        return self.layer3(x)


BATCH_SIZE, GAMMA, TAU = 16, 0.99, 0.05
policy_net = DQN(4, 2)
for p in policy_net.parameters():
    p.data.copy_(torch.from_numpy(rng.normal(0, 0.3, tuple(p.shape))))
target_net = DQN(4, 2)
target_net.load_state_dict(policy_net.state_dict())
optimizer = optim.AdamW(policy_net.parameters(), lr=3e-3, amsgrad=True)
memory = ReplayMemory(1000)


def select_action(state: Tensor, steps_done: int) -> Tensor:
    if random.random() > 0.05 + 0.85 * math.exp(-steps_done / 40):
        with torch.no_grad():
            best: Tensor = policy_net(state).max(1).indices.view(1, 1)
            return best
    return torch.tensor([[random.randrange(2)]], dtype=torch.long)


def optimize_model() -> None:
    if len(memory) < BATCH_SIZE:
        return
    batch = Transition(*zip(*memory.sample(BATCH_SIZE)))
    non_final_mask = torch.tensor(
        tuple(map(lambda s: s is not None, batch.next_state)), dtype=torch.bool
    )
    non_final_next_states = torch.cat([s for s in batch.next_state if s is not None])
    state_batch, action_batch = torch.cat(batch.state), torch.cat(batch.action)
    reward_batch = torch.cat(batch.reward)
    state_action_values = policy_net(state_batch).gather(1, action_batch)
    next_state_values = torch.zeros(BATCH_SIZE)
    with torch.no_grad():
        next_state_values[non_final_mask] = target_net(non_final_next_states).max(1).values
    expected_state_action_values = (next_state_values * GAMMA) + reward_batch
    criterion = nn.SmoothL1Loss()
    loss = criterion(state_action_values, expected_state_action_values.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    print("loss", loss.item())


env, steps_done = CartPole(), 0
for i_episode in range(4):
    state = torch.tensor(env.reset(), dtype=torch.float32).unsqueeze(0)
    for t in count():
        action = select_action(state, steps_done)
        steps_done += 1
        observation, gain, done = env.step(action.item())
        reward = torch.tensor([gain])
        next_state = None if done else torch.tensor(observation, dtype=torch.float32).unsqueeze(0)
        memory.push(state, action, next_state, reward)
        if next_state is not None:
            state = next_state
        optimize_model()
        target_net_state_dict = target_net.state_dict()
        policy_net_state_dict = policy_net.state_dict()
        for key in policy_net_state_dict:
            target_net_state_dict[key] = policy_net_state_dict[key] * TAU + target_net_state_dict[
                key
            ] * (1 - TAU)
        target_net.load_state_dict(target_net_state_dict)
        if done or t >= 20:
            print("episode", t + 1)
            break
