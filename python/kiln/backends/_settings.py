"""Settings that are kept, and put back."""

import contextlib


@contextlib.contextmanager
def kept(settings, changes):
    """Changes these settings of a module's globals until the with statement ends."""
    before = {name: settings[name] for name in changes}
    settings.update(changes)
    try:
        yield
    finally:
        settings.update(before)
