"""kiln.rl: environments against their published equations, environments and networks of a user's own,
buffers, and the loops. The C++ beneath has its tests in tests/rl."""

import math

import pytest

import kiln
from kiln import nn, rl


def cart_pole(state, action):
    """The equations of Barto, Sutton and Anderson (1983) with Gymnasium's constants."""
    x, v, a, w = state
    force = 10.0 if action == 1 else -10.0
    temp = (force + 0.05 * w * w * math.sin(a)) / 1.1
    turn = (9.8 * math.sin(a) - math.cos(a) * temp) / (
        0.5 * (4.0 / 3.0 - 0.1 * math.cos(a) ** 2 / 1.1)
    )
    pull = temp - 0.05 * turn * math.cos(a) / 1.1
    return [x + 0.02 * v, v + 0.02 * pull, a + 0.02 * w, w + 0.02 * turn]


def test_cart_pole_follows_its_equations():
    env = rl.CartPole()
    observation, info = env.reset(seed=3)
    assert observation.shape == (4,) and info == {}
    state = env.state
    for i in range(8):
        observation, reward, terminated, truncated, info = env.step(i % 2)
        state = cart_pole(state, i % 2)
        assert env.state == pytest.approx(state, rel=1e-12)
        assert observation.tolist() == pytest.approx(state, rel=1e-6)
        assert (reward, terminated, truncated) == (1.0, False, False)


def test_pendulum_follows_its_equations():
    env = rl.Pendulum()
    env.state = [3.0, -1.0]
    angle, spin = 3.0, -1.0
    for torque in (0.5, -3.0, 1.0):
        observation, reward, terminated, truncated, _ = env.step([torque])
        u = max(-2.0, min(2.0, torque))
        lean = (angle + math.pi) % (2 * math.pi) - math.pi
        cost = lean**2 + 0.1 * spin**2 + 0.001 * u**2
        spin = max(-8.0, min(8.0, spin + (15 * math.sin(angle) + 3 * u) * 0.05))
        angle += spin * 0.05
        assert reward == pytest.approx(-cost)
        assert observation.tolist() == pytest.approx([math.cos(angle), math.sin(angle), spin], 1e-6)
        assert not terminated and not truncated


def test_spaces_and_seeds():
    env = rl.CartPole()
    assert env.action_space.n == 2 and env.action_space.shape == ()
    assert env.observation_space.n is None and env.observation_space.shape == (4,)
    assert env.observation_space.high[0].item() == pytest.approx(4.8)
    assert env.reset(seed=1)[0].tolist() == rl.CartPole().reset(seed=1)[0].tolist()
    assert env.reset(seed=1)[0].tolist() != env.reset(seed=2)[0].tolist()
    world = rl.GridWorld(3, 3, walls=[(1, 1)], goal=(2, 2))
    world.reset()
    assert world.step(1)[0].tolist() == [0, 1, 0, 0, 0, 0, 0, 0, 0] and world.cell == (0, 1)


class Corridor:
    """Five places; the right end gives 1. Written as a user would, with Gymnasium's interface."""

    observation_space = rl.Box(0, 1, (5,))
    action_space = rl.Discrete(2)
    seeds = []

    def reset(self, seed=None):
        if seed is not None:
            self.seeds.append(seed)
        self.place = 1
        return self.observe(), {}

    def step(self, action):
        assert action in (0, 1)
        self.place += 1 if action == 1 else -1
        over = self.place in (0, 4)
        return self.observe(), float(self.place == 4), over, False, {}

    def observe(self):
        return [float(i == self.place) for i in range(5)]


def test_an_environment_of_ones_own():
    Corridor.seeds.clear()
    env = rl.VectorEnvironment(Corridor, 3, seed=5)
    assert len(env) == 3 and env.reset().argmax(1).tolist() == [1, 1, 1]
    assert len(set(Corridor.seeds)) == 3
    step = env.step(kiln.tensor([0, 1, 1]))
    assert step["terminated"].tolist() == [True, False, False]
    assert step["observation"].argmax(1).tolist() == [1, 2, 2]  # the first begins anew
    assert step["final_observation"].argmax(1).tolist() == [0, 2, 2]
    assert step["episodes"] == [(0.0, 1)]
    assert len(Corridor.seeds) == 3
    always_right = lambda seen: kiln.ones(len(seen), dtype=kiln.int64)  # noqa: E731
    assert rl.evaluate(always_right, env) == 1.0


class QuickNet(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.hidden = nn.Linear(inputs, 16)
        self.out = nn.Linear(16, outputs)

    def forward(self, x):
        return self.out(self.hidden(x).tanh())


@pytest.mark.parametrize("options", [{}, {"double_dqn": False}, {"prioritized": True, "tau": 0.5}])
def test_dqn_with_everything_of_ones_own(options):
    def run():
        kiln.manual_seed(0)
        net = QuickNet(5, 2)
        env = rl.VectorEnvironment(Corridor, 2)
        optimizer = kiln.optim.AdamW(net.parameters(), lr=1e-2)
        seen = []
        progress = rl.train_dqn(
            net, env, optimizer, steps=2000, learning_starts=50, batch_size=16, target_every=20,
            epsilon=rl.Epsilon(1.0, 0.1, 500), report_every=100, evaluation_episodes=1,
            stop_return=1.0, on_progress=lambda p: seen.append(p.updates), **options,
        )  # fmt: skip
        return progress, seen, net(kiln.eye(5)).tolist()

    (first, seen, values), (_, again, values_again) = run(), run()
    assert first.solved and first.evaluation == 1.0 and len(seen) >= 1
    assert seen == again and values == values_again


def test_ppo_with_a_shared_trunk():
    def run():
        kiln.manual_seed(0)
        net = QuickNet(5, 3)
        optimizer = kiln.optim.Adam(net.parameters(), lr=1e-2)
        env = rl.VectorEnvironment(Corridor, 4)
        progress = rl.train_ppo(
            lambda x: net(x).split([2, 1], 1), env, optimizer, steps=4000, rollout=16,
            report_every=500, evaluation_episodes=1, stop_return=1.0,
        )  # fmt: skip
        return progress.solved, progress.steps, progress.loss

    assert run() == run() and run()[0]


def test_ppo_with_numbers():
    kiln.manual_seed(0)
    actor, critic = QuickNet(3, 1), QuickNet(3, 1)
    log_std = nn.Parameter(kiln.zeros(1))
    optimizer = kiln.optim.Adam([*actor.parameters(), *critic.parameters(), log_std])
    env = rl.VectorEnvironment(lambda: rl.Pendulum(time_limit=20), 2)
    progress = rl.train_ppo(
        lambda x: (actor(x), critic(x)), env, optimizer, log_std=log_std, steps=256, rollout=64
    )
    assert progress.episodes == 12 and math.isfinite(progress.evaluation)
    assert "steps=256" in repr(progress)


def test_training_ends_when_on_progress_says_so():
    net = QuickNet(5, 2)
    env = rl.VectorEnvironment(Corridor, 1)
    options = dict(learning_starts=10, report_every=50, evaluation_episodes=0)
    assert rl.train_dqn(net, env, on_progress=lambda p: False, **options).steps == 50

    def broken(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rl.train_dqn(net, env, on_progress=broken, **options)


def test_buffers_go_on_exactly(tmp_path):
    def filled():
        buffer = rl.PrioritizedReplayBuffer(6, (2,), seed=4)
        for i in range(8):
            row = kiln.full((1, 2), float(i))
            buffer.add(row, kiln.tensor([i]), row[:, 0], row + 1, kiln.tensor([i % 2 == 0]))
        buffer.update_priorities(kiln.tensor([0, 3]), kiln.tensor([2.0, 0.1]))
        return buffer

    a = filled()
    kiln.save(a.state_dict(), str(tmp_path / "buffer.safetensors"))
    b = rl.PrioritizedReplayBuffer(6, (2,))
    b.load_state_dict(kiln.load(str(tmp_path / "buffer.safetensors")))
    assert len(b) == 6 and b.capacity == 6
    for _ in range(3):
        x, y = a.sample(4), b.sample(4)
        assert all(x[name].tolist() == y[name].tolist() for name in x)
    assert kiln.equal(x["next_observation"], x["observation"] + 1)


def test_gae_against_a_loop():
    kiln.manual_seed(1)
    reward, value, after = kiln.randn(3, 6, 2)
    terminated = kiln.rand(6, 2) < 0.2
    ended = terminated | (kiln.rand(6, 2) < 0.2)
    advantage, returns = rl.gae(reward, value, after, terminated, ended, 0.9, 0.8)
    expected = [[0.0, 0.0] for _ in range(7)]
    for t in reversed(range(6)):
        for n in range(2):
            future = 0 if terminated[t, n] else 0.9 * after[t, n].item()
            error = reward[t, n].item() + future - value[t, n].item()
            expected[t][n] = error + (0 if ended[t, n] else 0.72 * expected[t + 1][n])
    assert kiln.allclose(advantage, kiln.tensor(expected[:6]), atol=1e-6)
    assert kiln.allclose(returns, advantage + value)


def test_bad_input():
    env = rl.VectorEnvironment(rl.CartPole, 2)
    with pytest.raises(ValueError, match="count must be at least 1"):
        rl.VectorEnvironment(rl.CartPole, 0)
    with pytest.raises(TypeError, match="Discrete"):
        rl.VectorEnvironment(lambda: type("E", (), {"observation_space": 1, "action_space": 2}), 1)
    with pytest.raises(AttributeError):
        rl.VectorEnvironment(object, 1)
    with pytest.raises(kiln.errors.ShapeError):
        env.step(kiln.tensor([1]))
    with pytest.raises(kiln.errors.RuntimeError, match="reset"):
        rl.CartPole().step(0)
    with pytest.raises(ValueError, match="capacity"):
        rl.ReplayBuffer(0, (1,))
    with pytest.raises(kiln.errors.Error):
        rl.ReplayBuffer(2**60, (4,))
    with pytest.raises(TypeError, match="expected an optimizer"):
        rl.train_ppo(QuickNet(4, 2), env, None)
    with pytest.raises(kiln.errors.ShapeError, match="network does not fit"):
        net = QuickNet(4, 3)
        rl.train_ppo(lambda x: (net(x), net(x)), env, kiln.optim.SGD(net.parameters(), 0.1))
    with pytest.raises(ValueError, match="gamma"):
        rl.train_dqn(QuickNet(4, 2), env, gamma=2.0)
    with pytest.raises(ValueError, match="Epsilon"):
        rl.Epsilon(1.5)

    class Broken(Corridor):
        def step(self, action):
            return 1

    with pytest.raises(TypeError, match="an environment's step gives"):
        rl.VectorEnvironment(Broken, 1).step(kiln.tensor([0]))
