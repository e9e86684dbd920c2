"""Optimizers whose state is spread over the processes of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _C, errors
from ..optim import Optimizer
from ._collectives import broadcast
from ._objects import gather_object
from ._process_group import ProcessGroup, group_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from .._C import Tensor

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer:
    """An optimizer of which each process holds a part: the state of about as many numbers, for its own
    parameters (ZeRO, stage 1; Rajbhandari et al., 2020). After a step each process gives its
    parameters to the others. The gradients are equal in all processes, as DistributedDataParallel
    leaves them.

    params: parameters, or dicts of groups. optimizer_class: of the parts, such as optim.Adam.
    process_group: without it that of all processes. parameters_as_bucket_view, overlap_with_ddp:
    accepted without effect. defaults: options of optimizer_class.

    >>> from kiln.distributed.optim import ZeroRedundancyOptimizer
    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> w = nn.Parameter(kiln.tensor([1.]))
    >>> optimizer = ZeroRedundancyOptimizer([w], kiln.optim.SGD, lr=0.5)
    >>> (w * 2).sum().backward()
    >>> optimizer.step()
    >>> w
    Parameter containing:
    tensor([0.], requires_grad=True)
    >>> kiln.distributed.destroy_process_group()
    """

    def __init__(
        self,
        params: Iterable[Any],
        optimizer_class: type[Any],
        process_group: ProcessGroup | None = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        self.process_group = group_of("ZeroRedundancyOptimizer", process_group)
        given = list(params)
        if not given:
            raise errors.ValueError("ZeroRedundancyOptimizer: there are no parameters")
        groups = given if isinstance(given[0], dict) else [{"params": given}]
        self._groups: list[dict[str, Any]] = [
            {**one, "params": list(one["params"])} for one in groups
        ]
        self._params: list[Tensor] = [p for one in self._groups for p in one["params"]]
        self._owners = self._spread()
        own = self.process_group.rank()
        self._kept: list[int] = []  # the groups of which this process has parameters
        parts = []
        for i, one in enumerate(self._groups):
            mine = [p for p in one["params"] if self._owners[id(p)] == own]
            if mine:
                self._kept.append(i)
                parts.append({**one, "params": mine})
        if not parts:  # more processes than parameters
            parts = [{"params": [_C.zeros(1).requires_grad_()]}]
        self.optim: Optimizer = optimizer_class(parts, **defaults)
        self.defaults = self.optim.defaults
        self._gathered: list[Any] | None = None

    def _spread(self) -> dict[int, int]:
        """The process of each parameter: the largest first, to whoever has least."""
        loads = [0] * self.process_group.size()
        owners = {}
        for p in sorted(self._params, key=lambda p: -p.numel()):
            owner = loads.index(min(loads))
            loads[owner] += p.numel()
            owners[id(p)] = owner
        return owners

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The groups of this process's part, with their options. Schedulers write rates into them."""
        return self.optim.param_groups

    @property
    def state(self) -> Any:
        """The state of this process's parameters."""
        return self.optim.state

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """A step of each process for its parameters, which the others then take.

        closure: computes the loss and its gradients anew; its value is returned.
        """
        loss = self.optim.step(closure) if closure is not None else self.optim.step()
        for p in self._params:
            broadcast(p, group=self.process_group, group_src=self._owners[id(p)])
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Removes the gradients of all parameters, or makes them zeros."""
        for p in self._params:
            if set_to_none:
                p.grad = None
            elif p.grad is not None:
                p.grad.zero_()

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Brings the states of all processes together at the process `to` of the group. All call it,
        before that one calls state_dict()."""
        states: dict[int, Any] = {}
        if hasattr(self.optim, "state_dict"):
            states = self._own_states()
        found = [None] * self.process_group.size() if self.process_group.rank() == to else None
        gather_object(states, found, group=self.process_group, group_dst=to)
        self._gathered = found

    def _own_states(self) -> dict[int, Any]:
        """The state of each parameter of this process, by its number among all."""
        numbers = {id(p): i for i, p in enumerate(self._params)}
        saved = self.optim.state_dict()
        own = [p for one in self.optim.param_groups for p in one["params"]]
        return {
            numbers[id(p)]: saved["state"][i]
            for i, p in enumerate(own)
            if id(p) in numbers and i in saved["state"]
        }

    def state_dict(self) -> dict[str, Any]:
        """The whole state, as the optimizer of a single process has it: loads into either.
        RuntimeError before consolidate_state_dict()."""
        if self._gathered is None:
            raise errors.RuntimeError(
                "ZeroRedundancyOptimizer: the state of the other processes is not here; expected "
                f"consolidate_state_dict(to={self.process_group.rank()}) before, in all processes"
            )
        state = {i: value for part in self._gathered for i, value in part.items()}
        options = self.optim.state_dict()["param_groups"]
        groups = []
        first = 0
        for i, one in enumerate(self._groups):
            kept = options[self._kept.index(i)] if i in self._kept else {**self.defaults, **one}
            count = len(one["params"])
            entry = {key: value for key, value in kept.items() if key != "params"}
            groups.append({**entry, "params": list(range(first, first + count))})
            first += count
        return {"state": dict(sorted(state.items())), "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on from a state_dict of the whole state; each process takes its part of it."""
        numbers = {id(p): i for i, p in enumerate(self._params)}
        own = [p for one in self.optim.param_groups for p in one["params"]]
        state = {
            i: state_dict["state"][numbers[id(p)]]
            for i, p in enumerate(own)
            if id(p) in numbers and numbers[id(p)] in state_dict["state"]
        }
        groups = []
        first = 0
        for i, one in zip(self._kept, self.optim.param_groups, strict=False):
            count = len(one["params"])
            groups.append(
                {**state_dict["param_groups"][i], "params": list(range(first, first + count))}
            )
            first += count
        if not self._kept:
            groups = self.optim.state_dict()["param_groups"]
        self.optim.load_state_dict({"state": state, "param_groups": groups})
