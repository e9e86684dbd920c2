"""Reinforcement learning: environments, replay buffers, and the loops that train agents.

An environment is any object with Gymnasium's attributes and methods: observation_space and
action_space (Discrete or Box), reset(seed=None) -> (observation, info) and step(action) ->
(observation, reward, terminated, truncated, info). The loops are C++'s; networks, optimizers and
environments may be Python's.
"""

import copy

from . import _C, nn, optim
from ._C._rl import (  # noqa: F401
    Box,
    BuiltinEnvironment,
    CartPole,
    Discrete,
    Epsilon,
    GridWorld,
    Pendulum,
    PrioritizedReplayBuffer,
    Progress,
    Random,
    ReplayBuffer,
    Space,
    VectorEnvironment,
    epsilon_greedy,
    evaluate,
    gae,
    sample_categorical,
)

__all__ = [name for name in dir(_C._rl) if not name.startswith("_")]
__all__ += ["from_gymnasium", "train_dqn", "train_ppo"]


class from_gymnasium:
    """An environment of Gymnasium's, whose actions are arrays of NumPy's."""

    def __init__(self, environment):
        self.environment = environment
        self.observation_space = environment.observation_space
        self.action_space = environment.action_space

    def reset(self, seed=None):
        return self.environment.reset(seed=seed)

    def step(self, action):
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
    network,
    environment,
    optimizer=None,
    *,
    steps=100_000,
    learning_starts=1000,
    capacity=100_000,
    batch_size=64,
    train_every=4,
    updates=1,
    target_every=500,
    tau=1.0,
    gamma=0.99,
    double_dqn=True,
    prioritized=False,
    alpha=0.6,
    beta=0.4,
    epsilon=None,
    observation_dtype=_C.float32,
    max_grad_norm=10.0,
    seed=0,
    report_every=5000,
    evaluation_episodes=100,
    stop_return=float("inf"),
    on_progress=None,
):
    """Deep Q learning (Mnih et al., 2015): trains a module that gives values [N, actions] in a
    VectorEnvironment -> Progress.

    optimizer: Adam with a rate of 1e-3, unless given. Every report_every transitions the best actions
    are tried in evaluation_episodes episodes, and on_progress(progress) is called; training ends when
    it returns False, and when the episodes' mean return is stop_return or more. The target network
    is a copy, which becomes equal every target_every updates (tau below 1: goes part of the way).
    double_dqn: van Hasselt et al., 2016; prioritized: Schaul et al., 2016, with alpha and beta."""
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
    network,
    environment,
    optimizer,
    *,
    log_std=None,
    steps=500_000,
    rollout=64,
    epochs=4,
    batch_size=256,
    gamma=0.99,
    lambda_=0.95,
    clip=0.2,
    value_weight=0.5,
    entropy_weight=0.01,
    normalize=True,
    max_grad_norm=0.5,
    seed=0,
    report_every=10_000,
    evaluation_episodes=100,
    stop_return=float("inf"),
    on_progress=None,
):
    """Proximal policy optimization (Schulman et al., 2017) in a VectorEnvironment -> Progress.

    network: observations [N, ..] -> (logits [N, choices], values [N] or [N, 1]), a module or any
    function. For actions that are numbers: (means [N, ..], values), and log_std holds the logarithms
    of their deviations. Reports and their options as in train_dqn; progress.exploration is the
    entropy. rollout: steps of each environment between updates; epochs: passes over them."""
    update = _stepper("train_ppo", optimizer, max_grad_norm)
    return _C._rl._train_ppo(
        network, False if log_std is None else log_std, update, environment, steps, rollout, epochs, batch_size, gamma, lambda_,
        clip, value_weight, entropy_weight, normalize, seed, report_every, evaluation_episodes,
        stop_return, on_progress or _ignore,
    )  # fmt: skip
