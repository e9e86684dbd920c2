"""Helpers: hooks' handles, checkpoints."""

from . import checkpoint as checkpoint
from . import hooks as hooks
