// Reductions of integers and bools: sum, prod, amax, amin, any, all, count.
#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/reduce/int_reduce_kernels.h"
#include "kiln/backend/cpu/reduce/reduce_steps.h"

namespace kiln {
namespace cpu {
namespace {

HostHandle reduce_int(IntReduction op, const HostHandle& x, const Dims& dims, bool keepdim) {
  const DType dtype = x->dtype();
  if (x->numel() == 0) {
    const Shape shape = reduced_shape(x->shape(), dims, keepdim);
    const int64_t identity = op == IntReduction::prod ? 1 : 0;
    return Cpu::int_full(shape, identity, dtype, x->device());
  }
  const ReduceGeometry g = geometry_of(x, dims);
  if (!g.groups.has_reduced()) return reshaped_result(x, dims, keepdim);
  return visit_int("reduce", dtype, [&]<class T>() {
    const ReduceKernels<T, T>& kernels = int_reduce_kernels().kernels<T>(op);
    Groups groups = g.groups;
    HostHandle result = host::empty(Shape{groups.left_after_last()}, dtype, x->device());
    reduce_last(kernels, g.source->template data_as<const T>(), groups,
                result->template data_as<T>());
    while (groups.has_reduced()) {
      HostHandle next = host::empty(Shape{groups.left_after_last()}, dtype, x->device());
      reduce_last(kernels, result->template data_as<const T>(), groups,
                  next->template data_as<T>());
      result = std::move(next);
    }
    return in_order(result, g, x->shape(), dims, keepdim);
  });
}

// any is the largest of the bytes 0 and 1, all the smallest.
HostHandle reduce_bool(IntReduction op, const HostHandle& x, const Dims& dims, bool keepdim) {
  if (x->numel() == 0) return filled_result(x, dims, keepdim, op == IntReduction::amin);
  const auto as = [](const HostHandle& v, DType dtype) {
    return make_handle<HostTensor>(v->shape(), dtype, v->device(), v->strides(), v->offset(),
                                   v->storage());
  };
  return as(reduce_int(op, as(x, DType::u8), dims, keepdim), DType::boolean);
}

// Sums in 64 bits of numbers that are narrower.
template <class T>
HostHandle wide_sum(const ReduceKernels<T, int64_t>& kernels, const HostHandle& x, const Dims& dims,
                    bool keepdim) {
  if (x->numel() == 0) {
    return Cpu::int_full(reduced_shape(x->shape(), dims, keepdim), 0, DType::i64, x->device());
  }
  ReduceGeometry g = geometry_of(x, dims);
  if (!g.groups.has_reduced()) g.groups.add(1, true);
  const auto& more = int_reduce_kernels().i64.of[static_cast<int>(IntReduction::sum)];
  return in_order(reduce_groups(kernels, more, g), g, x->shape(), dims, keepdim);
}

}  // namespace
}  // namespace cpu

using cpu::IntReduction;

HostHandle CpuOps::int_sum(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  const cpu::IntReduceTable& table = cpu::int_reduce_kernels();
  switch (x.get()->dtype()) {
    case DType::i32:
      return cpu::wide_sum(table.i32_sum, x, dims, keepdim);
    case DType::i16:
      return cpu::wide_sum(table.i16_sum, x, dims, keepdim);
    case DType::i8:
      return cpu::wide_sum(table.i8_sum, x, dims, keepdim);
    case DType::u8:
      return cpu::wide_sum(table.u8_sum, x, dims, keepdim);
    default:
      return cpu::reduce_int(IntReduction::sum, x, dims, keepdim);
  }
}
HostHandle CpuOps::int_prod(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  return cpu::reduce_int(IntReduction::prod, x, dims, keepdim);
}
HostHandle CpuOps::int_amax(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  return cpu::reduce_int(IntReduction::amax, x, dims, keepdim);
}
HostHandle CpuOps::int_amin(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  return cpu::reduce_int(IntReduction::amin, x, dims, keepdim);
}
HostHandle CpuOps::bool_any(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  return cpu::reduce_bool(IntReduction::amax, x, dims, keepdim);
}
HostHandle CpuOps::bool_count(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  return cpu::wide_sum(cpu::int_reduce_kernels().count, x, dims, keepdim);
}
HostHandle CpuOps::bool_all(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  return cpu::reduce_bool(IntReduction::amin, x, dims, keepdim);
}

}  // namespace kiln
