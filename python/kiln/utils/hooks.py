"""What registering a hook gives."""

from .._C import RemovableHandle as RemovableHandle
