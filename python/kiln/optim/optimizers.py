"""SGD, Adam and AdamW with PyTorch's constructors; the steps themselves are Kiln's."""

from .. import _C
from .._C import _optim

Optimizer = _optim.Optimizer


def _groups(params):
    """PyTorch's ways to name parameters, as a list of groups."""
    if isinstance(params, _C.Tensor):
        raise TypeError("optimizer: params must be an iterable of tensors or dicts; got a tensor")
    items = list(params)
    if not items:
        raise ValueError("optimizer got an empty parameter list")
    if not isinstance(items[0], dict):
        return [{"params": [_unnamed(item) for item in items]}]
    groups = []
    for item in items:
        group = dict(item)
        members = group["params"]
        if isinstance(members, _C.Tensor):
            members = [members]
        group["params"] = [_unnamed(member) for member in members]
        groups.append(group)
    return groups


def _unnamed(item):
    return item[1] if isinstance(item, tuple) else item


def _step(self, closure=None, *, gradients=None):
    """One step along each parameter's grad, or along its gradient in `gradients`.

    closure: computes the loss again, with gradients; its result is returned.
    """
    loss = None
    if closure is not None:
        before = _C.is_grad_enabled()
        _C._set_grad_enabled(True)
        try:
            loss = closure()
        finally:
            _C._set_grad_enabled(before)
    if gradients is None:
        self._step()
    else:
        self._step_with(gradients)
    return loss


def _add_param_group(self, param_group):
    """More parameters, with settings of their own if the group has them."""
    self._add_param_group(_groups([param_group])[0])


def _state_dict(self):
    """The state as PyTorch lays it out: by each parameter's number, and the groups' settings."""
    tensors, scalars = self._state()
    state = {}
    for name, value in tensors.items():
        _, number, key = name.split(".", 2)
        state.setdefault(int(number), {})[key] = value
    groups = {}
    options = {}
    for name, text in scalars.items():
        head, _, rest = name.partition(".")
        number, _, key = rest.partition(".")
        if head == "state":
            state.setdefault(int(number), {})[key] = int(text)
        elif head == "param_groups" and key:
            groups.setdefault(int(number), {})[key] = text
        else:
            options[name] = text
    first = 0
    laid_out = []
    for i, group in enumerate(self.param_groups):
        count = len(group.params)
        entry = {
            "lr": group.lr,
            "weight_decay": group.weight_decay,
            "initial_lr": group.initial_lr,
            "params": list(range(first, first + count)),
        }
        laid_out.append(entry)
        first += count
    return {"state": state, "param_groups": laid_out, "options": {**options, **_flat(groups)}}


def _flat(groups):
    return {
        f"param_groups.{number}.{key}": text
        for number, group in groups.items()
        for key, text in group.items()
    }


def _load_state_dict(self, state_dict):
    """Takes over the state of an optimizer of the same class with the same groups."""
    tensors = {}
    scalars = dict(state_dict.get("options", {}))
    for number, entries in state_dict["state"].items():
        for key, value in entries.items():
            if isinstance(value, _C.Tensor) and key != "step":
                tensors[f"state.{number}.{key}"] = value
            else:
                scalars[f"state.{number}.{key}"] = str(int(value))
    for number, group in enumerate(state_dict["param_groups"]):
        for key in ("lr", "weight_decay", "initial_lr"):
            if key in group:
                scalars[f"param_groups.{number}.{key}"] = repr(float(group[key]))
    self._load_state(tensors, scalars)


def _repr(self):
    lines = [f"{type(self).__name__} ("]
    for i, group in enumerate(self.param_groups):
        lines.append(f"Parameter Group {i}")
        lines += [f"    {key}: {getattr(group, key)}" for key in ("lr", "weight_decay")]
    return "\n".join(lines + [")"])


Optimizer.step = _step
Optimizer.add_param_group = _add_param_group
Optimizer.state_dict = _state_dict
Optimizer.load_state_dict = _load_state_dict
Optimizer.__repr__ = _repr


class SGD(_optim.SGD):
    """Stochastic gradient descent, with momentum."""

    def __init__(
        self, params, lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False
    ):
        super().__init__(_groups(params), lr, momentum, dampening, weight_decay, nesterov)


class Adam(_optim.Adam):
    """Adam (Kingma & Ba, 2015)."""

    def __init__(
        self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False
    ):
        super().__init__(_groups(params), lr, betas, eps, weight_decay, amsgrad)


class AdamW(_optim.AdamW):
    """Adam with weight decay apart from the gradient (Loshchilov & Hutter, 2019)."""

    def __init__(
        self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False
    ):
        super().__init__(_groups(params), lr, betas, eps, weight_decay, amsgrad)
