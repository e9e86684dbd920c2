// kiln.nn.init: how parameters begin.
#include "binding.h"

namespace kiln::python {

namespace {

namespace init = nn::init;

init::FanMode mode_of(const std::string& mode) {
  if (mode == "fan_in") return init::FanMode::fan_in;
  if (mode == "fan_out") return init::FanMode::fan_out;
  throw_error<ValueError>("init: expected mode 'fan_in' or 'fan_out'; got '", mode, "'");
}

init::Nonlinearity nonlinearity_of(const std::string& name) {
  using N = init::Nonlinearity;
  if (name == "linear" || name.starts_with("conv")) return N::linear;
  if (name == "sigmoid") return N::sigmoid;
  if (name == "tanh") return N::tanh;
  if (name == "relu") return N::relu;
  if (name == "leaky_relu") return N::leaky_relu;
  if (name == "selu") return N::selu;
  throw_error<ValueError>("init: unknown nonlinearity '", name, "'");
}

}  // namespace

void bind_init(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("_init", "How parameters begin.");
  m.def(
      "constant_", [](Tensor& x, Scalar v) { return init::constant_(x, v); }, "tensor"_a, "val"_a);
  m.def(
      "zeros_", [](Tensor& x) { return init::zeros_(x); }, "tensor"_a);
  m.def(
      "ones_", [](Tensor& x) { return init::ones_(x); }, "tensor"_a);
  m.def(
      "eye_", [](Tensor& x) { return init::eye_(x); }, "tensor"_a);
  m.def(
      "uniform_", [](Tensor& x, double a, double b) { return init::uniform_(x, a, b); }, "tensor"_a,
      "a"_a = 0.0, "b"_a = 1.0);
  m.def(
      "normal_", [](Tensor& x, double mean, double std) { return init::normal_(x, mean, std); },
      "tensor"_a, "mean"_a = 0.0, "std"_a = 1.0);
  m.def(
      "xavier_uniform_", [](Tensor& x, double gain) { return init::xavier_uniform_(x, gain); },
      "tensor"_a, "gain"_a = 1.0);
  m.def(
      "xavier_normal_", [](Tensor& x, double gain) { return init::xavier_normal_(x, gain); },
      "tensor"_a, "gain"_a = 1.0);
  m.def(
      "kaiming_uniform_",
      [](Tensor& x, double a, const std::string& mode, const std::string& nonlinearity) {
        return init::kaiming_uniform_(x, a, mode_of(mode), nonlinearity_of(nonlinearity));
      },
      "tensor"_a, "a"_a = 0.0, "mode"_a = "fan_in", "nonlinearity"_a = "leaky_relu");
  m.def(
      "kaiming_normal_",
      [](Tensor& x, double a, const std::string& mode, const std::string& nonlinearity) {
        return init::kaiming_normal_(x, a, mode_of(mode), nonlinearity_of(nonlinearity));
      },
      "tensor"_a, "a"_a = 0.0, "mode"_a = "fan_in", "nonlinearity"_a = "leaky_relu");
  m.def(
      "trunc_normal_",
      [](Tensor& x, double mean, double std, double a, double b) {
        return init::trunc_normal_(x, mean, std, a, b);
      },
      "tensor"_a, "mean"_a = 0.0, "std"_a = 1.0, "a"_a = -2.0, "b"_a = 2.0);
  m.def(
      "orthogonal_", [](Tensor& x, double gain) { return init::orthogonal_(x, gain); }, "tensor"_a,
      "gain"_a = 1.0);
  m.def(
      "dirac_", [](Tensor& x, int64_t groups) { return init::dirac_(x, groups); }, "tensor"_a,
      "groups"_a = 1);
  m.def(
      "sparse_",
      [](Tensor& x, double sparsity, double std) { return init::sparse_(x, sparsity, std); },
      "tensor"_a, "sparsity"_a, "std"_a = 0.01);
  m.def(
      "calculate_gain",
      [](const std::string& nonlinearity, std::optional<double> slope) {
        return init::calculate_gain(nonlinearity_of(nonlinearity), slope.value_or(0.01));
      },
      "nonlinearity"_a, "param"_a = nb::none());
}

}  // namespace kiln::python
