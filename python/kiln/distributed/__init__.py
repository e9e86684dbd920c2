"""torch.distributed for one process: a group whose only member is this process.

Programs ask whether there is a group before they use it. With init_process_group(world_size=1, rank=0),
or RANK=0 and WORLD_SIZE=1 in the environment, there is one, and the collective operations are those of
a group of one: a sum over the processes is the tensor itself.
"""

from . import device_mesh as device_mesh, nn as nn
from ._collectives import (
    all_gather as all_gather,
    all_gather_into_tensor as all_gather_into_tensor,
    all_gather_object as all_gather_object,
    all_reduce as all_reduce,
    all_to_all as all_to_all,
    all_to_all_single as all_to_all_single,
    barrier as barrier,
    broadcast as broadcast,
    broadcast_object_list as broadcast_object_list,
    gather as gather,
    reduce as reduce,
    reduce_scatter as reduce_scatter,
    reduce_scatter_tensor as reduce_scatter_tensor,
    scatter as scatter,
)
from ._process_group import (
    Backend as Backend,
    destroy_process_group as destroy_process_group,
    get_backend as get_backend,
    get_rank as get_rank,
    get_world_size as get_world_size,
    group as group,
    init_process_group as init_process_group,
    is_available as is_available,
    is_gloo_available as is_gloo_available,
    is_initialized as is_initialized,
    is_mpi_available as is_mpi_available,
    is_nccl_available as is_nccl_available,
    is_torchelastic_launched as is_torchelastic_launched,
    new_group as new_group,
    ProcessGroup as ProcessGroup,
    ReduceOp as ReduceOp,
    Work as Work,
)
from .device_mesh import DeviceMesh as DeviceMesh, init_device_mesh as init_device_mesh

__all__ = [
    "Backend", "DeviceMesh", "ProcessGroup", "ReduceOp", "Work", "all_gather", "all_gather_into_tensor",
    "all_gather_object", "all_reduce", "all_to_all", "all_to_all_single", "barrier", "broadcast",
    "broadcast_object_list", "destroy_process_group", "gather", "get_backend", "get_rank",
    "get_world_size", "group", "init_device_mesh", "init_process_group", "is_available", "is_gloo_available",
    "is_initialized", "is_mpi_available", "is_nccl_available", "is_torchelastic_launched",
    "new_group", "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter",
]  # fmt: skip
