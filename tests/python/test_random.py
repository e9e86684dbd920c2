"""Generators and the default stream of random numbers."""

import pytest

import kiln


def test_generator_state():
    g = kiln.Generator()
    assert g.manual_seed(5) is g
    assert g.initial_seed() == 5
    first = kiln.rand(3, generator=g)
    state = g.get_state()
    assert state.dtype == kiln.uint8
    second = kiln.randn(4, generator=g)
    g.set_state(state)
    assert kiln.equal(kiln.randn(4, generator=g), second)
    g.manual_seed(5)
    assert kiln.equal(kiln.rand(3, generator=g), first)
    copy = g.clone_state()
    assert kiln.equal(kiln.rand(3, generator=g), kiln.rand(3, generator=copy))
    assert g.seed() == g.initial_seed()
    assert str(g.device) == "cpu"


def test_generator_is_apart_from_the_default_one():
    kiln.manual_seed(1)
    expected = kiln.rand(3)
    kiln.manual_seed(1)
    g = kiln.Generator().manual_seed(9)
    for draw in (
        lambda: kiln.rand(5, generator=g),
        lambda: kiln.randint(0, 9, (4,), generator=g),
        lambda: kiln.randperm(6, generator=g),
        lambda: kiln.normal(0.0, 1.0, (3,), generator=g),
        lambda: kiln.multinomial(kiln.ones(4), 2, generator=g),
        lambda: kiln.bernoulli(kiln.full((4,), 0.5), generator=g),
        lambda: kiln.poisson(kiln.ones(4), generator=g),
        lambda: kiln.empty(4).uniform_(generator=g),
        lambda: kiln.empty(4).exponential_(generator=g),
        lambda: kiln.empty(4).random_(3, 9, generator=g),
    ):
        draw()
    assert kiln.equal(kiln.rand(3), expected)


def test_fork_rng_and_state():
    assert kiln.manual_seed(3) is kiln.default_generator
    assert kiln.initial_seed() == kiln.random.initial_seed() == 3
    with kiln.random.fork_rng():
        inside = kiln.rand(3)
        kiln.manual_seed(77)
    assert kiln.equal(kiln.rand(3), inside)
    state = kiln.random.get_rng_state()
    x = kiln.rand(2)
    kiln.random.set_rng_state(state)
    assert kiln.equal(kiln.rand(2), x)
    with kiln.random.fork_rng(enabled=False):
        kiln.rand(1)
    assert not kiln.equal(kiln.rand(2), x)
    kiln.manual_seed(-1)
    assert kiln.initial_seed() == 2**64 - 1
    with pytest.raises((ValueError, RuntimeError)):
        kiln.set_rng_state(kiln.zeros(3, dtype=kiln.uint8))


def test_forms():
    assert kiln.randint(5, (2, 3)).shape == (2, 3)
    assert kiln.randint_like(kiln.zeros(4), 7).dtype == kiln.float32
    assert kiln.normal(kiln.zeros(3), kiln.ones(3)).shape == (3,)
    assert kiln.normal(kiln.zeros(3)).shape == (3,)
    assert kiln.normal(2.0, kiln.ones(3)).shape == (3,)
    assert kiln.zeros(3).bernoulli(1.0).tolist() == [1, 1, 1]
    assert kiln.zeros(3).bernoulli_(kiln.ones(3)).tolist() == [1, 1, 1]
    assert kiln.rand(2, 3, dtype=kiln.float64, requires_grad=True).requires_grad
