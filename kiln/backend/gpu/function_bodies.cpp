#include "kiln/backend/gpu/function_bodies.h"

namespace kiln::gpu {

// y = a function of a library, in the widest float type.
#define KILN_GPU_ERF(call) \
  { "y = (A)JOIN(NAME, _" call ";", "special_erf" }
#define KILN_GPU_GAMMA(call) \
  { "y = (A)JOIN(NAME, _" call ";", "special_gamma" }
#define KILN_GPU_BESSEL(call) \
  { "y = (A)JOIN(NAME, _" call ";", "special_bessel" }

Body body_of(UnaryFunction::Type type) {
  using enum UnaryFunction::Type;
  switch (type) {
    case exp2:
      return "y = exp2(x0);";
    case erfc:
      return "y = (A)erfc((WIDEST)x0);";
    case erfcx:
      return KILN_GPU_ERF("erfcx)((WIDEST)x0)");
    case erfinv:
      return KILN_GPU_ERF("erfinv)((WIDEST)x0)");
    case ndtri:
      return KILN_GPU_ERF("ndtri)((WIDEST)x0)");
    case log_ndtr:
      return KILN_GPU_ERF("log_ndtr)((WIDEST)x0)");
    case sinc:
      return KILN_GPU_ERF("sinc)((int)s0, (WIDEST)x0)");
    case lgamma:
      return KILN_GPU_GAMMA("lgamma)((WIDEST)x0)");
    case digamma:
      return KILN_GPU_GAMMA("digamma)((WIDEST)x0)");
    case polygamma:
      return KILN_GPU_GAMMA("polygamma)((int)s0, (WIDEST)x0)");
    case bessel_i0:
      return {"y = (A)(exp(fabs((WIDEST)x0)) * JOIN(NAME, _i0e)((WIDEST)x0));", "special_bessel"};
    case bessel_i0e:
      return KILN_GPU_BESSEL("i0e)((WIDEST)x0)");
    case bessel_i1:
      return {"y = (A)(exp(fabs((WIDEST)x0)) * JOIN(NAME, _i1e)((WIDEST)x0));", "special_bessel"};
    case bessel_i1e:
      return KILN_GPU_BESSEL("i1e)((WIDEST)x0)");
    case bessel_j0:
      return KILN_GPU_BESSEL("j)(0, (WIDEST)x0)");
    case bessel_j1:
      return KILN_GPU_BESSEL("j)(1, (WIDEST)x0)");
    case bessel_j_over:
      return KILN_GPU_BESSEL("j_over)((int)s0, (WIDEST)x0)");
    case bessel_i_over:
      return KILN_GPU_BESSEL("i_over)((int)s0, (WIDEST)x0, s1 != (A)0)");
    case bessel_y0:
      return KILN_GPU_BESSEL("y)(0, (WIDEST)x0)");
    case bessel_y1:
      return KILN_GPU_BESSEL("y)(1, (WIDEST)x0)");
    case bessel_k0:
      return KILN_GPU_BESSEL("k)((WIDEST)0, (WIDEST)x0, 0)");
    case bessel_k1:
      return KILN_GPU_BESSEL("k)((WIDEST)1, (WIDEST)x0, 0)");
    case bessel_k0e:
      return KILN_GPU_BESSEL("k)((WIDEST)0, (WIDEST)x0, 1)");
    case bessel_k1e:
      return KILN_GPU_BESSEL("k)((WIDEST)1, (WIDEST)x0, 1)");
    case airy_ai:
      return KILN_GPU_BESSEL("airy)((WIDEST)x0)");
    case ndtr:
      return "y = (A)((WIDEST)0.5 * erfc((WIDEST)x0 * (WIDEST)-0.70710678118654752440));";
    case log1mexp:
      return "y = x0 < (A)0.69314718055994530942 ? log(-expm1(-x0)) : log1p(-exp(-x0));";
    case entr:
      return "y = x0 > (A)0 ? -x0 * log(x0) : x0 == (A)0 ? (A)0 : x0 < (A)0 ? -(A)INFINITY : x0;";
    case frac:
      return "y = x0 - trunc(x0);";
    case logit:
      return "A v = x0; if (s0 >= (A)0) { v = v < s0 ? s0 : v; v = v > (A)1 - s0 ? (A)1 - s0 : v; "
             "} y = log(v / ((A)1 - v));";
    case nan_to_num:
      return "y = x0 != x0 ? s0 : x0 - x0 != (A)0 ? (x0 > (A)0 ? s1 : s2) : x0;";
    case softplus:
      return "A z = s0 * x0; y = z > s1 ? x0 : ((z > (A)0 ? z : z != z ? z : (A)0) + "
             "LOG1P_EXP_MINUS(A, fabs(z))) / s0;";
    case log_sigmoid:
      return "y = (x0 < (A)0 ? x0 : x0 != x0 ? x0 : (A)0) - LOG1P_EXP_MINUS(A, fabs(x0));";
    case frexp_mantissa:
      return "int e = 0; y = x0; if (x0 - x0 == (A)0) y = frexp(x0, &e);";
    case frexp_exponent:
      return "int e = 0; A f = (A)0; if (x0 - x0 == (A)0) f = frexp(x0, &e); "
             "y = f == (A)0 ? (A)0 : (A)e;";
    case leaky_relu:
      return "y = x0 > (A)0 ? x0 : s0 * x0;";
    case threshold:
      return "y = x0 <= s0 ? s1 : x0;";
    case hardtanh:
      return "y = x0 < s0 ? s0 : x0 > s1 ? s1 : x0;";
    case hardshrink:
      return "y = fabs(x0) <= s0 ? (A)0 : x0;";
    case softshrink:
      return "y = fabs(x0) <= s0 ? (A)0 : x0 - copysign(s0, x0);";
    case hardsigmoid:
      return "y = (x0 < (A)-3 ? (A)0 : x0 > (A)3 ? (A)6 : x0 + (A)3) / (A)6;";
    case hardswish:
      return "y = x0 * ((x0 < (A)-3 ? (A)0 : x0 > (A)3 ? (A)6 : x0 + (A)3) / (A)6);";
    case elu:
      return "y = x0 > (A)0 ? s2 * x0 : s2 * s0 * expm1(s1 * x0);";
    default:
      return {};
  }
}

#undef KILN_GPU_ERF
#undef KILN_GPU_BESSEL

Body body_of(BinaryFunction::Type type, bool narrow) {
  using enum BinaryFunction::Type;
  switch (type) {
    case fmod:
      return "y = fmod(x0, x1);";
    case floor_divide:
      return "if (x1 == (A)0) { y = x0 / x1; } else { WIDEST v = x0; WIDEST w = x1; "
             "WIDEST rest = fmod(v, w); WIDEST q = (v - rest) / w; "
             "if (rest != (WIDEST)0 && (w < (WIDEST)0) != (rest < (WIDEST)0)) q -= (WIDEST)1; "
             "if (q == (WIDEST)0) { y = (A)copysign((WIDEST)0, v / w); } else { "
             "WIDEST f = floor(q); y = (A)(q - f > (WIDEST)0.5 ? f + (WIDEST)1 : f); } }";
    case trunc_divide:
      return "y = (A)trunc((WIDEST)x0 / (WIDEST)x1);";
    case hypot:
      return "y = hypot(x0, x1);";
    case copysign:
      return "y = copysign(x0, x1);";
    case nextafter:
      return narrow ? Body(
                          "u16 bits = JOIN(SAVE_, OUT)(x0); "
                          "if (x0 != x0 || x1 != x1) { y = (A)NAN; } "
                          "else if (x0 == x1) { y = x1; } "
                          "else if (x0 == (A)0) { "
                          "y = JOIN(LOAD_, OUT)((u16)(x1 < (A)0 ? 0x8001u : 1u)); } "
                          "else { y = JOIN(LOAD_, OUT)((u16)((x0 < x1) == (x0 > (A)0) ? bits + 1 "
                          ": bits - 1)); }")
                    : Body("y = nextafter(x0, x1);");
    case fmax:
      return "y = x0 != x0 || x0 < x1 ? x1 : x0;";
    case fmin:
      return "y = x0 != x0 || x1 < x0 ? x1 : x0;";
    case heaviside:
      return "y = x0 != x0 ? x0 : x0 == (A)0 ? x1 : (A)(x0 > (A)0);";
    case xlogy:
      return "y = x1 != x1 ? x1 : x0 == (A)0 ? (A)0 : x0 * log(x1);";
    case xlog1py:
      return "y = x1 != x1 ? x1 : x0 == (A)0 ? (A)0 : x0 * log1p(x1);";
    case logaddexp:
      return "y = x0 == x1 ? x0 + (A)0.69314718055994530942 : (x0 > x1 ? x0 : x1) + "
             "log1p(exp(-fabs(x0 - x1)));";
    case logaddexp2:
      return "y = x0 == x1 ? x0 + (A)1 : (x0 > x1 ? x0 : x1) + "
             "log1p(exp2(-fabs(x0 - x1))) * (A)1.44269504088896340736;";
    case zeta:
      return KILN_GPU_GAMMA("zeta)((WIDEST)x0, (WIDEST)x1)");
    case gammainc:
      return KILN_GPU_GAMMA("gammainc)((WIDEST)x0, (WIDEST)x1, 0)");
    case gammaincc:
      return KILN_GPU_GAMMA("gammainc)((WIDEST)x0, (WIDEST)x1, 1)");
    case polynomial:
      return {"y = (A)JOIN(NAME, _polynomial)((int)s0, (int)s1, (WIDEST)x0, (WIDEST)x1);",
              "special_polynomial"};
    case prelu:
      return "y = x0 > (A)0 ? x0 : x1 * x0;";
    case glu:
      return "y = x0 * SIGMOID(A, x1);";
    case huber:
      return "A d = fabs(x0 - x1); y = (d <= s0 ? (A)0.5 * d * d : s0 * (d - (A)0.5 * s0)) / s1;";
    case bce_with_logits:
      return "y = (x0 < (A)0 ? (A)0 : x0) - x0 * x1 + log1p(exp(-fabs(x0)));";
    case squared_difference:
      return "y = (x0 - x1) * (x0 - x1);";
    case absolute_difference:
      return "y = fabs(x0 - x1);";
    case leaky_relu_backward:
      return "y = x1 > (A)0 ? x0 : s0 * x0;";
    case threshold_backward:
      return "y = x1 <= s0 ? (A)0 : x0;";
    case hardtanh_backward:
      return "y = x1 <= s0 || x1 >= s1 ? (A)0 : s2 * x0;";
    case shrink_backward:
      return "y = fabs(x1) <= s0 ? (A)0 : x0;";
    case hardswish_backward:
      return "y = x1 <= (A)-3 ? (A)0 : x1 >= (A)3 ? x0 : x0 * (x1 / (A)3 + (A)0.5);";
    case elu_backward:
      return "y = x1 > (A)0 ? s2 * x0 : s2 * s0 * s1 * exp(s1 * x1) * x0;";
    case softplus_backward:
      return "A z = s0 * x1; y = z > s1 ? x0 : x0 * SIGMOID(A, z);";
    case prelu_weight_backward:
      return "y = x1 > (A)0 ? (A)0 : x0 * x1;";
    default:
      return {};
  }
}

#undef KILN_GPU_GAMMA

Body body_of(TernaryFunction::Type type) {
  using enum TernaryFunction::Type;
  switch (type) {
    case lerp:
      return "y = fabs(x2) < (A)0.5 ? x0 + x2 * (x1 - x0) : x1 - (x1 - x0) * ((A)1 - x2);";
    case addcmul:
      return "y = x0 + s0 * x1 * x2;";
    case addcdiv:
      return "y = x0 + s0 * x1 / x2;";
    case clamp:
      return "A v = x0 != x0 || x0 > x1 ? x0 : x1; y = v != v || v < x2 ? v : x2;";
    case prelu_backward:
      return "y = x1 > (A)0 ? x0 : x2 * x0;";
    case glu_backward:
      return "y = x0 * x1 * SIGMOID(A, x2) * SIGMOID(A, -x2);";
    case huber_backward:
      return "A d = x1 - x2; y = x0 * (d < -s0 ? -s0 : d > s0 ? s0 : d) / s1;";
    case bce_with_logits_backward:
      return "y = x0 * (SIGMOID(A, x1) - x2);";
    default:
      return {};
  }
}

Body body_of(IntFunction function) {
#define KILN_GPU_MAGNITUDES \
  "W u = x0 < 0 ? (W)0 - (W)x0 : (W)x0; W v = x1 < 0 ? (W)0 - (W)x1 : (W)x1; "
#define KILN_GPU_GCD "while (v != 0) { W r = u % v; u = v; v = r; } "
  using enum IntFunction;
  switch (function) {
    case fmod:
      return "if (x1 == 0) { FAULT; y = 0; } else if (x1 == (A)-1) { y = 0; } else { y = x0 % x1; "
             "}";
    case floor_divide:
      return "if (x1 == 0) { FAULT; y = 0; } "
             "else if (x1 == (A)-1) { y = (A)((W)0 - (W)x0); } "
             "else { A v = x0 / x1; y = x0 % x1 != 0 && (x0 < 0) != (x1 < 0) ? v - 1 : v; }";
    case gcd:
      return KILN_GPU_MAGNITUDES KILN_GPU_GCD "y = (A)u;";
    case lcm:
      return KILN_GPU_MAGNITUDES
          "if (u == 0 || v == 0) { y = 0; } else { W a = u; W b = v; " KILN_GPU_GCD
          "MEM(IN0) t = (MEM(IN0))(a / u * b); y = t < 0 ? (A)((W)0 - (W)t) : (A)t; }";
    case shift_left:
      return "y = x1 < 0 || x1 >= (A)(8 * sizeof(MEM(IN0))) ? (A)0 : (A)((W)x0 << (W)x1);";
    case shift_right:
      return "y = x1 < 0 || x1 >= (A)(8 * sizeof(MEM(IN0))) ? (x0 < 0 ? (A)-1 : (A)0) : x0 >> x1;";
    case pow:
      return "if (x1 < 0) { y = x0 == 1 ? (A)1 : x0 == (A)-1 ? (x1 % 2 == 0 ? (A)1 : (A)-1) : "
             "(A)0; "
             "} else { W power = 1; W base = (W)x0; "
             "for (W left = (W)x1; left != 0; left >>= 1) { "
             "if ((left & 1) != 0) power *= base; base *= base; } y = (A)power; }";
    default:
      return {};
  }
#undef KILN_GPU_MAGNITUDES
#undef KILN_GPU_GCD
}

const char* name_of_int(IntFunction function) {
  switch (function) {
#define KILN_INT_FUNCTION(name) \
  case IntFunction::name:       \
    return #name;
#include "kiln/backend/functions.def"
    default:
      return "";
  }
}

}  // namespace kiln::gpu
