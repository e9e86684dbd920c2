"""`generate` of models that tell the next token."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import kiln

from ._cache import KeyValueCache

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .._C import Tensor
    from .._typing import DeviceLike


@dataclass
class GenerationOptions:
    """What `generate` may be asked for.

    max_new_tokens, or max_length with the prompt counted: when to stop; 20 new ones without either.
    min_new_tokens: no end before. do_sample: draw tokens, otherwise the likeliest is taken.
    temperature divides the logits. top_k: draw from the k likeliest. top_p: draw from the likeliest
    that together have this probability. repetition_penalty: above 1 makes tokens that have occurred
    less likely (Keskar et al., 2019); padding does not count. eos_token_id: one id or several that
    end a row; the config's without it, none with []. stop: sequences of ids that end a row.
    pad_token_id: what rows that have ended get. use_cache: keep what was computed for earlier
    positions. generator or seed: where random numbers come from.

    >>> kiln.models.GenerationOptions(max_new_tokens=5).max_new_tokens
    5
    """

    max_new_tokens: int | None = None
    max_length: int | None = None
    min_new_tokens: int = 0
    do_sample: bool = False
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    repetition_penalty: float = 1.0
    eos_token_id: int | list[int] | None = None
    pad_token_id: int | None = None
    stop: list[list[int]] = field(default_factory=list)
    use_cache: bool = True
    generator: kiln.Generator | None = None
    seed: int | None = None

    def check(self, config: Any) -> None:
        """Fills in what the model's config says. Throws ValueError for an impossible option."""
        _at_least("max_new_tokens", self.max_new_tokens, 1)
        _at_least("max_length", self.max_length, 1)
        _at_least("min_new_tokens", self.min_new_tokens, 0)
        _at_least("top_k", self.top_k, 1)
        if not (self.temperature > 0 and math.isfinite(self.temperature)):
            raise ValueError(f"generate: temperature must be above 0; got {self.temperature}")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"generate: top_p must be above 0 and at most 1; got {self.top_p}")
        if not (self.repetition_penalty > 0 and math.isfinite(self.repetition_penalty)):
            raise ValueError(
                f"generate: repetition_penalty must be above 0; got {self.repetition_penalty}"
            )
        if not self.do_sample and (self.temperature, self.top_k, self.top_p) != (1.0, None, None):
            warnings.warn(
                "generate: temperature, top_k and top_p have no effect without do_sample=True",
                stacklevel=4,
            )
        if self.generator is not None and self.seed is not None:
            raise ValueError("generate: give a generator or a seed, not both")
        if self.seed is not None:
            self.generator = kiln.Generator().manual_seed(self.seed)
        if self.eos_token_id is None:
            self.eos_token_id = getattr(config, "eos_token_id", None)
        if self.eos_token_id is None:
            self.eos_token_id = []
        if isinstance(self.eos_token_id, int):
            self.eos_token_id = [self.eos_token_id]
        if self.pad_token_id is None:
            self.pad_token_id = getattr(config, "pad_token_id", None)
        if self.pad_token_id is None:
            self.pad_token_id = self.eos_token_id[0] if self.eos_token_id else 0
        self.stop = [list(sequence) for sequence in self.stop]
        if not all(self.stop):
            raise ValueError("generate: each sequence of stop needs at least one token")


def _at_least(name, value, least):
    if value is not None and (not isinstance(value, int) or value < least):
        raise ValueError(f"generate: {name} must be an int of at least {least}; got {value!r}")


class GenerationMixin:
    """`generate` for a module whose forward gives the logits of each next token.

    >>> issubclass(kiln.models.GPT2LMHeadModel, kiln.models.GenerationMixin)
    True
    """

    def generate(
        self, input_ids: Any, attention_mask: Any = None, *, streamer: Any = None, **options: Any
    ) -> Tensor:
        """The prompts and what the model writes behind them, [N, length].

        input_ids: integers [N, T], or a list of prompts of any lengths. Shorter ones get padding
        before them; so do rows whose attention_mask [N, T] is 0 somewhere. Options: see
        GenerationOptions. streamer: a function called with each step's tokens [N], or an object
        with `put` and `end`.
        """
        steps = self._start_generation(input_ids, attention_mask, options)
        prompts = next(steps)
        put = getattr(streamer, "put", streamer)
        tokens = [prompts]
        for step in steps:
            if put is not None:
                put(step)
            tokens.append(step[:, None])
        if hasattr(streamer, "end"):
            streamer.end()
        return kiln.cat(tokens, dim=1)

    def generate_stream(
        self, input_ids: Any, attention_mask: Any = None, **options: Any
    ) -> Iterator[Tensor]:
        """As generate, one step's tokens [N] after the other."""
        steps = self._start_generation(input_ids, attention_mask, options)
        next(steps)
        return steps

    def max_positions(self) -> int | None:
        """How many positions the model has, or None."""
        return None

    def _start_generation(self, input_ids, attention_mask, options):
        names = set(GenerationOptions.__dataclass_fields__)
        inputs = {name: value for name, value in options.items() if name not in names}
        chosen = GenerationOptions(**{k: v for k, v in options.items() if k in names})
        chosen.check(getattr(self, "config", None))
        known = getattr(type(self), "_prompt", None) is not None and {"input_features"}
        unknown = set(inputs) - (known or set())
        if unknown:
            raise TypeError(f"generate: there is no option {', '.join(sorted(unknown))}")
        device = next(self.parameters()).device
        ids, mask = left_padded(input_ids, attention_mask, chosen.pad_token_id, device)
        count = chosen.max_new_tokens
        if count is None and chosen.max_length is not None:
            count = chosen.max_length - ids.shape[1]
            if count < 1:
                raise ValueError(
                    f"generate: max_length must be above the prompt's length of {ids.shape[1]}; "
                    f"got {chosen.max_length}"
                )
        count = 20 if count is None else count
        limit = self.max_positions()
        if limit is not None and ids.shape[1] + count - 1 > limit:
            raise ValueError(
                f"generate: a prompt of {ids.shape[1]} tokens and {count} new ones are more than "
                f"the model's {limit} positions"
            )
        return self._generation_steps(ids, mask, count, chosen, inputs)

    def _generation_steps(self, ids, mask, count, chosen, inputs):
        """The prompts, then each step's tokens."""
        yield ids
        inputs = self._generation_start(inputs)
        rows = ids.shape[0]
        done = kiln.zeros(rows, dtype=kiln.bool, device=ids.device)
        cache = None
        written = [[] for _ in range(rows)]
        seen = None
        step_ids = ids
        for step in range(count):
            with kiln.no_grad():
                positions = (mask.long().cumsum(1) - 1).clamp(min=0)[:, -step_ids.shape[1] :]
                logits, cache = self._generation_step(
                    step_ids, mask, positions, cache, chosen.use_cache, inputs
                )
                logits = logits.float()
                if chosen.repetition_penalty != 1.0:
                    if seen is None:
                        seen = _occurring(ids, mask, logits)
                    logits = penalized(logits, seen, chosen.repetition_penalty)
                if step < chosen.min_new_tokens and chosen.eos_token_id:
                    logits[:, chosen.eos_token_id] = -math.inf
                token = choose(logits, chosen)
                token = kiln.where(done, kiln.full_like(token, chosen.pad_token_id), token)
                if seen is not None:
                    seen.scatter_(1, token[:, None], True)
                for row, value in enumerate(token.tolist()):
                    if not done[row]:
                        written[row].append(value)
                        ended = value in chosen.eos_token_id or any(
                            written[row][-len(stop) :] == stop for stop in chosen.stop
                        )
                        if ended and step + 1 >= chosen.min_new_tokens:
                            done[row] = True
            yield token
            if bool(done.all()):
                return
            with kiln.no_grad():
                mask = kiln.cat([mask, mask.new_ones((rows, 1))], dim=1)
                ids = kiln.cat([ids, token[:, None]], dim=1)
                step_ids = token[:, None] if chosen.use_cache else ids

    def _generation_start(self, inputs):
        """What all steps need."""
        return inputs

    def _generation_step(self, ids, mask, positions, cache, use_cache, inputs):
        """The last position's logits [N, V], and the cache. The mask covers what is cached."""
        if use_cache and cache is None:
            cache = KeyValueCache()
        output = self(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=use_cache,
            logits_to_keep=1,
        )
        return output.logits[:, -1], output.past_key_values


def left_padded(
    input_ids: Any, attention_mask: Any, pad_token_id: int, device: DeviceLike | None = None
) -> tuple[Tensor, Tensor]:
    """(ids, mask) [N, T] of prompts, with the padding before each."""
    if isinstance(input_ids, kiln.Tensor) and input_ids.dim() == 2:
        if input_ids.is_floating_point():
            raise TypeError(f"generate: input_ids must be integers; got {input_ids.dtype}")
        if attention_mask is None:
            mask = kiln.ones_like(input_ids, dtype=kiln.bool)
            rows = None
        else:
            if attention_mask.shape != input_ids.shape:
                raise ValueError(
                    "generate: attention_mask must have the shape of input_ids, "
                    f"{tuple(input_ids.shape)}; got {tuple(attention_mask.shape)}"
                )
            rows = [
                [token for token, keep in zip(*row) if keep]
                for row in zip(input_ids.tolist(), attention_mask.tolist())
            ]
    elif attention_mask is not None:
        raise ValueError("generate: attention_mask is for input_ids of shape [N, T]")
    else:
        rows = [row.tolist() if hasattr(row, "tolist") else list(row) for row in input_ids]
    if rows is None:
        ids = input_ids.long()
    else:
        length = max(map(len, rows), default=0)
        if not rows or not all(rows):
            raise ValueError("generate: every prompt needs at least one token")
        ids = kiln.tensor([[pad_token_id] * (length - len(row)) + row for row in rows])
        mask = kiln.tensor([[False] * (length - len(row)) + [True] * len(row) for row in rows])
    if ids.shape[0] < 1 or ids.shape[1] < 1:
        raise ValueError("generate: every prompt needs at least one token")
    return ids.to(device=device), mask.to(device=device)


def _occurring(ids, mask, logits):
    """[N, V]: which tokens a row holds."""
    count = kiln.zeros(logits.shape, dtype=kiln.int64, device=logits.device)
    return count.scatter_add_(1, ids, mask.long()) > 0


def penalized(logits: Tensor, seen: Tensor, penalty: float) -> Tensor:
    """Logits of tokens that have occurred, divided by the penalty where above 0, else times it."""
    return kiln.where(seen, kiln.where(logits < 0, logits * penalty, logits / penalty), logits)


def choose(logits: Tensor, chosen: GenerationOptions) -> Tensor:
    """The next token of each row of logits [N, V]."""
    if not chosen.do_sample:
        return logits.argmax(-1)
    logits = logits / chosen.temperature
    if chosen.top_k is not None and chosen.top_k < logits.shape[-1]:
        least = logits.topk(chosen.top_k, dim=-1).values[:, -1:]
        logits = logits.masked_fill(logits < least, -math.inf)
    if chosen.top_p is not None and chosen.top_p < 1:
        ordered, index = logits.sort(dim=-1, descending=True, stable=True)
        probability = ordered.softmax(-1)
        # The likeliest token always stays: nothing is before it.
        drop = probability.cumsum(-1) - probability >= chosen.top_p
        logits = logits.masked_fill(kiln.zeros_like(drop).scatter_(1, index, drop), -math.inf)
    drawn = kiln.multinomial(logits.softmax(-1), 1, generator=chosen.generator)
    return drawn[:, 0]
