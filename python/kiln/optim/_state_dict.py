"""Optimizers' state dicts: PyTorch's layout, with numbers in place of parameters."""

from __future__ import annotations

import copy
from collections import defaultdict
from typing import TYPE_CHECKING

from .. import _C, errors

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .._C import Tensor
    from .optimizer import Optimizer


def step_tensor(value: float) -> Tensor:
    """A number of steps as the state holds it: a 0-d tensor."""
    dtype = _C.float64 if _C.get_default_dtype() == _C.float64 else _C.float32
    return _C.tensor(float(value), dtype=dtype)


def packed(optimizer: Optimizer) -> dict[str, Any]:
    """{"state": {number: entry}, "param_groups": [group]}."""
    numbers: dict[Any, int] = {}
    groups = []
    first = 0
    for group in optimizer.param_groups:
        params = group["params"]
        for i, param in enumerate(params, first):
            numbers.setdefault(id(param), i)
        first += len(params)
        entry = {key: value for key, value in group.items() if key != "params"}
        entry["params"] = [numbers[id(param)] for param in params]
        groups.append(entry)
    state = {}
    for key, value in optimizer.state.items():
        if isinstance(key, _C.Tensor):
            if id(key) not in numbers:
                continue  # the state of what is no parameter any more
            key = numbers[id(key)]
        state[key] = value
    return {"state": state, "param_groups": groups}


def unpacked(optimizer: Optimizer, state_dict: Mapping[str, Any]) -> dict[str, Any]:
    """{"state", "param_groups"} as `optimizer` has them, from a state dict; both are new."""
    _check_layout(state_dict)
    if "options" in state_dict:
        state_dict = _of_earlier_kiln(optimizer, state_dict)
    groups = optimizer.param_groups
    saved = copy.deepcopy(state_dict["param_groups"])
    if len(groups) != len(saved):
        raise errors.ValueError(
            "loaded state dict has a different number of parameter groups;"
            f" got {len(saved)}; expected {len(groups)}"
        )
    params: dict[Any, Any] = {}
    hosts_step = set()  # numbers of parameters whose 'step' lies beside them
    for i, (group, other) in enumerate(zip(groups, saved)):
        if len(group["params"]) != len(other["params"]):
            raise errors.ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of"
                f" optimizer's group {i}; got {len(other['params'])} parameters;"
                f" expected {len(group['params'])}"
            )
        params.update(zip(other["params"], group["params"]))
        if other.get("fused") or other.get("capturable"):
            hosts_step.update(other["params"])
        other["params"] = group["params"]
        if "param_names" in group:
            other.setdefault("param_names", group["param_names"])
    state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
    for key, value in state_dict["state"].items():
        if key in params:
            state[params[key]] = _like(params[key], value, key in hosts_step)
            for name in optimizer._own_dtypes & set(value):  # such as codes of 8 bits
                state[params[key]][name] = value[name].detach().to(params[key].device, copy=True)
        else:
            state[key] = value
    return {"state": state, "param_groups": saved}


def _check_layout(state_dict):
    for key, kind in (("state", dict), ("param_groups", (list, tuple))):
        if key not in state_dict:
            raise errors.KeyError(f"load_state_dict: the state dict has no {key!r}")
        if not isinstance(state_dict[key], kind):
            raise errors.TypeError(
                f"load_state_dict: {key!r} has another type; got {type(state_dict[key]).__name__};"
                f" expected {'dict' if kind is dict else 'list'}"
            )
    for group in state_dict["param_groups"]:
        if not isinstance(group, dict) or not isinstance(group.get("params"), (list, tuple)):
            raise errors.TypeError("load_state_dict: a group must be a dict with a list of 'params'")


def _like(param, value, step_beside, key=None):
    """A copy of part of a state, with tensors in the dtype and on the device of the parameter."""
    if isinstance(value, _C.Tensor):
        if key == "step":
            if step_beside:
                return value.detach().to(param.device, _C.float32, copy=True)
            return value.detach().clone()
        if param.is_floating_point():
            return value.detach().to(param.device, param.dtype, copy=True)
        return value.detach().to(param.device, copy=True)
    if isinstance(value, dict):
        return {k: _like(param, v, step_beside, k) for k, v in value.items()}
    if type(value) in (list, tuple, set):
        return type(value)(_like(param, v, step_beside) for v in value)
    return value


def _of_earlier_kiln(optimizer, state_dict):
    """The dicts of Kiln before its groups were dicts: an optimizer's options as texts, beside."""
    options = state_dict["options"]
    kind = type(optimizer).__name__
    if options.get("optimizer", kind) != kind:
        raise errors.ValueError(
            f"load_state_dict: the state of another optimizer; got {options['optimizer']};"
            f" expected {kind}"
        )
    given = {}
    for name, text in options.items():
        if name.startswith("options."):
            key = name.removeprefix("options.")
            given[key] = text == "true" if text in ("true", "false") else float(text)
    if "beta1" in given and "beta2" in given:
        given["betas"] = (given.pop("beta1"), given.pop("beta2"))
    groups = []
    for group, other in zip(optimizer.param_groups, state_dict["param_groups"]):
        options_now = {k: v for k, v in group.items() if k not in ("params", "param_names")}
        groups.append({**options_now, **given, **other})
    groups += state_dict["param_groups"][len(groups) :]  # for the count to tell
    state = {
        number: {
            key: step_tensor(value) if key == "step" else value
            for key, value in entry.items()
            if key != "step" or "betas" in given  # SGD keeps no count
        }
        for number, entry in state_dict["state"].items()
    }
    return {"state": state, "param_groups": groups}
