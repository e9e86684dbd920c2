"""Reinforcement learning: environments, replay buffers, and the loops that train agents.

An environment is any object with Gymnasium's attributes and methods: observation_space and
action_space (Discrete or Box), reset(seed=None) -> (observation, info) and step(action) ->
(observation, reward, terminated, truncated, info). The loops are C++'s; networks, optimizers and
environments may be Python's.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from . import _C, nn, optim
from ._C._rl import (  # noqa: F401
    Box as Box,
    BuiltinEnvironment as BuiltinEnvironment,
    CartPole as CartPole,
    Discrete as Discrete,
    Epsilon as Epsilon,
    GridWorld as GridWorld,
    Pendulum as Pendulum,
    PrioritizedReplayBuffer as PrioritizedReplayBuffer,
    Progress as Progress,
    Random as Random,
    ReplayBuffer as ReplayBuffer,
    Space as Space,
    VectorEnvironment as VectorEnvironment,
    epsilon_greedy as epsilon_greedy,
    evaluate as evaluate,
    gae as gae,
    sample_categorical as sample_categorical,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._C import Tensor, dtype

if not TYPE_CHECKING:
    __all__ = [name for name in dir(_C._rl) if not name.startswith("_")]
    __all__ += ["from_gymnasium", "train_dqn", "train_ppo"]


class from_gymnasium:
    """An environment of Gymnasium's, whose actions are arrays of NumPy's.

    >>> callable(kiln.rl.from_gymnasium)
    True
    """

    def __init__(self, environment: Any) -> None:
        self.environment = environment
        self.observation_space = environment.observation_space
        self.action_space = environment.action_space

    def reset(self, seed: int | None = None) -> Any:
        """Begins an episode -> (observation, info)."""
        return self.environment.reset(seed=seed)

    def step(self, action: Any) -> Any:
        """-> (observation, reward, terminated, truncated, info)."""
        return self.environment.step(action.numpy() if isinstance(action, _C.Tensor) else action)


def _stepper(op, optimizer, max_grad_norm):
    if not isinstance(optimizer, optim.Optimizer):
        raise TypeError(f"{op}: expected an optimizer; got {type(optimizer).__name__}")
    parameters = [p for group in optimizer.param_groups for p in group["params"]]

    def update(loss):
        optimizer.zero_grad()
        loss.backward()
        if max_grad_norm is not None:
            nn.utils.clip_grad_norm_(parameters, max_grad_norm)
        optimizer.step()

    return update


def _ignore(progress):
    """What is called with reports that nobody asked for."""


def train_dqn(
    network: nn.Module,
    environment: Any,
    optimizer: optim.Optimizer | None = None,
    *,
    steps: int = 100_000,
    learning_starts: int = 1000,
    capacity: int = 100_000,
    batch_size: int = 64,
    train_every: int = 4,
    updates: int = 1,
    target_every: int = 500,
    tau: float = 1.0,
    gamma: float = 0.99,
    double_dqn: bool = True,
    prioritized: bool = False,
    alpha: float = 0.6,
    beta: float = 0.4,
    epsilon: Any = None,
    observation_dtype: dtype = _C.float32,
    max_grad_norm: float | None = 10.0,
    seed: int = 0,
    report_every: int = 5000,
    evaluation_episodes: int = 100,
    stop_return: float = float("inf"),
    on_progress: Callable[[Any], object] | None = None,
) -> Any:
    """Deep Q learning (Mnih et al., 2015): trains a module that gives values [N, actions] in a
    VectorEnvironment -> Progress.

    optimizer: Adam with a rate of 1e-3, unless given. Every report_every transitions the best actions
    are tried in evaluation_episodes episodes, and on_progress(progress) is called; training ends when
    it returns False, and when the episodes' mean return is stop_return or more. The target network
    is a copy, which becomes equal every target_every updates (tau below 1: goes part of the way).
    double_dqn: van Hasselt et al., 2016; prioritized: Schaul et al., 2016, with alpha and beta.

    environment: a VectorEnvironment. steps: how many in all; learning_starts: before the first
    update. capacity, batch_size: of the replay buffer. train_every: steps between updates. gamma:
    the discount. epsilon: an Epsilon. observation_dtype: that the buffer keeps. max_grad_norm: of
    the clipping, None for none. seed: of all random numbers.

    >>> environments = kiln.rl.VectorEnvironment(kiln.rl.CartPole, 2)
    >>> progress = kiln.rl.train_dqn(nn.Linear(4, 2), environments, steps=20, evaluation_episodes=1)
    >>> progress.steps >= 20
    True
    """
    if optimizer is None:
        optimizer = optim.Adam(network.parameters(), lr=1e-3)
    update = _stepper("train_dqn", optimizer, max_grad_norm)
    target = copy.deepcopy(network)

    def tensors(module):
        return [x.detach() for x in (*module.parameters(), *module.buffers())]

    return _C._rl._train_dqn(
        network, tensors(network), target, tensors(target), update, environment, steps,
        learning_starts, capacity, batch_size, train_every, updates, target_every, tau, gamma,
        double_dqn, prioritized, alpha, beta, Epsilon() if epsilon is None else epsilon,
        observation_dtype, seed, report_every, evaluation_episodes, stop_return, on_progress or _ignore,
    )  # fmt: skip


def train_ppo(
    network: Callable[..., Any],
    environment: Any,
    optimizer: optim.Optimizer,
    *,
    log_std: Tensor | None = None,
    steps: int = 500_000,
    rollout: int = 64,
    epochs: int = 4,
    batch_size: int = 256,
    gamma: float = 0.99,
    lambda_: float = 0.95,
    clip: float = 0.2,
    value_weight: float = 0.5,
    entropy_weight: float = 0.01,
    normalize: bool = True,
    max_grad_norm: float | None = 0.5,
    seed: int = 0,
    report_every: int = 10_000,
    evaluation_episodes: int = 100,
    stop_return: float = float("inf"),
    on_progress: Callable[[Any], object] | None = None,
) -> Any:
    """Proximal policy optimization (Schulman et al., 2017) in a VectorEnvironment -> Progress.

    network: observations [N, ..] -> (logits [N, choices], values [N] or [N, 1]), a module or any
    function. For actions that are numbers: (means [N, ..], values), and log_std holds the logarithms
    of their deviations. Reports and their options as in train_dqn; progress.exploration is the
    entropy. rollout: steps of each environment between updates; epochs: passes over them.

    optimizer: of the network. batch_size: of the minibatches. gamma, lambda_: of gae(). clip: how
    far the ratio may go. value_weight, entropy_weight: of these losses. normalize: the advantages.
    max_grad_norm: of the clipping, None for none. seed: of all random numbers. report_every: steps
    between calls of on_progress(progress), which ends the training by False. evaluation_episodes:
    how many are played for it; stop_return: the mean return at which it is solved.

    >>> class Net(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.policy, self.value = nn.Linear(4, 2), nn.Linear(4, 1)
    ...     def forward(self, x):
    ...         return self.policy(x), self.value(x)
    >>> net, environments = Net(), kiln.rl.VectorEnvironment(kiln.rl.CartPole, 2)
    >>> optimizer = kiln.optim.Adam(net.parameters())
    >>> progress = kiln.rl.train_ppo(net, environments, optimizer, steps=16, rollout=4, batch_size=8,
    ...                              evaluation_episodes=1)
    >>> progress.steps >= 16
    True
    """
    update = _stepper("train_ppo", optimizer, max_grad_norm)
    return _C._rl._train_ppo(
        network, False if log_std is None else log_std, update, environment, steps, rollout, epochs, batch_size, gamma, lambda_,
        clip, value_weight, entropy_weight, normalize, seed, report_every, evaluation_episodes,
        stop_return, on_progress or _ignore,
    )  # fmt: skip
