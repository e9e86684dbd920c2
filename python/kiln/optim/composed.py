"""ComposedOptimizer: the base of optimizers whose steps are written with tensor ops."""

from .. import _C, errors
from ._state_dict import step_tensor
from .optimizer import GroupOptimizer


class ComposedOptimizer(GroupOptimizer):
    """An optimizer that steps parameter by parameter. A subclass has

    _slots(group): the names of the tensors in a parameter's state, zeros like it at first;
    _update(p, grad, state, step, group): one step. `step` counts from 1; grad is the gradient
    (minus it with maximize), with weight_decay p added unless the group decouples it. Nothing that
    it does is recorded.
    """

    def _slots(self, group):
        raise NotImplementedError

    def _update(self, p, grad, state, step, group):
        raise NotImplementedError

    def _new_state(self, p, group):
        """What a parameter's state begins with. Entries that are missing later begin so too."""
        return {"step": step_tensor(0), **{name: _C.zeros_like(p) for name in self._slots(group)}}

    def _step_group(self, group, state, gradients):
        if group.get("differentiable"):
            raise errors.NotImplementedError(
                f"{type(self).__name__}: a step with differentiable=True is not there"
            )
        members = []
        for p in group["params"]:
            grad = p.grad if gradients is None else gradients.get(p)
            if grad is not None:
                self._check("gradient", grad, p)
                members.append((p, grad))
        recording = _C.is_grad_enabled()
        _C._set_grad_enabled(False)
        try:
            entries = [self._state_of(p, group, state) for p, _ in members]
            for (p, grad), entry in zip(members, entries):
                self._step_param(p, grad, entry, group)
        finally:
            _C._set_grad_enabled(recording)
        return len(members)

    def _state_of(self, p, group, state):
        entry = state[p]
        names = self._slots(group)
        if any(name not in entry for name in ("step", *names)):
            state[p] = entry = {**self._new_state(p.detach(), group), **entry}
        for name in names:
            self._check(name, entry[name], p)
        return entry

    def _step_param(self, p, grad, entry, group):
        grad = -grad if group["maximize"] else grad.detach()
        decay = group.get("weight_decay", 0)
        if decay != 0:
            if group.get("decoupled_weight_decay"):
                p.mul_(1 - float(group["lr"]) * decay)
            else:
                grad = grad.add(p, alpha=decay)
        entry["step"] += 1
        self._update(p, grad, entry, float(entry["step"]), group)

    def _check(self, what, x, p):
        if not isinstance(x, _C.Tensor):
            raise errors.TypeError(f"{type(self).__name__}: {what!r} must be a tensor; got {x!r}")
        if x.shape != p.shape:
            raise errors.ShapeError(
                f"{type(self).__name__}: the {what} of a parameter has another shape;"
                f" got {list(x.shape)}; expected {list(p.shape)}"
            )
        if x.dtype != p.dtype:
            raise errors.DTypeError(
                f"{type(self).__name__}: the {what} of a parameter has another dtype;"
                f" got {x.dtype}; expected {p.dtype}"
            )
