"""Learning rate schedules against PyTorch's, and their state dicts in both directions."""

import copy
import warnings

import pytest

import kiln
from conftest import HAS_TORCH

needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")

SCHEDULES = {
    "StepLR": lambda s, o: s.StepLR(o, 3, 0.5),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [2, 5, 5, 9], 0.5),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.25, 4),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.25, 0.75, 6),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.9),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 8, 2.0),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 5, 0.01),
    "LambdaLR": lambda s, o: s.LambdaLR(o, [lambda e: 1 / (1 + e), lambda e: 0.5**e]),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda e: 0.9 if e % 2 else 1.0),
    "SequentialLR": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, total_iters=4), s.CosineAnnealingLR(o, 8), s.ExponentialLR(o, 0.9)],
        [4, 9],
    ),
    "WarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.01),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, [0.5, 1.0], total_steps=20),
    "OneCycleLR linear": lambda s, o: s.OneCycleLR(
        o, 0.5, epochs=2, steps_per_epoch=10, anneal_strategy="linear", three_phase=True,
        cycle_momentum=False,
    ),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.1, [0.5, 1.0], 3, 2, mode="triangular2"),
    "CyclicLR exp": lambda s, o: s.CyclicLR(o, 0.1, 0.5, 4, mode="exp_range", gamma=0.9),
    "CyclicLR own": lambda s, o: s.CyclicLR(
        o, 0.1, 0.5, 4, scale_fn=lambda x: 1 / (1 + x), scale_mode="iterations",
        cycle_momentum=False,
    ),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.5, 3), s.StepLR(o, 4)]),
}  # fmt: skip


def optimizer_of(lib, lr=0.5):
    params = [lib.ones(2, requires_grad=True) for _ in range(2)]
    for p in params:
        p.grad = lib.zeros(2)
    groups = [{"params": [params[0]]}, {"params": [params[1]], "lr": 0.2}]
    return lib.optim.SGD(groups, lr=lr, momentum=0.5)


def run(optimizer, schedule, count):
    rates, momenta = [[g["lr"] for g in optimizer.param_groups]], []
    for _ in range(count):
        optimizer.step()
        schedule.step()
        rates.append([g["lr"] for g in optimizer.param_groups])
        momenta.append([g["momentum"] for g in optimizer.param_groups])
        assert schedule.get_last_lr() == rates[-1]
    return rates + (momenta if any(m != [0.5, 0.5] for m in momenta) else [])


def flat(rates):
    return [x for row in rates for x in row]


@needs_torch
@pytest.mark.parametrize("name", SCHEDULES)
def test_rates_are_torchs(name):
    import torch

    got = []
    for lib in (kiln, torch):
        optimizer = optimizer_of(lib)
        schedule = SCHEDULES[name](lib.optim.lr_scheduler, optimizer)
        count = 7 if name.startswith("OneCycle") else 25  # which ends after 20 steps
        rates = run(optimizer, schedule, count)
        optimizer.param_groups[0]["lr"] *= 0.5  # a user's hand in between
        got.append((flat(rates + run(optimizer, schedule, count)), optimizer, schedule))
    assert got[0][0] == pytest.approx(got[1][0], rel=1e-12, abs=1e-15)
    options = [{k: v for k, v in g.items() if k != "params"} for g in got[0][1].param_groups]
    for group, other in zip(options, got[1][1].param_groups, strict=True):
        assert {k for k in other if k != "params"} == set(group)
        assert group["initial_lr"] == pytest.approx(other["initial_lr"], rel=1e-12)
    mine, theirs = got[0][2].state_dict(), got[1][2].state_dict()
    assert {k: v for k, v in mine.items() if k != "lr_lambdas"}.keys() == {
        k for k in theirs if k != "lr_lambdas"
    }
    for key, value in theirs.items():
        if isinstance(value, float) or key in ("base_lrs", "_last_lr"):
            assert mine[key] == pytest.approx(value)
        elif key not in ("_schedulers", "_schedule_phases"):
            assert mine[key] == value, key


@needs_torch
@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("direction", ["from torch", "to torch", "kiln"])
def test_state_dicts_resume(name, direction):
    import torch

    pairs = {"from torch": (torch, kiln), "to torch": (kiln, torch), "kiln": (kiln, kiln)}
    first, second = pairs[direction]
    optimizer = optimizer_of(first)
    schedule = SCHEDULES[name](first.optim.lr_scheduler, optimizer)
    run(optimizer, schedule, 6)
    states = copy.deepcopy((optimizer.state_dict(), schedule.state_dict()))
    other_optimizer = optimizer_of(second, 7.0)
    other = SCHEDULES[name](second.optim.lr_scheduler, other_optimizer)
    other.load_state_dict(states[1])
    # The rates are in the groups; the tensors are the other library's.
    other_optimizer.load_state_dict({**states[0], "state": {}})
    expected = flat(run(optimizer, schedule, 8))
    assert flat(run(other_optimizer, other, 8)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "name", ["StepLR", "LinearLR", "CosineAnnealingLR", "SequentialLR"]
)
def test_states_of_earlier_versions(name):
    # They were {"last_epoch": n}; rates were functions of it.
    optimizer = optimizer_of(kiln)
    schedule = SCHEDULES[name](kiln.optim.lr_scheduler, optimizer)
    run(optimizer, schedule, 3)
    now = [g["lr"] for g in optimizer.param_groups]
    other_optimizer = optimizer_of(kiln)
    other = SCHEDULES[name](kiln.optim.lr_scheduler, other_optimizer)
    other.load_state_dict({"last_epoch": 3})
    assert other.last_epoch == 3
    assert [g["lr"] for g in other_optimizer.param_groups] == pytest.approx(now)
    assert flat(run(other_optimizer, other, 6)) == pytest.approx(flat(run(optimizer, schedule, 6)))


@pytest.mark.parametrize(
    "name",
    ["StepLR", "MultiStepLR", "ConstantLR", "LinearLR", "ExponentialLR", "PolynomialLR",
     "CosineAnnealingLR", "SequentialLR"],
)  # fmt: skip
def test_the_closed_form_is_the_recursion(name):
    optimizer = optimizer_of(kiln)
    schedule = SCHEDULES[name](kiln.optim.lr_scheduler, optimizer)
    # PyTorch's recursion leaves 0 for good where the polynomial and the cosine end.
    rates = run(optimizer, schedule, 4)
    assert [row[0] for row in rates] == pytest.approx([schedule.lr_at(0.5, e) for e in range(5)])
    assert [row[1] for row in rates] == pytest.approx([schedule.lr_at(0.2, e) for e in range(5)])


@needs_torch
@pytest.mark.parametrize(
    "options",
    [
        {"patience": 1, "factor": 0.5},
        {"patience": 0, "mode": "max", "threshold": 0.1, "threshold_mode": "abs", "min_lr": 0.05},
        {"patience": 0, "cooldown": 2, "min_lr": [0.1, 0.2], "eps": 1e-3},
    ],
)
def test_plateaus(options):
    import torch

    values = [1.0, 0.9, 0.95, 0.91, 0.5, 0.6, 0.6, 0.7, 0.4, 0.41, 0.42, 0.43, 0.44, 0.45]
    got = []
    for lib in (kiln, torch):
        optimizer = optimizer_of(lib)
        schedule = lib.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        rates = []
        for value in values:
            optimizer.step()
            schedule.step(lib.tensor(value, dtype=lib.float64))
            rates += schedule.get_last_lr()
        got.append((rates, schedule))
    assert got[0][0] == pytest.approx(got[1][0], rel=1e-12)
    assert got[0][1].state_dict() == got[1][1].state_dict()
    other = kiln.optim.lr_scheduler.ReduceLROnPlateau(optimizer_of(kiln), **options)
    other.load_state_dict(got[1][1].state_dict())
    assert other.best == got[1][1].best and other.num_bad_epochs == got[1][1].num_bad_epochs


def test_cycles_of_betas_and_fractions(lib):
    w = lib.ones(1, requires_grad=True)
    w.grad = lib.ones(1)
    optimizer = lib.optim.Adam([w], lr=0.1)
    schedule = lib.optim.lr_scheduler.OneCycleLR(optimizer, 0.5, total_steps=10)
    assert optimizer.param_groups[0]["betas"] == (0.95, 0.999)
    optimizer.step()
    schedule.step()
    schedule.step()
    assert optimizer.param_groups[0]["betas"][0] == pytest.approx(0.85)
    with pytest.raises(ValueError, match="total steps"):
        for _ in range(20):
            schedule.step()
    restarts = lib.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer_of(lib), 4, 2)
    rates = []
    for i in range(30):
        restarts.step(i / 2)
        rates += restarts.get_last_lr()[:1]
    assert rates[0] == rates[8] == rates[24] == 0.5 and rates[4] == pytest.approx(0.25)
    with pytest.raises(ValueError):
        restarts.step(-1)


def test_schedules_of_ones_own(lib):
    class Halves(lib.optim.lr_scheduler.LRScheduler):
        def get_lr(self):
            if not self._get_lr_called_within_step:
                raise AssertionError("called from elsewhere")
            return [base * 0.5**self.last_epoch for base in self.base_lrs]

    optimizer = optimizer_of(lib)
    assert flat(run(optimizer, Halves(optimizer), 2)) == [0.5, 0.2, 0.25, 0.1, 0.125, 0.05]


def test_rates_that_are_tensors(lib):
    w = lib.ones(1, requires_grad=True)
    rate = lib.tensor(0.5)
    optimizer = lib.optim.Adam([w], lr=rate)
    schedule = lib.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    w.grad = lib.ones(1)
    optimizer.step()
    schedule.step()
    assert optimizer.param_groups[0]["lr"] is rate and rate.item() == 0.25
    assert schedule.get_last_lr()[0] is not rate


def test_continues_from_an_epoch(lib):
    optimizer = optimizer_of(lib)
    with pytest.raises(KeyError, match="initial_lr"):
        lib.optim.lr_scheduler.StepLR(optimizer, 2, last_epoch=3)
    for group in optimizer.param_groups:
        group["initial_lr"] = group["lr"]
    schedule = lib.optim.lr_scheduler.StepLR(optimizer, 5, 0.5, last_epoch=3)
    assert schedule.last_epoch == 4
    optimizer.step()
    schedule.step()
    assert schedule.get_last_lr() == [0.25, 0.1]


def test_the_order_of_steps_is_checked(lib):
    optimizer = optimizer_of(lib)
    schedule = lib.optim.lr_scheduler.StepLR(optimizer, 1)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        schedule.step()
    other = optimizer_of(lib)
    schedule = lib.optim.lr_scheduler.StepLR(other, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other.step()
        schedule.step()


def test_errors(lib):
    s = lib.optim.lr_scheduler
    optimizer = optimizer_of(lib)
    for error, make in [
        (TypeError, lambda: s.StepLR(3, 1)),
        (ValueError, lambda: s.LinearLR(optimizer, start_factor=0)),
        (ValueError, lambda: s.LinearLR(optimizer, end_factor=1.5)),
        (ValueError, lambda: s.ConstantLR(optimizer, factor=2)),
        (ValueError, lambda: s.LambdaLR(optimizer, [lambda e: 1.0])),
        (ValueError, lambda: s.SequentialLR(optimizer, [s.StepLR(optimizer, 1)], [3])),
        (ValueError, lambda: s.SequentialLR(optimizer, [s.StepLR(optimizer_of(lib), 1)], [])),
        (ValueError, lambda: s.ChainedScheduler([])),
        (ValueError, lambda: s.CosineAnnealingWarmRestarts(optimizer, 0)),
        (ValueError, lambda: s.OneCycleLR(optimizer, 0.1)),
        (ValueError, lambda: s.OneCycleLR(optimizer, [0.1], total_steps=3)),
        (ValueError, lambda: s.OneCycleLR(optimizer, 0.1, total_steps=3, anneal_strategy="no")),
        (ValueError, lambda: s.CyclicLR(optimizer, 0.1, 0.2, mode="square")),
        (TypeError, lambda: s.CyclicLR(3, 0.1, 0.2)),
        (
            ValueError,
            lambda: s.OneCycleLR(lib.optim.Adagrad([lib.ones(1, requires_grad=True)]), 1, 3),
        ),
        (ValueError, lambda: s.ReduceLROnPlateau(optimizer, factor=1.0)),
        (ValueError, lambda: s.ReduceLROnPlateau(optimizer, mode="most")),
        (ValueError, lambda: s.ReduceLROnPlateau(optimizer, min_lr=[0.1])),
    ]:
        with pytest.raises(error):
            make()


def test_errors_of_kilns_own():
    s = kiln.optim.lr_scheduler
    optimizer = optimizer_of(kiln)
    for make in (
        lambda: s.StepLR(optimizer, 0),
        lambda: s.CosineAnnealingLR(optimizer, 0),
        lambda: s.LinearLR(optimizer, total_iters=0),
        lambda: s.PolynomialLR(optimizer, total_iters=0),
        lambda: s.OneCycleLR(optimizer, 0.1, 10, div_factor=0),
        lambda: s.OneCycleLR(optimizer, 0.1, 10, final_div_factor=0),
        lambda: s.SequentialLR(
            optimizer, [s.StepLR(optimizer, 1) for _ in range(3)], [4, 2]
        ),
    ):
        with pytest.raises(kiln.errors.ValueError):
            make()
    with pytest.raises(kiln.errors.NotImplementedError):
        s.LRScheduler(optimizer)


def test_powers_of_integers_are_floating():
    """2 ** (2**64 - 1) as an integer would fill the memory."""
    s = kiln.optim.lr_scheduler
    schedule = s.ExponentialLR(optimizer_of(kiln), 2)
    assert schedule.lr_at(0.5, 10) == 512.0
    with pytest.raises(kiln.errors.OverflowError, match="no finite rate"):
        schedule.lr_at(0.5, 2**64 - 1)
    with pytest.raises(kiln.errors.OverflowError, match="no finite rate"):
        s.ExponentialLR(optimizer_of(kiln), 0).lr_at(0.5, -1)


def test_rates_of_nothing_end():
    """A constant factor 0 ends at the base, where dividing by it has no answer."""
    optimizer = optimizer_of(kiln)
    schedule = kiln.optim.lr_scheduler.ConstantLR(optimizer, factor=0.0, total_iters=2)
    assert run(optimizer, schedule, 3) == [[0.0, 0.0], [0.0, 0.0], [0.5, 0.2], [0.5, 0.2]]


def test_noam_and_composed_rates():
    s = kiln.optim.lr_scheduler
    optimizer = optimizer_of(kiln, 2.0)
    schedule = s.NoamLR(optimizer, 16, 4)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.5 / 8)
    assert schedule.lr_at(2.0, 3) == pytest.approx(0.25)
    assert schedule.lr_at(2.0, 15) == pytest.approx(0.125)
    run(optimizer, schedule, 3)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.25)

    for reduction, wanted in (("average", 0.1), ("sum", 0.2), ("product", 0.8 * 0.125 * 0.125)):
        optimizer = optimizer_of(kiln, 0.8)
        parts = [s.ExponentialLR(optimizer, 0.5), s.MultiStepLR(optimizer, [1, 2, 3], 0.5)]
        schedule = s.ComposedLR(optimizer, parts, reduction)
        run(optimizer, schedule, 3)
        assert optimizer.param_groups[0]["lr"] == pytest.approx(wanted)
        other = s.ComposedLR(optimizer_of(kiln, 0.8), parts, reduction)
        other.load_state_dict(schedule.state_dict())
        assert other.last_epoch == 3
    with pytest.raises(kiln.errors.ValueError, match="'average', 'sum' or 'product'"):
        s.ComposedLR(optimizer, parts, "most")
    with pytest.raises(kiln.errors.TypeError, match="closed form"):
        s.ComposedLR(optimizer, [s.ReduceLROnPlateau(optimizer)])
    with pytest.raises(kiln.errors.ValueError, match="warmup"):
        s.NoamLR(optimizer, warmup=0)
