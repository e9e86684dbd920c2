#include "kiln/graph/passes/elementwise_rows.h"

#include <algorithm>
#include <iterator>

#include "kiln/graph/rows.h"

namespace kiln::graph {

namespace {

#define KILN_ARITHMETIC(kind)                                                                   \
  kRow_##kind##_add, kRow_##kind##_sub, kRow_##kind##_mul, kRow_##kind##_maximum,               \
      kRow_##kind##_minimum, kRow_##kind##_add_scalar, kRow_##kind##_mul_scalar,                \
      kRow_##kind##_rsub_scalar, kRow_##kind##_clamp, kRow_##kind##_neg, kRow_##kind##_abs,     \
      kRow_##kind##_sign, kRow_##kind##_equal, kRow_##kind##_not_equal, kRow_##kind##_greater,  \
      kRow_##kind##_greater_equal, kRow_##kind##_lower, kRow_##kind##_lower_equal,              \
      kRow_##kind##_equal_scalar, kRow_##kind##_not_equal_scalar, kRow_##kind##_greater_scalar, \
      kRow_##kind##_greater_equal_scalar, kRow_##kind##_lower_scalar,                           \
      kRow_##kind##_lower_equal_scalar, kRow_##kind##_mask_where, kRow_##kind##_mask_fill

constexpr Row kElementwise[] = {
    KILN_ARITHMETIC(float),
    KILN_ARITHMETIC(int),
    kRow_float_cast,
    kRow_float_into_int,
    kRow_float_into_bool,
    kRow_int_cast,
    kRow_int_into_float,
    kRow_int_into_bool,
    kRow_bool_into_float,
    kRow_bool_into_int,
    kRow_float_div,
    kRow_float_remainder,
    kRow_float_pow,
    kRow_float_atan2,
    kRow_float_div_scalar,
    kRow_float_remainder_scalar,
    kRow_float_pow_scalar,
    kRow_float_rdiv_scalar,
    kRow_float_square,
    kRow_float_sqrt,
    kRow_float_rsqrt,
    kRow_float_recip,
    kRow_float_exp,
    kRow_float_expm1,
    kRow_float_log,
    kRow_float_log1p,
    kRow_float_log2,
    kRow_float_log10,
    kRow_float_sin,
    kRow_float_cos,
    kRow_float_tan,
    kRow_float_asin,
    kRow_float_acos,
    kRow_float_atan,
    kRow_float_sinh,
    kRow_float_cosh,
    kRow_float_tanh,
    kRow_float_asinh,
    kRow_float_acosh,
    kRow_float_atanh,
    kRow_float_erf,
    kRow_float_floor,
    kRow_float_ceil,
    kRow_float_round,
    kRow_float_trunc,
    kRow_float_unary,
    kRow_float_binary,
    kRow_float_ternary,
    kRow_float_is_nan,
    kRow_float_is_inf,
    kRow_float_relu,
    kRow_float_relu_backward,
    kRow_float_sigmoid,
    kRow_float_sigmoid_backward,
    kRow_float_tanh_backward,
    kRow_float_silu,
    kRow_float_silu_backward,
    kRow_float_gelu,
    kRow_float_gelu_backward,
    kRow_bool_and,
    kRow_bool_or,
    kRow_bool_xor,
    kRow_bool_not,
    kRow_bool_equal,
    kRow_bool_mask_where,
    kRow_bool_mask_fill,
};

}  // namespace

bool is_elementwise(const Node& node) {
  return node.kind == NodeKind::row && node.results.size() == 1 &&
         std::find(std::begin(kElementwise), std::end(kElementwise), node.row) !=
             std::end(kElementwise);
}

}  // namespace kiln::graph
