"""Optimizer: what every optimizer is, whether its step is written in C++ or in Python."""

from __future__ import annotations

import copy
import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import _C, errors
from .._C import _optim
from ..utils.hooks import RemovableHandle
from . import _state_dict

if TYPE_CHECKING:
    from .._C import Gradients
    from .._typing import Closure, Hook1, Hook2, Hook3, Params

__all__ = [
    "Optimizer",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
]


class _Required:
    def __repr__(self):
        return "<required parameter>"


required = _Required()  # the default of an option that each group must give

_global_pre_hooks: OrderedDict[int, Any] = OrderedDict()
_global_post_hooks: OrderedDict[int, Any] = OrderedDict()
_HOOKS = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


def register_optimizer_step_pre_hook(hook: Hook3) -> RemovableHandle:
    """Calls hook(optimizer, args, kwargs) before each step of every optimizer.

    It may return other (args, kwargs). Returns a handle that removes it.

    >>> seen = []
    >>> handle = kiln.optim.optimizer.register_optimizer_step_pre_hook(lambda *all: seen.append("step"))
    >>> kiln.optim.SGD([kiln.zeros(1, requires_grad=True)]).step()
    >>> handle.remove()
    >>> seen
    ['step']
    """
    return RemovableHandle(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Hook3) -> RemovableHandle:
    """Calls hook(optimizer, args, kwargs) after each step of every optimizer.

    >>> seen = []
    >>> handle = kiln.optim.optimizer.register_optimizer_step_post_hook(lambda *all: seen.append("step"))
    >>> kiln.optim.SGD([kiln.zeros(1, requires_grad=True)]).step()
    >>> handle.remove()
    >>> seen
    ['step']
    """
    return RemovableHandle(_global_post_hooks, hook)


def _with_hooks(step):
    @functools.wraps(step)
    def hooked(*args, **kwargs):
        self = args[0]
        if type(self).step is not hooked:
            return step(*args, **kwargs)  # called by a subclass's step, which ran the hooks
        if _C._is_capturing():
            return self._capture_step(hooked, args[1:], kwargs)
        self._opt_called = True
        before, after = self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks
        if not (before or after or _global_pre_hooks or _global_post_hooks):
            return step(*args, **kwargs)
        for hook in (*_global_pre_hooks.values(), *before.values()):
            result = hook(self, args, kwargs)
            if result is None:
                continue
            if not isinstance(result, tuple) or len(result) != 2:
                raise errors.RuntimeError(
                    "step: a pre-hook must return None or a tuple of (args, kwargs);"
                    f" got {result!r}"
                )
            args, kwargs = result
        out = step(*args, **kwargs)
        for hook in (*after.values(), *_global_post_hooks.values()):
            hook(self, args, kwargs)
        return out

    hooked.hooked = True
    return hooked


class Optimizer:
    """Parameter groups with their options, and the state of each parameter.

    param_groups: a list of dicts: "params", the options of `defaults`, and whatever else a user
    puts there. What they hold at a step counts. state: a dict for each parameter. A subclass calls
    super().__init__(params, defaults) and overrides step().

    params: tensors, (name, tensor) pairs, or dicts that have them under "params" and options of
    their own. Raises ValueError when there are none, or for a tensor that is no leaf, is no
    floating point, or is given twice.

    params: tensors, or dicts with "params" and options of a group. A subclass overrides step(). All optimizers have
    zero_grad(), state_dict(), load_state_dict() and add_param_group().

    >>> x = kiln.tensor([1.], requires_grad=True)
    >>> optimizer = kiln.optim.SGD([x], lr=0.5)
    >>> (x * 4).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([-1.], requires_grad=True)
    """

    _optimizer_step_pre_hooks: OrderedDict[int, Any]
    _optimizer_step_post_hooks: OrderedDict[int, Any]
    _optimizer_state_dict_pre_hooks: OrderedDict[int, Any]
    _optimizer_state_dict_post_hooks: OrderedDict[int, Any]
    _optimizer_load_state_dict_pre_hooks: OrderedDict[int, Any]
    _optimizer_load_state_dict_post_hooks: OrderedDict[int, Any]
    _own_dtypes: frozenset[str] = frozenset()  # entries of a state that keep their dtype when it is loaded

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        for name in _HOOKS:
            setattr(self, name, OrderedDict())
        self._patch_step_function()
        if isinstance(params, _C.Tensor):
            raise errors.TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts,"
                f" but got {type(params).__name__}"
            )
        self.state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups: list[Any] = list(params)
        if not groups:
            raise errors.ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _patch_step_function(self):
        kind = type(self)
        if not getattr(kind.step, "hooked", False):
            kind.step = _with_hooks(kind.step)

    def _capture_step(self, step, args, kwargs):
        """A graph holds the step as a call: rates, counts and state stay this object's."""
        params = [p for group in self.param_groups for p in group["params"] if p.grad is not None]
        grads = args[0] if args else kwargs.get("gradients")
        if callable(grads) or "closure" in kwargs:
            return step.__wrapped__(self, *args, **kwargs)  # it computes the loss itself

        def call(values):
            for param, value in zip(params, values, strict=True):
                param.grad = value
            step(self, *args, **kwargs)

        if grads is not None:
            raise errors.NotImplementedError(
                "step: gradients given as an argument cannot be part of a compiled function yet;"
                " expected loss.backward() and step()"
            )
        return _C._call_on_host("optimizer_step", [p.grad for p in params], call)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Takes over "state" and "param_groups", when loading and when copies are made."""
        self.__dict__.update(state)
        for name in _HOOKS:
            self.__dict__.setdefault(name, OrderedDict())
        self._patch_step_function()

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            for key in sorted(group):
                if key != "params":
                    text += f"    {key}: {group[key]}\n"
        return text + ")"

    # ---- Groups

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """More parameters, with options of their own if the group has them."""
        if not isinstance(param_group, dict):
            raise errors.TypeError(f"param_group must be a dict, but got {type(param_group)}")
        if "params" not in param_group:
            raise errors.KeyError("add_param_group: a group needs 'params'")
        params, names = _params_of(param_group["params"])
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise errors.ValueError(
                    "parameter group didn't specify a value of required optimization parameter"
                    f" {name}"
                )
        known = set()
        for group in self.param_groups:
            known.update(group["params"])
            if ("param_names" in group) != (names is not None):
                with_names = "without names" if names is None else "with names"
                raise errors.ValueError(
                    "all optimizer param groups should be with/without names. cannot add param"
                    f" group {with_names} to the optimizer"
                )
        if not known.isdisjoint(params):
            raise errors.ValueError("some parameters appear in more than one parameter group")
        # Nothing is changed before everything is checked.
        param_group["params"] = params
        if names is not None:
            param_group["param_names"] = names
        for name, default in self.defaults.items():
            param_group.setdefault(name, default)
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the parameters' gradients, or fills them with zeros."""
        for group in self.param_groups:
            _optim.zero_grad(group["params"], set_to_none)

    def step(self, closure: Closure | None = None) -> Any:
        """One step along the parameters' gradients; returns what the closure returned.

        closure: computes the loss again, with gradients.
        """
        raise errors.NotImplementedError(f"{type(self).__name__} has no step()")

    # ---- State dicts

    def state_dict(self) -> dict[str, Any]:
        """The state by each parameter's number, and the groups with numbers for parameters.

        The layout is PyTorch's. Tensors are the optimizer's own: copy.deepcopy keeps them as they
        are now.
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        out = _state_dict.packed(self)
        for hook in self._optimizer_state_dict_post_hooks.values():
            result = hook(self, out)
            out = out if result is None else result
        return out

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Takes over the state of an optimizer with the same groups, of PyTorch's or Kiln's.

        Tensors are copied, in the dtype of their parameter. Raises ValueError, and changes nothing,
        when groups or their sizes differ.
        """
        if not hasattr(state_dict, "keys"):
            raise errors.TypeError(
                f"load_state_dict: expected a dict; got {type(state_dict).__name__}"
            )
        state_dict = dict(state_dict)
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            result = hook(self, state_dict)
            state_dict = state_dict if result is None else result
        self.__setstate__(_state_dict.unpacked(self, state_dict))
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    # ---- Hooks

    def register_step_pre_hook(self, hook: Hook3) -> RemovableHandle:
        """Calls hook(optimizer, args, kwargs) before each step; it may return other (args, kwargs)."""
        return RemovableHandle(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Hook3) -> RemovableHandle:
        """Calls hook(optimizer, args, kwargs) after each step."""
        return RemovableHandle(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(
        self, hook: Hook1, prepend: bool = False
    ) -> RemovableHandle:
        """Calls hook(optimizer) before state_dict()."""
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Hook2, prepend: bool = False
    ) -> RemovableHandle:
        """Calls hook(optimizer, state_dict) after state_dict(); it may return another one."""
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Hook2, prepend: bool = False
    ) -> RemovableHandle:
        """Calls hook(optimizer, state_dict) before loading; it may return another one."""
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Hook1, prepend: bool = False
    ) -> RemovableHandle:
        """Calls hook(optimizer) after loading."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)


def _register(hooks, hook, prepend):
    handle = RemovableHandle(hooks, hook)
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def _params_of(params):
    """The tensors of a group, and their names if it gives them."""
    if isinstance(params, _C.Tensor):
        params = [params]
    elif isinstance(params, (set, frozenset)):
        raise errors.TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of"
            " tensors in sets will change between runs. Please use a list instead."
        )
    items = list(params)
    names = [item[0] for item in items if isinstance(item, tuple)]
    if names and len(names) != len(items):
        raise errors.ValueError(
            "all optimizer params should be with/without names. Some param names are missing"
        )
    tensors = [item[1] for item in items] if names else items
    for param in tensors:
        if not isinstance(param, _C.Tensor):
            kind = f"{type(param).__module__}.{type(param).__qualname__}"
            raise errors.TypeError(
                "optimizer can only optimize Tensors, but one of the params is "
                + kind.removeprefix("builtins.")
            )
        if not param.is_leaf:
            raise errors.ValueError("can't optimize a non-leaf Tensor")
        if not param.is_floating_point():
            raise errors.ValueError(f"can't optimize a tensor of {param.dtype}")
    if len(tensors) != len(set(tensors)):
        raise errors.ValueError(
            "optimizer contains a parameter group with duplicate parameters"
        )
    return tensors, names or None


class GroupOptimizer(Optimizer):
    """An optimizer that takes its steps group by group.

    A subclass has _step_group(group, state, gradients), which returns how many parameters it
    changed.

    >>> issubclass(kiln.optim.SGD, kiln.optim.optimizer.GroupOptimizer)
    True
    """

    _step_group: Callable[..., int]

    def step(self, closure: Closure | None = None, *, gradients: Gradients | None = None) -> Any:
        """One step along each parameter's grad, or along its gradient in `gradients`.

        closure: computes the loss again, with gradients; its result is returned. gradients: what
        loss.gradients() gave. Raises ValueError when it has none for any of the parameters.
        """
        loss = None
        if closure is not None:
            before = _C.is_grad_enabled()
            _C._set_grad_enabled(True)
            try:
                loss = closure()
            finally:
                _C._set_grad_enabled(before)
        changed = 0
        for group in self.param_groups:
            changed += self._step_group(group, self.state, gradients)
        if gradients is not None and changed == 0:
            raise errors.ValueError(
                f"{type(self).__name__}.step: none of the parameters has a gradient in `gradients`"
            )
        return loss

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Options that PyTorch added later may be missing from what is loaded; others may not."""
        defaults: Any = state.get("defaults", self.__dict__.get("defaults"))
        groups = []
        for i, group in enumerate(state["param_groups"]):
            group = {**{k: v for k, v in defaults.items() if k in _ADDED_LATER}, **group}
            lacking = [key for key in defaults if key not in group]
            if lacking:
                raise errors.ValueError(
                    f"load_state_dict: group {i} has no {lacking[0]!r}; expected the options of"
                    f" {type(self).__name__}"
                )
            groups.append(group)
        for entry in state["state"].values():
            if isinstance(entry, dict) and isinstance(entry.get("step"), (int, float)):
                entry["step"] = _state_dict.step_tensor(entry["step"])
        super().__setstate__({**state, "param_groups": groups})


_ADDED_LATER = {
    "amsgrad", "capturable", "cautious_weight_decay", "centered", "decoupled_weight_decay", "differentiable", "foreach",
    "fused", "maximize", "nesterov",
}  # fmt: skip


def check_hints(
    name: str, *, foreach: bool | None, differentiable: bool, fused: bool | None = None
) -> None:
    """Refuses what the options say about how to compute the step, where that cannot be."""
    if fused and differentiable:
        raise errors.RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise errors.RuntimeError("`fused` and `foreach` cannot be `True` together.")
    if differentiable:
        raise errors.NotImplementedError(
            f"{name}: a step with differentiable=True is not there; try kiln.autograd.grad with"
            " create_graph=True and updates written with tensor ops"
        )


def check_betas(betas: Sequence[float], count: int = 2) -> tuple[float, ...]:
    """That many of them as floats. Raises ValueError unless they are in [0, 1)."""
    betas = tuple(map(float, betas))
    if len(betas) != count:
        raise errors.ValueError(f"betas must be {count} numbers; got {len(betas)}")
    for i, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise errors.ValueError(f"Invalid beta parameter at index {i}: {beta}")
    return betas


def check_not_negative(**options: Any) -> None:
    """Raises ValueError for the first option below zero, or NaN."""
    for what, value in options.items():
        if isinstance(value, _C.Tensor) and value.numel() != 1:
            raise errors.ValueError(f"Tensor {what} must be 1-element")
        if not 0.0 <= value:
            raise errors.ValueError(f"Invalid {_WORDS.get(what, what + ' value')}: {value}")


_WORDS = {"lr": "learning rate", "eps": "epsilon value"}
