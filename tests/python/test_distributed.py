"""Groups of one process, the modules that use them, and what is refused. Most tests run with PyTorch,
too, where it is installed."""

import copy
import importlib

import pytest

import kiln
from kiln import nn


@pytest.fixture
def one_process(lib, tmp_path):
    """A library with a process group of this process."""
    path = (tmp_path / "store").as_uri()
    lib.distributed.init_process_group("gloo", init_method=path, world_size=1, rank=0)
    yield lib
    lib.distributed.destroy_process_group()
    assert not lib.distributed.is_initialized()


def test_a_group_of_one_process(one_process):
    lib, dist = one_process, one_process.distributed
    assert dist.is_available() and dist.is_initialized() and dist.is_gloo_available()
    assert dist.get_rank() == 0 and dist.get_world_size() == 1 and dist.get_backend() == "gloo"
    assert dist.group.WORLD.size() == 1 and dist.new_group([0]).size() == 1
    with pytest.raises(ValueError):
        dist.init_process_group("gloo", world_size=1, rank=0)
    x, expected = lib.arange(4.0), [0, 1, 2, 3]
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MAX):
        assert dist.all_reduce(x, op) is None
        dist.reduce(x, 0, op=op)
    dist.barrier()
    dist.monitored_barrier()
    dist.broadcast(x, src=0)
    assert dist.all_reduce(x, async_op=True).wait() and x.tolist() == expected
    outputs = [lib.zeros(4) for _ in range(7)]
    dist.all_gather(outputs[:1], x)
    dist.all_gather_into_tensor(outputs[1], x)
    dist.scatter(outputs[2], [x], src=0)
    dist.gather(x, outputs[3:4], dst=0)
    dist.reduce_scatter(outputs[4], [x])
    dist.reduce_scatter_tensor(outputs[5], x)
    dist.all_to_all_single(outputs[6], x)
    assert all(y.tolist() == expected for y in outputs)
    found = [None]
    dist.all_gather_object(found, {"a": 1})
    dist.broadcast_object_list(found, src=0)
    assert found == [{"a": 1}]
    w = lib.tensor([2.0], requires_grad=True)
    importlib.import_module(f"{lib.__name__}.distributed.nn").all_reduce(w * w).backward()
    assert w.grad.tolist() == [4]
    with pytest.raises((ValueError, RuntimeError)):
        dist.all_gather([lib.zeros(4), lib.zeros(4)], x)
    sampler = lib.utils.data.distributed.DistributedSampler(range(3), shuffle=False)
    assert list(sampler) == [0, 1, 2]


def test_a_mesh_of_one_device(one_process):
    meshes = importlib.import_module(f"{one_process.__name__}.distributed.device_mesh")
    mesh = meshes.init_device_mesh("cpu", (1, 1), mesh_dim_names=("data", "model"))
    assert isinstance(mesh, one_process.distributed.device_mesh.DeviceMesh)
    assert mesh.shape == (1, 1) and mesh.ndim == 2 and mesh.size() == mesh.size(1) == 1
    assert mesh.get_rank() == 0 and mesh.get_coordinate() in ([0, 0], (0, 0))
    assert mesh["data"].ndim == 1 and mesh["data"].get_group().size() == 1
    with pytest.raises(KeyError):
        mesh["pipe"]
    with pytest.raises((ValueError, RuntimeError)):
        meshes.init_device_mesh("cpu", (2,))


def test_groups_that_are_refused(monkeypatch):
    dist = kiln.distributed
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="WORLD_SIZE"):
        dist.init_process_group("gloo")
    with pytest.raises(ValueError, match="MASTER_ADDR"):
        dist.init_process_group("gloo", world_size=2, rank=1)
    store = dist.HashStore()
    for rank, size in ((2, 2), (-1, 1), (0, 0)):
        with pytest.raises(ValueError, match="rank"):
            dist.init_process_group("gloo", store=store, world_size=size, rank=rank)
    with pytest.raises(ValueError, match="must be positive"):
        dist.init_process_group("gloo", world_size=1, rank=0, timeout=-1)
    with pytest.raises(RuntimeError, match="waited 100 ms for rank 1"):
        dist.init_process_group("gloo", store=store, world_size=2, rank=0, timeout=0.1)
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert not dist.is_initialized()
    dist.init_process_group()
    dist.destroy_process_group()


def test_without_a_group():
    dist, x = kiln.distributed, kiln.ones(1)
    calls = {
        "all_reduce": [x], "broadcast": [x, 0], "reduce": [x, 0], "all_gather": [[x], x], "barrier": [],
        "gather": [x], "scatter": [x], "reduce_scatter": [x, [x]], "all_to_all": [[x], [x]],
        "all_to_all_single": [x, x], "isend": [x, 0], "irecv": [x, 0], "monitored_barrier": [],
        "all_gather_object": [[None], 1], "gather_object": [1, [None]], "new_group": [[0]],
        "broadcast_object_list": [[1]], "scatter_object_list": [[None], [1]], "get_rank": [],
        "get_world_size": [], "get_backend": [], "get_process_group_ranks": [],
        "all_gather_into_tensor": [x, x], "reduce_scatter_tensor": [x, x],
    }  # fmt: skip
    for name, arguments in calls.items():
        with pytest.raises(ValueError, match=f"{name}: there is no process group"):
            getattr(dist, name)(*arguments)
    dist.destroy_process_group()  # nothing to end
    assert dist.Work().wait() and dist.get_node_local_rank(fallback_rank=3) == 3
    with pytest.raises(RuntimeError, match="LOCAL_RANK"):
        dist.get_node_local_rank()


def test_data_parallel(lib):
    torch_nn = lib.nn
    net = torch_nn.DataParallel(torch_nn.Linear(2, 1))
    assert list(net.state_dict()) == ["module.weight", "module.bias"]
    x = lib.ones(3, 2)
    assert net(x).tolist() == net.module(x).tolist() == net(input=x).tolist()
    assert isinstance(net, torch_nn.parallel.DataParallel)
    if lib is kiln:  # PyTorch asks for a device
        assert nn.parallel.data_parallel(net.module, (x,)).tolist() == net(x).tolist()
    assert repr(net).splitlines()[:2] == [
        "DataParallel(", "  (module): Linear(in_features=2, out_features=1, bias=True)",
    ]  # fmt: skip
    with pytest.raises((ValueError, RuntimeError)):
        torch_nn.parallel.DistributedDataParallel(torch_nn.Linear(2, 1))  # without a group


def test_distributed_data_parallel(one_process):
    lib = one_process
    net = lib.nn.parallel.DistributedDataParallel(lib.nn.Linear(2, 1))
    assert list(net.state_dict()) == ["module.weight", "module.bias"]
    with net.no_sync():
        net(lib.ones(3, 2)).sum().backward()
    net(lib.ones(3, 2)).sum().backward()
    assert net.module.weight.grad.tolist() == [[6, 6]] and net.module.bias.grad.tolist() == [6]
    with pytest.raises(RuntimeError):
        lib.nn.parallel.DistributedDataParallel(lib.nn.ReLU())


def test_sync_batch_norm(lib):
    x = lib.tensor([[1.0, 2.0], [3.0, 6.0]])
    plain = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.BatchNorm1d(2))
    plain[0].weight.data.copy_(lib.eye(2))
    plain[0].bias.data.zero_()
    expected = plain(x).tolist()
    changed = lib.nn.SyncBatchNorm.convert_sync_batchnorm(plain)
    assert changed is plain and type(plain[1]) is lib.nn.SyncBatchNorm
    assert plain[1].num_batches_tracked == 1 and plain[1].running_mean.numpy() == pytest.approx([0.2, 0.4])
    assert changed(x).tolist() == expected
    assert plain[1].running_mean.numpy() == pytest.approx([0.38, 0.76])
    assert isinstance(plain[1], lib.nn.modules.batchnorm._BatchNorm)
    assert lib.nn.SyncBatchNorm(3)(lib.ones(2, 3, 1, 1, 1)).abs().max() == 0
    assert plain.eval()(x).shape == (2, 2)


def test_a_state_of_a_model_in_several_processes_is_loaded_and_copied(one_process):
    lib, layers = one_process, one_process.nn
    net = layers.parallel.DistributedDataParallel(layers.Linear(2, 1))
    other = layers.parallel.DistributedDataParallel(layers.Linear(2, 1))
    assert other.load_state_dict(net.state_dict()) is not None
    assert other.module.weight.tolist() == net.module.weight.tolist()
    if lib is kiln:  # PyTorch's cannot
        copied = copy.deepcopy(net)
        copied(lib.ones(3, 2)).sum().backward()
        assert copied.module.weight.grad.tolist() == [[3, 3]] and net.module.weight.grad is None
        assert copied.process_group is net.process_group
