// The reference backend's arithmetic, reductions and indexing against worked-out values.
//
// The values were computed with PyTorch 2.13 in double precision, from the inputs given here.
#include "tests/backend/reference_check.h"

using namespace kiln;
using namespace reference_test;

TEST_CASE("unary math") {
  const HostHandle x = floats({-2.5, -1, -0.3, 0, 0.4, 1.5, 3}, {7});
  expect(Reference::float_neg(x), {2.5, 1, 0.3, -0.0, -0.4, -1.5, -3}, {7});
  expect(Reference::float_abs(x), {2.5, 1, 0.3, 0, 0.4, 1.5, 3}, {7});
  expect(Reference::float_sign(x), {-1, -1, -1, 0, 1, 1, 1}, {7});
  expect(Reference::float_square(x), {6.25, 1, 0.09, 0, 0.16, 2.25, 9}, {7});
  expect(Reference::float_exp(x),
         {0.082084998624, 0.367879441171, 0.740818220682, 1, 1.491824697641, 4.481689070338,
          20.085536923188},
         {7});
  expect(Reference::float_expm1(x),
         {-0.917915001376, -0.632120558829, -0.259181779318, 0, 0.491824697641, 3.481689070338,
          19.085536923188},
         {7});
  expect(Reference::float_sin(x),
         {-0.598472144104, -0.841470984808, -0.295520206661, 0, 0.389418342309, 0.997494986604,
          0.14112000806},
         {7});
  expect(Reference::float_cos(x),
         {-0.801143615547, 0.540302305868, 0.955336489126, 1, 0.921060994003, 0.070737201668,
          -0.9899924966},
         {7});
  expect(Reference::float_tan(x),
         {0.747022297239, -1.557407724655, -0.30933624961, 0, 0.422793218738, 14.101419947172,
          -0.142546543074},
         {7});
  expect(Reference::float_atan(x),
         {-1.190289949683, -0.785398163397, -0.291456794478, 0, 0.380506377112, 0.982793723247,
          1.249045772398},
         {7});
  expect(Reference::float_sinh(x),
         {-6.05020448104, -1.175201193644, -0.304520293447, 0, 0.410752325803, 2.129279455095,
          10.01787492741},
         {7});
  expect(Reference::float_cosh(x),
         {6.132289479664, 1.543080634815, 1.045338514129, 1, 1.081072371838, 2.352409615243,
          10.067661995778},
         {7});
  expect(Reference::float_tanh(x),
         {-0.986614298151, -0.761594155956, -0.291312612452, 0, 0.379948962255, 0.905148253645,
          0.995054753687},
         {7});
  expect(Reference::float_asinh(x),
         {-1.647231146371, -0.88137358702, -0.295673047563, 0, 0.390035319771, 1.194763217287,
          1.818446459232},
         {7});
  expect(Reference::float_erf(x),
         {-0.999593047983, -0.84270079295, -0.328626759459, 0, 0.428392355047, 0.966105146475,
          0.999977909503},
         {7});
  expect(Reference::float_floor(x), {-3, -1, -1, 0, 0, 1, 3}, {7});
  expect(Reference::float_ceil(x), {-2, -1, -0.0, 0, 1, 2, 3}, {7});
  expect(Reference::float_round(x), {-2, -1, -0.0, 0, 0, 2, 3}, {7});
  expect(Reference::float_trunc(x), {-2, -1, -0.0, 0, 0, 1, 3}, {7});
  expect(Reference::float_sqrt(x),
         {kNan, kNan, kNan, 0, 0.632455532034, 1.224744871392, 1.732050807569}, {7});
  expect(Reference::float_log(x),
         {kNan, kNan, kNan, -kInf, -0.916290731874, 0.405465108108, 1.098612288668}, {7});
  expect(Reference::float_log1p(x),
         {kNan, -kInf, -0.356674943939, 0, 0.336472236621, 0.916290731874, 1.38629436112}, {7});
  expect(Reference::float_log2(x),
         {kNan, kNan, kNan, -kInf, -1.321928094887, 0.584962500721, 1.584962500721}, {7});
  expect(Reference::float_log10(x),
         {kNan, kNan, kNan, -kInf, -0.397940008672, 0.176091259056, 0.47712125472}, {7});
  expect(Reference::float_rsqrt(x),
         {kNan, kNan, kNan, kInf, 1.581138830084, 0.816496580928, 0.57735026919}, {7});
  expect(Reference::float_recip(x),
         {-0.4, -1, -3.333333333333, kInf, 2.5, 0.666666666667, 0.333333333333}, {7});
  expect(Reference::float_asin(x),
         {kNan, -1.570796326795, -0.304692654015, 0, 0.411516846067, kNan, kNan}, {7});
  expect(Reference::float_acos(x),
         {kNan, 3.14159265359, 1.87548898081, 1.570796326795, 1.159279480727, kNan, kNan}, {7});
  expect(Reference::float_acosh(x), {kNan, kNan, kNan, kNan, kNan, 0.962423650119, 1.762747174039},
         {7});
  expect(Reference::float_atanh(x), {kNan, -kInf, -0.309519604203, 0, 0.423648930194, kNan, kNan},
         {7});
}

TEST_CASE("binary arithmetic and comparison") {
  const HostHandle a = floats({1.5, -2, 0, kInf, -0.5, kNan}, {2, 3});
  const HostHandle b = floats({2, -0.75, kInf}, {3});
  expect(Reference::float_add(a, b), {3.5, -2.75, kInf, kInf, -1.25, kNan}, {2, 3});
  expect(Reference::float_sub(a, b), {-0.5, -1.25, -kInf, kInf, 0.25, kNan}, {2, 3});
  expect(Reference::float_mul(a, b), {3, 1.5, kNan, kInf, 0.375, kNan}, {2, 3});
  expect(Reference::float_div(a, b), {0.75, 2.666666666667, 0, kInf, 0.666666666667, kNan}, {2, 3});
  expect(Reference::float_remainder(a, b), {1.5, -0.5, 0, kNan, -0.5, kNan}, {2, 3});
  expect(Reference::float_pow(a, b), {2.25, kNan, 0, kInf, kNan, kNan}, {2, 3});
  expect(Reference::float_atan2(a, b),
         {0.643501108793, -1.929566997065, 0, 1.570796326795, -2.553590050042, kNan}, {2, 3});
  expect(Reference::float_maximum(a, b), {2, -0.75, kInf, kInf, -0.5, kNan}, {2, 3});
  expect(Reference::float_minimum(a, b), {1.5, -2, 0, 2, -0.75, kNan}, {2, 3});
  expect(Reference::float_equal(a, b), {0, 0, 0, 0, 0, 0}, {2, 3});
  expect(Reference::float_not_equal(a, b), {1, 1, 1, 1, 1, 1}, {2, 3});
  expect(Reference::float_greater(a, b), {0, 0, 0, 1, 1, 0}, {2, 3});
  expect(Reference::float_greater_equal(a, b), {0, 0, 0, 1, 1, 0}, {2, 3});
  expect(Reference::float_lower(a, b), {1, 1, 1, 0, 0, 0}, {2, 3});
  expect(Reference::float_lower_equal(a, b), {1, 1, 1, 0, 0, 0}, {2, 3});
  expect(Reference::float_add_scalar(a, -1.5), {0, -3.5, -1.5, kInf, -2, kNan}, {2, 3});
  expect(Reference::float_mul_scalar(a, -1.5), {-2.25, 3, -0.0, -kInf, 0.75, kNan}, {2, 3});
  expect(Reference::float_div_scalar(a, -1.5),
         {-1, 1.333333333333, -0.0, -kInf, 0.333333333333, kNan}, {2, 3});
  expect(Reference::float_remainder_scalar(a, -1.5), {0, -0.5, 0, kNan, -0.5, kNan}, {2, 3});
  expect(Reference::float_pow_scalar(a, -1.5), {0.544331053952, kNan, kInf, 0, kNan, kNan}, {2, 3});
  expect(Reference::float_rsub_scalar(a, -1.5), {-3, 0.5, -1.5, -kInf, -1, kNan}, {2, 3});
  expect(Reference::float_rdiv_scalar(a, -1.5), {-1, 0.75, -kInf, -0.0, 3, kNan}, {2, 3});
  expect(Reference::float_clamp(a, -1.0, 1.0), {1, -1, 0, 1, -0.5, kNan}, {2, 3});
  expect(Reference::float_is_nan(a), {0, 0, 0, 0, 0, 1}, {2, 3});
  expect(Reference::float_is_inf(a), {0, 0, 0, 1, 0, 0}, {2, 3});
}

TEST_CASE("int arithmetic") {
  const HostHandle a = ints({7, -7, 7, -7, 0, 100}, {6});
  const HostHandle b = ints({3, 3, -3, -3, 5, -100}, {6});
  expect(Reference::int_add(a, b), {10, -4, 4, -10, 5, 0}, {6});
  expect(Reference::int_sub(a, b), {4, -10, 10, -4, -5, 200}, {6});
  expect(Reference::int_mul(a, b), {21, -21, -21, 21, 0, -10000}, {6});
  expect(Reference::int_div(a, b), {2, -2, -2, 2, 0, -1}, {6});
  expect(Reference::int_remainder(a, b), {1, 2, -2, -1, 0, 0}, {6});
  expect(Reference::int_maximum(a, b), {7, 3, 7, -3, 5, 100}, {6});
  expect(Reference::int_minimum(a, b), {3, -7, -3, -7, 0, -100}, {6});
  expect(Reference::int_bitwise_and(a, b), {3, 1, 5, -7, 0, 4}, {6});
  expect(Reference::int_bitwise_or(a, b), {7, -5, -1, -3, 5, -4}, {6});
  expect(Reference::int_bitwise_xor(a, b), {4, -6, -6, 4, 5, -8}, {6});
  expect(Reference::int_equal(a, b), {0, 0, 0, 0, 0, 0}, {6});
  expect(Reference::int_greater(a, b), {1, 0, 1, 0, 0, 1}, {6});
  expect(Reference::int_lower_equal(a, b), {0, 1, 0, 1, 1, 0}, {6});
  expect(Reference::int_bitwise_not(a), {-8, 6, -8, 6, -1, -101}, {6});
  expect(Reference::int_neg(a), {-7, 7, -7, 7, 0, -100}, {6});
  expect(Reference::int_abs(a), {7, 7, 7, 7, 0, 100}, {6});
  expect(Reference::int_sign(a), {1, -1, 1, -1, 0, 1}, {6});
  expect(Reference::int_clamp(a, -5, 6), {6, -5, 6, -5, 0, 6}, {6});
  expect(Reference::int_rsub_scalar(a, 10), {3, 17, 3, 17, 10, -90}, {6});
  expect(Reference::int_greater_scalar(a, 0), {1, 0, 1, 0, 0, 1}, {6});
}

TEST_CASE("float reductions") {
  const HostHandle x =
      floats({-1.13, -2.73, 1.76,  0.15, 0.39,  0.3,  -1.35, -0.04, 1.43,  0.77, 0.05, -0.82,
              0.78,  -0.27, -0.38, 0.79, -0.61, 0.18, 0.34,  1.61,  -1.25, 1.65, 0.72, -0.3},
             {2, 3, 4});
  expect(Reference::float_sum(x, Dims{0}, false),
         {-0.35, -3, 1.38, 0.94, -0.22, 0.48, -1.01, 1.57, 0.18, 2.42, 0.77, -1.12}, {3, 4});
  expect(Reference::float_sum(x, Dims{0}, true),
         {-0.35, -3, 1.38, 0.94, -0.22, 0.48, -1.01, 1.57, 0.18, 2.42, 0.77, -1.12}, {1, 3, 4});
  expect(Reference::float_mean(x, Dims{0}, false),
         {-0.175, -1.5, 0.69, 0.47, -0.11, 0.24, -0.505, 0.785, 0.09, 1.21, 0.385, -0.56}, {3, 4});
  expect(Reference::float_amax(x, Dims{0}, false),
         {0.78, -0.27, 1.76, 0.79, 0.39, 0.3, 0.34, 1.61, 1.43, 1.65, 0.72, -0.3}, {3, 4});
  expect(Reference::float_amin(x, Dims{0}, false),
         {-1.13, -2.73, -0.38, 0.15, -0.61, 0.18, -1.35, -0.04, -1.25, 0.77, 0.05, -0.82}, {3, 4});
  expect(Reference::float_var(x, Dims{0}, 1.0, false),
         {1.82405, 3.0258, 2.2898, 0.2048, 0.5, 0.0072, 1.42805, 1.36125, 3.5912, 0.3872, 0.22445,
          0.1352},
         {3, 4});
  expect(Reference::float_var(x, Dims{0}, 0.0, false),
         {0.912025, 1.5129, 1.1449, 0.1024, 0.25, 0.0036, 0.714025, 0.680625, 1.7956, 0.1936,
          0.112225, 0.0676},
         {3, 4});
  expect(Reference::float_logsumexp(x, Dims{0}, false),
         {0.918091318613, -0.18801921687, 1.871232599895, 1.213496510223, 0.703261687518,
          0.934946101596, 0.509337227379, 1.785674437415, 1.496314899463, 1.996976100019,
          1.133240519622, 0.166573094165},
         {3, 4});
  expect(Reference::float_sum(x, Dims{1}, false),
         {0.69, -1.66, 0.46, -0.71, -1.08, 1.56, 0.68, 2.1}, {2, 4});
  expect(Reference::float_sum(x, Dims{1}, true), {0.69, -1.66, 0.46, -0.71, -1.08, 1.56, 0.68, 2.1},
         {2, 1, 4});
  expect(Reference::float_mean(x, Dims{1}, false),
         {0.23, -0.553333333333, 0.153333333333, -0.236666666667, -0.36, 0.52, 0.226666666667, 0.7},
         {2, 4});
  expect(Reference::float_amax(x, Dims{1}, false), {1.43, 0.77, 1.76, 0.15, 0.78, 1.65, 0.72, 1.61},
         {2, 4});
  expect(Reference::float_amin(x, Dims{1}, false),
         {-1.13, -2.73, -1.35, -0.82, -1.25, -0.27, -0.38, -0.3}, {2, 4});
  expect(Reference::float_var(x, Dims{1}, 1.0, false),
         {1.6576, 3.608633333333, 2.426033333333, 0.264233333333, 1.0771, 1.0083, 0.312133333333,
          0.9181},
         {2, 4});
  expect(Reference::float_var(x, Dims{1}, 0.0, false),
         {1.105066666667, 2.405755555556, 1.617355555556, 0.176155555556, 0.718066666667, 0.6722,
          0.208088888889, 0.612066666667},
         {2, 4});
  expect(Reference::float_logsumexp(x, Dims{1}, false),
         {1.788205367924, 1.273921637024, 1.963321790168, 0.941200037624, 1.102381154706,
          1.969567617656, 1.421478623955, 2.07279775487},
         {2, 4});
  expect(Reference::float_sum(x, Dims{0, 2}, false), {-1.03, 0.82, 2.25}, {3});
  expect(Reference::float_sum(x, Dims{0, 2}, true), {-1.03, 0.82, 2.25}, {1, 3, 1});
  expect(Reference::float_mean(x, Dims{0, 2}, false), {-0.12875, 0.1025, 0.28125}, {3});
  expect(Reference::float_amax(x, Dims{0, 2}, false), {1.76, 1.61, 1.65}, {3});
  expect(Reference::float_amin(x, Dims{0, 2}, false), {-2.73, -1.35, -1.25}, {3});
  expect(Reference::float_var(x, Dims{0, 2}, 1.0, false),
         {1.8810125, 0.727764285714, 1.081898214286}, {3});
  expect(Reference::float_var(x, Dims{0, 2}, 0.0, false), {1.6458859375, 0.63679375, 0.9466609375},
         {3});
  expect(Reference::float_logsumexp(x, Dims{0, 2}, false),
         {2.579810215006, 2.501042132551, 2.779992760324}, {3});
  expect(Reference::float_sum(x, Dims{0, 1, 2}, false), {2.04}, {});
  expect(Reference::float_sum(x, Dims{0, 1, 2}, true), {2.04}, {1, 1, 1});
  expect(Reference::float_mean(x, Dims{0, 1, 2}, false), {0.085}, {});
  expect(Reference::float_amax(x, Dims{0, 1, 2}, false), {1.76}, {});
  expect(Reference::float_amin(x, Dims{0, 1, 2}, false), {-2.73}, {});
  expect(Reference::float_var(x, Dims{0, 1, 2}, 1.0, false), {1.152643478261}, {});
  expect(Reference::float_var(x, Dims{0, 1, 2}, 0.0, false), {1.104616666667}, {});
  expect(Reference::float_logsumexp(x, Dims{0, 1, 2}, false), {3.725903872136}, {});
  expect(Reference::float_prod(x, Dims{1}, false),
         {-0.630201, -0.63063, -0.1188, 0.00492, 0.59475, -0.08019, -0.093024, -0.38157}, {2, 4});
  expect(Reference::float_argmax(x, 0, false), {1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 1, 1}, {3, 4});
  expect(Reference::float_argmin(x, 0, true), {0, 0, 1, 0, 1, 1, 0, 0, 1, 0, 0, 0}, {1, 3, 4});
  expect(Reference::float_cumsum(x, 0),
         {-1.13, -2.73, 1.76, 0.15, 0.39,  0.3,  -1.35, -0.04, 1.43, 0.77, 0.05, -0.82,
          -0.35, -3,    1.38, 0.94, -0.22, 0.48, -1.01, 1.57,  0.18, 2.42, 0.77, -1.12},
         {2, 3, 4});
  expect(Reference::float_argmax(x, 1, false), {2, 2, 0, 0, 0, 2, 2, 1}, {2, 4});
  expect(Reference::float_argmin(x, 1, true), {0, 0, 1, 2, 2, 0, 0, 2}, {2, 1, 4});
  expect(Reference::float_cumsum(x, 1),
         {-1.13, -2.73, 1.76,  0.15, -0.74, -2.43, 0.41,  0.11, 0.69,  -1.66, 0.46, -0.71,
          0.78,  -0.27, -0.38, 0.79, 0.17,  -0.09, -0.04, 2.4,  -1.08, 1.56,  0.68, 2.1},
         {2, 3, 4});
  expect(Reference::float_argmax(x, 2, false), {2, 0, 0, 3, 3, 1}, {2, 3});
  expect(Reference::float_argmin(x, 2, true), {1, 2, 3, 2, 0, 0}, {2, 3, 1});
  expect(Reference::float_cumsum(x, 2),
         {-1.13, -3.86, -2.1, -1.95, 0.39,  0.69,  -0.66, -0.7, 1.43,  2.2, 2.25, 1.43,
          0.78,  0.51,  0.13, 0.92,  -0.61, -0.43, -0.09, 1.52, -1.25, 0.4, 1.12, 0.82},
         {2, 3, 4});
}

TEST_CASE("int and bool reductions") {
  const HostHandle x = ints({5, 2, -4, 4, 4, 6, 3, 1}, {2, 4});
  expect(Reference::int_sum(x, Dims{1}, false), {7, 14}, {2});
  expect(Reference::int_prod(x, Dims{1}, false), {-160, 72}, {2});
  expect(Reference::int_amax(x, Dims{0, 1}, true), {6}, {1, 1});
  expect(Reference::int_amin(x, Dims{0}, false), {4, 2, -4, 1}, {4});
  expect(Reference::int_argmax(x, 1, false), {0, 1}, {2});
  expect(Reference::int_cumsum(x, 1), {5, 7, 3, 7, 4, 10, 13, 14}, {2, 4});
  const HostHandle b = bools({1, 0, 0, 1, 1, 1, 1, 0}, {2, 4});
  expect(Reference::bool_any(b, Dims{0}, false), {1, 1, 1, 1}, {4});
  expect(Reference::bool_all(b, Dims{0}, false), {1, 0, 0, 0}, {4});
  expect(Reference::bool_any(b, Dims{0, 1}, false), {1}, {});
  expect(Reference::bool_not(b), {0, 1, 1, 0, 0, 0, 0, 1}, {2, 4});
}

TEST_CASE("matmul") {
  const HostHandle a = floats(
      {0.04, -0.23, 0.46, -1.15, 1.1, -0.36, -1.96, 0.98, 0.25, -0.44, 0.3, 0.08}, {2, 1, 2, 3});
  const HostHandle b = floats(
      {-1.59, -0.07, 1.2, 1.51, -0.98, 0.8, 0.63, 1.08, -1.78, -1.56, 0.87, 1.11}, {2, 3, 2});
  expect(Reference::float_matmul(a, b),
         {-0.7904, 0.0179, 3.5013, 1.4535, 0.8348, 0.9126, -2.9957, -3.3576, 4.0474, 1.817, 0.9812,
          0.5478, -2.7617, -3.3681, -0.7416, -0.8544},
         {2, 2, 2, 2});
  const HostHandle i = ints({0, 2, 2, -3, -1, -1}, {2, 3});
  const HostHandle j = ints({1, 1, 2, -1, 1, 0}, {3, 2});
  expect(Reference::int_matmul(i, j), {6, -2, -6, -2}, {2, 2});
}

TEST_CASE("indexing") {
  const HostHandle x = floats(
      {0.26, -0.02, -1.44, 1.38, -2.57, -1.24, -0.32, -1.59, 0.62, 0.39, 0.4, -0.06}, {3, 4});
  const HostHandle index = ints({0, 2, 1, 3, 3, 0, 1, 0, 2}, {3, 3});
  const HostHandle src = floats({0.46, -0.96, 0.44, -0.8, -0.08, -1.29, 1.5, -0.87, -0.23}, {3, 3});
  expect(Reference::float_gather(x, 1, index),
         {0.26, -1.44, -0.02, -1.59, -1.59, -2.57, 0.39, 0.62, 0.4}, {3, 3});
  expect(Reference::float_scatter_add(x, 1, index, src),
         {0.72, 0.42, -2.4, 1.38, -3.86, -1.24, -0.32, -2.47, -0.25, 1.89, 0.17, -0.06}, {3, 4});
  const HostHandle rows = ints({2, 0, 2}, {3});
  const HostHandle row_src =
      floats({-0.55, 0.17, -0.47, 1.54, 0.79, 0.24, 0.19, 0.65, 1.56, 0.45, 1.16, 0.48}, {3, 4});
  expect(Reference::float_index_select(x, 0, rows),
         {0.62, 0.39, 0.4, -0.06, 0.26, -0.02, -1.44, 1.38, 0.62, 0.39, 0.4, -0.06}, {3, 4});
  expect(Reference::float_index_add(x, 0, rows, row_src),
         {1.05, 0.22, -1.25, 2.03, -2.57, -1.24, -0.32, -1.59, 1.63, 1.01, 1.09, 1.96}, {3, 4});
  const HostHandle distinct = ints({2, 0, 0, 1, 1, 2}, {3, 2});
  const HostHandle distinct_src = floats({0.46, -0.96, -0.8, -0.08, 1.5, -0.87}, {3, 2});
  expect(Reference::float_scatter(x, 0, distinct, distinct_src),
         {-0.8, -0.96, -1.44, 1.38, 1.5, -0.08, -0.32, -1.59, 0.46, -0.87, 0.4, -0.06}, {3, 4});
  const HostHandle mask = bools({1, 0, 1, 0}, {4});
  expect(Reference::float_mask_fill(x, mask, 9.0),
         {9, -0.02, 9, 1.38, 9, -1.24, 9, -1.59, 9, 0.39, 9, -0.06}, {3, 4});
  expect(Reference::float_mask_where(x, mask, row_src),
         {-0.55, -0.02, -0.47, 1.38, 0.79, -1.24, 0.19, -1.59, 1.56, 0.39, 1.16, -0.06}, {3, 4});
  expect(Reference::float_flip(x, Dims{0, 1}),
         {-0.06, 0.4, 0.39, 0.62, -1.59, -0.32, -1.24, -2.57, 1.38, -1.44, -0.02, 0.26}, {3, 4});
}

// ------------------------------------------------------------------------------------- worked out
// by hand
TEST_CASE("shape ops are views") {
  const HostHandle x = floats({0, 1, 2, 3, 4, 5}, {2, 3});
  expect(Reference::float_permute(x, Dims{1, 0}), {0, 3, 1, 4, 2, 5}, {3, 2});
  expect(Reference::float_slice(x, 1, Range{0, 3, 2}), {0, 2, 3, 5}, {2, 2});
  expect(Reference::float_expand(Reference::float_slice(x, 0, Range{1, 2, 1}), {2, 3}),
         {3, 4, 5, 3, 4, 5}, {2, 3});
  expect(Reference::float_reshape(Reference::float_permute(x, Dims{1, 0}), {6}), {0, 3, 1, 4, 2, 5},
         {6});
  const HostHandle column = Reference::float_slice(x, 1, Range{1, 2, 1});
  const uint32_t version = Reference::version(x);
  Reference::float_fill(column, Scalar(9));
  expect(x, {0, 9, 2, 3, 9, 5}, {2, 3});
  CHECK(Reference::version(x) == version + 1);
}

TEST_CASE("in place writes through the operand's strides") {
  const HostHandle x = floats({0, 1, 2, 3, 4, 5}, {2, 3});
  const HostHandle view = Reference::float_permute(x, Dims{1, 0});
  const HostHandle result =
      Reference::float_add_scalar(Arg<HostHandle>::in_place(view), Scalar(10));
  CHECK(result == view);
  expect(x, {10, 11, 12, 13, 14, 15}, {2, 3});
  CHECK(x->version() == 1);
  // A result that does not fit is fresh.
  const HostHandle small = floats({1}, {1});
  const HostHandle sum = Reference::float_add(Arg<HostHandle>::in_place(small), x);
  CHECK(sum->shape() == Shape{2, 3});
  expect(small, {1}, {1});
}

TEST_CASE("results are rounded once, to the dtype") {
  const HostHandle x = tensor({1, 0x1p-11, 0x1p-11}, {3}, f16);
  // In f16, 1 + 2^-11 would round back to 1, twice.
  expect(Reference::float_sum(x, Dims{0}, false), {1 + 0x1p-10}, {});
  const HostHandle bytes = tensor({200, 100, 255}, {3}, u8);
  expect(Reference::int_add(bytes, bytes), {144, 200, 254}, {3});
  expect(Reference::int_add(tensor({127}, {1}, i8), tensor({1}, {1}, i8)), {-128}, {1});
  expect(Reference::int_div(tensor({-128}, {1}, i8), tensor({-1}, {1}, i8)), {-128}, {1});
  expect(Reference::float_into_int(floats({-1.9, 1.9, kNan, 1e30, -1e30}, {5}), i32),
         {-1, 1, 0, 2147483647, -2147483648.0}, {5});
}

TEST_CASE("reductions of nothing") {
  const HostHandle x = floats({}, {2, 0});
  expect(Reference::float_sum(x, Dims{1}, false), {0, 0}, {2});
  expect(Reference::float_prod(x, Dims{1}, false), {1, 1}, {2});
  expect(Reference::float_mean(x, Dims{1}, false), {kNan, kNan}, {2});
  expect(Reference::float_logsumexp(x, Dims{1}, true), {-kInf, -kInf}, {2, 1});
  expect(Reference::float_var(floats({3}, {1}), Dims{0}, 1.0, false), {kNan}, {});
  expect(Reference::float_logsumexp(floats({-kInf, -kInf, kInf, 1}, {2, 2}), Dims{1}, false),
         {-kInf, kInf}, {2});
}

TEST_CASE("NaN wins and ties go to the first") {
  const HostHandle x = floats({1, kNan, 3, kNan, 2, 2, 2, 1}, {2, 4});
  expect(Reference::float_argmax(x, 1, false), {1, 0}, {2});
  expect(Reference::float_argmin(x, 1, false), {1, 3}, {2});
  expect(Reference::float_amax(x, Dims{1}, false), {kNan, 2}, {2});
  const HostHandle plane = floats({5, 5, kNan, 1, -kInf, -kInf, 0, 0}, {1, 1, 2, 4});
  const auto [y, indices] = Reference::float_max_pool2d(plane, PoolOptions{});
  expect(y, {5, kNan}, {1, 1, 1, 2});
  expect(indices, {0, 2}, {1, 1, 1, 2});
}

TEST_CASE("indices and divisors are checked") {
  const HostHandle x = floats({1, 2, 3}, {3});
  const HostHandle bad = ints({7}, {1});
  CHECK_THROWS_WITH_AS(Reference::float_index_select(x, 0, bad),
                       "index_select: index out of range; got 7; expected 0 to 2", IndexError);
  CHECK_THROWS_AS(Reference::float_gather(x, 0, ints({-1}, {1})), IndexError);
  CHECK_THROWS_AS(Reference::float_scatter(x, 0, bad, floats({1}, {1})), IndexError);
  CHECK_THROWS_AS(Reference::float_index_add(x, 0, bad, floats({1}, {1})), IndexError);
  CHECK_THROWS_AS(
      Reference::float_cross_entropy(floats({1, 2}, {1, 2}), ints({2}, {1}), CrossEntropyOptions{}),
      IndexError);
  CHECK_THROWS_AS(Reference::int_div(ints({1}, {1}), ints({0}, {1})), ValueError);
  CHECK_THROWS_AS(Reference::int_remainder(ints({1}, {1}), ints({0}, {1})), ValueError);
}

TEST_CASE("quantization") {
  const HostHandle x = floats({-1.27, 0, 0.004, 0.635, 1.27}, {5});
  const QuantizedHandle q = Reference::float_quantize(x, QuantScheme{});
  expect(q->scales(), {0.01}, {});
  expect(q->values(), {-127, 0, 0, 64, 127}, {5});  // 63.5 goes to the even 64
  expect(Reference::q_dequantize(q, f64), {-1.27, 0, 0, 0.64, 1.27}, {5});
  const QuantizedHandle clamped = Reference::float_quantize(x, QuantScheme{0.005});
  expect(clamped->values(), {-127, 0, 1, 127, 127}, {5});
}
