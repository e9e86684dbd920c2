// Picking up and placing elements by index: kernels/gather.k and scatter.k.
#include "kiln/backend/gpu/loops.h"

namespace kiln::gpu {

namespace {

struct FaultArguments {
  FaultArguments(GpuDevice& gpu, const char* op, FaultKind kind)
      : word(gpu.fault_word()), code(gpu.fault_code(op, kind)) {}
  Memory word;
  int32_t code;
};

}  // namespace

H gather(const char* op, const H& x, int dim, const H& index) {
  H to = empty(index->shape(), x->dtype(), x->device());
  if (to->numel() == 0) return to;
  Loop loop(index->shape());
  loop.add(to);
  loop.add(index);
  Strides strides = x->strides();
  strides[dim] = 0;
  loop.add(strides, x->offset());
  const auto defines = [&] {
    return define("INDEX", index_type(loop.is_wide())) + define("IN0", dialect_name(x->dtype()));
  };
  const Kernel kernel{
      .file = "gather", .choice = choice(loop.is_wide(), x->dtype()), .defines = defines};
  const MapArgument m = loop.argument();
  const int64_t size = x->shape()[dim];
  const int64_t step = x->strides()[dim];
  const FaultArguments fault(x->gpu(), op, FaultKind::index);
  const Argument arguments[] = {Argument::bytes(m),
                                Argument::memory(to->storage()->memory()),
                                Argument::memory(index->storage()->memory()),
                                Argument::memory(x->storage()->memory()),
                                Argument::bytes(size),
                                Argument::bytes(step),
                                Argument::memory(fault.word),
                                Argument::bytes(fault.code)};
  x->gpu().launch(kernel, static_cast<size_t>(m.n), arguments);
  return to;
}

H spread_index(const H& index, int dim, const Shape& shape) {
  Strides strides = Shape::filled(shape.rank(), 0);
  strides[dim] = index->strides()[0];
  return view(index, shape, strides, index->offset());
}

H index_select(const H& x, int dim, const H& index) {
  constexpr const char* op = "index_select";
  Shape shape = x->shape();
  shape[dim] = index->shape()[0];
  if (shape.numel() == 0 && index->numel() != 0) {
    // A result without elements still has indices, which must be good: any tensor of that size
    // tells.
    gather(op, empty(Shape{x->shape()[dim]}, DType::i8, x->device()), 0, index);
  }
  return gather(op, x, dim, spread_index(index, dim, shape));
}

H scatter(const char* op, Literal combined, const H& x, int dim, const H& index, const H& src) {
  H to = empty(x->shape(), x->dtype(), x->device());
  if (to->numel() != 0) copy_elements(to, x);
  if (index->numel() == 0) return to;
  Shape lines = index->shape();
  lines.erase(dim);
  Loop loop(lines);
  // A result of no elements has no place for any index: every one is out of range.
  loop.add(without(to->strides(), dim), 0);
  loop.add(without(index->strides(), dim), index->offset());
  loop.add(without(src->strides(), dim), src->offset());
  const auto defines = [&] {
    return define("INDEX", index_type(loop.is_wide())) + define("IN0", dialect_name(x->dtype())) +
           arithmetic(x->dtype()) + define("COMBINED", combined.get());
  };
  const Kernel kernel{.file = "scatter",
                      .parts = {combined},
                      .choice = choice(loop.is_wide(), x->dtype()),
                      .defines = defines};
  const MapArgument m = loop.argument();
  const int64_t count = index->shape()[dim];
  const int64_t index_step = index->strides()[dim];
  const int64_t src_step = src->strides()[dim];
  const int64_t size = x->shape()[dim];
  const int64_t step = to->strides()[dim];
  const FaultArguments fault(x->gpu(), op, FaultKind::index);
  const Argument arguments[] = {Argument::bytes(m),
                                Argument::memory(to->storage()->memory()),
                                Argument::memory(index->storage()->memory()),
                                Argument::memory(src->storage()->memory()),
                                Argument::bytes(count),
                                Argument::bytes(index_step),
                                Argument::bytes(src_step),
                                Argument::bytes(size),
                                Argument::bytes(step),
                                Argument::memory(fault.word),
                                Argument::bytes(fault.code)};
  x->gpu().launch(kernel, static_cast<size_t>(m.n), arguments);
  return to;
}

}  // namespace kiln::gpu
