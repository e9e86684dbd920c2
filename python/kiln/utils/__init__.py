"""Helpers: hooks' handles, checkpoints, data sets and loaders."""

from . import checkpoint as checkpoint
from . import data as data
from . import dlpack as dlpack
from . import flop_counter as flop_counter
from . import hooks as hooks
