"""The processes of a group in a grid, as torch.distributed.device_mesh has it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .. import _C, errors
from ._process_group import ProcessGroup, get_rank, get_world_size, group_of, new_group

if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """Processes in a grid, with a group of those along each dim. All processes make it.

    device_type: "cpu" or "cuda". mesh: the ranks, with as many dims as the grid has. mesh_dim_names:
    of the dims.

    >>> from kiln.distributed.device_mesh import init_device_mesh
    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> init_device_mesh("cpu", (1, 1), mesh_dim_names=("data", "model")).shape
    (1, 1)
    >>> kiln.distributed.destroy_process_group()
    """

    def __init__(
        self, device_type: str, mesh: Any, *, mesh_dim_names: tuple[str, ...] | None = None
    ) -> None:
        group_of("DeviceMesh")
        ranks = _C.as_tensor(mesh)
        numbers = ranks.flatten().tolist()
        if len(set(numbers)) != len(numbers) or not set(numbers) <= set(range(get_world_size())):
            raise errors.ValueError(
                f"DeviceMesh: the ranks must be different and in [0, {get_world_size()}); got "
                f"{ranks.tolist()}"
            )
        if mesh_dim_names is not None and len(mesh_dim_names) != ranks.dim():
            raise errors.ValueError(
                f"DeviceMesh: expected {ranks.dim()} mesh_dim_names; got {mesh_dim_names}"
            )
        self.device_type = device_type
        self.mesh: Tensor = ranks
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        self._groups = [self._group_along(dim) for dim in range(ranks.dim())]

    def _group_along(self, dim: int) -> Any:
        """Of the lines of ranks along dim, the group that this process is in; all make all of them."""
        own: Any = None
        lines = self.mesh.movedim(dim, -1).reshape(-1, self.mesh.shape[dim])
        for line in lines.tolist():
            made = new_group(line)
            if get_rank() in line:
                own = made
        return own

    @property
    def ndim(self) -> int:
        """How many dims the grid has."""
        return self.mesh.dim()

    @property
    def shape(self) -> tuple[int, ...]:
        """How many processes there are along each dim."""
        return tuple(self.mesh.shape)

    def _dim(self, mesh_dim: int | str | None) -> int:
        if isinstance(mesh_dim, str):
            if mesh_dim not in (self.mesh_dim_names or ()):
                raise errors.KeyError(f"DeviceMesh: there is no dim {mesh_dim!r}")
            return (self.mesh_dim_names or ()).index(mesh_dim)
        if mesh_dim is None:
            if self.ndim != 1:
                raise errors.RuntimeError(
                    f"DeviceMesh: expected mesh_dim= for a mesh of {self.ndim} dims"
                )
            return 0
        return mesh_dim

    def size(self, mesh_dim: int | None = None) -> int:
        """How many processes there are, along mesh_dim or in all."""
        return self.mesh.numel() if mesh_dim is None else int(self.mesh.shape[mesh_dim])

    def get_rank(self) -> int:
        """Of this process among all."""
        return get_rank()

    def get_coordinate(self) -> list[int] | None:
        """Where this process is in the grid; None where it is not."""
        found = (self.mesh == get_rank()).nonzero().tolist()
        return list(found[0]) if found else None

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """The number of this process in the group along mesh_dim, which a grid of one dim needs not.
        As of all groups, it goes by the ranks."""
        if self.get_coordinate() is None:
            raise errors.RuntimeError("DeviceMesh: this process is not in the mesh")
        return int(self.get_group(mesh_dim).rank())

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The group of the processes along mesh_dim, which a grid of one dim needs not."""
        return self._groups[self._dim(mesh_dim)]

    def get_all_groups(self) -> list[ProcessGroup]:
        """The groups of this process, one for each dim."""
        return list(self._groups)

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        dims = [self._dim(name) for name in names]
        place = self.get_coordinate()
        index: list[Any] = list(place or [0] * self.ndim)
        for dim in dims:
            index[dim] = slice(None)
        part = self.mesh[tuple(index)]
        made = DeviceMesh.__new__(DeviceMesh)
        made.device_type = self.device_type
        made.mesh = part.permute([sorted(dims).index(dim) for dim in dims])
        made.mesh_dim_names = names
        made._groups = [self._groups[dim] for dim in dims]
        return made

    def __repr__(self) -> str:
        return f"DeviceMesh('{self.device_type}', {self.mesh.tolist()})"


def init_device_mesh(
    device_type: str,
    mesh_shape: tuple[int, ...],
    *,
    mesh_dim_names: tuple[str, ...] | None = None,
) -> DeviceMesh:
    """The DeviceMesh of all processes, in rows.

    device_type: "cpu" or "cuda". mesh_shape: its product is the number of processes. mesh_dim_names: of
    the dims.

    >>> from kiln.distributed.device_mesh import init_device_mesh
    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> init_device_mesh("cpu", (1,)).size()
    1
    >>> kiln.distributed.destroy_process_group()
    """
    size = group_of("init_device_mesh").size()
    if math.prod(mesh_shape) != size:
        raise errors.RuntimeError(
            f"init_device_mesh: expected a mesh of {size} processes; got {tuple(mesh_shape)}"
        )
    mesh = _C.arange(size, dtype=_C.int32).reshape(tuple(mesh_shape))
    return DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names)
