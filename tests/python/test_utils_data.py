"""kiln.utils.data: data sets, samplers, batches and loaders with and without worker processes."""

import collections
import os
import signal

import pytest

import kiln
from conftest import HAS_TORCH
from kiln.utils import data

needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")


class Squares(data.Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if not 0 <= i < self.n:
            raise IndexError(i)
        return kiln.tensor([float(i)]), i * i


class Counting(data.IterableDataset):
    """Each worker gives its own part."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = data.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(first, self.n, step))


class Failing(data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        if i == 5:
            raise KeyError("no sample 5")
        return i


def values(loader):
    return [batch.tolist() if isinstance(batch, kiln.Tensor) else batch for batch in loader]


# ---- Data sets


def test_tensor_dataset():
    pairs = data.TensorDataset(kiln.arange(6).reshape(3, 2), kiln.tensor([7, 8, 9]))
    assert len(pairs) == 3
    x, y = pairs[1]
    assert x.tolist() == [2, 3] and y.item() == 8
    with pytest.raises(kiln.errors.ShapeError, match=r"\[3, 2\], \[2\]"):
        data.TensorDataset(kiln.zeros(3, 2), kiln.zeros(2))
    with pytest.raises(ValueError, match="at least one"):
        data.TensorDataset()


def test_joined_datasets():
    joined = Squares(2) + Squares(3)
    assert len(joined) == 5 and [joined[i][1] for i in range(5)] == [0, 1, 0, 1, 4]
    assert joined[-1][1] == 4
    with pytest.raises(IndexError, match="out of range"):
        joined[5]
    both = data.StackDataset(a=Squares(3), b=[4, 5, 6])
    assert both[2]["a"][1] == 4 and both[2]["b"] == 6 and len(both) == 3
    assert [s["b"] for s in both.__getitems__([0, 2])] == [4, 6]
    assert data.StackDataset([1, 2], [3, 4])[1] == (2, 4)
    assert list(data.ChainDataset([Counting(2), Counting(3)])) == [0, 1, 0, 1, 2]
    assert data.Subset(Squares(9), [8, 3])[0][1] == 64
    for wrong in (
        lambda: data.StackDataset([1], [1, 2]),
        lambda: data.ConcatDataset([]),
        lambda: data.ConcatDataset([Counting(3)]),
    ):
        with pytest.raises(kiln.errors.ValueError):
            wrong()


@pytest.mark.parametrize("lengths,wanted", [([6, 4], [6, 4]), ([0.5, 0.25, 0.25], [6, 2, 2])])
def test_random_split(lengths, wanted):
    parts = data.random_split(range(10), lengths, kiln.Generator().manual_seed(1))
    assert [len(p) for p in parts] == wanted
    assert sorted(x for p in parts for x in p) == list(range(10))
    again = data.random_split(range(10), lengths, kiln.Generator().manual_seed(1))
    assert [list(p) for p in parts] == [list(p) for p in again]
    with pytest.raises(ValueError, match="sum to the data set"):
        data.random_split(range(10), [3, 3])


# ---- Samplers


def test_samplers():
    g = kiln.Generator().manual_seed(3)
    assert list(data.SequentialSampler("abc")) == [0, 1, 2]
    order = list(data.RandomSampler(range(50), generator=g))
    assert sorted(order) == list(range(50)) and order != sorted(order)
    assert len(list(data.RandomSampler(range(3), num_samples=8))) == 8
    drawn = list(data.RandomSampler(range(3), replacement=True, num_samples=100))
    assert len(drawn) == 100 and set(drawn) == {0, 1, 2}
    assert sorted(data.SubsetRandomSampler([7, 5, 9])) == [5, 7, 9]
    weighted = collections.Counter(data.WeightedRandomSampler([0.0, 1.0, 3.0], 4000, generator=g))
    assert weighted[0] == 0 and 2800 < weighted[2] < 3200
    assert set(data.WeightedRandomSampler([0.0, 1.0, 1.0], 2, replacement=False)) == {1, 2}
    batches = data.BatchSampler(range(7), 3, False)
    assert list(batches) == [[0, 1, 2], [3, 4, 5], [6]] and len(batches) == 3
    assert list(data.BatchSampler(range(7), 3, True)) == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(ValueError, match="positive integer"):
        data.BatchSampler(range(7), 0, False)
    with pytest.raises(ValueError, match="num_samples"):
        data.WeightedRandomSampler([1.0], 0)


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_distributed_sampler(shuffle, drop_last):
    def parts(epoch):
        out = []
        for rank in range(3):
            sampler = data.DistributedSampler(
                range(10), 3, rank, shuffle=shuffle, seed=4, drop_last=drop_last
            )
            sampler.set_epoch(epoch)
            out.append(list(sampler))
            assert len(out[-1]) == len(sampler) == (3 if drop_last else 4)
        return out

    numbers = sorted(x for part in parts(0) for x in part)
    assert len(set(numbers)) == (9 if drop_last else 10)
    assert (parts(0) != parts(1)) == shuffle and parts(1) == parts(1)


# ---- Batches

Point = collections.namedtuple("Point", "x y")


@needs_torch
@pytest.mark.parametrize(
    "samples",
    [
        lambda lib: [lib.tensor([1, 2]), lib.tensor([3, 4])],
        lambda lib: [1, 2],
        lambda lib: [1.5, 2.5],
        lambda lib: [True, False],
        lambda lib: ["a", "b"],
        lambda lib: [(1, "a"), (2, "b")],
        lambda lib: [[1, 2.0], [3, 4.0]],
        lambda lib: [{"a": 1, "b": [1]}, {"a": 2, "b": [3]}],
        lambda lib: [Point(1, 2.0), Point(3, 4.0)],
    ],
)
def test_collate_is_torchs(samples):
    import torch
    from torch.utils.data import default_collate

    def plain(x):
        if isinstance(x, (kiln.Tensor, torch.Tensor)):
            return str(x.dtype).split(".")[1], x.tolist()
        if isinstance(x, dict):
            return {key: plain(value) for key, value in x.items()}
        if isinstance(x, (list, tuple)):
            return type(x).__name__, [plain(value) for value in x]
        return x

    assert plain(data.default_collate(samples(kiln))) == plain(default_collate(samples(torch)))


def test_collate_of_numpy_and_errors():
    np = pytest.importorskip("numpy")
    batch = data.default_collate([np.ones(2, np.float32), np.zeros(2, np.float32)])
    assert batch.dtype == kiln.float32 and batch.tolist() == [[1, 1], [0, 0]]
    assert data.default_convert({"a": np.int64(3)})["a"].item() == 3
    with pytest.raises(TypeError, match="samples must be tensors"):
        data.default_collate([object()])
    with pytest.raises(ValueError, match="equally many parts"):
        data.default_collate([[1], [1, 2]])
    with pytest.raises(kiln.errors.ShapeError):
        data.default_collate([kiln.zeros(2), kiln.zeros(3)])


# ---- Loaders


@pytest.mark.parametrize("num_workers", [0, 2])
def test_batches_in_order(num_workers):
    loader = data.DataLoader(Squares(7), batch_size=3, num_workers=num_workers)
    assert len(loader) == 3
    batches = list(loader)
    assert [y.tolist() for _, y in batches] == [[0, 1, 4], [9, 16, 25], [36]]
    assert batches[0][0].tolist() == [[0], [1], [2]]
    last = data.DataLoader(Squares(7), batch_size=3, num_workers=num_workers, drop_last=True)
    assert [y.tolist() for _, y in last] == [[0, 1, 4], [9, 16, 25]] and len(last) == 2
    single = data.DataLoader(Squares(3), batch_size=None, num_workers=num_workers)
    assert [y for _, y in single] == [0, 1, 4]
    own = data.DataLoader(range(5), batch_sampler=[[4, 0], [2]], num_workers=num_workers)
    assert values(own) == [[4, 0], [2]]
    texts = data.DataLoader(["end", "b"], batch_size=None, num_workers=num_workers)
    assert list(texts) == ["end", "b"]


@pytest.mark.parametrize("num_workers", [0, 2])
def test_shuffled_and_seeded(num_workers):
    def epochs():
        loader = data.DataLoader(
            range(20), 5, shuffle=True, num_workers=num_workers,
            generator=kiln.Generator().manual_seed(9), persistent_workers=num_workers > 0,
        )  # fmt: skip
        return [sum(values(loader), []) for _ in range(2)]

    first, second = epochs()
    assert sorted(first) == sorted(second) == list(range(20)) and first != second
    assert epochs() == [first, second]


@pytest.mark.parametrize("num_workers,wanted", [(0, [[0, 1, 2], [3, 4]]), (2, [[0, 2, 4], [1, 3]])])
def test_iterable_datasets(num_workers, wanted):
    assert values(data.DataLoader(Counting(5), 3, num_workers=num_workers)) == wanted
    alone = data.DataLoader(Counting(5), None, num_workers=num_workers)
    assert sorted(values(alone)) == [0, 1, 2, 3, 4]
    long = data.DataLoader(Counting(1001), 7, num_workers=num_workers)
    assert sorted(sum(values(long), [])) == list(range(1001))


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_dataset_that_fails(num_workers):
    loader = data.DataLoader(Failing(), 2, num_workers=num_workers)
    seen = []
    with pytest.raises(KeyError) as error:
        for batch in loader:
            seen.append(batch.tolist())
    assert seen == [[0, 1], [2, 3]] and "no sample 5" in str(error.value)
    if num_workers:
        assert "DataLoader worker process" in str(error.value)
        assert "in __getitem__" in str(error.value)


def seeds_of_worker(_):
    import random

    return random.random(), kiln.rand(()).item(), data.get_worker_info().id


class Seeds(data.Dataset):
    def __len__(self):
        return 4

    __getitem__ = staticmethod(seeds_of_worker)


def test_workers_have_seeds_and_a_first_call():
    first = []

    def draw():
        kiln.manual_seed(5)
        return list(data.DataLoader(Seeds(), None, num_workers=2))

    once, again = draw(), draw()
    assert once == again and [w for *_, w in once] == [0, 1, 0, 1]
    assert len({x for x, *_ in once}) == 4 and len({x for _, x, _ in once}) == 4
    assert first == [] and data.get_worker_info() is None

    def init(worker):
        os.environ["KILN_TEST_WORKER"] = str(worker)

    class Who(data.Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, i):
            return os.environ["KILN_TEST_WORKER"]

    assert list(data.DataLoader(Who(), None, num_workers=2, worker_init_fn=init)) == ["0", "1"]


def test_an_iteration_that_is_left_early():
    loader = data.DataLoader(range(40), 2, num_workers=2, persistent_workers=True)
    for batch in loader:
        assert batch.tolist() == [0, 1]
        break
    assert sum(values(loader), []) == list(range(40))
    pids = [p.pid for p in loader._kept.processes]
    del loader
    for pid in pids:
        with pytest.raises(OSError):
            os.kill(pid, 0)


class Dying(data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        os.kill(os.getpid(), signal.SIGKILL)


class Sleeping(Dying):
    def __getitem__(self, i):
        import time

        time.sleep(60)


def test_workers_that_end_or_hang(monkeypatch):
    from kiln.utils.data import dataloader

    monkeypatch.setattr(dataloader, "_POLL", 0.2)
    with pytest.raises(RuntimeError, match=r"ended unexpectedly"):
        next(iter(data.DataLoader(Dying(), num_workers=1)))
    with pytest.raises(RuntimeError, match="timeout=0.5"):
        next(iter(data.DataLoader(Sleeping(), num_workers=1, timeout=0.5)))


def test_options_that_exclude_each_other():
    for options in (
        {"num_workers": -1},
        {"prefetch_factor": 2},
        {"persistent_workers": True},
        {"shuffle": True, "sampler": [0]},
        {"batch_sampler": [[0]], "shuffle": True},
        {"batch_size": None, "drop_last": True},
        {"batch_size": 0},
        {"timeout": -1},
    ):
        with pytest.raises(kiln.errors.ValueError):
            data.DataLoader(range(3), **options)
    with pytest.raises(kiln.errors.ValueError, match="own order"):
        data.DataLoader(Counting(3), shuffle=True)


def test_training_on_batches():
    kiln.manual_seed(0)
    x = kiln.randn(256, 4)
    y = x @ kiln.tensor([[1.0], [-2.0], [0.5], [3.0]])
    train, valid = data.random_split(data.TensorDataset(x, y), [0.75, 0.25])
    net = kiln.nn.Linear(4, 1)
    optimizer = kiln.optim.Adam(net.parameters(), lr=0.05)
    for _ in range(20):
        for batch, target in data.DataLoader(train, 32, shuffle=True):
            optimizer.zero_grad()
            kiln.nn.functional.mse_loss(net(batch), target).backward()
            optimizer.step()
    with kiln.no_grad():
        errors = [
            kiln.nn.functional.mse_loss(net(batch), target).item()
            for batch, target in data.DataLoader(valid, 64)
        ]
    assert max(errors) < 1e-2


def test_batches_of_tensors_are_gathered():
    """A batch that is copied row by row is the one that its samples give, in values, dtypes and kinds."""
    x, y, flags = kiln.randn(50, 3, requires_grad=True), kiln.arange(50), kiln.arange(50) % 2 == 0
    plain = data.TensorDataset(x, y, flags)
    for dataset in (plain, data.Subset(plain, range(5, 45)), data.Subset(data.Subset(plain, [9, 3, 8]), [2, 0])):
        kiln.manual_seed(3)
        gathered = list(data.DataLoader(dataset, batch_size=7, shuffle=True))
        kiln.manual_seed(3)
        one_by_one = data.DataLoader(
            dataset, batch_size=7, shuffle=True, collate_fn=lambda batch: data.default_collate(batch)
        )
        for a, b in zip(gathered, one_by_one, strict=True):
            assert type(a) is type(b) and len(a) == 3
            for left, right in zip(a, b):
                assert left.dtype == right.dtype and kiln.equal(left, right)
                assert left.requires_grad == right.requires_grad
    sum_of = next(iter(data.DataLoader(plain, batch_size=4)))[0].sum()
    sum_of.backward()
    assert x.grad.sum().item() == 12

    class Own(data.TensorDataset):
        def __getitem__(self, index):
            return (self.tensors[0][index] * 2,)

    class Lists(data.TensorDataset):
        def __getitems__(self, indices):
            return [7 for _ in indices]

    assert kiln.equal(next(iter(data.DataLoader(Own(y), batch_size=3)))[0], kiln.tensor([0, 2, 4]))
    assert next(iter(data.DataLoader(Lists(y), batch_size=3))).tolist() == [7, 7, 7]
    last = data.DataLoader(plain, batch_size=2, sampler=[-1, 0])
    assert next(iter(last))[1].tolist() == [49, 0]
    with pytest.raises(IndexError):
        next(iter(data.DataLoader(plain, batch_size=2, sampler=[0, 50])))


@pytest.mark.parametrize("workers", [0, 2])
def test_an_iterator_of_a_loader_knows_its_length(workers):
    loader = kiln.utils.data.DataLoader(range(10), batch_size=4, num_workers=workers)
    batches = iter(loader)
    assert len(batches) == 3 and iter(batches) is batches
    assert [b.tolist() for b in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert next(batches, None) is None


def test_types_of_errors(lib):
    import importlib

    data = importlib.import_module(f"{lib.__name__}.utils.data")
    with pytest.raises(AssertionError):
        data.TensorDataset(lib.ones(2), lib.ones(3))
    with pytest.raises(AssertionError):
        data.ConcatDataset([])
    joined = data.ConcatDataset([data.TensorDataset(lib.ones(2)), data.TensorDataset(lib.ones(3))])
    with pytest.raises(ValueError):
        joined[-9]
    with pytest.raises(IndexError):
        joined[9]
    for make in (
        lambda: data.RandomSampler([]),
        lambda: data.DataLoader([], shuffle=True),
        lambda: data.DataLoader([], batch_size=None, shuffle=True),
    ):
        with pytest.raises(ValueError, match="positive"):
            make()
    assert list(data.DataLoader([])) == []


def test_attributes_of_a_loader_that_others_are_made_from(lib):
    import importlib

    loader = importlib.import_module(f"{lib.__name__}.utils.data").DataLoader([1, 2, 3])
    for name in "batch_size batch_sampler sampler drop_last dataset persistent_workers".split():
        with pytest.raises(ValueError, match=f"{name} attribute should not be set after"):
            setattr(loader, name, getattr(loader, name))
    loader.collate_fn = len
    loader.mine = 3
    assert list(loader) == [1, 1, 1] and loader.mine == 3
