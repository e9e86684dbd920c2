"""Helpers: hooks' handles, checkpoints, data sets and loaders."""

from . import checkpoint as checkpoint
from . import data as data
from . import dlpack as dlpack
from . import hooks as hooks
