// kiln.nn.functional: activations.
#include "functional.h"

namespace kiln::python {

namespace {

using Plain = Tensor (*)(const Tensor&);
using PlainInPlace = Tensor& (*)(Tensor&);
using WithNumber = Tensor (*)(const Tensor&, double);
using WithNumberInPlace = Tensor& (*)(Tensor&, double);

void def_plain(nb::module_& m, const char* name, Plain f, const char* doc) {
  m.def(
      name,
      [f](const Tensor& x) {
        Unlocked lock(x);
        return f(x);
      },
      "input"_a, doc);
}
// With the argument inplace, and as name_, by the function that writes over its argument.
void def_in_place(nb::module_& m, const std::string& name, Plain f, PlainInPlace f_,
                  const char* doc) {
  m.def(
      name.c_str(),
      [f, f_](Tensor& x, bool inplace) {
        Unlocked lock(x);
        return inplace ? f_(x) : f(x);
      },
      "input"_a, "inplace"_a = false, doc);
  m.def((name + "_").c_str(),
        [f_](Tensor& x) {
          Unlocked lock(x);
          return f_(x);
        },
        "input"_a, doc);
}
// The same of a function that has no such form.
void def_in_place(nb::module_& m, const std::string& name, Plain f, const char* doc) {
  m.def(
      name.c_str(), [f](Tensor& x, bool inplace) { return maybe_in_place(x, inplace, f); },
      "input"_a, "inplace"_a = false, doc);
  m.def((name + "_").c_str(), [f](Tensor& x) { return maybe_in_place(x, true, f); }, "input"_a,
        doc);
}

void def_number(nb::module_& m, const char* name, WithNumber f, const char* arg, double value,
                const char* doc) {
  m.def(
      name,
      [f](const Tensor& x, double number) {
        Unlocked lock(x);
        return f(x, number);
      },
      "input"_a, nb::arg(arg) = value, doc);
}
void def_number_in_place(nb::module_& m, const std::string& name, WithNumber f,
                         WithNumberInPlace f_, const char* arg, double value, const char* doc) {
  m.def(
      name.c_str(),
      [f, f_](Tensor& x, double number, bool inplace) {
        Unlocked lock(x);
        return inplace ? f_(x, number) : f(x, number);
      },
      "input"_a, nb::arg(arg) = value, "inplace"_a = false, doc);
  m.def((name + "_").c_str(),
        [f_](Tensor& x, double number) {
          Unlocked lock(x);
          return f_(x, number);
        },
        "input"_a, nb::arg(arg) = value, doc);
}

using WithDim = Tensor (*)(const Tensor&, int64_t);

void def_dim(nb::module_& m, const char* name, WithDim f, const char* doc) {
  m.def(
      name,
      [f](const Tensor& x, int64_t dim) {
        Unlocked lock(x);
        return f(x, dim);
      },
      "input"_a, "dim"_a = -1, doc);
}

void bind_with_two(nb::module_& m) {
  m.def(
      "hardtanh",
      [](Tensor& x, double min_val, double max_val, bool inplace) {
        Unlocked lock(x);
        return inplace ? F::hardtanh_(x, min_val, max_val) : F::hardtanh(x, min_val, max_val);
      },
      "input"_a, "min_val"_a = -1.0, "max_val"_a = 1.0, "inplace"_a = false,
      "x limited to [min_val, max_val].");
  m.def(
      "hardtanh_",
      [](Tensor& x, double min_val, double max_val) {
        Unlocked lock(x);
        return F::hardtanh_(x, min_val, max_val);
      },
      "input"_a, "min_val"_a = -1.0, "max_val"_a = 1.0, "x limited to [min_val, max_val].");
  m.def(
      "threshold",
      [](Tensor& x, double threshold, double value, bool inplace) {
        return maybe_in_place(x, inplace,
                              [&](const Tensor& v) { return F::threshold(v, threshold, value); });
      },
      "input"_a, "threshold"_a, "value"_a, "inplace"_a = false,
      "x where x > threshold, else value.");
  m.def(
      "threshold_",
      [](Tensor& x, double threshold, double value) {
        return maybe_in_place(x, true,
                              [&](const Tensor& v) { return F::threshold(v, threshold, value); });
      },
      "input"_a, "threshold"_a, "value"_a, "x where x > threshold, else value.");
  m.def(
      "rrelu",
      [](Tensor& x, double lower, double upper, bool training, bool inplace) {
        return maybe_in_place(x, inplace,
                              [&](const Tensor& v) { return F::rrelu(v, lower, upper, training); });
      },
      "input"_a, "lower"_a = 1.0 / 8, "upper"_a = 1.0 / 3, "training"_a = false,
      "inplace"_a = false, "leaky_relu with slopes drawn from [lower, upper) in training.");
  m.def(
      "rrelu_",
      [](Tensor& x, double lower, double upper, bool training) {
        return maybe_in_place(x, true,
                              [&](const Tensor& v) { return F::rrelu(v, lower, upper, training); });
      },
      "input"_a, "lower"_a = 1.0 / 8, "upper"_a = 1.0 / 3, "training"_a = false,
      "leaky_relu with slopes drawn from [lower, upper) in training.");
  m.def(
      "softplus",
      [](const Tensor& x, double beta, double threshold) {
        Unlocked lock(x);
        return F::softplus(x, beta, threshold);
      },
      "input"_a, "beta"_a = 1.0, "threshold"_a = 20.0,
      "log(1 + e^(beta x)) / beta; x where beta x > threshold.");
  m.def(
      "shrink",
      [](const Tensor& x, double lambd, double bias) {
        Unlocked lock(x);
        return F::shrink(x, lambd, bias);
      },
      "input"_a, "lambd"_a = 0.5, "bias"_a = 0.5,
      "x - bias where x > lambd, x + bias where x < -lambd, else 0.");
}

void bind_soft(nb::module_& m) {
  def_dim(m, "glu", &F::glu, "a sigmoid(b) of the halves a, b along dim.");
  def_dim(m, "swiglu", &F::swiglu, "silu(a) b of the halves a, b along dim.");
  def_dim(m, "quiet_softmax", &F::quiet_softmax, "e^x / (1 + sum e^x) over dim.");
  m.def(
      "softmin",
      [](const Tensor& x, int64_t dim, std::optional<DType> dtype) {
        Unlocked lock(x);
        return F::softmin(x, dim, dtype);
      },
      "input"_a, "dim"_a, "dtype"_a = nb::none(), "softmax(-x) over dim.");
  m.def(
      "gumbel_softmax",
      [](const Tensor& logits, double tau, bool hard, double, int64_t dim) {
        Unlocked lock(logits);
        return F::gumbel_softmax(logits, tau, hard, dim);
      },
      "logits"_a, "tau"_a = 1.0, "hard"_a = false, "eps"_a = 1e-10, "dim"_a = -1,
      "A sample of the relaxed one-hot distribution; eps has no effect.");
  m.def(
      "prelu",
      [](const Tensor& x, const Tensor& weight) {
        Unlocked lock(x);
        return F::prelu(x, weight);
      },
      "input"_a, "weight"_a, "x, or weight x where x < 0: one weight, or one for each channel.");
  m.def(
      "gelu",
      [](const Tensor& x, const std::string& approximate) {
        Unlocked lock(x);
        return x.gelu(approximate);
      },
      "input"_a, "approximate"_a = "none", "x Phi(x), or its tanh approximation.");
}

}  // namespace

void bind_functional_activations(nb::module_& m) {
  m.def(
      "relu",
      [](Tensor& x, bool inplace) {
        Unlocked lock(x);
        return inplace ? x.relu_() : x.relu();
      },
      "input"_a, "inplace"_a = false, "max(x, 0).");
  m.def(
      "silu",
      [](Tensor& x, bool inplace) {
        Unlocked lock(x);
        return inplace ? x.silu_() : x.silu();
      },
      "input"_a, "inplace"_a = false, "x sigmoid(x).");
  def_in_place(m, "relu6", &F::relu6, &F::relu6_, "min(max(x, 0), 6).");
  def_in_place(m, "selu", &F::selu, &F::selu_, "The self-normalizing exponential linear unit.");
  def_in_place(m, "mish", &F::mish, "x tanh(softplus(x)).");
#define KILN_HOME_activation(type, doc, name) def_plain(m, #name, &F::name, doc);
#define KILN_HOME_activation_(type, doc, name) def_in_place(m, #name, &F::name, &F::name##_, doc);
#define KILN_HOME_activation_number(type, doc, name, number, value) \
  def_number(m, #name, &F::name, #number, value, doc);
#define KILN_HOME_activation_number_(type, doc, name, number, value) \
  def_number_in_place(m, #name, &F::name, &F::name##_, #number, value, doc);
#include "kiln/backend/functions.def"
  def_plain(m, "softsign", &F::softsign, "x / (1 + |x|).");
  def_plain(m, "tanhshrink", &F::tanhshrink, "x - tanh(x).");
  def_number_in_place(m, "elu", &F::elu, &F::elu_, "alpha", 1.0,
                      "x, or alpha (e^x - 1) where x <= 0.");
  def_number_in_place(m, "celu", &F::celu, &F::celu_, "alpha", 1.0,
                      "max(0, x) + min(0, alpha (e^(x / alpha) - 1)).");
  def_number(m, "softshrink", &F::softshrink, "lambd", 0.5, "x moved towards 0 by lambd.");
  def_number(m, "thresholded_relu", &F::thresholded_relu, "alpha", 1.0,
             "x where x > alpha, else 0.");
  bind_with_two(m);
  bind_soft(m);
}

}  // namespace kiln::python
