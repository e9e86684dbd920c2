"""Helpers: hooks' handles."""

from . import hooks as hooks
