"""How Kiln's objects are pickled."""

import copyreg

from . import _C


def rebuild_tensor(*args):
    """A tensor from what its __reduce_ex__ gave."""
    return _C._rebuild(*args)


def rebuild_quantized(values, scales, shape, scheme, kind):
    """A quantized tensor from its parts."""
    out = _C.make_quantized(values, scales, list(shape), **scheme)
    if kind == "parameter":
        return _C.Parameter(out, requires_grad=False)
    return _C.Buffer(out) if kind == "buffer" else out


def dtype(name):
    return _C._dtype(name)


# Functions of the compiled part are pickled by name and copied by reference, as Python's own.
copyreg.pickle(type(_C.zeros), lambda function: function.__name__)
