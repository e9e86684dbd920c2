"""Methods of tensors that are short in Python."""

from . import _C


def is_inference(self):
    """False: what was made in inference mode may be used in graphs like any other tensor."""
    return False


def is_pinned(self):
    """False: memory of the host is the only kind there is."""
    return False


def pin_memory(self):
    """The tensor itself: no other device reads its memory."""
    return self


def to_dense(self):
    """The tensor itself: none is sparse."""
    return self


def dim_order(self):
    """The dims from the outermost in memory to the innermost, as a tuple."""
    return tuple(sorted(range(self.dim()), key=lambda d: (-self.stride(d), d)))


def is_set_to(self, tensor):
    """Whether both are the same view of the same memory."""
    same = self.data_ptr() == tensor.data_ptr() and self.shape == tensor.shape
    return same and self.dtype == tensor.dtype and self.stride() == tensor.stride()


def sgn_(self):
    """sgn() in place."""
    return self.copy_(self.sgn())


def conj_physical_(self):
    """conj() in place."""
    return self.copy_(self.conj().clone()) if self.is_complex() else self


def apply_(self, callable):
    """Each element replaced by callable(element): as slow as Python. Not recorded."""
    values = [callable(x) for x in self.flatten().tolist()]
    return self.copy_(_C.tensor(values, dtype=self.dtype).reshape(self.shape))


def map_(self, tensor, callable):
    """Each element replaced by callable(element, that of tensor), which broadcasts. Not recorded."""
    others = tensor.expand(self.shape).flatten().tolist()
    values = [callable(x, y) for x, y in zip(self.flatten().tolist(), others)]
    return self.copy_(_C.tensor(values, dtype=self.dtype).reshape(self.shape))


def narrow_copy(self, dim, start, length):
    """A copy of narrow(dim, start, length)."""
    return self.narrow(dim, start, length).clone()


def new_empty_strided(self, size, stride, *, dtype=None, device=None, requires_grad=False):
    """Memory with these strides in elements, and this tensor's dtype and device."""
    return _C.empty_strided(
        size,
        stride,
        dtype=self.dtype if dtype is None else dtype,
        device=self.device if device is None else device,
        requires_grad=requires_grad,
    )


def hardshrink(self, lambd=0.5):
    """nn.functional.hardshrink."""
    return _C._functional.hardshrink(self, lambd)


def prelu(self, weight):
    """nn.functional.prelu."""
    return _C._functional.prelu(self, weight)


def nonzero_static(self, *, size, fill_value=-1):
    """The first `size` rows of nonzero(), filled up with fill_value."""
    if size < 0:
        raise ValueError(f"nonzero_static: expected a size >= 0; got {size}")
    found = self.nonzero()[:size]
    missing = _C.full((size - len(found), found.shape[1]), fill_value, dtype=found.dtype)
    return _C.cat([found, missing])


class UntypedStorage:
    """The memory of a tensor, as its bytes."""

    def __init__(self, tensor):
        self._tensor = tensor
        step = tensor.element_size()
        self._start = tensor.data_ptr() - tensor.storage_offset() * step if tensor.numel() else 0

    def data_ptr(self):
        """Where it begins: the same for all views of one memory."""
        return self._start

    @property
    def device(self):
        """Where it lies."""
        return self._tensor.device


def untyped_storage(self):
    """The memory that the tensor shares with its views."""
    return UntypedStorage(self)


def as_strided_scatter(self, src, size, stride, storage_offset=None):
    """kiln.as_strided_scatter."""
    from . import _names

    return _names.as_strided_scatter(self, src, size, stride, storage_offset)


for _method in (
    untyped_storage, as_strided_scatter, is_inference, is_pinned, pin_memory, to_dense, dim_order, is_set_to, sgn_, conj_physical_,
    apply_, map_, narrow_copy, new_empty_strided, hardshrink, prelu, nonzero_static,
):  # fmt: skip
    if not hasattr(_C.Tensor, _method.__name__):
        setattr(_C.Tensor, _method.__name__, _method)
_C.Tensor.layout = property(lambda self: "strided", doc="How elements lie in memory: strided.")
for _name in ("is_sparse", "is_sparse_csr", "is_meta", "is_nested", "is_mkldnn", "is_xla", "is_mps", "is_xpu",
              "is_vulkan", "is_ipu", "is_mtia", "is_maia"):
    if not hasattr(_C.Tensor, _name):
        setattr(_C.Tensor, _name, False)
