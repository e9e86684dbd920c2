"""State dicts: a module's parameters and persistent buffers by name, and taking them back."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from .._C import Param, Parameter, Tensor
from ..utils.hooks import RemovableHandle
from .module_cast import _C_no_grad

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._typing import Hook2, Hook3, Hook4

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._C import ModuleBase as _Base
else:
    _Base = object  # Module itself derives from ModuleBase

_EXTRA = "_extra_state"
# Where load_state_dict gathers what is to be stored when all of it fits, in a module's metadata.
_STORES = "_kiln_stores"


class _Keys(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]


class _IncompatibleKeys(_Keys):
    __slots__ = ()

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class StateMixin(_Base):
    """The part of Module that saves and loads."""

    # ---- Hooks

    @staticmethod
    def _state_hook_defaults():
        return [
            ("_state_dict_pre_hooks", OrderedDict()),
            ("_state_dict_hooks", OrderedDict()),
            ("_load_state_dict_pre_hooks", OrderedDict()),
            ("_load_state_dict_post_hooks", OrderedDict()),
        ]

    def _init_state_hooks(self):
        self.__dict__.update(self._state_hook_defaults())

    def register_state_dict_pre_hook(self, hook: Hook3) -> RemovableHandle:
        """hook(module, prefix, keep_vars), before state_dict() reads this module."""
        return RemovableHandle(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Hook4) -> RemovableHandle:
        """hook(module, state_dict, prefix, local_metadata), which may edit the state dict."""
        return RemovableHandle(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
        error_msgs), before this module takes its entries."""
        return RemovableHandle(self._load_state_dict_pre_hooks, hook)

    def register_load_state_dict_post_hook(self, hook: Hook2) -> RemovableHandle:
        """hook(module, incompatible_keys), after loading; may change the two lists."""
        return RemovableHandle(self._load_state_dict_post_hooks, hook)

    def _register_state_dict_hook(self, hook: Hook4) -> RemovableHandle:
        """register_state_dict_post_hook() by PyTorch's older name."""
        return self.register_state_dict_post_hook(hook)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        """register_load_state_dict_pre_hook() by PyTorch's older name; without the module."""
        if with_module:
            return self.register_load_state_dict_pre_hook(hook)
        return self.register_load_state_dict_pre_hook(lambda module, *rest: hook(*rest))

    # ---- Saving

    def get_extra_state(self) -> Any:
        """State beside parameters and buffers. A class that overrides this and set_extra_state()
        has it in its state dict."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called: a class "
            "with extra state overrides it"
        )

    def set_extra_state(self, state: Any) -> None:
        """Takes over what get_extra_state() gave."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called: a class "
            "with extra state overrides it"
        )

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, parameter in self._made_parameters().items():
            if parameter is not None:
                destination[prefix + name] = parameter if keep_vars else parameter.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if type(self).get_extra_state is not StateMixin.get_extra_state:
            destination[prefix + _EXTRA] = self.get_extra_state()

    def state_dict(
        self,
        *args: Any,
        destination: dict[str, Any] | None = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> dict[str, Any]:
        """References to all parameters and persistent buffers, by name.

        They share memory with the module and are detached, unless keep_vars. destination: a
        mapping to add to, which is returned.
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead: destination, prefix, "
                "keep_vars.",
                FutureWarning,
                stacklevel=2,
            )
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()  # type: ignore[attr-defined]
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in list(self._state_dict_pre_hooks.values()):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        for hook in list(self._state_dict_hooks.values()):
            if hook(self, destination, prefix, local_metadata) is not None:
                raise RuntimeError("state_dict post-hook must return None")
        return destination

    # ---- Loading

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        """Takes this module's own entries. To be overridden by classes whose layout changed."""
        for hook in list(self._load_state_dict_pre_hooks.values()):
            hook(
                self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                error_msgs,
            )  # fmt: skip
        assign = local_metadata.get("assign_to_params_buffers", False)
        stores = local_metadata.get(_STORES)
        persistent = {
            name: buffer
            for name, buffer in self._buffers.items()
            if name not in self._non_persistent_buffers_set
        }
        # A parameter that waits takes a value without being made first.
        own = {**self._parameters, **dict(self._waiting()), **persistent}
        for name, value in own.items():
            if value is None:
                continue
            key = prefix + name
            if key in state_dict:
                self._take(name, value, key, state_dict[key], assign, error_msgs, stores)
            elif strict and not self._may_lack(name, local_metadata.get("version")):
                missing_keys.append(key)
        self._load_extra_state(state_dict, prefix, strict, missing_keys, unexpected_keys, stores)
        if strict:
            self._find_unexpected(state_dict, prefix, own, unexpected_keys)

    def _may_lack(self, name, version):
        """Whether a state dict of that version (None: it does not say) may be without an entry,
        which then stays as it is."""
        return False

    def _take(self, name, value, key, given, assign, error_msgs, stores):
        if not isinstance(given, Tensor):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected kiln.Tensor or Tensor-like '
                f"object from checkpoint but received {type(given)}"
            )
            return
        wanted = value.lazy_shape() if isinstance(value, Param) else value.shape
        if given.dim() == 1 and len(wanted) == 0 and given.numel() == 1:
            given = given[0]  # what very old checkpoints hold
        if given.shape != wanted:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {given.shape} from "
                f"checkpoint, the shape in current model is {wanted}."
            )
            return
        device = value.lazy_device() if isinstance(value, Param) else value.device
        if device.type == "meta" and not given.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta "
                "parameter in the current model, which is a no-op. (Did you mean to pass "
                "`assign=True` to assign items in the state dictionary to their corresponding key "
                "in the module instead of copying them in place?)",
                stacklevel=2,
            )
        try:
            with _C_no_grad():
                store = self._prepared(name, value, given, assign)
                if stores is None:
                    store()
                else:
                    stores.append(store)
        except Exception as error:
            error_msgs.append(
                f'While copying the parameter named "{key}", whose dimensions in the model are '
                f"{wanted} and whose dimensions in the checkpoint are {given.shape}, an "
                f"exception occurred : {error.args}."
            )

    def _prepared(self, name, value, given, assign):
        """What stores a value that fits: everything that may fail is done already."""
        if isinstance(value, Param):
            dtype = given.dtype if assign else value.lazy_dtype() or given.dtype
            # In memory of its own, unless the module is to have the tensor itself.
            made = given.detach() if assign else given.detach().to(
                value.lazy_device(), dtype, copy=True
            )  # fmt: skip
            if made.is_floating_point() or made.is_complex():
                made.requires_grad_(value.lazy_is_require_grad())

            def store():
                value.replace(made)
                self._make_param(name)

        elif not assign:
            moved = given.detach().to(value.device, value.dtype)

            def store():
                value.copy_(moved)

        else:
            if isinstance(value, Parameter) and not (
                isinstance(given, Parameter) and given.requires_grad == value.requires_grad
            ):
                given = Parameter(given, requires_grad=value.requires_grad)

            def store():
                setattr(self, name, given)

        return store

    def _load_extra_state(
        self, state_dict, prefix, strict, missing_keys, unexpected_keys, stores=None
    ):
        key = prefix + _EXTRA
        if type(self).set_extra_state is not StateMixin.set_extra_state:
            if key in state_dict:
                if stores is None:
                    self.set_extra_state(state_dict[key])
                else:
                    stores.append(lambda: self.set_extra_state(state_dict[key]))
            elif strict:
                missing_keys.append(key)
        elif strict and key in state_dict:
            unexpected_keys.append(key)

    def _find_unexpected(self, state_dict, prefix, own, unexpected_keys):
        for key in state_dict:
            if not key.startswith(prefix) or key == prefix + _EXTRA:
                continue
            head, dot, _ = key[len(prefix) :].partition(".")
            if head in self._modules and dot:
                continue
            if head in own and not dot and own[head] is not None:
                continue
            unexpected_keys.append(key)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copies the tensors of a state dict into the module's own.

        strict: the keys must match exactly (RuntimeError). assign: takes the tensors themselves,
        and keeps each parameter's requires_grad. Returns (missing_keys, unexpected_keys). An error
        changes nothing; only with post-hooks, which look at what was loaded, missing and unexpected
        keys are found after loading.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing_keys: list[str] = []
        unexpected_keys: list[str] = []
        error_msgs: list[str] = []
        stores: list[Any] = []
        post_hooks: list[Any] = []
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata  # type: ignore[attr-defined]

        def load(module, entries, prefix=""):
            local = dict({} if metadata is None else metadata.get(prefix[:-1], {}))
            if assign:
                local["assign_to_params_buffers"] = True
            local[_STORES] = stores
            module._load_from_state_dict(
                entries, prefix, local, True, missing_keys, unexpected_keys, error_msgs
            )
            parts = {name: OrderedDict() for name in module._modules}
            for key, value in entries.items():
                if key.startswith(prefix):
                    head, dot, _ = key[len(prefix) :].partition(".")
                    if dot and head in parts:
                        parts[head][key] = value
            for name, child in module._modules.items():
                if child is not None:
                    load(child, parts[name], f"{prefix}{name}.")
            post_hooks.extend((module, h) for h in module._load_state_dict_post_hooks.values())

        def failed():
            return error_msgs or (strict and (missing_keys or unexpected_keys))

        load(self, state_dict)
        # A hook may forgive missing keys; a value that does not fit nobody can.
        if not error_msgs and (post_hooks or not failed()):
            with _C_no_grad():
                for store in stores:
                    store()
            keys = _IncompatibleKeys(missing_keys, unexpected_keys)
            for module, hook in post_hooks:
                assert hook(module, keys) is None, (
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected "
                    "to return new values, if incompatible_keys need to be modified, it should be "
                    "done inplace."
                )
        if strict:
            if unexpected_keys:
                names = ", ".join(f'"{k}"' for k in unexpected_keys)
                error_msgs.insert(0, f"Unexpected key(s) in state_dict: {names}. ")
            if missing_keys:
                names = ", ".join(f'"{k}"' for k in missing_keys)
                error_msgs.insert(0, f"Missing key(s) in state_dict: {names}. ")
        if error_msgs:
            listed = "\n\t".join(error_msgs)
            raise RuntimeError(
                f"Error(s) in loading state_dict for {self._get_name()}:\n\t{listed}"
            )
        return _IncompatibleKeys(missing_keys, unexpected_keys)
