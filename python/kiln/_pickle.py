"""How Kiln's objects are pickled."""

import copyreg

from . import _C, _dtypes, errors


def rebuild_tensor(*args):
    """A tensor from what its __reduce_ex__ gave."""
    return _C._rebuild(*args)


def rebuild_quantized(values, scales, shape, scheme, kind):
    """A quantized tensor from its parts."""
    out = _C.make_quantized(values, scales, list(shape), **scheme)
    if kind == "parameter":
        return _C.Parameter(out, requires_grad=False)
    return _C.Buffer(out) if kind == "buffer" else out


def of_class(cls, out):
    """A new tensor as one of a class derived from its own."""
    try:
        out.__class__ = cls
    except TypeError:  # the class has slots
        out = out.as_subclass(cls)
    return out


def rebuild_subclass(cls, function, args):
    """A tensor of a class derived from Tensor, made as its base is."""
    return of_class(cls, function(*args))


def rebuild_sparse(layout, parts, size, is_coalesced, requires_grad):
    """A sparse tensor from its parts, which are checked."""
    from . import _sparse_creation

    if layout == "sparse_csr":
        out = _sparse_creation.sparse_csr_tensor(*parts, size)
    else:
        out = _sparse_creation.sparse_coo_tensor(*parts, size, is_coalesced=is_coalesced)
    return out.requires_grad_() if requires_grad else out


def torch_sparse(x):
    """The parts of a sparse tensor as PyTorch's files have them."""
    if x.is_sparse:
        return x._indices(), x._values(), tuple(x.shape), x.is_coalesced()
    return x.crow_indices(), x.col_indices(), x._values(), tuple(x.shape)


def rebuild_torch_sparse(layout, data):
    """A sparse tensor from what a file has of it. The file may hold anything."""
    name = layout.removeprefix("torch.")
    lengths = {"sparse_coo": (3, 4), "sparse_csr": (4,)}.get(name)
    if lengths is None:
        raise errors.IoError(f"load: got a sparse tensor of layout {layout!r}; expected COO or CSR")
    if not isinstance(data, tuple) or len(data) not in lengths:
        raise errors.IoError("load: a sparse tensor does not have the parts that PyTorch writes")
    count = 2 if name == "sparse_coo" else 3
    parts, size, coalesced = data[:count], data[count], len(data) > 3 and data[3] is True
    if not all(type(part) is _C.Tensor for part in parts) or not isinstance(size, tuple):
        raise errors.IoError("load: a sparse tensor does not have the parts that PyTorch writes")
    try:
        return rebuild_sparse(name, parts, size, coalesced, False)
    except (errors.Error, TypeError, ValueError, OverflowError) as error:
        raise errors.IoError(f"load: a sparse tensor is malformed: {error}") from None


def dtype(name):
    return _dtypes.BY_NAME.get(name) or _C._dtype(name)


# Functions of the compiled part are pickled by name and copied by reference, as Python's own.
copyreg.pickle(type(_C.zeros), lambda function: function.__name__)
