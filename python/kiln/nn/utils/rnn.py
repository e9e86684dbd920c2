"""Sequences of different lengths as one batch: padded, and packed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ... import _C

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Self

    from ..._C import Tensor


class _Parts(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Parts):
    """The steps of several sequences one behind another: first the first steps of all, the longest
    sequence first, then the second steps of those that have one, and so on.

    batch_sizes says how many sequences have each step; the indices, None for a batch that is in the
    order of its lengths, which sequence stands where, and the inverse.

    data: all steps. sorted_indices, unsorted_indices: the order by length, and back.

    >>> packed = nn.utils.rnn.pack_sequence([kiln.tensor([1., 2.]), kiln.tensor([3.])])
    >>> packed.data, packed.batch_sizes
    (tensor([1., 3., 2.]), tensor([2, 1]))
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Self:
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise TypeError("PackedSequence: expected data and batch_sizes")
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """With the data moved or cast as Tensor.to does it; the indices follow its device."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        indices = [x if x is None else x.to(data.device) for x in self[2:]]
        return type(self)(data, self.batch_sizes, *indices)

    def cpu(self) -> Self:
        """The data on the CPU."""
        return self.to("cpu")

    def cuda(self, *args: Any, **kwargs: Any) -> Self:
        """Raises DeviceError: there is no CUDA device."""
        return self.to("cuda")

    def pin_memory(self) -> Self:
        """The sequence with its data in pinned memory; itself where there is no GPU."""
        data = self.data.pin_memory()
        if data is self.data:
            return self
        return type(self)(data, self.batch_sizes, self.sorted_indices, self.unsorted_indices)

    def is_pinned(self) -> bool:
        """Whether the data is in pinned memory."""
        return self.data.is_pinned()

    @property
    def is_cuda(self) -> bool:
        """False."""
        return self.data.is_cuda

    def double(self) -> Self:
        """The data as float64."""
        return self.to(_C.float64)

    def float(self) -> Self:
        """The data as float32."""
        return self.to(_C.float32)

    def half(self) -> Self:
        """The data as float16."""
        return self.to(_C.float16)

    def long(self) -> Self:
        """The data as int64."""
        return self.to(_C.int64)

    def int(self) -> Self:
        """The data as int32."""
        return self.to(_C.int32)

    def short(self) -> Self:
        """The data as int16."""
        return self.to(_C.int16)

    def char(self) -> Self:
        """The data as int8."""
        return self.to(_C.int8)

    def byte(self) -> Self:
        """The data as uint8."""
        return self.to(_C.uint8)


def _lengths(lengths):
    return lengths if isinstance(lengths, _C.Tensor) else _C.tensor(list(lengths), dtype=_C.int64)


def _check_packed(function, sequence):
    if not isinstance(sequence, PackedSequence):
        raise TypeError(f"{function}: expected a PackedSequence; got {type(sequence).__name__}")


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Which place each element of a permutation has.

    >>> nn.utils.rnn.invert_permutation(kiln.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    return None if permutation is None else _C.argsort(permutation)


def pack_padded_sequence(
    input: Tensor,
    lengths: Tensor | Sequence[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Padded sequences [T, N, ..] ([N, T, ..] with batch_first) without their padding.

    With enforce_sorted the lengths must not grow; else the batch is sorted.

    >>> x = kiln.tensor([[1., 3.], [2., 0.]])
    >>> nn.utils.rnn.pack_padded_sequence(x, [2, 1]).data
    tensor([1., 3., 2.])
    """
    return PackedSequence(
        *_C._pack_padded_sequence(input, _lengths(lengths), batch_first, enforce_sorted)
    )


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The padded sequences in their first order, and their lengths.

    sequence: a PackedSequence. batch_first: [N, T, ..]. padding_value: what fills up. total_length:
    the length to fill up to.

    >>> packed = nn.utils.rnn.pack_sequence([kiln.tensor([1., 2.]), kiln.tensor([3.])])
    >>> nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    (tensor([[1., 2.],
            [3., 0.]]), tensor([2, 1]))
    """
    _check_packed("pad_packed_sequence", sequence)
    if total_length is not None and total_length < 1:
        raise ValueError(
            f"pad_packed_sequence: total_length must be at least 1; got {total_length}"
        )
    return _C._pad_packed_sequence(*sequence, batch_first, padding_value, total_length or 0)


def pad_sequence(
    sequences: Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Tensors [length, ..] as [longest, N, ..], or [N, longest, ..] with batch_first.

    sequences: a list. padding_value: what fills up. padding_side: "right" or "left".

    >>> nn.utils.rnn.pad_sequence([kiln.tensor([1., 2.]), kiln.tensor([3.])], batch_first=True)
    tensor([[1., 2.],
            [3., 0.]])
    """
    return _C._pad_sequence(list(sequences), batch_first, padding_value, padding_side)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False
) -> list[Tensor]:
    """The sequences without their padding, as a list.

    padded_sequences: what pad_sequence gave. lengths: of each. batch_first: [N, T, ..].

    >>> x = kiln.tensor([[1., 2.], [3., 0.]])
    >>> nn.utils.rnn.unpad_sequence(x, kiln.tensor([2, 1]), batch_first=True)
    [tensor([1., 2.]), tensor([3.])]
    """
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [x[:length] for x, length in zip(padded_sequences, _lengths(lengths).tolist())]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Tensors [length, ..], packed.

    sequences: a list. enforce_sorted: raise an error unless the longest comes first.

    >>> nn.utils.rnn.pack_sequence([kiln.tensor([1., 2.]), kiln.tensor([3.])]).data
    tensor([1., 3., 2.])
    """
    sequences = list(sequences)
    lengths = [len(x) for x in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a PackedSequence, as a list.

    >>> packed = nn.utils.rnn.pack_sequence([kiln.tensor([1., 2.]), kiln.tensor([3.])])
    >>> nn.utils.rnn.unpack_sequence(packed)
    [tensor([1., 2.]), tensor([3.])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
