// Elementwise functions beyond the common ones: of one tensor, of two, of three.
#include <numbers>

#include "tests/ops/case.h"

namespace kiln::ops {

namespace {

const Shape kShape = {3, 4};
const Shape kBig = {1024, 1024};
const std::vector<double> kEdges = {0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.5, INFINITY, -INFINITY, NAN};

}  // namespace

KILN_OP_CASES(unary_functions) {
  const auto unary = [](const char* name, Tensor (*f)(TensorArg), double low, double high,
                        DTypes dtypes = kAll) -> Case& {
    const std::string call = "torch." + std::string(name) + "(a)";
    Case& edges = op(name, call, [f](const Tensors& x) { return f(x[0]); }, {values(kEdges)});
    edges.dtypes(kDoubles).no_gradient("edges of the domain");
    if (std::string(name) == "sinc") edges.no_peer("0 at infinity, the limit, where it gives NaN");
    return op(name, call, [f](const Tensors& x) { return f(x[0]); }, {real(kShape, low, high)})
        .dtypes(std::move(dtypes))
        .big({real(kBig, low, high)});
  };
  unary("exp2", exp2, -3, 3);
  unary("sinc", sinc, -3, 3);
  unary("frac", frac, -3, 3, kFloats).inputs[0].away_from(0, 1);
  unary("deg2rad", deg2rad, -180, 180, kFloats);
  unary("rad2deg", rad2deg, -3, 3, kFloats);
  op("positive", "torch.positive(a)", [](const Tensors& x) { return positive(x[0]); },
     {real(kShape)})
      .dtypes(kReals);
  op("logit", "torch.logit(a)", [](const Tensors& x) { return logit(x[0]); },
     {real(kShape, 0.1, 0.9)})
      .big({real(kBig, 0.05, 0.95)});
  op("logit", "torch.logit(a, 0.25)", [](const Tensors& x) { return logit(x[0], 0.25); },
     {real(kShape, 0, 1).away_from(0.25).away_from(0.75)});
  op("lgamma", "torch.lgamma(a)", [](const Tensors& x) { return lgamma(x[0]); },
     {real({40}, -4, 0).away_from(0, 1)})
      .dtypes(kDoubles)
      .loose(10)
      .gradient_tolerance(1e-4);
  op("digamma", "torch.digamma(a)", [](const Tensors& x) { return digamma(x[0]); },
     {real({40}, -4, 0).away_from(0, 1)})
      .dtypes({f64})
      .loose(10)
      .gradient_tolerance(1e-3);
  for (const int64_t n : {0, 1, 2, 5}) {
    op("polygamma", "torch.polygamma(" + std::to_string(n) + ", a)",
       [n](const Tensors& x) { return polygamma(n, x[0]); }, {real(kShape, 0.5, 4)})
        .dtypes(kFloats)
        .gradient_tolerance(1e-4)
        .big({real(kBig, 0.5, 4)});
  }
  for (const int64_t p : {1, 3}) {
    op("mvlgamma", "torch.mvlgamma(a, " + std::to_string(p) + ")",
       [p](const Tensors& x) { return mvlgamma(x[0], p); }, {real(kShape, 1.2, 5)})
        .dtypes(kDoubles);
  }
  op("nan_to_num", "torch.nan_to_num(a)", [](const Tensors& x) { return nan_to_num(x[0]); },
     {values(kEdges)})
      .dtypes(kFloats);
  op("nan_to_num", "torch.nan_to_num(a, nan=1.5, posinf=7.0, neginf=-8.0)",
     [](const Tensors& x) { return nan_to_num(x[0], 1.5, 7.0, -8.0); }, {values(kEdges)})
      .dtypes(kFloats);
  op("nan_to_num", "torch.nan_to_num(a)", [](const Tensors& x) { return nan_to_num(x[0]); },
     {real(kShape)})
      .dtypes(kAll)
      .big({real(kBig)});
  op("round", "torch.round(a, decimals=2)", [](const Tensors& x) { return round(x[0], 2); },
     {real(kShape, -9, 9)})
      .dtypes(kDoubles)
      .no_gradient();
  op("round", "torch.round(a, decimals=-1)", [](const Tensors& x) { return round(x[0], -1); },
     {real(kShape, -99, 99)})
      .dtypes(kDoubles)
      .no_gradient();
  op("signbit", "torch.signbit(a)", [](const Tensors& x) { return signbit(x[0]); },
     {values({0.0, -0.0, 1, -1, INFINITY, -INFINITY})})
      .dtypes(kFloats)
      .no_gradient();
  for (const auto& [name, f] :
       {std::pair<const char*, Tensor (*)(const Tensor&)>{"signbit", signbit},
        {"isposinf", isposinf},
        {"isneginf", isneginf}}) {
    op(name, "torch." + std::string(name) + "(a)", [f = f](const Tensors& x) { return f(x[0]); },
       {real(kShape)})
        .dtypes(kAll)
        .no_gradient()
        .big({real(kBig)});
    op(name, "torch." + std::string(name) + "(a)", [f = f](const Tensors& x) { return f(x[0]); },
       {values({1, INFINITY, -INFINITY, 0})})
        .dtypes(kFloats)
        .no_gradient();
  }
  op("frexp", "torch.frexp(a)", [](const Tensors& x) { return frexp(x[0]); },
     {values({0, 1, -1, 0.5, 3, -1024, 1e-30, 1e30, 6.1e-5, INFINITY, NAN, 0.999})})
      .dtypes({f64, f32, f16})
      .no_gradient();
  op("frexp", "torch.frexp(a)[0]", [](const Tensors& x) { return frexp(x[0]).first; },
     {real(kShape, 0.6, 0.9)})
      .dtypes(kDoubles)
      .big({real(kBig)});
}

KILN_OP_CASES(binary_functions) {
  using Binary = Tensor (*)(TensorArg, TensorArg);
  const auto binary = [](const char* name, Binary f, Input x, Input y, DTypes dtypes) -> Case& {
    const std::string call = "torch." + std::string(name) + "(a, b)";
    Input big_x = x;
    Input big_y = y;
    big_x.shape = big_y.shape = kBig;
    Input broadcast = y;
    broadcast.shape = {4};
    op(name, call, [f](const Tensors& v) { return f(v[0], v[1]); }, {x, broadcast}).dtypes(dtypes);
    Case& edges = op(name, call, [f](const Tensors& v) { return f(v[0], v[1]); },
                     {values(kEdges, {10, 1}), values(kEdges, {1, 10})});
    edges.dtypes(kDoubles).no_gradient("edges of the domain");
    if (std::string(name) == "heaviside") edges.no_peer("NaN for NaN, as NumPy, where it gives 0");
    return op(name, call, [f](const Tensors& v) { return f(v[0], v[1]); }, {x, y})
        .dtypes(dtypes)
        .big({big_x, big_y});
  };
  const Input any = real(kShape);
  const Input positive = real(kShape, 0.5, 2);
  binary("hypot", hypot, any, positive, kFloats);
  binary("atan2", atan2, any, positive, kFloats);
  binary("copysign", copysign, any, any, kFloats);
  binary("nextafter", nextafter, any, any, kDoubles).no_gradient("PyTorch has none");
  binary("fmax", fmax, any, any, kFloats);
  binary("fmin", fmin, any, any, kFloats);
  binary("heaviside", heaviside, any, any, kFloats).no_gradient("PyTorch has none");
  binary("xlogy", xlogy, any, positive, kFloats);
  binary("logaddexp", logaddexp, any, any, kFloats);
  binary("logaddexp2", logaddexp2, any, any, kDoubles);
  binary("ldexp", ldexp, any, any, kDoubles);
  // Quotients far from whole numbers, where the results jump.
  const Input dividend = real(kShape, 3.1, 3.9);
  const Input divisor = real(kShape, 0.98, 1.02);
  binary("fmod", fmod, dividend, divisor, kFloats);
  binary("remainder", remainder, dividend, divisor, kFloats);
  binary("floor_divide", floor_divide, dividend, divisor, kFloats).no_gradient("0");
  op("igamma", "torch.igamma(a, b)", [](const Tensors& v) { return igamma(v[0], v[1]); },
     {constant(kShape, 0.5, 5), real(kShape, 0.2, 6)})
      .dtypes(kDoubles)
      .big({constant(kBig, 0.5, 5), real(kBig, 0.2, 6)});
  op("igammac", "torch.igammac(a, b)", [](const Tensors& v) { return igammac(v[0], v[1]); },
     {constant(kShape, 0.5, 5), real(kShape, 0.2, 6)})
      .dtypes(kDoubles)
      .big({constant(kBig, 0.5, 5), real(kBig, 0.2, 6)});
  // With integers.
  const Input whole = values({7, -7, 3, 100, 0, 9}, {2, 3});
  const Input small = values({2, 3, 5}, {3});
  for (const auto& [name, f] : {std::pair<const char*, Binary>{"fmod", fmod},
                                {"remainder", remainder},
                                {"floor_divide", floor_divide},
                                {"fmax", fmax},
                                {"fmin", fmin},
                                {"heaviside", heaviside},
                                {"xlogy", xlogy},
                                {"copysign", copysign}}) {
    op(name, "torch." + std::string(name) + "(a, b)",
       [f = f](const Tensors& v) { return f(v[0], v[1]); }, {whole, small})
        .dtypes(kInts)
        .no_gradient();
  }
  op("pow", "torch.pow(a, b)", [](const Tensors& v) { return pow(v[0], v[1]); },
     {values({3, 2, 0, 1, 4, 5}, {2, 3}), values({2, 3, 0}, {3})})
      .dtypes(kInts);
  // With a number.
  op("fmod", "torch.fmod(a, 0.7)", [](const Tensors& v) { return fmod(v[0], 0.7); },
     {real(kShape, 0.75, 1.35)})
      .dtypes(kFloats);
  op("fmod", "torch.fmod(a, 3)", [](const Tensors& v) { return fmod(v[0], 3); }, {whole})
      .dtypes(kReals)
      .no_gradient();
  op("xlogy", "torch.xlogy(a, 2.5)", [](const Tensors& v) { return xlogy(v[0], 2.5); }, {any});
  op("xlogy", "torch.xlogy(2, a)", [](const Tensors& v) { return xlogy(2, v[0]); }, {positive});
  op("copysign", "torch.copysign(a, -2.0)", [](const Tensors& v) { return copysign(v[0], -2.0); },
     {real(kShape).away_from(0)})
      .dtypes(kReals);
  op("remainder", "torch.remainder(5, a)", [](const Tensors& v) { return remainder(5, v[0]); },
     {values({2, 3, 4})})
      .dtypes(kReals)
      .no_gradient();
  op("rsub", "torch.rsub(a, b, alpha=2)", [](const Tensors& v) { return rsub(v[0], v[1], 2); },
     {real(kShape), real({4})})
      .dtypes(kReals);
  op("rsub", "torch.rsub(a, 3)", [](const Tensors& v) { return rsub(v[0], 3); }, {real(kShape)})
      .dtypes(kReals);
  for (const char* mode : {"trunc", "floor"}) {
    op("div", "torch.div(a, b, rounding_mode='" + std::string(mode) + "')",
       [mode](const Tensors& v) { return div(v[0], v[1], mode); }, {whole, small})
        .dtypes(kReals)
        .no_gradient("0");
    op("div", "torch.div(a, 3, rounding_mode='" + std::string(mode) + "')",
       [mode](const Tensors& v) { return div(v[0], 3, mode); }, {whole})
        .dtypes(kReals)
        .no_gradient("0")
        .big({real(kBig, -50, 50)});
  }
  op("float_power", "torch.float_power(a, b)",
     [](const Tensors& v) { return float_power(v[0], v[1]); }, {real(kShape, 0.5, 2), real({4})})
      .dtypes(kDoubles);
  op("float_power", "torch.float_power(a, 2)",
     [](const Tensors& v) { return float_power(v[0], 2); }, {real(kShape)})
      .dtypes({f64, f32, i64, i32});
  for (const double p : {0.0, 1.0, 2.0, 3.0, double{INFINITY}}) {
    const std::string text = std::isinf(p) ? "inf" : std::to_string(p);
    op("dist", "torch.dist(a, b, " + text + ")",
       [p](const Tensors& v) { return dist(v[0], v[1], p); }, {real(kShape), real({4}, 3, 5)})
        .dtypes(kDoubles);
  }
}

KILN_OP_CASES(ternary_functions) {
  const Input x = real(kShape);
  const std::vector<Input> big = {real(kBig), real(kBig), real(kBig, 0.5, 2)};
  op("lerp", "torch.lerp(a, b, c)", [](const Tensors& v) { return lerp(v[0], v[1], v[2]); },
     {x, real({4}), real({3, 1}, 0, 1).away_from(0.5)})
      .big(big);
  op("lerp", "torch.lerp(a, b, 0.3)", [](const Tensors& v) { return lerp(v[0], v[1], 0.3); },
     {x, x})
      .big({real(kBig), real(kBig)});
  op("addcmul", "torch.addcmul(a, b, c, value=-0.5)",
     [](const Tensors& v) { return addcmul(v[0], v[1], v[2], -0.5); }, {x, real({4}), real({3, 1})})
      .big(big);
  op("addcmul", "torch.addcmul(a, b, c, value=3)",
     [](const Tensors& v) { return addcmul(v[0], v[1], v[2], 3); }, {x, x, x})
      .dtypes(kInts);
  op("addcdiv", "torch.addcdiv(a, b, c, value=2.0)",
     [](const Tensors& v) { return addcdiv(v[0], v[1], v[2], 2.0); },
     {x, real({4}), real({3, 1}, 0.5, 2)})
      .big(big);
  op("clamp", "torch.clamp(a, b, c)", [](const Tensors& v) { return clamp(v[0], v[1], v[2]); },
     {real(kShape, -3, 3), real({4}, -1, -0.5), real({3, 1}, 0.5, 1)})
      .dtypes(kReals)
      .big({real(kBig), real(kBig, -2, 0), real(kBig, 0, 2)});
  op("clamp", "torch.clamp(a, b, c)", [](const Tensors& v) { return clamp(v[0], v[1], v[2]); },
     {real(kShape, -3, 3), real({4}, 0.5, 1), real({3, 1}, -1, -0.5)});
  op("clamp", "torch.clamp(a, b, c)", [](const Tensors& v) { return clamp(v[0], v[1], v[2]); },
     {values(kEdges, {10, 1, 1}), values(kEdges, {10, 1}), values(kEdges)})
      .no_gradient("edges");
  op("clamp", "torch.clamp(a, min=b)", [](const Tensors& v) { return clamp(v[0], v[1], Tensor()); },
     {real(kShape, -3, 3), real({4}, -1, -0.5)})
      .dtypes(kReals);
  op("clamp_min", "torch.clamp_min(a, 0.5)", [](const Tensors& v) { return clamp_min(v[0], 0.5); },
     {real(kShape).away_from(0.5)})
      .dtypes(kReals)
      .big({real(kBig)});
  op("clamp_max", "torch.clamp_max(a, 1)", [](const Tensors& v) { return clamp_max(v[0], 1); },
     {real(kShape).away_from(1)})
      .dtypes(kReals)
      .big({real(kBig)});
  op("clamp_min", "torch.clamp_min(a, b)", [](const Tensors& v) { return clamp_min(v[0], v[1]); },
     {real(kShape), real({4}, 3, 4)})
      .dtypes(kReals);
  op("clamp_max", "torch.clamp_max(a, b)", [](const Tensors& v) { return clamp_max(v[0], v[1]); },
     {real(kShape), real({4}, 3, 4)})
      .dtypes(kReals);
}

// The in-place forms, on a clone: gradients flow through them too.
KILN_OP_CASES(pointwise_in_place) {
#define KILN_IN_PLACE_CASE(name, python, call, ...) \
  op("Tensor." #name, "a.clone()." python,          \
     [](const Tensors& v) {                         \
       Tensor x = v[0].clone();                     \
       return call;                                 \
     },                                             \
     {__VA_ARGS__})
  KILN_IN_PLACE_CASE(exp2_, "exp2_()", exp2_(x), real(kShape));
  KILN_IN_PLACE_CASE(erfc_, "erfc_()", erfc_(x), real(kShape));
  KILN_IN_PLACE_CASE(lgamma_, "lgamma_()", lgamma_(x), real(kShape, 0.5, 4));
  KILN_IN_PLACE_CASE(logit_, "logit_()", logit_(x), real(kShape, 0.1, 0.9));
  KILN_IN_PLACE_CASE(nan_to_num_, "nan_to_num_()", nan_to_num_(x), real(kShape)).dtypes(kReals);
  KILN_IN_PLACE_CASE(round_, "round_(decimals=1)", round_(x, 1), real(kShape))
      .dtypes(kDoubles)
      .no_gradient();
  KILN_IN_PLACE_CASE(fmod_, "fmod_(b)", fmod_(x, v[1]), real(kShape, 3.1, 3.9),
                     real({4}, 0.98, 1.02));
  KILN_IN_PLACE_CASE(fmod_, "fmod_(3)", fmod_(x, 3), values({7, -7, 4})).dtypes(kReals);
  KILN_IN_PLACE_CASE(remainder_, "remainder_(b)", remainder_(x, v[1]), real(kShape, 3.1, 3.9),
                     real({4}, 0.98, 1.02));
  KILN_IN_PLACE_CASE(pow_, "pow_(b)", pow_(x, v[1]), real(kShape, 0.5, 2), real({4}));
  KILN_IN_PLACE_CASE(hypot_, "hypot_(b)", hypot_(x, v[1]), real(kShape), real({4}, 0.5, 1));
  KILN_IN_PLACE_CASE(copysign_, "copysign_(b)", copysign_(x, v[1]), real(kShape).away_from(0),
                     real({4}, 0.5, 1));
  KILN_IN_PLACE_CASE(lerp_, "lerp_(b, 0.25)", lerp_(x, v[1], 0.25), real(kShape), real({4}))
      .big({real(kBig), real(kBig)});
  KILN_IN_PLACE_CASE(addcmul_, "addcmul_(b, c, value=0.5)", addcmul_(x, v[1], v[2], 0.5),
                     real(kShape), real({4}), real({3, 1}))
      .big({real(kBig), real(kBig), real(kBig)});
  KILN_IN_PLACE_CASE(addcdiv_, "addcdiv_(b, c, value=0.5)", addcdiv_(x, v[1], v[2], 0.5),
                     real(kShape), real({4}), real({3, 1}, 0.5, 1))
      .big({real(kBig), real(kBig), real(kBig, 0.5, 1)});
  KILN_IN_PLACE_CASE(clamp_, "clamp_(b, c)", clamp_(x, v[1], v[2]), real(kShape, -3, 3),
                     real({4}, -1, -0.5), real({3, 1}, 0.5, 1))
      .dtypes(kReals);
  KILN_IN_PLACE_CASE(clamp_min_, "clamp_min_(0)", clamp_min_(x, 0), real(kShape).away_from(0))
      .dtypes(kReals);
  KILN_IN_PLACE_CASE(ge_, "ge_(b)", ge_(x, v[1]), real(kShape), real({4}))
      .dtypes(kAll)
      .no_gradient();
  KILN_IN_PLACE_CASE(logical_and_, "logical_and_(b)", logical_and_(x, v[1]), real(kShape, -1, 1),
                     real({4}, -1, 1))
      .dtypes(kAll)
      .no_gradient();
  KILN_IN_PLACE_CASE(bitwise_xor_, "bitwise_xor_(b)", bitwise_xor_(x, v[1]), real(kShape, 0, 100),
                     real({4}, 0, 100))
      .dtypes(kIntsAndBool);
  KILN_IN_PLACE_CASE(tril_, "tril_(-1)", tril_(x, -1), real({4, 4})).dtypes(kAll);
#undef KILN_IN_PLACE_CASE
}

}  // namespace kiln::ops
