#include "kiln/distributed/reduction.h"

#include <vector>

#include "kiln/core/error.h"
#include "kiln/tensor/elementwise/bitwise.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributed {

namespace {

bool is_bitwise(ReduceOp op) {
  return op == ReduceOp::band || op == ReduceOp::bor || op == ReduceOp::bxor;
}

// Of truths, which are bytes 0 and 1.
ReduceOp of_bools(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::bor:
      return ReduceOp::max;
    case ReduceOp::product:
    case ReduceOp::band:
      return ReduceOp::min;
    default:
      return op;
  }
}

void join_two(ReduceOp op, Tensor& x, const Tensor& y) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
      x.add_(y);
      return;
    case ReduceOp::product:
      x.mul_(y);
      return;
    case ReduceOp::min:
      x.copy_(minimum(x, y));
      return;
    case ReduceOp::max:
      x.copy_(maximum(x, y));
      return;
    case ReduceOp::band:
      x.copy_(bitwise_and(x, y));
      return;
    case ReduceOp::bor:
      x.copy_(bitwise_or(x, y));
      return;
    case ReduceOp::bxor:
      x.copy_(bitwise_xor(x, y));
      return;
  }
}

}  // namespace

Reduction::Reduction(const char* op, ReduceOp reduce, DType dtype) : op_(reduce), dtype_(dtype) {
  const auto refuse = [&](const char* expected) {
    throw_error<DTypeError>(op, ": got ", name_of(reduce), " of ", dtype, "; expected ", expected);
  };
  const bool is_complex = dtype == DType::c64 || dtype == DType::c128;
  if (dtype == DType::q8) refuse("values that are not quantized");
  if (is_bitwise(reduce) && !is_integral(dtype) && dtype != DType::boolean) {
    refuse("integers or bools");
  }
  if (reduce == ReduceOp::avg && !is_floating_point(dtype) && !is_complex) {
    refuse("floating point or complex numbers");
  }
  if (is_complex) {
    if (reduce != ReduceOp::sum && reduce != ReduceOp::avg) refuse("sum or avg");
    dtype_ = dtype == DType::c64 ? DType::f32 : DType::f64;
    parts_ = 2;
  } else if (dtype == DType::boolean) {
    dtype_ = DType::u8;
    op_ = of_bools(reduce);
  }
}

void Reduction::join(std::span<Tensor> rows, size_t own) const {
  Tensor& result = rows[own];
  const bool is_half = dtype_ == DType::f16 || dtype_ == DType::bf16;
  if (rows.size() > 2 && is_half && (op_ == ReduceOp::sum || op_ == ReduceOp::avg)) {
    // Rounded once.
    Tensor sum = rows[0].to(DType::f32);
    for (size_t i = 1; i < rows.size(); ++i) sum.add_(rows[i].to(DType::f32));
    if (op_ == ReduceOp::avg) sum.div_(static_cast<double>(rows.size()));
    result.copy_(sum);
    return;
  }
  if (rows.size() == 2) {
    join_two(op_, result, rows[1 - own]);  // either order has the same bits
  } else {
    Tensor& first = rows[0];
    for (size_t i = 1; i < rows.size(); ++i) join_two(op_, first, rows[i]);
    if (own != 0) result.copy_(first);
  }
  if (op_ == ReduceOp::avg) result.div_(static_cast<double>(rows.size()));
}

}  // namespace kiln::distributed
