"""nn.Initializer: Burn's initializers, on tensors and as lazy parameters."""

import pytest

import kiln
from kiln.nn.initializer import Initializer


def test_what_is_drawn():
    shape = (200, 50, 2)  # fan_in 100, fan_out 400
    for made, bound in [
        (Initializer.KaimingUniform(gain=2), 2 * (3 / 100) ** 0.5),
        (Initializer.KaimingUniform(fan_out_only=True), (3 / 400) ** 0.5),
        (Initializer.XavierUniform(), (6 / 500) ** 0.5),
        (Initializer.Uniform(-3, 3), 3),
    ]:
        largest = float(made(kiln.empty(*shape)).abs().max())
        assert 0.98 * bound < largest <= bound
    for made, std in [
        (Initializer.KaimingNormal(), 0.1),
        (Initializer.XavierNormal(gain=3), 3 * (2 / 500) ** 0.5),
        (Initializer.Normal(0, 2), 2),
    ]:
        assert abs(float(made(kiln.empty(*shape)).std()) - std) < 0.05 * std
    assert Initializer.Constant(3)(kiln.empty(2)).tolist() == [3, 3]
    rows = Initializer.Orthogonal(2)(kiln.empty(3, 5))
    assert float((rows @ rows.t() - 4 * kiln.eye(3)).abs().max()) < 1e-5


def test_lazy_parameters():
    weight = Initializer.XavierNormal().init((4, 3))
    assert not weight.is_initialized
    assert weight.val().shape == (4, 3) and weight.val().requires_grad
    assert Initializer.KaimingNormal().init_with((5,), 3, 4).val().shape == (5,)


def test_what_makes_no_sense():
    for wrong in (
        lambda: Initializer.Uniform(2, 1),
        lambda: Initializer.Normal(0, -1),
        lambda: Initializer.XavierNormal().init((3,)),
        lambda: Initializer.XavierNormal()(kiln.empty(3)),
        lambda: Initializer.Ones().init_with((3,), -1, 2),
    ):
        with pytest.raises(ValueError):
            wrong()
    assert repr(Initializer.KaimingUniform(0.5, True)) == "KaimingUniform(gain=0.5, fan_out_only=True)"
