"""kiln.optim.swa_utils against PyTorch's, and against means worked out by hand."""

import pytest

import kiln
from conftest import HAS_TORCH

swa = kiln.optim.swa_utils
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")


def libraries():
    import torch

    return kiln, torch


def model_of(lib, value):
    model = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.BatchNorm2d(2))
    fill(lib, model, value)
    return model


def fill(lib, model, value):
    """Parameter i is value + i, the running mean 10 value."""
    with lib.no_grad():
        for i, p in enumerate(model.parameters()):
            p.fill_(value + i)
        model[1].running_mean.fill_(10 * value)


def test_plain_mean():
    model = kiln.nn.Linear(1, 1)
    mean = swa.AveragedModel(model)
    for value in (1.0, 4.0, 10.0):
        with kiln.no_grad():
            model.weight.fill_(value)
            model.bias.fill_(-value)
        mean.update_parameters(model)
    assert mean.module.weight.item() == pytest.approx(5.0)
    assert mean(kiln.ones(1, 1)).item() == pytest.approx(0.0, abs=1e-6)
    assert mean.n_averaged.item() == 3
    assert set(mean.state_dict()) == {"n_averaged", "module.weight", "module.bias"}


@needs_torch
@pytest.mark.parametrize("use_buffers", [False, True])
@pytest.mark.parametrize(
    "average",
    [
        lambda s: {},
        lambda s: {"avg_fn": s.get_ema_avg_fn(0.9)},
        lambda s: {"multi_avg_fn": s.get_ema_multi_avg_fn(0.9)},
        lambda s: {"avg_fn": s.get_swa_avg_fn()},
        lambda s: {"multi_avg_fn": s.get_swa_multi_avg_fn()},
    ],
)
def test_averages_are_torchs(average, use_buffers):
    values = []
    # PyTorch 2.13's get_swa_multi_avg_fn fails on a batch norm's count of batches, an integer.
    integers = use_buffers and "get_swa_multi_avg_fn" in average.__code__.co_names
    for lib in libraries():
        if integers and lib is not kiln:
            values.append(dict(values[0]))
            values[1].update({"module.0.weight": [10 / 3] * 4, "module.1.running_mean": [100 / 3] * 2})
            break
        utils = lib.optim.swa_utils
        model = model_of(lib, 1.0)
        mean = utils.AveragedModel(model, use_buffers=use_buffers, **average(utils))
        for value in (2.0, 5.0, 3.0):
            fill(lib, model, value)
            mean.update_parameters(model)
        state = mean.state_dict()
        values.append({k: v.flatten().tolist() for k, v in state.items()})
    assert values[0].keys() == values[1].keys()
    for key, value in values[0].items():
        assert value == pytest.approx(values[1][key], rel=1e-6), key


@needs_torch
def test_update_bn_is_torchs():
    import torch

    batches = [torch.randn(4, 2, 3, 3) + i for i in range(3)]
    values = []
    for lib in libraries():
        norm = lib.nn.BatchNorm2d(2)
        norm.eval()
        loader = [(lib.tensor(b.tolist()), 0) for b in batches]
        lib.optim.swa_utils.update_bn(loader, norm)
        assert norm.momentum == 0.1 and not norm.training
        values.append(norm.running_mean.tolist() + norm.running_var.tolist())
    assert values[0] == pytest.approx(values[1], rel=1e-5)


@needs_torch
@pytest.mark.parametrize("options", [{}, {"anneal_epochs": 3, "anneal_strategy": "linear"},
                                     {"anneal_epochs": 0}])  # fmt: skip
def test_rates_are_torchs(options):
    rates = []
    for lib in libraries():
        w = lib.ones(1, requires_grad=True)
        optimizer = lib.optim.SGD([w], lr=1.0)
        schedule = lib.optim.swa_utils.SWALR(optimizer, swa_lr=0.1, **options)
        seen = []
        for _ in range(12):
            optimizer.step()
            schedule.step()
            seen.append(schedule.get_last_lr()[0])
        rates.append(seen)
    assert rates[0] == pytest.approx(rates[1], rel=1e-9)


def test_errors():
    with pytest.raises(ValueError, match="Only one of avg_fn"):
        swa.AveragedModel(kiln.nn.Linear(1, 1), avg_fn=max, multi_avg_fn=max)
    with pytest.raises(ValueError, match="Invalid decay"):
        swa.get_ema_avg_fn(1.5)
    optimizer = kiln.optim.SGD([kiln.ones(1, requires_grad=True)])
    with pytest.raises(ValueError, match="anneal_strategy"):
        swa.SWALR(optimizer, 0.1, anneal_strategy="no")
    with pytest.raises(ValueError, match="anneal_epochs"):
        swa.SWALR(optimizer, 0.1, anneal_epochs=-1)
