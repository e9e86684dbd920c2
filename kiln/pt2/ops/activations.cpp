// Activation functions and dropout.
#include "kiln/nn/functional.h"
#include "kiln/pt2/ops/forms.h"

namespace kiln::pt2 {

namespace {

void gelu_of(Call& c) { c.out(kiln::gelu(c.x(), c.s("approximate", "none"))); }
void elu_of(Call& c) {
  // scale * elu(input_scale * x), whose negative part is scale * alpha * (e^(input_scale x) - 1).
  const double scale = c.f("scale", 1.0), input_scale = c.f("input_scale", 1.0);
  const double alpha = c.f("alpha", 1.0);
  const Tensor x = c.x();
  if (input_scale == 1.0) {
    const Tensor y = functional::elu(x, alpha);
    c.out(scale == 1.0 ? y : y.mul(scale));
    return;
  }
  const Tensor below = kiln::clamp_max(x, 0.0).mul(input_scale).expm1().mul(alpha * scale);
  c.out(kiln::where(x.gt(0), x.mul(scale), below));
}
void celu_of(Call& c) { c.out(functional::celu(c.x(), c.f("alpha", 1.0))); }
void glu_of(Call& c) { c.out(functional::glu(c.x(), c.i("dim", -1))); }
void hardtanh_of(Call& c) {
  c.out(functional::hardtanh(c.x(), c.f("min_val", -1.0), c.f("max_val", 1.0)));
}
void leaky_relu_of(Call& c) { c.out(functional::leaky_relu(c.x(), c.f("negative_slope", 0.01))); }
void hardshrink_of(Call& c) { c.out(functional::hardshrink(c.x(), c.f("lambd", 0.5))); }
void softshrink_of(Call& c) { c.out(functional::softshrink(c.x(), c.f("lambd", 0.5))); }
void softplus_of(Call& c) {
  c.out(functional::softplus(c.x(), c.f("beta", 1.0), c.f("threshold", 20.0)));
}
void threshold_of(Call& c) { c.out(functional::threshold(c.x(), c.f("threshold"), c.f("value"))); }
void prelu_of(Call& c) { c.out(functional::prelu(c.x(), c.t("weight"))); }
// Its weight broadcasts already.
void prelu_kernel(Call& c) {
  const Tensor x = c.x();
  c.out(kiln::where(x.gt(0), x, x.mul(c.t("weight"))));
}
void rrelu_of(Call& c) {
  c.out(functional::rrelu(c.x(), c.f("lower", 1.0 / 8), c.f("upper", 1.0 / 3),
                          c.b("training", false)));
}
void softmax_of(Call& c) {
  if (c.has("half_to_float") && c.b("half_to_float")) {
    c.out(functional::softmax(c.x(), c.i("dim"), DType::f32));
  } else {
    c.out(functional::softmax(c.x(), c.i("dim"), c.dtype()));
  }
}
void log_softmax_of(Call& c) {
  if (c.has("half_to_float") && c.b("half_to_float")) {
    c.out(functional::log_softmax(c.x(), c.i("dim"), DType::f32));
  } else {
    c.out(functional::log_softmax(c.x(), c.i("dim"), c.dtype()));
  }
}
// A row that is -inf everywhere gives 0.
void safe_softmax(Call& c) {
  const Tensor x = c.x();
  const int64_t dim = c.i("dim");
  const Tensor y = functional::softmax(x, dim, c.dtype());
  const double least = -std::numeric_limits<double>::infinity();
  c.out(y.masked_fill(kiln::all(x.eq(least), Dims{dim}, true), 0.0));
}
void log_sigmoid_forward(Call& c) {
  const Tensor x = c.x();
  c.out(functional::logsigmoid(x));
  if (c.needs(1)) {  // what its own backward reads
    const NoGradGuard guard;
    c.out(x.abs().neg().exp());
  } else {
    c.out(Value{});
  }
}

void dropout_of(Call& c) { c.out(functional::dropout(c.x(), c.f("p"), c.b("train"))); }
// Also which elements stay.
void native_dropout(Call& c) {
  const Tensor x = c.x();
  const double p = c.f("p");
  if (!c.b("train", true) || p == 0.0) {
    c.out(x);
    c.out(ones(x.shape(), {.dtype = DType::boolean, .device = x.device()}));
    return;
  }
  const Tensor mask = rand_like(x.detach().to(DType::f32)).ge(p);
  const double scale = p == 1.0 ? 0.0 : 1.0 / (1.0 - p);
  c.out(x.mul(mask.to(x.dtype())).mul(scale));
  c.out(mask);
}
void feature_dropout(Call& c) {
  const Tensor x = c.x();
  const double p = c.f("p");
  if (!c.b("train") || p == 0.0) {
    c.out(x);
    return;
  }
  if (x.dim() < 2) c.fail("expected at least 2 dims");
  Shape channels = Shape::filled(x.dim(), 1);
  channels[0] = x.size(0);
  channels[1] = x.size(1);
  const Tensor mask = rand(channels, {.device = x.device()}).ge(p).to(x.dtype());
  c.out(x.mul(mask.mul(p == 1.0 ? 0.0 : 1.0 / (1.0 - p))));
}
void alpha_dropout_of(Call& c) { c.out(functional::alpha_dropout(c.x(), c.f("p"), c.b("train"))); }
void feature_alpha_dropout_of(Call& c) {
  c.out(functional::feature_alpha_dropout(c.x(), c.f("p"), c.b("train")));
}

constexpr Operator kActivationsOperators[] = {
    {"silu", "default", unary<kiln::silu>},
    {"gelu", "default", gelu_of},
    {"elu", "default", elu_of},
    {"selu", "default", unary_of<functional::selu>},
    {"celu", "default", celu_of},
    {"glu", "default", glu_of},
    {"mish", "default", unary_of<functional::mish>},
    {"hardtanh", "default", hardtanh_of},
    {"hardswish", "default", unary_of<functional::hardswish>},
    {"hardsigmoid", "default", unary_of<functional::hardsigmoid>},
    {"relu6", "default", unary_of<functional::relu6>},
    {"leaky_relu", "default", leaky_relu_of},
    {"log_sigmoid", "default", unary_of<functional::logsigmoid>},
    {"log_sigmoid_forward", "default", log_sigmoid_forward},
    {"hardshrink", "default", hardshrink_of},
    {"softshrink", "default", softshrink_of},
    {"softplus", "default", softplus_of},
    {"threshold", "default", threshold_of},
    {"prelu", "default", prelu_of},
    {"_prelu_kernel", "default", prelu_kernel},
    {"rrelu", "default", rrelu_of},
    {"softmax", "int", softmax_of},
    {"_softmax", "default", softmax_of},
    {"log_softmax", "int", log_softmax_of},
    {"_log_softmax", "default", log_softmax_of},
    {"_safe_softmax", "default", safe_softmax},
    {"special_softmax", "default", softmax_of},
    {"special_log_softmax", "default", log_softmax_of},
    {"dropout", "default", dropout_of},
    {"native_dropout", "default", native_dropout},
    {"feature_dropout", "default", feature_dropout},
    {"alpha_dropout", "default", alpha_dropout_of},
    {"feature_alpha_dropout", "default", feature_alpha_dropout_of},
};

}  // namespace

std::span<const Operator> activation_operators() { return kActivationsOperators; }

}  // namespace kiln::pt2
