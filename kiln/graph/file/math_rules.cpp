// Rules of elementwise rows, reductions and what runs along a dim.
#include <cmath>

#include "kiln/graph/file/rules.h"

namespace kiln::graph {

namespace {

void any(const RowCheck&) {}

void check_pair(const RowCheck& row) {
  row.require_same_dtype(0, 1);
  checked_numel(broadcast_shapes("broadcast", row.shape(0), row.shape(1)));
}
void check_binary_function(const RowCheck& row) {
  check_pair(row);
  const BinaryFunction& f = row.get<BinaryFunction>(2);
  if (f.type != BinaryFunction::Type::polynomial) return;
  row.require(f.a >= 0 && f.a <= 7 && f.b >= 0 && f.b < kPolynomialOrders,
              "a family of polynomials and an order of derivative");
}
void check_three(const RowCheck& row) {
  row.require_same_dtype(0, 1);
  row.require_same_dtype(0, 2);
  checked_numel(broadcast_shapes(
      "broadcast", broadcast_shapes("broadcast", row.shape(0), row.shape(1)), row.shape(2)));
}
void check_one_dim(const RowCheck& row) { row.require_dim(0, 1); }
void check_dims(const RowCheck& row) { row.require_dims(0, 1); }
void check_norm(const RowCheck& row) {
  row.require_dims(0, 2);
  if (!std::isinf(row.get<double>(1))) return;
  for (const int64_t dim : row.get<Shape>(2)) {
    row.require(row.shape(0)[static_cast<int>(dim)] > 0, "dims with elements");
  }
}
void check_extreme(const RowCheck& row) {
  check_dims(row);
  for (const int64_t dim : row.get<Shape>(1)) {
    row.require(row.shape(0)[static_cast<int>(dim)] > 0, "dims with elements");
  }
}
void check_place(const RowCheck& row) {
  check_one_dim(row);
  row.require(row.shape(0)[row.get<int>(1)] > 0, "a dim with elements");
}
void check_topk(const RowCheck& row) {
  row.require_dim(0, 2);
  const int64_t k = row.get<int64_t>(1);
  row.require(k >= 0 && k <= row.shape(0)[row.get<int>(2)], "at most as many as the dim has");
}
void check_argplace(const RowCheck& row) {
  row.require_dim(0, 2);
  Shape places = row.shape(1);
  row.require(row.dtype(1) == DType::i64 && places.rank() == row.rank(0), "places of dtype int64");
  places[row.get<int>(2)] = row.shape(0)[row.get<int>(2)];
  row.require(places == row.shape(0), "places in the shape of the operand beside the dim");
}
void check_sorted(const RowCheck& row) {
  row.require_same_dtype(0, 1);
  bool fits = row.rank(0) >= 1 && (row.rank(0) == 1 || row.rank(0) == row.rank(1));
  for (int d = 0; fits && row.rank(0) > 1 && d + 1 < row.rank(0); ++d) {
    fits = row.shape(0)[d] == row.shape(1)[d];
  }
  row.require(fits, "one row of limits, or a row for each row of values");
}
void check_running(const RowCheck& row) {
  row.require_same_dtype(0, 1);
  row.require_shape(1, row.shape(0), "operands of one shape");
  row.require_dim(0, 2);
}
void check_cdist(const RowCheck& row) {
  row.require_same_dtype(0, 1);
  const Shape &x = row.shape(0), &y = row.shape(1);
  bool fits = x.rank() >= 2 && y.rank() == x.rank() && x.back() == y.back();
  for (int d = 0; fits && d + 2 < x.rank(); ++d) fits = x[d] == y[d];
  row.require(fits, "rows of one length with equal batch dims");
}
void check_parts(const RowCheck& row, size_t argument) {
  row.require(row.rank(argument) >= 1 && row.shape(argument).back() == 2 &&
                  (row.dtype(argument) == DType::f32 || row.dtype(argument) == DType::f64),
              "the parts of complex numbers");
}
void check_complex(const RowCheck& row) { check_parts(row, 0); }
void check_complex_two(const RowCheck& row) {
  check_parts(row, 0);
  check_parts(row, 1);
  check_pair(row);
}
void check_fft(const RowCheck& row) {
  check_parts(row, 0);
  const int dim = row.get<int>(1);
  row.require(dim >= 0 && dim < row.rank(0) - 1 && row.shape(0)[dim] > 0, "a dim with elements");
}
void check_real(const RowCheck& row) {
  row.require(row.dtype(0) == DType::f32 || row.dtype(0) == DType::f64, "float32 or float64");
  row.require(row.rank(0) >= 1 && row.rank(0) < kMaxRank && row.shape(0).back() > 0,
              "a last dim with elements");
}
void check_fft_real(const RowCheck& row) {
  check_real(row);
  row.require_dims(0, 1);
  bool has_last = false;
  for (const int64_t dim : row.get<Shape>(1)) {
    row.require(row.shape(0)[static_cast<int>(dim)] > 0, "dims with elements");
    has_last = has_last || dim == row.rank(0) - 1;
  }
  row.require(has_last, "the last dim among the dims");
}
// [.., k, m, 2] -> [.., 2 k, 2 m].
void check_complex_rows(const RowCheck& row) {
  check_parts(row, 0);
  row.require(row.rank(0) >= 3, "a matrix of complex numbers");
  Shape out = row.shape(0);
  out.push_back(2);
  row.require(out.rank() <= kMaxRank, "at most 12 dims");
  checked_numel(out);
}
void check_irfft(const RowCheck& row) {
  check_parts(row, 0);
  const int64_t n = row.get<int64_t>(1);
  row.require(row.rank(0) >= 2 && n > 0 && n / 2 + 1 == row.shape(0)[row.rank(0) - 2],
              "half a spectrum and its length");
}

constexpr Rule kMathRules[] = {
#define KILN_UNARY_RULE(name) {kRow_float_##name, any},
    // clang-format off
    KILN_UNARY_RULE(neg) KILN_UNARY_RULE(abs) KILN_UNARY_RULE(sign) KILN_UNARY_RULE(square)
    KILN_UNARY_RULE(sqrt) KILN_UNARY_RULE(rsqrt) KILN_UNARY_RULE(recip) KILN_UNARY_RULE(exp)
    KILN_UNARY_RULE(expm1) KILN_UNARY_RULE(log) KILN_UNARY_RULE(log1p) KILN_UNARY_RULE(log2)
    KILN_UNARY_RULE(log10) KILN_UNARY_RULE(sin) KILN_UNARY_RULE(cos) KILN_UNARY_RULE(tan)
    KILN_UNARY_RULE(asin) KILN_UNARY_RULE(acos) KILN_UNARY_RULE(atan) KILN_UNARY_RULE(sinh)
    KILN_UNARY_RULE(cosh) KILN_UNARY_RULE(tanh) KILN_UNARY_RULE(asinh) KILN_UNARY_RULE(acosh)
    KILN_UNARY_RULE(atanh) KILN_UNARY_RULE(erf) KILN_UNARY_RULE(floor) KILN_UNARY_RULE(ceil)
    KILN_UNARY_RULE(round) KILN_UNARY_RULE(trunc) KILN_UNARY_RULE(relu) KILN_UNARY_RULE(sigmoid)
    KILN_UNARY_RULE(silu) KILN_UNARY_RULE(gelu) KILN_UNARY_RULE(unary) KILN_UNARY_RULE(clamp)
    KILN_UNARY_RULE(is_nan) KILN_UNARY_RULE(is_inf) KILN_UNARY_RULE(add_scalar)
    KILN_UNARY_RULE(mul_scalar) KILN_UNARY_RULE(div_scalar) KILN_UNARY_RULE(remainder_scalar)
    KILN_UNARY_RULE(pow_scalar) KILN_UNARY_RULE(rsub_scalar) KILN_UNARY_RULE(rdiv_scalar)
    KILN_UNARY_RULE(equal_scalar) KILN_UNARY_RULE(not_equal_scalar)
    KILN_UNARY_RULE(greater_scalar) KILN_UNARY_RULE(greater_equal_scalar)
    KILN_UNARY_RULE(lower_scalar) KILN_UNARY_RULE(lower_equal_scalar)
#undef KILN_UNARY_RULE
#define KILN_TWO_RULE(name) {kRow_##name, check_pair},
    KILN_TWO_RULE(float_add) KILN_TWO_RULE(float_sub) KILN_TWO_RULE(float_mul)
    KILN_TWO_RULE(float_div) KILN_TWO_RULE(float_remainder) KILN_TWO_RULE(float_pow)
    KILN_TWO_RULE(float_atan2) KILN_TWO_RULE(float_maximum) KILN_TWO_RULE(float_minimum)
    KILN_TWO_RULE(float_equal) KILN_TWO_RULE(float_not_equal) KILN_TWO_RULE(float_greater)
    KILN_TWO_RULE(float_greater_equal) KILN_TWO_RULE(float_lower)
    KILN_TWO_RULE(float_lower_equal)
    KILN_TWO_RULE(int_add) KILN_TWO_RULE(int_sub) KILN_TWO_RULE(int_mul) KILN_TWO_RULE(int_div)
    KILN_TWO_RULE(int_remainder) KILN_TWO_RULE(int_maximum) KILN_TWO_RULE(int_minimum)
    KILN_TWO_RULE(int_bitwise_and) KILN_TWO_RULE(int_bitwise_or) KILN_TWO_RULE(int_bitwise_xor)
    KILN_TWO_RULE(int_binary) KILN_TWO_RULE(int_equal) KILN_TWO_RULE(int_not_equal)
    KILN_TWO_RULE(int_greater) KILN_TWO_RULE(int_greater_equal) KILN_TWO_RULE(int_lower)
    KILN_TWO_RULE(int_lower_equal) KILN_TWO_RULE(bool_equal) KILN_TWO_RULE(bool_and)
    KILN_TWO_RULE(bool_or) KILN_TWO_RULE(bool_xor)
#undef KILN_TWO_RULE
#define KILN_INT_RULE(name) {kRow_int_##name, any},
    KILN_INT_RULE(add_scalar) KILN_INT_RULE(mul_scalar) KILN_INT_RULE(rsub_scalar)
    KILN_INT_RULE(clamp) KILN_INT_RULE(bitwise_not) KILN_INT_RULE(neg) KILN_INT_RULE(abs)
    KILN_INT_RULE(sign) KILN_INT_RULE(equal_scalar) KILN_INT_RULE(not_equal_scalar)
    KILN_INT_RULE(greater_scalar) KILN_INT_RULE(greater_equal_scalar)
    KILN_INT_RULE(lower_scalar) KILN_INT_RULE(lower_equal_scalar)
#undef KILN_INT_RULE
    // clang-format on
    {kRow_bool_not, any},
    {kRow_float_binary, check_binary_function},
    {kRow_float_binary_sum, check_binary_function},
    {kRow_float_ternary, check_three},
    {kRow_float_sum, check_dims},
    {kRow_float_mean, check_dims},
    {kRow_float_nansum, check_dims},
    {kRow_float_prod, check_dims},
    {kRow_float_amax, check_extreme},
    {kRow_float_amin, check_extreme},
    {kRow_float_var, check_dims},
    {kRow_float_logsumexp, check_dims},
    {kRow_float_norm, check_norm},
    {kRow_float_argmax, check_place},
    {kRow_float_argmin, check_place},
    {kRow_float_cumsum, check_one_dim},
    {kRow_float_cumprod, check_one_dim},
    {kRow_float_logcumsumexp, check_one_dim},
    {kRow_float_cumarg, check_one_dim},
    {kRow_float_linear_scan, check_running},
    {kRow_float_sort, check_one_dim},
    {kRow_float_argtopk, check_topk},
    {kRow_float_argplace, check_argplace},
    {kRow_float_searchsorted, check_sorted},
    {kRow_float_cdist, check_cdist},
    {kRow_int_sum, check_dims},
    {kRow_int_prod, check_dims},
    {kRow_int_amax, check_extreme},
    {kRow_int_amin, check_extreme},
    {kRow_int_argmax, check_place},
    {kRow_int_argmin, check_place},
    {kRow_int_cumsum, check_one_dim},
    {kRow_int_cumprod, check_one_dim},
    {kRow_int_cumarg, check_one_dim},
    {kRow_int_argsort, check_one_dim},
    {kRow_int_argtopk, check_topk},
    {kRow_int_argplace, check_argplace},
    {kRow_int_searchsorted, check_sorted},
    {kRow_bool_any, check_dims},
    {kRow_bool_all, check_dims},
    {kRow_bool_count, check_dims},
    {kRow_float_fft, check_fft},
    {kRow_float_fft_real, check_fft_real},
    {kRow_float_rfft, check_real},
    {kRow_float_irfft, check_irfft},
    {kRow_float_complex_mul, check_complex_two},
    {kRow_float_complex_div, check_complex_two},
    {kRow_float_complex_pow, check_complex_two},
    {kRow_float_complex_abs, check_complex},
    {kRow_float_complex_unary, check_complex},
    {kRow_float_complex_rows, check_complex_rows},
};

}  // namespace

std::span<const Rule> math_rules() { return kMathRules; }

}  // namespace kiln::graph
