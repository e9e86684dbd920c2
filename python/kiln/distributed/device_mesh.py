"""Meshes of devices, of which a process group of one has one kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _C, errors
from ._process_group import ProcessGroup, group_of

if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """The devices of all processes in a grid: of one process, whose rank is 0.

    device_type: "cpu" or "cuda". mesh: the ranks, zeros with as many dims as the grid has.
    mesh_dim_names: of the dims.

    >>> from kiln.distributed.device_mesh import init_device_mesh
    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> init_device_mesh("cpu", (1, 1), mesh_dim_names=("data", "model")).shape
    (1, 1)
    >>> kiln.distributed.destroy_process_group()
    """

    def __init__(
        self, device_type: str, mesh: Any, *, mesh_dim_names: tuple[str, ...] | None = None
    ) -> None:
        ranks = _C.as_tensor(mesh)
        if ranks.numel() != 1 or ranks.sum().item() != 0:
            raise errors.ValueError(
                f"DeviceMesh: Kiln computes in one process, of the rank 0; got {ranks.tolist()}"
            )
        self.device_type = device_type
        self.mesh: Tensor = ranks
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        self._pg = group_of("DeviceMesh")

    @property
    def ndim(self) -> int:
        """How many dims the grid has."""
        return self.mesh.dim()

    @property
    def shape(self) -> tuple[int, ...]:
        """Ones."""
        return tuple(self.mesh.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """1."""
        return 1

    def get_rank(self) -> int:
        """0."""
        return 0

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """0."""
        return 0

    def get_coordinate(self) -> list[int]:
        """Zeros."""
        return [0] * self.ndim

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The group of all processes."""
        return self._pg

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        missing = [name for name in names if name not in (self.mesh_dim_names or ())]
        if missing:
            raise errors.KeyError(f"DeviceMesh: there is no dim {missing[0]!r}")
        mesh = _C.zeros([1] * len(names), dtype=_C.int32)
        return DeviceMesh(self.device_type, mesh, mesh_dim_names=names)

    def __repr__(self) -> str:
        return f"DeviceMesh('{self.device_type}', {self.mesh.tolist()})"


def init_device_mesh(
    device_type: str,
    mesh_shape: tuple[int, ...],
    *,
    mesh_dim_names: tuple[str, ...] | None = None,
) -> DeviceMesh:
    """The DeviceMesh of mesh_shape, whose numbers are all 1.

    device_type: "cpu" or "cuda". mesh_dim_names: of the dims.

    >>> from kiln.distributed.device_mesh import init_device_mesh
    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> init_device_mesh("cpu", (1,)).size()
    1
    >>> kiln.distributed.destroy_process_group()
    """
    if any(n != 1 for n in mesh_shape):
        raise errors.ValueError(
            f"init_device_mesh: Kiln computes in one process; got a mesh of {tuple(mesh_shape)}"
        )
    mesh = _C.zeros(tuple(mesh_shape), dtype=_C.int32)
    return DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names)
