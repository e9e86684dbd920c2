"""Optimizers whose state is spread over the processes of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _C, errors
from ..optim.optimizer import Optimizer
from ._collectives import broadcast
from ._objects import gather_object
from ._process_group import ProcessGroup, group_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from .._C import Tensor

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer):
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
        self.optim: Optimizer | None = None
        self._loads = [0] * self.process_group.size()
        self._owners: dict[int, int] = {}  # of each parameter's id
        self._gathered: list[Any] | None = None
        alike = optimizer_class([_C.zeros(1).requires_grad_()], **defaults)
        super().__init__(params, alike.defaults)
        self._spread(self._params())
        self.optim = optimizer_class([self._part(one) for one in self.param_groups], **defaults)
        self.state = self.optim.state

    def _params(self) -> list[Tensor]:
        return [p for one in self.param_groups for p in one["params"]]

    def _spread(self, params: list[Tensor]) -> None:
        """Gives each parameter a process: the largest first, to whoever has least."""
        for p in sorted(params, key=lambda p: -p.numel()):
            owner = self._loads.index(min(self._loads))
            self._loads[owner] += p.numel()
            self._owners[id(p)] = owner

    def _part(self, group: dict[str, Any]) -> dict[str, Any]:
        """A group with the parameters of this process, which may be none."""
        options = {key: value for key, value in group.items() if key not in ("params", "param_names")}
        own = self.process_group.rank()
        return {**options, "params": [p for p in group["params"] if self._owners[id(p)] == own]}

    def _numbers(self) -> dict[int, int]:
        """Of this process's parameters, by their numbers in it: their numbers among all."""
        own = self.process_group.rank()
        mine = [i for i, p in enumerate(self._params()) if self._owners[id(p)] == own]
        return dict(enumerate(mine))

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """More parameters, with options of their own if the group has them. All processes add them."""
        super().add_param_group(param_group)
        if self.optim is not None:
            added = self.param_groups[-1]
            self._spread(added["params"])
            self.optim.add_param_group(self._part(added))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """A step of each process for its parameters, which the others then take.

        closure: computes the loss and its gradients anew; its value is returned.
        """
        part = self._own()
        _share_options(self.param_groups, part.param_groups)
        loss = part.step(closure) if closure is not None else part.step()
        _share_options(part.param_groups, self.param_groups)
        for p in self._params():
            broadcast(p, group=self.process_group, group_src=self._owners[id(p)])
        return loss

    def _own(self) -> Optimizer:
        assert self.optim is not None
        return self.optim

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Brings the states of all processes together at the process `to` of the group. All call it,
        before that one calls state_dict()."""
        numbers = self._numbers()
        saved = self._own().state_dict()["state"]
        states = {numbers[i]: entry for i, entry in saved.items()}
        found = [None] * self.process_group.size() if self.process_group.rank() == to else None
        gather_object(states, found, group=self.process_group, group_dst=to)
        self._gathered = found

    def state_dict(self) -> dict[str, Any]:
        """The whole state, as the optimizer of a single process has it: loads into either.
        RuntimeError before consolidate_state_dict()."""
        if self._gathered is None:
            raise errors.RuntimeError(
                "ZeroRedundancyOptimizer: the state of the other processes is not here; expected "
                f"consolidate_state_dict(to={self.process_group.rank()}) before, in all processes"
            )
        saved = super().state_dict()
        state = {i: value for part in self._gathered for i, value in part.items()}
        return {**saved, "state": dict(sorted(state.items()))}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Goes on from a state_dict of the whole state; each process takes its part of it."""
        groups = state_dict["param_groups"]
        sizes = [len(one["params"]) for one in groups]
        expected = [len(one["params"]) for one in self.param_groups]
        if sizes != expected:
            raise errors.ValueError(
                f"ZeroRedundancyOptimizer: expected groups of {expected} parameters; got {sizes}"
            )
        given = [i for one in groups for i in one["params"]]
        numbers = self._numbers()
        state = {
            i: state_dict["state"][given[at]]
            for i, at in numbers.items()
            if given[at] in state_dict["state"]
        }
        part = self._own()
        own = part.state_dict()["param_groups"]
        parts = [
            {**one, "params": mine["params"]} for one, mine in zip(groups, own, strict=True)
        ]
        part.load_state_dict({"state": state, "param_groups": parts})
        self.state = part.state
        _share_options(part.param_groups, self.param_groups)
        self._gathered = None


def _share_options(source: list[dict[str, Any]], to: list[dict[str, Any]]) -> None:
    """Writes the options of groups into others, which keep their parameters."""
    for one, other in zip(source, to, strict=True):
        other.update(
            {key: value for key, value in one.items() if key not in ("params", "param_names")}
        )
