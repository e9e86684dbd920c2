"""Groups of some of four processes, and a mesh of 2 x 2."""

import importlib
from datetime import timedelta

from report import NAME, RANK, dist, finish, lib, note, refused, small

dist.init_process_group("gloo", timeout=timedelta(seconds=40))
note("world", [dist.get_rank(), dist.get_world_size(), dist.get_backend(), dist.get_node_local_rank()])
outside = dist.GroupMember.NON_GROUP_MEMBER

# Only its members make it. (PyTorch's names of such groups count those that a process has.)
halves = [[0, 1], [2, 3]][RANK // 2]
half = dist.new_group(halves, use_local_synchronization=True)
x = small(3)
dist.all_reduce(x, group=half)
note("half", [dist.get_process_group_ranks(half), x])
if NAME == "kiln":  # the same once more
    half = dist.new_group(halves, use_local_synchronization=True)
    dist.all_reduce(x, group=half)
    assert lib.equal(x, 2 * (small(3, halves[0]) + small(3, halves[1])))

odd, first = dist.new_group([3, 1]), dist.new_group([0, 1, 2], backend="gloo")
note("outside", [odd is outside, first is outside])
note("ranks", [dist.get_rank(odd), dist.get_rank(first)])
note("sizes", [dist.get_world_size(odd), dist.get_world_size(first)])
x, y, z = small(3), small(3), small(3)
dist.all_reduce(x, group=odd)  # does nothing in processes outside
if first is not outside:
    dist.broadcast(y, src=2, group=first)
    dist.broadcast(z, group=first, group_src=1)
note("all_reduce and broadcasts in groups", [x, y, z])
if odd is not outside:
    numbers = [dist.get_global_rank(odd, 1), dist.get_group_rank(odd, 3)]
    note("numbers", [dist.get_process_group_ranks(odd), numbers, odd.size(), odd.rank()])
    to = [None, None]
    dist.all_gather_object(to, RANK, group=odd)
    note("objects of a group", to)
    other = dist.get_global_rank(odd, 1 - odd.rank())
    works = [dist.isend(small(2), other, group=odd), dist.irecv(x[:2], other, group=odd)]
    for work in works:
        work.wait()
    note("messages of a group", x)
    to = [lib.zeros(2), lib.zeros(2)] if RANK == 3 else None
    dist.gather(small(2), to, dst=3, group=odd)
    note("gather of a group", to)
    refused(ValueError, "process 0 is not", lambda: dist.broadcast(x, src=0, group=odd))
    refused(ValueError, "[0, 2)", lambda: dist.get_global_rank(odd, 2))
everybody = dist.new_group()
dist.all_reduce(x, group=everybody)
note("all in a group", x)
refused(ValueError, "[0, 4)", lambda: dist.new_group([0, 4]))
refused(ValueError, "different", lambda: dist.new_group([0, 0]))

meshes = importlib.import_module(f"{NAME}.distributed.device_mesh")
mesh = meshes.init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
note("mesh", [list(mesh.shape), mesh.mesh.tolist(), list(mesh.get_coordinate()), mesh.size(), mesh.size(0)])
note("local ranks", [mesh.get_local_rank("data"), mesh.get_local_rank(1), mesh["model"].get_local_rank()])
note("names", [list(mesh.mesh_dim_names), mesh.ndim, mesh.get_rank(), mesh["data"].mesh.tolist()])
x, y = small(3), small(3)
dist.all_reduce(x, group=mesh.get_group("data"))
dist.all_reduce(y, group=mesh["model"].get_group())
note("sums along a mesh", [x, y])
note("groups of a mesh", [dist.get_process_group_ranks(group) for group in mesh.get_all_groups()])
line = meshes.DeviceMesh("cpu", [3, 2, 1, 0])
note("a line", [list(line.get_coordinate()), line.get_local_rank()])
part = meshes.DeviceMesh("cpu", [1, 2])
note("outside of a mesh", part.get_coordinate() is None)
if NAME == "kiln":
    refused(KeyError, "pipe", lambda: mesh["pipe"])
    refused(RuntimeError, "mesh_dim=", lambda: mesh.get_group())
    refused(RuntimeError, "mesh of 4 processes", lambda: meshes.init_device_mesh("cpu", (2, 3)))
    refused(ValueError, "different", lambda: meshes.DeviceMesh("cpu", [0, 0]))

# A group that ended, and one that goes on.
dist.barrier()
if odd is not outside:
    dist.destroy_process_group(odd)
    refused(RuntimeError, "broken", lambda: dist.all_reduce(x, group=odd))
dist.all_reduce(x)
note("at the end", x)
finish()
