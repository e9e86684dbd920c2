#include "kiln/backend/gpu/loops.h"

#include <array>
#include <cstring>
#include <numeric>

#include "kiln/backend/window_math.h"
#include "kiln/core/convert.h"
#include "kiln/core/dim_order.h"
#include "kiln/core/error.h"

namespace kiln::gpu {

void Loop::add(const Strides& s, int64_t offset) {
  strides[static_cast<size_t>(operands)] = s;
  offsets[static_cast<size_t>(operands)] = offset;
  ++operands;
}

void Loop::add(const GpuTensor& x) { add(window::broadcast_strides(x, shape), x.offset()); }

MapArgument Loop::argument(bool as_written) const {
  MapArgument m;
  std::array<int, kMaxRank> order;
  std::iota(order.begin(), order.end(), 0);
  if (as_written && !kiln::is_contiguous(shape, strides[0])) {
    sort_by_stride(order.data(), shape.rank(), strides[0]);
  }
  m.n = shape.numel();
  m.rank = 0;
  const auto stride = [&](int k, int d) {
    const Strides& s = strides[static_cast<size_t>(k)];
    return d < s.rank() ? s[d] : 0;
  };
  for (int i = 0; i < shape.rank(); ++i) {
    const int d = order[static_cast<size_t>(i)];
    if (shape[d] == 1) continue;
    bool joins = m.rank > 0;
    for (int k = 0; k < operands && joins; ++k) {
      joins = m.step[k][m.rank - 1] == stride(k, d) * shape[d];
    }
    if (!joins) ++m.rank;
    const int64_t at = m.rank - 1;
    m.size[at] = (joins ? m.size[at] : 1) * shape[d];
    for (int k = 0; k < operands; ++k) m.step[k][at] = stride(k, d);
  }
  if (m.rank == 0) {
    m.rank = 1;
    m.size[0] = 1;
  }
  for (size_t k = 0; k < 4; ++k) m.offset[k] = offsets[k];
  return m;
}

const char* dialect_name(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "f64";
    case DType::f32:
      return "f32";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::i64:
      return "i64";
    case DType::i32:
      return "i32";
    case DType::i16:
      return "i16";
    case DType::i8:
      return "i8";
    case DType::u8:
      return "u8";
    case DType::boolean:
      return "boolean";
    default:
      throw_unsupported_dtype("gpu", dtype);
  }
}

const char* scalar_type(DType dtype) {
  if (dtype == DType::f64) return "f64";
  return kind_of(dtype) == Kind::floating ? "f32" : "i64";
}

ScalarArgument::ScalarArgument(DType dtype, double value) {
  if (dtype == DType::f64) {
    std::memcpy(bytes_.data(), &value, 8);
  } else if (kind_of(dtype) == Kind::floating) {
    const auto narrow = static_cast<float>(value);
    std::memcpy(bytes_.data(), &narrow, 4);
    size_ = 4;
  } else {
    const auto whole = convert_element<int64_t>(value);
    std::memcpy(bytes_.data(), &whole, 8);
  }
}
ScalarArgument::ScalarArgument(DType dtype, int64_t value) {
  if (kind_of(dtype) == Kind::floating) {
    *this = ScalarArgument(dtype, static_cast<double>(value));
  } else {
    std::memcpy(bytes_.data(), &value, 8);
  }
}

double rounded(Scalar value, DType dtype) {
  return visit_dtype("scalar", dtype, [&]<class E>() {
    return convert_element<double>(convert_element<E>(value.to_double()));
  });
}

std::string arithmetic(DType dtype) {
  const char* name = dialect_name(dtype);
  return define("A", concat("ACC(", name, ")")) + define("W", concat("WRAP(", name, ")"));
}

std::string product_sum(DType dtype) {
  return define("PRODUCT_SUM(v, w, s)",
                kind_of(dtype) == Kind::floating ? "fma(v, w, s)" : "((v) * (w) + (s))");
}

}  // namespace kiln::gpu
