"""The small programs of `script/bench --compiled` in JAX: each step is one compiled function."""

import math
from functools import partial

import jax
import jax.numpy as jnp
from graph_programs import ACTIONS, HEADS, LAYERS, RATE, program_inputs
from jax import lax


def adam(params, grads, state, rate=RATE):
    """Adam as PyTorch has it, on trees of arrays."""
    m, v, n = state
    n = n + 1
    m = jax.tree.map(lambda a, g: 0.9 * a + 0.1 * g, m, grads)
    v = jax.tree.map(lambda a, g: 0.999 * a + 0.001 * g * g, v, grads)

    def moved(p, a, b):
        return p - rate / (1 - 0.9**n) * a / (jnp.sqrt(b / (1 - 0.999**n)) + 1e-8)

    return jax.tree.map(moved, params, m, v), (m, v, n)


def fresh(params):
    m, v = (jax.tree.map(jnp.zeros_like, params) for _ in range(2))  # both are given away
    return m, v, jnp.float32(0)


def linear(p, name, x):
    return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def network(p, x, activation):
    """Linear layers 0, 2, 4 .. of a Sequential."""
    count = sum(name.endswith(".weight") for name in p)
    for i in range(count):
        x = linear(p, str(2 * i), x)
        x = activation(x) if i + 1 < count else x
    return x


def cross_entropy(logits, y):
    log = jax.nn.log_softmax(logits.reshape(-1, logits.shape[-1]))
    return -jnp.take_along_axis(log, y.reshape(-1, 1), 1).mean()


def conv_norm(p, i, x):
    x = lax.conv_general_dilated(
        x, p[f"{i}.weight"], (1, 1), "VALID", dimension_numbers=("NCHW", "OIHW", "NCHW")
    )
    x = x + p[f"{i}.bias"][:, None, None]
    mean, var = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
    x = (x - mean) * lax.rsqrt(var + 1e-5)
    return jax.nn.relu(
        x * p[f"{i + 1}.weight"][:, None, None] + p[f"{i + 1}.bias"][:, None, None]
    ), (mean, var)


def cnn(p, x):
    x, first = conv_norm(p, 0, x)
    x, second = conv_norm(p, 3, x)
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    x = jax.nn.relu(linear(p, "8", x.reshape(x.shape[0], -1)))
    return linear(p, "10", x), (first, second)


def layer_norm(p, name, x):
    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]


def gpt(p, x):
    batch, time = x.shape
    y = p["tokens.weight"][x] + p["places.weight"][:time]
    for i in range(LAYERS):
        n = f"blocks.{i}"
        q, k, v = (
            part.reshape(batch, time, HEADS, -1)
            for part in jnp.split(linear(p, f"{n}.qkv", layer_norm(p, f"{n}.norm1", y)), 3, -1)
        )
        seen = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        y = y + linear(p, f"{n}.out", seen.reshape(batch, time, -1))
        up = jax.nn.gelu(linear(p, f"{n}.up", layer_norm(p, f"{n}.norm2", y)), approximate=False)
        y = y + linear(p, f"{n}.down", up)
    return linear(p, "head", layer_norm(p, "norm", y))


def lstm(p, x):
    w = p["lstm.weight_hh_l0"].T
    gates = x @ p["lstm.weight_ih_l0"].T + p["lstm.bias_ih_l0"] + p["lstm.bias_hh_l0"]

    def cell(carry, g):
        h, c = carry
        i, f, g, o = jnp.split(g + h @ w, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), None

    zeros = jnp.zeros((x.shape[1], w.shape[0]), x.dtype)
    (h, _), _ = lax.scan(cell, (zeros, zeros), gates)
    return linear(p, "head", h)


def supervised(model, p, x, y):
    net = p["net"]
    if model == "cnn":  # the statistics are computed, as the layers do
        logits, statistics = cnn(net, x)
        return cross_entropy(logits, y), statistics
    if model == "mlp":
        return cross_entropy(network(net, x, jax.nn.relu), y), ()
    return cross_entropy({"gpt": gpt, "lstm": lstm}[model](net, x), y), ()


def pinn(p, x):
    net = p["net"]

    def u(point):
        return network(net, point, jnp.tanh)[0]

    def residual(point):
        first = jax.grad(u)

        def along(direction):
            return jax.jvp(first, (point,), (direction,))[1]

        return along(jnp.array([1.0, 0.0]))[0] + along(jnp.array([0.0, 1.0]))[1] - u(point)

    return (jax.vmap(residual)(x) ** 2).mean(), ()


def potential(p, x, energies, forces, others):
    net, centres = p["net"], jnp.linspace(0.5, 4.0, 16)

    def energy(x):
        apart = x[:, :, None] - x[:, None]
        r = jnp.sqrt((apart**2).sum(-1) + 1e-3)
        near = jnp.exp(-((r[..., None] - centres) ** 2) * 4) * others[..., None]
        e = network(net, near.sum(2), jnp.tanh).sum(1)[..., 0]
        return e.sum(), e

    grad, e = jax.grad(energy, has_aux=True)(x)
    return ((e - energies) ** 2).mean() + ((-grad - forces) ** 2).mean(), ()


def acted(p, state, noise):
    mean, log_std = jnp.split(network(p, state, jax.nn.relu), 2, -1)
    log_std = jnp.clip(log_std, -5, 2)
    action = jnp.tanh(mean + jnp.exp(log_std) * noise)
    density = -0.5 * noise**2 - log_std - 0.5 * math.log(2 * math.pi)
    return action, (density - jnp.log(1 - action**2 + 1e-6)).sum(-1)


def values(p, a, b, state, action):
    x = jnp.concatenate([state, action], -1)
    return (network(p[name], x, jax.nn.relu)[..., 0] for name in (a, b))


def sac(all_, state, action, reward, following, noise, other_noise):
    p, log_alpha, (actor_state, critic_state, alpha_state) = all_
    next_action, density = acted(p["actor"], following, noise)
    a, b = values(p, "target1", "target2", following, next_action)
    wanted = reward + 0.99 * (jnp.minimum(a, b) - jnp.exp(log_alpha) * density)

    def critic_loss(critics):
        a, b = values(critics, "q1", "q2", state, action)
        return ((a - wanted) ** 2).mean() + ((b - wanted) ** 2).mean()

    critics = {name: p[name] for name in ("q1", "q2")}
    loss, grads = jax.value_and_grad(critic_loss)(critics)
    critics, critic_state = adam(critics, grads, critic_state)

    def actor_loss(actor):
        action, density = acted(actor, state, other_noise)
        a, b = values(critics, "q1", "q2", state, action)
        return (jnp.exp(log_alpha) * density - jnp.minimum(a, b)).mean(), density

    grads, density = jax.grad(actor_loss, has_aux=True)(p["actor"])
    actor, actor_state = adam(p["actor"], grads, actor_state)
    grads = jax.grad(lambda x: -(x * (density - ACTIONS)).mean())(log_alpha)
    log_alpha, alpha_state = adam(log_alpha, grads, alpha_state)

    after = {"actor": actor, **critics}
    for target, critic in (("target1", "q1"), ("target2", "q2")):
        after[target] = jax.tree.map(lambda x, y: x + 0.005 * (y - x), p[target], critics[critic])
    return (after, log_alpha, (actor_state, critic_state, alpha_state)), loss


def step_of(row, params):
    """A function of no arguments that runs one step and gives its loss."""
    inputs = [jnp.asarray(x) for x in program_inputs(row)]
    if row.model == "sac":
        alpha = jnp.zeros(1)
        critics = {name: params[name] for name in ("q1", "q2")}
        state = (params, alpha, (fresh(params["actor"]), fresh(critics), fresh(alpha)))
        compiled = jax.jit(sac, donate_argnums=0)
    else:
        of = {"pinn": pinn, "potential": potential}.get(row.model, partial(supervised, row.model))

        def step(carried, *inputs):
            params, state = carried
            (loss, kept), grads = jax.value_and_grad(of, has_aux=True)(params, *inputs)
            return adam(params, grads, state), (loss, kept)

        state, compiled = (params, fresh(params)), jax.jit(step, donate_argnums=0)
    held = [state]

    def call():
        held[0], out = compiled(held[0], *inputs)
        jax.block_until_ready(held[0])
        return out[0] if isinstance(out, tuple) else out

    return call


def params_of(weights):
    """{module: {name: array}} of a flat state dict."""
    out = {}
    for name, value in weights.items():
        module, _, rest = name.partition(".")
        if not rest.endswith(("running_mean", "running_var", "num_batches_tracked")):
            out.setdefault(module, {})[rest] = jnp.asarray(value)
    return out


def chain_of(x):
    from graph_programs import chain_with

    compiled = jax.jit(lambda x: chain_with(jnp.sin, x))
    x = jnp.asarray(x)
    return lambda: jax.block_until_ready(compiled(x))
