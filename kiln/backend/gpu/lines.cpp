// Along a dim: running values, sorts, searches: kernels/scan.k, sort.k, search.k.
#include <vector>

#include "kiln/backend/gpu/loops.h"

namespace kiln::gpu {

H scan(Literal state, Literal body, const H& x, int dim, DType out, const H* second,
       bool reversed) {
  H to = empty(x->shape(), out, x->device());
  if (to->numel() == 0) return to;
  const int64_t count = x->shape()[dim];
  Shape lines = x->shape();
  lines.erase(dim);
  Loop loop(lines);
  const auto add = [&](const H& t) {
    const int64_t step = t->strides()[dim];
    loop.add(without(t->strides(), dim), t->offset() + (reversed ? (count - 1) * step : 0));
    return reversed ? -step : step;
  };
  const int64_t out_step = add(to);
  const int64_t step0 = add(x);
  int64_t step1 = 0;
  if (second != nullptr) step1 = add(*second);
  const DType second_dtype = second == nullptr ? DType::boolean : (*second)->dtype();
  const auto defines = [&] {
    std::string text = define("INPUTS", second == nullptr ? "1" : "2") +
                       define("OUT", dialect_name(out)) + define("IN0", dialect_name(x->dtype()));
    if (second != nullptr) text += define("IN1", dialect_name(second_dtype));
    return text + define("INDEX", index_type(loop.is_wide())) + arithmetic(x->dtype()) +
           define("STATE", state.get()) + define("BODY", body.get());
  };
  const Kernel kernel{
      .file = "scan",
      .parts = {state, body},
      .choice = choice(loop.is_wide(), second != nullptr, out, x->dtype(), second_dtype),
      .defines = defines};
  const MapArgument m = loop.argument();
  std::vector<Argument> arguments = {Argument::bytes(m), Argument::memory(to->storage()->memory()),
                                     Argument::memory(x->storage()->memory())};
  if (second != nullptr) {
    arguments.push_back(Argument::memory((*second)->storage()->memory()));
    arguments.push_back(Argument::bytes(step1));
  }
  for (const int64_t* each : {&count, &out_step, &step0})
    arguments.push_back(Argument::bytes(*each));
  x->gpu().launch(kernel, static_cast<size_t>(m.n), arguments);
  return to;
}

H argsort(const H& x, int dim, bool descending) {
  const int rank = x->shape().rank();
  if (x->numel() == 0 || rank == 0) {
    H to = empty(x->shape(), DType::i64, x->device());
    if (x->numel() != 0) fill_into(to, int64_t{0});
    return to;
  }
  const int64_t count = x->shape()[dim];
  int64_t width = 2;
  while (width < count) width *= 2;
  Shape lines = x->shape();
  lines.erase(dim);
  const int64_t rows = lines.numel();
  Shape wide = lines;
  wide.push_back(width);
  const H places = empty(wide, DType::i64, x->device());
  map_into(places, "y = i % s0;", {}, Integers{width});
  Loop loop(lines);
  loop.add(Shape::filled(lines.rank(), 0), 0);
  loop.add(without(x->strides(), dim), x->offset());
  const auto defines = [&] {
    return define("INDEX", index_type(loop.is_wide())) + define("IN0", dialect_name(x->dtype())) +
           define("DESCENDING", descending ? "1" : "0") + floats_flag(x->dtype());
  };
  const Kernel kernel{
      .file = "sort", .choice = choice(loop.is_wide(), x->dtype(), descending), .defines = defines};
  const MapArgument m = loop.argument();
  const int64_t step = x->strides()[dim];
  for (int64_t run = 2; run <= width; run *= 2) {
    for (int64_t gap = run / 2; gap > 0; gap /= 2) {
      const Argument arguments[] = {Argument::bytes(m),
                                    Argument::memory(x->storage()->memory()),
                                    Argument::memory(places->storage()->memory()),
                                    Argument::bytes(step),
                                    Argument::bytes(count),
                                    Argument::bytes(width),
                                    Argument::bytes(run),
                                    Argument::bytes(gap)};
      x->gpu().launch(kernel, static_cast<size_t>(rows * (width / 2)), arguments);
    }
  }
  // The dim goes back to its place, and what stands for nothing goes.
  Strides strides = places->strides();
  const int64_t last = strides.back();
  strides.erase(rank - 1);
  strides.insert(dim, last);
  return contiguous(view(places, x->shape(), strides, 0));
}

H searchsorted(const H& sorted, const H& values, bool right) {
  H to = empty(values->shape(), DType::i64, values->device());
  if (to->numel() == 0) return to;
  Loop loop(values->shape());
  loop.add(to);
  loop.add(values);
  Strides starts = Shape::filled(values->shape().rank(), 0);
  if (sorted->shape().rank() > 1) {
    for (int d = 0; d + 1 < sorted->shape().rank(); ++d) starts[d] = sorted->strides()[d];
  }
  loop.add(starts, sorted->offset());
  const auto defines = [&] {
    return define("INDEX", index_type(loop.is_wide())) +
           define("IN0", dialect_name(values->dtype())) + define("RIGHT", right ? "1" : "0") +
           floats_flag(values->dtype());
  };
  const Kernel kernel{.file = "search",
                      .choice = choice(loop.is_wide(), values->dtype(), right),
                      .defines = defines};
  const MapArgument m = loop.argument();
  const int64_t count = sorted->shape().back();
  const int64_t step = sorted->strides().back();
  const Argument arguments[] = {Argument::bytes(m),
                                Argument::memory(to->storage()->memory()),
                                Argument::memory(values->storage()->memory()),
                                Argument::memory(sorted->storage()->memory()),
                                Argument::bytes(count),
                                Argument::bytes(step)};
  values->gpu().launch(kernel, static_cast<size_t>(m.n), arguments);
  return to;
}

}  // namespace kiln::gpu
