#include "kiln/tensor/autograd/formula.h"

#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/creation.h"

namespace kiln::detail {

namespace {

// `history`: what `memory` was copied from; undefined when it has none.
Tensor written(const char* op, Tensor memory, const Tensor& history, const Tensor& src, Part part) {
  Tensor source;
  {
    const NoGradGuard no_grad;
    Tensor to = part(memory);
    source = to;
    const uint32_t seen = memory.version();
    const uint32_t written = to.version();
    to.copy_(src.detach());
    // Where layouts are not known, the part may be a copy: it was written, and `memory` was not.
    if (to.version() != written && memory.version() == seen) {
      throw_error<NotImplementedError>(
          op, ": needs a view that can be written; got a tensor on ", memory.device(),
          ", whose backend has none (as_strided, kiln/backend/layout.h); try to('cpu')");
    }
  }
  const bool has_history = history.defined() && is_tracked(value_in(history));
  if (!has_history && !is_tracked(value_of(op, src))) return memory;
  source = src.to(memory.dtype()).expand(source.shape());
  auto formula = [part, op](Pass& p) {
    const Tensor g = wrap(p.grad());
    if (p.needs(1)) p.give(1, value_in(part(g)));
    if (p.needs(0)) {
      const Tensor zero = full({}, 0, {g.dtype(), g.device()});
      p.give(0, value_in(written(op, g.detach().clone(), g, zero, part)));
    }
  };
  const Value before = has_history ? value_in(history) : Value{value_in(memory).inner};
  return wrap(recorded(op, value_in(memory).inner, std::move(formula), before, value_in(source)));
}

// The same part of the parts of complex numbers.
Part part_of_parts(Part part) {
  return [part = std::move(part)](const Tensor& x) { return parts_of(part(from_parts(x))); };
}

}  // namespace

Tensor with_part(const char* op, const Tensor& x, const Tensor& src, Part part) {
  if (has_complex(x)) {
    return from_parts(
        with_part(op, parts_of(x), parts_of(src.to(x.dtype())), part_of_parts(std::move(part))));
  }
  return written(op, x.detach().clone(), x, src, std::move(part));
}

Tensor with_part_in(const char* op, Tensor memory, const Tensor& src, Part part) {
  if (has_complex(memory)) {
    return from_parts(with_part_in(op, parts_of(memory), parts_of(src.to(memory.dtype())),
                                   part_of_parts(std::move(part))));
  }
  return written(op, std::move(memory), {}, src, std::move(part));
}

}  // namespace kiln::detail
