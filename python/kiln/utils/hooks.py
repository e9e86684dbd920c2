"""What registering a hook gives."""

from __future__ import annotations

import itertools
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Self


class RemovableHandle:
    """Removes a hook when told to, or at the end of a with statement.

    >>> handle = nn.Linear(1, 1).register_forward_hook(lambda module, args, output: None)
    >>> handle.remove()
    """

    _next_id = itertools.count()

    def __init__(self, hooks: Any, hook: Any) -> None:
        self.id = next(RemovableHandle._next_id)
        self._hooks = weakref.ref(hooks)
        hooks[self.id] = hook

    def remove(self) -> None:
        """Removes the hook."""
        hooks = self._hooks()
        if hooks is not None:
            hooks.pop(self.id, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()
