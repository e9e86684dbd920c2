"""Counts the multiplications and additions of products: PyTorch's torch.utils.flop_counter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _C, nn

if TYPE_CHECKING:
    from typing import Any, Self

__all__ = ["FlopCounterMode"]

_GLOBAL = "Global"
_UNITS = ("", "K", "M", "G", "T", "P")


def _shown(flops: int) -> str:
    number, unit = float(flops), 0
    while number >= 1000 and unit + 1 < len(_UNITS):
        number, unit = number / 1000, unit + 1
    return f"{number:.3f}{_UNITS[unit]}" if unit else str(flops)


class FlopCounterMode:
    """A context that counts the floating-point operations of products, convolutions, attention and
    recurrences, with those of the backward pass. A multiplication with its addition is 2.

    The counts are made from the shapes of what was computed, on all threads and devices. Work on
    single elements (activations, norms, sums) is not counted, as in PyTorch.

    Args:
        mods: PyTorch's; modules are found by themselves.
        depth: how deep the modules of the printed table go.
        display: whether the table is printed at the end.
        custom_mapping: PyTorch's; there are no operators of users' here, so that a mapping is a
            ValueError.

    >>> layer = kiln.nn.Linear(8, 4)
    >>> with kiln.utils.flop_counter.FlopCounterMode(display=False) as counter:
    ...     layer(kiln.ones(2, 8)).sum().backward()
    >>> counter.get_total_flops()  # 2 * 2 * 8 * 4 of the product, and as many of the weight's gradient
    256
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
    ) -> None:
        if custom_mapping:
            raise ValueError("FlopCounterMode: custom_mapping names operators of PyTorch's; expected none")
        self.depth = depth
        self.display = display
        self._profile: Any = None
        self._counts: dict[str, dict[str, int]] = {_GLOBAL: {}}
        self._inside: list[tuple[nn.Module, str, dict[str, int]]] = []
        self._hooks: list[Any] = []

    def _now(self) -> dict[str, int]:
        return {row["op"]: row["flops"] for row in self._profile.rows() if row["flops"] > 0}

    def _name(self, module: nn.Module) -> str:
        if self._inside:
            parent, name, _ = self._inside[-1]
            for path, part in parent.named_modules():
                if part is module and path:
                    return f"{name}.{path}"
        return type(module).__name__

    def _enter_module(self, module: nn.Module, args: Any) -> None:
        name = self._name(module)
        self._counts.setdefault(name, {})  # before those within it
        self._inside.append((module, name, self._now()))

    def _leave_module(self, module: nn.Module, args: Any, output: Any) -> None:
        while self._inside:  # a module that failed within has not left
            inner, name, before = self._inside.pop()
            if inner is module:
                self._add(name, before)
                return

    def _add(self, name: str, before: dict[str, int]) -> None:
        counts = self._counts.setdefault(name, {})
        for op, flops in self._now().items():
            if flops > before.get(op, 0):
                counts[op] = counts.get(op, 0) + flops - before.get(op, 0)

    def __enter__(self) -> Self:
        if self._profile is not None:
            raise RuntimeError("FlopCounterMode: the counter is running already")
        self._counts = {_GLOBAL: {}}
        self._profile = _C._Profile()
        self._hooks = [
            nn.register_module_forward_pre_hook(self._enter_module),
            nn.register_module_forward_hook(self._leave_module),
        ]
        return self

    def __exit__(self, *error: object) -> None:
        for hook in self._hooks:
            hook.remove()
        self._inside.clear()
        self._counts[_GLOBAL] = self._now()
        self._profile.stop()
        self._profile = None
        if self.display and error[0] is None:
            print(self.get_table(self.depth))

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """How many operations each row of the op table took: of the whole, as "Global", and within the
        forward of each module, by its path.

        >>> with kiln.utils.flop_counter.FlopCounterMode(display=False) as counter:
        ...     x = kiln.nn.Linear(8, 4)(kiln.ones(2, 8))
        >>> counter.get_flop_counts()
        {'Global': {'float_linear': 128}, 'Linear': {'float_linear': 128}}
        """
        if self._profile is not None:
            return {**self._counts, _GLOBAL: self._now()}
        return {name: dict(counts) for name, counts in self._counts.items()}

    def get_total_flops(self) -> int:
        """The sum of all.

        >>> with kiln.utils.flop_counter.FlopCounterMode(display=False) as counter:
        ...     x = kiln.ones(2, 3) @ kiln.ones(3, 4)
        >>> counter.get_total_flops()
        48
        """
        return sum(self.get_flop_counts()[_GLOBAL].values())

    def get_table(self, depth: int | None = None) -> str:
        """The counts as text, to this depth of modules.

        >>> with kiln.utils.flop_counter.FlopCounterMode(display=False) as counter:
        ...     x = kiln.ones(2, 3) @ kiln.ones(3, 4)
        >>> print(counter.get_table())
        module                          flops       %
        Global                             48  100.00
         - float_matmul                    48  100.00
        """
        depth = self.depth if depth is None else depth
        counts = self.get_flop_counts()
        total = max(self.get_total_flops(), 1)
        rows: list[tuple[str, int]] = []
        for name, ops in counts.items():
            level = 0 if name == _GLOBAL else name.count(".") + 1
            if level > depth or not ops:
                continue
            ranked = sorted(ops.items(), key=lambda each: (-each[1], each[0]))
            rows.append((" " * level + name, sum(ops.values())))
            rows += [(" " * level + f" - {op}", flops) for op, flops in ranked]
        width = max([24, *(len(text) for text, _ in rows)])
        lines = [f"{'module':{width}} {'flops':>12} {'%':>7}"]
        for text, flops in rows:
            lines.append(f"{text:{width}} {_shown(flops):>12} {100 * flops / total:7.2f}")
        return "\n".join(lines)
