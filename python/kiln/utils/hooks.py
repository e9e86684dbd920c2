"""What registering a hook gives."""

import itertools
import weakref


class RemovableHandle:
    """Removes a hook when told to, or at the end of a with statement."""

    _next_id = itertools.count()

    def __init__(self, hooks, hook):
        self.id = next(RemovableHandle._next_id)
        self._hooks = weakref.ref(hooks)
        hooks[self.id] = hook

    def remove(self):
        hooks = self._hooks()
        if hooks is not None:
            hooks.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()
