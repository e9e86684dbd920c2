"""What the graph keeps for the backward pass."""

from .. import _C


class saved_tensors_hooks:
    """While it lasts, each tensor that an op saves for its gradient is kept as pack_hook(tensor).

    In the backward pass unpack_hook gives the tensor back from that, each time it is needed. The
    innermost hooks of a thread count.

        with saved_tensors_hooks(lambda x: x.half(), lambda x: x.float()):
            loss = model(x).sum()
    """

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self):
        _C._push_saved_tensors_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *_):
        _C._pop_saved_tensors_hooks()
