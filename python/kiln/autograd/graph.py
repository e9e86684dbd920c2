"""What the graph keeps for the backward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _C

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._C import Tensor


class saved_tensors_hooks:
    """While it lasts, each tensor that an op saves for its gradient is kept as pack_hook(tensor).

    In the backward pass unpack_hook gives the tensor back from that, each time it is needed. The
    innermost hooks of a thread count.

        with saved_tensors_hooks(lambda x: x.half(), lambda x: x.float()):
            loss = model(x).sum()

    >>> x = kiln.tensor([2.], requires_grad=True)
    >>> with kiln.autograd.graph.saved_tensors_hooks(lambda t: t.double(), lambda t: t.float()):
    ...     y = x.exp()
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _C._push_saved_tensors_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *_: object) -> None:
        _C._pop_saved_tensors_hooks()


class save_on_cpu(saved_tensors_hooks):
    """While it lasts, tensors that ops save for their gradients wait in the host's memory.

    Gradients are the same. pin_memory: in pinned memory, which a GPU copies faster from.

    >>> x = kiln.tensor([2.], requires_grad=True)
    >>> with kiln.autograd.graph.save_on_cpu():
    ...     y = x.exp()
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(x: Tensor) -> tuple[Any, Tensor]:
            if x.device.type == "cpu":
                return x.device, x
            kept = x.detach().cpu()
            return x.device, kept.pin_memory() if pin_memory else kept

        def unpack(saved: tuple[Any, Tensor]) -> Tensor:
            device, x = saved
            return x.to(device)

        super().__init__(pack, unpack)
