// Comparisons and tests of tensors of every kind; the ops of bool tensors.
#include <limits>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise/compare_kernels.h"
#include "kiln/backend/cpu/elementwise/int_kernels.h"
#include "kiln/backend/cpu/float_scalar.h"

namespace kiln {
namespace cpu {
namespace {

Kernel compare_kernel(CompareOp op, DType dtype) {
  if (is_floating_point(dtype)) return compare_kernels().kernels[index_of(op)][column_of(dtype)];
  return int_compare_kernel(op, dtype);
}

// Over contiguous operands of a type that the kernels take as it is.
HostHandle compare_contiguous(Kernel kernel, KernelArgs args, const HostTensor& like) {
  HostHandle out = host::empty(like.shape(), DType::boolean, like.device());
  const auto item = static_cast<int64_t>(size_of(like.dtype()));
  const int64_t sizes[] = {item, item};
  args.out = out->data();
  args.n = like.numel();
  if (args.n != 0) run_contiguous(kernel, args, sizes, 2, 1);
  return out;
}

bool is_plain(const HostTensor& x) {
  return convert_of(x.dtype()) == Convert::none && x.is_contiguous();
}

// With `exchanged`, b is the first operand of the op that is computed as op(a, b).
HostHandle run_compare(CompareOp op, const HostTensor& a, const HostTensor& b,
                       bool exchanged = false) {
  const Kernel kernel = compare_kernel(op, a.dtype());
  if (a.shape() == b.shape() && is_plain(a) && is_plain(b)) {
    KernelArgs args;
    args.in[0] = a.data();
    args.in[1] = b.data();
    return compare_contiguous(kernel, args, a);
  }
  const Shape shape = broadcast_shapes("compare", a.shape(), b.shape());
  HostHandle out =
      host::empty_as(shape, DType::boolean, a.device(), exchanged ? b : a, exchanged ? &a : &b);
  const HostTensor* inputs[] = {&a, &b};
  run_elementwise({kernel, 2}, *out, inputs, /*fresh=*/true);
  return out;
}

// With `number_first`: op(number, x). `number` points to an element of x's dtype as the kernels
// take it.
HostHandle compare_with(CompareOp op, const HostTensor& x, const void* number, bool number_first) {
  KernelArgs args;
  args.in[number_first] = x.data();
  args.in[!number_first] = number;
  args.scalars = number_first ? 1u : 2u;
  return compare_contiguous(compare_kernel(op, x.dtype()), args, x);
}

HostHandle compare_with_float(CompareOp op, const Arg<HostHandle>& arg, Scalar value,
                              bool number_first = false) {
  const HostTensor& x = *arg.get();
  if (is_plain(x)) {
    return compare_with(op, x, FloatScalar(value, x.dtype()).data(), number_first);
  }
  const HostHandle number = Cpu::float_full(Shape{}, value, x.dtype(), x.device());
  return number_first ? run_compare(op, *number, x) : run_compare(op, x, *number);
}

// -1, 0 or 1: where a number lies against the range of an integer dtype.
int side_of_range(int64_t value, DType dtype) {
  return visit_int("compare", dtype, [&]<class T>() {
    if (value < static_cast<int64_t>(std::numeric_limits<T>::min())) return -1;
    return value > static_cast<int64_t>(std::numeric_limits<T>::max()) ? 1 : 0;
  });
}

HostHandle compare_with_int(CompareOp op, const Arg<HostHandle>& x, Scalar value,
                            bool number_first = false) {
  const int64_t number = value.to_int();
  const int side = side_of_range(number, x->dtype());
  if (side != 0) {
    // Every element compares alike with a number that the dtype cannot hold.
    bool result = op == CompareOp::not_equal;
    if (op == CompareOp::greater || op == CompareOp::greater_equal) {
      result = number_first == (side > 0);
    }
    HostHandle out = host::empty_as(x->shape(), DType::boolean, x->device(), *x.get());
    Cpu::bool_fill(out, Scalar(result));
    return out;
  }
  const HostHandle constant = Cpu::int_full(Shape{}, number, x->dtype(), x->device());
  return number_first ? run_compare(op, *constant, *x.get()) : run_compare(op, *x.get(), *constant);
}

HostHandle run_bool(IntOp op, const Arg<HostHandle>& a, const Arg<HostHandle>& b) {
  const HostTensor& x = *a.get();
  const HostTensor& y = *b.get();
  Output out(a, b, broadcast_shapes("bool", x.shape(), y.shape()), DType::boolean);
  const HostTensor* inputs[] = {&x, &y};
  run_elementwise({int_kernel(op, DType::boolean), 2}, out.tensor(), inputs, out.fresh());
  return out.finish();
}

}  // namespace
}  // namespace cpu

using namespace cpu;

HostHandle CpuOps::float_equal(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_compare(CompareOp::equal, *a.get(), *b.get());
}
HostHandle CpuOps::float_not_equal(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_compare(CompareOp::not_equal, *a.get(), *b.get());
}
HostHandle CpuOps::float_greater(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_compare(CompareOp::greater, *a.get(), *b.get());
}
HostHandle CpuOps::float_greater_equal(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_compare(CompareOp::greater_equal, *a.get(), *b.get());
}
HostHandle CpuOps::float_lower(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_compare(CompareOp::greater, *b.get(), *a.get(), /*exchanged=*/true);
}
HostHandle CpuOps::float_lower_equal(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_compare(CompareOp::greater_equal, *b.get(), *a.get(), /*exchanged=*/true);
}
HostHandle CpuOps::float_equal_scalar(Arg<HostHandle> x, Scalar value) {
  return compare_with_float(CompareOp::equal, x, value);
}
HostHandle CpuOps::float_not_equal_scalar(Arg<HostHandle> x, Scalar value) {
  return compare_with_float(CompareOp::not_equal, x, value);
}
HostHandle CpuOps::float_greater_scalar(Arg<HostHandle> x, Scalar value) {
  return compare_with_float(CompareOp::greater, x, value);
}
HostHandle CpuOps::float_greater_equal_scalar(Arg<HostHandle> x, Scalar value) {
  return compare_with_float(CompareOp::greater_equal, x, value);
}
HostHandle CpuOps::float_lower_scalar(Arg<HostHandle> x, Scalar value) {
  return compare_with_float(CompareOp::greater, x, value, /*number_first=*/true);
}
HostHandle CpuOps::float_lower_equal_scalar(Arg<HostHandle> x, Scalar value) {
  return compare_with_float(CompareOp::greater_equal, x, value, /*number_first=*/true);
}
HostHandle CpuOps::float_is_nan(Arg<HostHandle> x) {
  return run_compare(CompareOp::not_equal, *x.get(), *x.get());
}
HostHandle CpuOps::float_is_inf(Arg<HostHandle> x) {
  HostHandle out = host::empty_as(x->shape(), DType::boolean, x->device(), *x.get());
  const HostTensor* inputs[] = {x.get().get()};
  run_elementwise({compare_kernels().is_inf[column_of(x->dtype())], 1}, *out, inputs, true);
  return out;
}

HostHandle CpuOps::int_equal(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_compare(CompareOp::equal, *a.get(), *b.get());
}
HostHandle CpuOps::int_not_equal(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_compare(CompareOp::not_equal, *a.get(), *b.get());
}
HostHandle CpuOps::int_greater(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_compare(CompareOp::greater, *a.get(), *b.get());
}
HostHandle CpuOps::int_greater_equal(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_compare(CompareOp::greater_equal, *a.get(), *b.get());
}
HostHandle CpuOps::int_lower(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_compare(CompareOp::greater, *b.get(), *a.get(), /*exchanged=*/true);
}
HostHandle CpuOps::int_lower_equal(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_compare(CompareOp::greater_equal, *b.get(), *a.get(), /*exchanged=*/true);
}
HostHandle CpuOps::int_equal_scalar(Arg<HostHandle> x, Scalar value) {
  return compare_with_int(CompareOp::equal, x, value);
}
HostHandle CpuOps::int_not_equal_scalar(Arg<HostHandle> x, Scalar value) {
  return compare_with_int(CompareOp::not_equal, x, value);
}
HostHandle CpuOps::int_greater_scalar(Arg<HostHandle> x, Scalar value) {
  return compare_with_int(CompareOp::greater, x, value);
}
HostHandle CpuOps::int_greater_equal_scalar(Arg<HostHandle> x, Scalar value) {
  return compare_with_int(CompareOp::greater_equal, x, value);
}
HostHandle CpuOps::int_lower_scalar(Arg<HostHandle> x, Scalar value) {
  return compare_with_int(CompareOp::greater, x, value, /*number_first=*/true);
}
HostHandle CpuOps::int_lower_equal_scalar(Arg<HostHandle> x, Scalar value) {
  return compare_with_int(CompareOp::greater_equal, x, value, /*number_first=*/true);
}

HostHandle CpuOps::bool_equal(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_compare(CompareOp::equal, *a.get(), *b.get());
}
HostHandle CpuOps::bool_and(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_bool(IntOp::bitwise_and, a, b);
}
HostHandle CpuOps::bool_or(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_bool(IntOp::bitwise_or, a, b);
}
HostHandle CpuOps::bool_xor(Arg<HostHandle> a, Arg<HostHandle> b) {
  return run_bool(IntOp::bitwise_xor, a, b);
}
HostHandle CpuOps::bool_not(Arg<HostHandle> x) {
  const HostHandle one = bool_full(Shape{}, true, x->device());
  return run_bool(IntOp::bitwise_xor, x, one);
}

}  // namespace kiln
