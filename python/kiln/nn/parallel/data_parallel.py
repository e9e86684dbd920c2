"""DataParallel: a module on one device, under PyTorch's name for several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import _C, cuda, errors
from ...func._tree import mapped as _mapped
from ..module import Module

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["DataParallel", "data_parallel"]


def _device_of(device_ids, output_device):
    """The device that the module computes on, None without a GPU. A list of several is an error."""
    if not cuda.is_available():
        return None
    ids = [0] if device_ids is None else list(device_ids)
    places = {_C.device("cuda", i) if isinstance(i, int) else _C.device(i) for i in ids}
    if len(places) > 1:
        raise errors.ValueError(
            f"DataParallel: expected one device, Kiln splits no batch over several; got {ids}"
        )
    (place,) = places or {None}
    if output_device is not None and place is not None:
        wanted = output_device
        wanted = _C.device("cuda", wanted) if isinstance(wanted, int) else _C.device(wanted)
        if wanted != place:
            raise errors.ValueError(
                f"DataParallel: expected an output_device of {place}; got {output_device}"
            )
    return place


def _moved(tree, place):
    return _mapped(tree, lambda leaf: leaf.to(place) if isinstance(leaf, _C.Tensor) else leaf)


class DataParallel(Module):
    """module(*inputs, **kwargs), as PyTorch computes it without a GPU or with one: the module and its
    inputs go to the device. The keys of its state_dict() begin with "module.".

    module: kept as the attribute of this name. device_ids: one GPU; without it the first one, where
    PyTorch takes all. output_device: the same. dim: that of the batch, which is not split.

    >>> net = nn.DataParallel(nn.Linear(2, 1))
    >>> list(net.state_dict()), net(kiln.zeros(3, 2)).shape
    (['module.weight', 'module.bias'], kiln.Size([3, 1]))
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        place = _device_of(device_ids, output_device)
        self.module = module
        self.dim = dim
        self.device_ids: list[int] = [] if place is None else [place.index or 0]
        if place is not None:
            self.output_device = self.device_ids[0]
            self.src_device_obj = place
            module.to(place)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if self.device_ids:
            inputs, kwargs = _moved((inputs, kwargs), self.src_device_obj)
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """module(*inputs, **module_kwargs) as DataParallel computes it.

    module: called once. inputs: a tuple, or one input. module_kwargs: by name. device_ids, output_device, dim: DataParallel's.

    >>> nn.parallel.data_parallel(nn.ReLU(), kiln.tensor([-1., 1.]))
    tensor([0., 1.])
    """
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*inputs, **(module_kwargs or {}))
