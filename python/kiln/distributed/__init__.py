"""Groups of processes that exchange tensors and train together, by the names of torch.distributed.

`python -m kiln.distributed.run --nproc-per-node 2 train.py` starts a program as two processes, which
init_process_group() joins. The guide "Several processes" in the documentation shows the rest.
"""

from ..errors import (
    DistBackendError as DistBackendError,
    DistError as DistError,
    DistNetworkError as DistNetworkError,
    DistStoreError as DistStoreError,
)
from . import algorithms as algorithms, device_mesh as device_mesh, nn as nn
from ._collectives import (
    all_gather as all_gather,
    all_gather_into_tensor as all_gather_into_tensor,
    all_gather_single as all_gather_single,
    all_reduce as all_reduce,
    all_to_all as all_to_all,
    all_to_all_single as all_to_all_single,
    barrier as barrier,
    broadcast as broadcast,
    gather as gather,
    monitored_barrier as monitored_barrier,
    reduce as reduce,
    reduce_scatter as reduce_scatter,
    reduce_scatter_single as reduce_scatter_single,
    reduce_scatter_tensor as reduce_scatter_tensor,
    scatter as scatter,
)
from ._grad_bucket import GradBucket as GradBucket
from ._messages import (
    P2POp as P2POp,
    batch_isend_irecv as batch_isend_irecv,
    irecv as irecv,
    isend as isend,
    recv as recv,
    send as send,
)
from ._objects import (
    all_gather_object as all_gather_object,
    broadcast_object_list as broadcast_object_list,
    gather_object as gather_object,
    recv_object_list as recv_object_list,
    scatter_object_list as scatter_object_list,
    send_object_list as send_object_list,
)
from ._process_group import (
    Backend as Backend,
    GroupMember as GroupMember,
    ProcessGroup as ProcessGroup,
    ReduceOp as ReduceOp,
    Work as Work,
    default_pg_timeout as default_pg_timeout,
    destroy_process_group as destroy_process_group,
    get_backend as get_backend,
    get_global_rank as get_global_rank,
    get_group_rank as get_group_rank,
    get_node_local_rank as get_node_local_rank,
    get_process_group_ranks as get_process_group_ranks,
    get_rank as get_rank,
    get_world_size as get_world_size,
    group as group,
    init_process_group as init_process_group,
    is_available as is_available,
    is_backend_available as is_backend_available,
    is_gloo_available as is_gloo_available,
    is_initialized as is_initialized,
    is_mpi_available as is_mpi_available,
    is_nccl_available as is_nccl_available,
    is_torchelastic_launched as is_torchelastic_launched,
    is_ucc_available as is_ucc_available,
    is_xccl_available as is_xccl_available,
    new_group as new_group,
)
from ._store import (
    FileStore as FileStore,
    HashStore as HashStore,
    PrefixStore as PrefixStore,
    Store as Store,
    TCPStore as TCPStore,
)
from .device_mesh import DeviceMesh as DeviceMesh, init_device_mesh as init_device_mesh

__all__ = [
    "Backend", "DeviceMesh", "DistBackendError", "DistError", "DistNetworkError", "DistStoreError",
    "FileStore", "GradBucket", "GroupMember", "HashStore", "P2POp", "PrefixStore", "ProcessGroup", "ReduceOp", "Store",
    "TCPStore", "Work", "all_gather", "all_gather_into_tensor", "all_gather_object", "all_gather_single", "all_reduce",
    "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast",
    "broadcast_object_list", "default_pg_timeout", "destroy_process_group", "gather", "gather_object",
    "get_backend", "get_global_rank", "get_group_rank", "get_node_local_rank",
    "get_process_group_ranks", "get_rank", "get_world_size", "group", "init_device_mesh",
    "init_process_group", "irecv", "is_available", "is_gloo_available", "is_initialized",
    "is_mpi_available", "is_nccl_available", "is_backend_available", "is_torchelastic_launched", "is_ucc_available", "is_xccl_available", "isend", "monitored_barrier",
    "new_group", "recv", "recv_object_list", "reduce", "reduce_scatter", "reduce_scatter_single", "reduce_scatter_tensor",
    "scatter", "scatter_object_list", "send", "send_object_list",
]  # fmt: skip
