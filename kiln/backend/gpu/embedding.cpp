// Many rows that are added to rows of a table, as the gradient of an embedding: kernels/segments.k.
#include "kiln/backend/gpu/nn.h"

namespace kiln::gpu {

// One work-item for each column, which scatter.k has, is too few for many rows.
bool has_segments(const H& x, int dim, const H& index) {
  constexpr int64_t kManyRows = 1024;
  return dim == 0 && x->shape().rank() == 2 && index->numel() >= kManyRows;
}

H add_segments(const char* op, const H& x, const H& index, const H& src) {
  H to = empty(x->shape(), x->dtype(), x->device());
  if (to->numel() != 0) copy_elements(to, x);
  const int64_t count = index->numel();
  const int64_t width = x->shape()[1];
  if (count * width == 0) return to;
  // Equal numbers keep their order.
  const H order = packed(argsort(index, 0, false));
  const H sorted = gather(op, index, 0, order);
  const bool wide = count * width >= (int64_t{1} << 31);
  const auto defines = [&] {
    return define("INDEX", index_type(wide)) + define("IN0", dialect_name(x->dtype())) +
           arithmetic(x->dtype());
  };
  const Kernel kernel{.file = "segments", .choice = choice(wide, x->dtype()), .defines = defines};
  GpuDevice& gpu = x->gpu();
  const int32_t code = gpu.fault_code(op, FaultKind::index);
  const int64_t numbers[] = {count,
                             width,
                             x->shape()[0],
                             src->offset(),
                             src->strides()[0],
                             src->strides()[1],
                             to->strides()[0],
                             to->strides()[1]};
  const Argument arguments[] = {Argument::memory(to->storage()->memory()),
                                Argument::memory(src->storage()->memory()),
                                Argument::memory(sorted->storage()->memory()),
                                Argument::memory(order->storage()->memory()),
                                Argument::bytes(numbers[0]),
                                Argument::bytes(numbers[1]),
                                Argument::bytes(numbers[2]),
                                Argument::bytes(numbers[3]),
                                Argument::bytes(numbers[4]),
                                Argument::bytes(numbers[5]),
                                Argument::bytes(numbers[6]),
                                Argument::bytes(numbers[7]),
                                Argument::memory(gpu.fault_word()),
                                Argument::bytes(code)};
  gpu.launch(kernel, static_cast<size_t>(count * width), arguments);
  return to;
}

}  // namespace kiln::gpu
