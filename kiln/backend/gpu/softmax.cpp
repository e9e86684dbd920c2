// Softmax and its logarithm along a dim: kernels/softmax.k.
#include "kiln/backend/gpu/nn.h"

namespace kiln::gpu {
namespace {

// Lines this short are one work-item's, and so are those whose neighbours are neighbours in memory.
constexpr int64_t kShortLine = 64;
constexpr int64_t kManyLines = 256;

// Whether lines of operand k begin where packs do.
bool are_packed(const MapArgument& m, int k, int64_t vector) {
  if (m.offset[k] % vector != 0) return false;
  for (int64_t d = 0; d < m.rank; ++d) {
    if (m.size[d] > 1 && m.step[k][d] % vector != 0) return false;
  }
  return true;
}

H run_softmax(const H& first, const H* second, int dim, bool log) {
  H to = empty(first->shape(), first->dtype(), first->device());
  if (to->numel() == 0) return to;
  const bool is_scalar = first->shape().rank() == 0;
  const int64_t count = is_scalar ? 1 : first->shape()[dim];
  Shape lines = first->shape();
  if (!is_scalar) lines.erase(dim);
  Loop loop(lines);
  const auto add = [&](const H& t) {
    if (is_scalar) {
      loop.add(t->strides(), t->offset());
      return int64_t{0};
    }
    loop.add(without(t->strides(), dim), t->offset());
    return t->strides()[dim];
  };
  const int64_t out_step = add(to);
  const int64_t step0 = add(first);
  const int64_t step1 = second == nullptr ? 0 : add(*second);
  const bool side_by_side = out_step != 1 && lines.numel() >= kManyLines;
  const bool columns = count <= kShortLine || side_by_side;
  const bool backward = second != nullptr;
  const MapArgument m = loop.argument();
  const int operands = backward ? 3 : 2;
  HeldRow held;
  if (!columns && out_step == 1 && step0 == 1 && (!backward || step1 == 1)) {
    held = HeldRow(first->dtype(), count, m.n);
    for (int k = 0; k < operands; ++k) {
      if (!are_packed(m, k, held.vector)) held = {};
    }
  }
  const auto defines = [&] {
    return define("INDEX", index_type(loop.is_wide())) +
           define("IN0", dialect_name(first->dtype())) + arithmetic(first->dtype()) +
           (columns ? define("COLUMNS", "1") : "") + (log ? define("LOG", "1") : "") +
           (backward ? define("BACKWARD", "1") : "") + held.defines();
  };
  const Kernel kernel{
      .file = "softmax",
      .choice = choice(loop.is_wide(), first->dtype(), columns, log, backward, held.packs),
      .defines = defines};
  const Argument arguments[] = {Argument::bytes(m),
                                Argument::memory(to->storage()->memory()),
                                Argument::memory(first->storage()->memory()),
                                Argument::bytes(count),
                                Argument::bytes(out_step),
                                Argument::bytes(step0),
                                Argument::memory((backward ? *second : first)->storage()->memory()),
                                Argument::bytes(step1)};
  const std::span<const Argument> used = std::span(arguments).first(backward ? 8 : 6);
  const auto n = static_cast<size_t>(m.n);
  if (columns) {
    first->gpu().launch(kernel, n, used);
  } else {
    first->gpu().launch_groups(kernel, {n, 1, 1}, {kGroup, 1, 1}, used);
  }
  return to;
}

}  // namespace

H softmax(const H& x, int dim, bool log) { return run_softmax(x, nullptr, dim, log); }
H softmax_backward(const H& g, const H& y, int dim, bool log) {
  return run_softmax(g, &y, dim, log);
}

}  // namespace kiln::gpu
