"""FlopCounterMode: by hand, and beside PyTorch's own for whole models."""

import pytest

import kiln


def counter_of(lib, **options):
    import importlib

    module = importlib.import_module(f"{lib.__name__}.utils.flop_counter")
    return module.FlopCounterMode(display=False, **options)


def counted(lib, function):
    with counter_of(lib) as counter:
        function()
    return counter


def test_products_by_hand(lib):
    a, b = lib.ones(3, 4), lib.ones(4, 5)
    assert counted(lib, lambda: a @ b).get_total_flops() == 2 * 3 * 4 * 5
    batched = lib.ones(2, 3, 4)
    assert counted(lib, lambda: batched @ lib.ones(2, 4, 5)).get_total_flops() == 2 * 2 * 3 * 4 * 5
    x = lib.ones(1, 4, 8, 8)
    for groups in (1, 2):
        layer = lib.nn.Conv2d(4, 6, 3, groups=groups)
        assert counted(lib, lambda: layer(x)).get_total_flops() == 2 * 6 * 6 * 6 * (4 // groups * 9)
    layer = lib.nn.ConvTranspose2d(4, 6, 3, bias=False)
    assert counted(lib, lambda: layer(x)).get_total_flops() == 2 * 4 * 64 * 6 * 9
    assert counted(lib, lambda: x.relu() + 1).get_total_flops() == 0


def test_attention_and_recurrence_by_hand():
    q = kiln.ones(1, 2, 5, 8, requires_grad=True)  # PyTorch does not count its attention on a CPU
    attend = kiln.nn.functional.scaled_dot_product_attention
    assert counted(kiln, lambda: attend(q, q, q)).get_total_flops() == 4 * 2 * 5 * 5 * 8
    layer = kiln.nn.LSTM(3, 4)
    steps = counted(kiln, lambda: layer(kiln.ones(5, 2, 3))).get_total_flops()
    assert steps == 5 * 2 * 2 * (4 * 4 * 3 + 4 * 4 * 4)


def test_gradients_of_groups():
    """Each of the three products takes as many; PyTorch counts the weight's without its groups."""
    layer, x = kiln.nn.Conv2d(8, 16, 1, groups=4), kiln.ones(2, 8, 5, 5, requires_grad=True)
    assert counted(kiln, lambda: layer(x).sum().backward()).get_total_flops() == 3 * 3200


def models(lib):
    nn = lib.nn

    class Residual(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.a, self.b = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)
            self.n = nn.BatchNorm2d(c)

        def forward(self, x):
            return x + self.b(self.n(self.a(x)).relu())

    image = lib.ones(2, 3, 12, 12)
    yield (
        nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2), Residual(8), nn.Conv2d(8, 16, 1), nn.Flatten(),
            nn.Linear(16 * 25, 10),
        ),
        (image,),
    )  # fmt: skip
    yield nn.Sequential(nn.Linear(7, 9), nn.Tanh(), nn.Linear(9, 3)), (lib.ones(4, 7),)
    yield nn.Sequential(nn.Conv1d(3, 5, 4), nn.ReLU(), nn.Conv1d(5, 2, 3)), (lib.ones(2, 3, 20),)
    yield nn.Conv3d(2, 4, 3), (lib.ones(1, 2, 6, 6, 6),)


def test_training_steps_are_what_pytorch_counts():
    torch = pytest.importorskip("torch")
    pairs = zip(models(kiln), models(torch))
    for (mine, given), (theirs, same) in pairs:
        ours = counted(kiln, lambda: mine(*given).sum().backward())
        expected = counted(torch, lambda: theirs(*same).sum().backward())
        assert ours.get_total_flops() == expected.get_total_flops() > 0, mine
        forward = counted(kiln, lambda: mine(*given)).get_total_flops()
        assert forward == counted(torch, lambda: theirs(*same)).get_total_flops()


def test_modules(lib):
    class Net(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = lib.nn.Sequential(lib.nn.Linear(4, 8), lib.nn.Linear(8, 2))

        def forward(self, x):
            return self.body(x)

    net = Net()
    counts = counted(lib, lambda: net(lib.ones(3, 4))).get_flop_counts()
    sums = {name: sum(ops.values()) for name, ops in counts.items() if ops}
    assert sums == {
        "Global": 2 * 3 * (4 * 8 + 8 * 2), "Net": 288, "Net.body": 288, "Net.body.0": 192,
        "Net.body.1": 96,
    }  # fmt: skip


def test_table_and_errors(capsys):
    with kiln.utils.flop_counter.FlopCounterMode(depth=1):
        kiln.nn.Linear(1000, 1000)(kiln.ones(1000, 1000))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["Global", "2.000G", "100.00"]
    assert any(line.split() == ["Linear", "2.000G", "100.00"] for line in lines)
    with pytest.raises(ValueError, match="custom_mapping"):
        kiln.utils.flop_counter.FlopCounterMode(custom_mapping={1: 2})
    counter = kiln.utils.flop_counter.FlopCounterMode(display=False)
    with counter, pytest.raises(RuntimeError, match="running already"):
        counter.__enter__()
    # A module that fails leaves nothing behind.
    with counter_of(kiln) as counter:
        with pytest.raises(kiln.errors.Error):
            kiln.nn.Sequential(kiln.nn.Linear(2, 3), kiln.nn.Linear(4, 5))(kiln.ones(1, 2))
        kiln.nn.Linear(2, 3)(kiln.ones(1, 2))
    assert counter.get_flop_counts()["Global"] == {"float_linear": 24}


def test_profiles_have_flops():
    with kiln.profiler.profile(with_flops=True) as profile:
        kiln.ones(3, 4) @ kiln.ones(4, 5)
    (row,) = [row for row in profile.key_averages() if row.key == "float_matmul"]
    assert row.flops == 120
