#include "kiln/nn/quantized.h"

#include <cstdio>

#include "kiln/core/error.h"
#include "kiln/nn/computed_params.h"
#include "kiln/nn/conv2d.h"
#include "kiln/nn/linear.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"

namespace kiln::nn {

Quantized::Quantized(Param<Tensor> former, const QuantScheme& scheme) : scheme_(scheme) {
  NoGradGuard no_grad;
  const Tensor value = former.val().detach();
  shape_ = value.shape();
  const Tensor quantized = quantize(value, scheme);
  values = Buffer(quantized_values(quantized));
  scales = Buffer(quantized_scales(quantized));
  like_ = Buffer(empty({0}, {.dtype = value.dtype(), .device = value.device()}), false);
}

Tensor Quantized::tensor() const {
  // Module::to casts floating point buffers; scales have the dtype that their level asks for.
  const DType wanted = QuantLayout(shape_, scheme_).scales_dtype;
  return make_quantized(*values, scales->dtype() == wanted ? *scales : scales->to(wanted), scheme_,
                        shape_);
}

Tensor Quantized::linear(TensorArg x, const Tensor& bias) const {
  return functional::linear(x, tensor(), bias);
}

int64_t Quantized::bytes() const {
  const auto of = [](const Tensor& x) {
    return x.numel() * static_cast<int64_t>(size_of(x.dtype()));
  };
  return of(*values) + of(*scales);
}

void Quantized::set_require_grad(bool value) {
  if (value) {
    throw_error<ValueError>(
        "Quantized: a quantized parameter is not trained; got requires_grad for one of shape ",
        shape_, "; try dequantize_() first");
  }
}

std::string Quantized::extra_repr() const {
  std::string out = concat(scheme_.bits, " bits, shape=", shape_, ", scale per ",
                           scheme_.level == QuantLevel::tensor    ? "tensor"
                           : scheme_.level == QuantLevel::channel ? "channel"
                                                                  : "block of ");
  if (scheme_.level == QuantLevel::block) out += std::to_string(scheme_.block);
  if (scheme_.activations == QuantActivations::dynamic) out += ", inputs in 8 bits";
  return out;
}

// ---- Modules

namespace {

std::string owner_path(const std::string& path) {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

}  // namespace

bool detail::is_target(const PathFilter& filter, const std::string& path,
                       const Param<Tensor>& param, Module& owner, bool convolutions) {
  if (filter.is_everything()) {
    return owner.as<Linear>() != nullptr || (convolutions && owner.as<Conv2d>() != nullptr)
               ? path.ends_with("weight")
               : false;
  }
  return param.lazy_shape().rank() >= 2 &&
         (filter.matches(path, param.id()) || filter.matches(owner_path(path), param.id()));
}

QuantizeReport quantize_(Module& module, const QuantScheme& scheme, const PathFilter& filter) {
  QuantizeReport report;
  detail::for_each_param(module, [&](const std::string& path, Param<Tensor>& param, Module& owner) {
    if (param.is_computed() || !detail::is_target(filter, path, param, owner, true)) return;
    const Tensor before = param.get().detach();
    if (!before.is_floating_point()) return;
    const Quantized& quantized = parametrize<Quantized>(param, scheme);
    const double error =
        before.numel() == 0 ? 0.0 : (quantized.value() - before).abs().amax().item<double>();
    report.entries.push_back({path, before.shape(),
                              before.numel() * static_cast<int64_t>(size_of(before.dtype())),
                              quantized.bytes(), error});
  });
  if (report.entries.empty()) {
    throw_error<ValueError>("quantize_: no parameter of ", module.type_name(), " matches; got ",
                            filter.description(),
                            "; expected the paths of parameters of two dims or more");
  }
  return report;
}

void dequantize_(Module& module, const PathFilter& filter) {
  int64_t count = 0;
  detail::for_each_param(module, [&](const std::string& path, Param<Tensor>& param, Module&) {
    if (dynamic_cast<Quantized*>(param.source()) == nullptr) return;
    if (!filter.matches(path, param.id()) && !filter.matches(owner_path(path), param.id())) return;
    unparametrize(param, false);
    ++count;
  });
  if (count == 0) {
    throw_error<ValueError>("dequantize_: no quantized parameter of ", module.type_name(),
                            " matches; got ", filter.description());
  }
}

// ---- Reports

int64_t QuantizeReport::bytes_before() const {
  int64_t sum = 0;
  for (const Entry& entry : entries) sum += entry.bytes_before;
  return sum;
}

int64_t QuantizeReport::bytes_after() const {
  int64_t sum = 0;
  for (const Entry& entry : entries) sum += entry.bytes_after;
  return sum;
}

std::string to_string(const QuantizeReport& report) {
  std::string out;
  char line[128];
  const auto add = [&](const std::string& name, int64_t before, int64_t after) {
    std::snprintf(
        line, sizeof line, ": %lld -> %lld bytes (%.1f %%)", static_cast<long long>(before),
        static_cast<long long>(after),
        before == 0 ? 100.0 : 100.0 * static_cast<double>(after) / static_cast<double>(before));
    out += name + line;
  };
  for (const QuantizeReport::Entry& entry : report.entries) {
    add(concat(entry.path, " ", entry.shape), entry.bytes_before, entry.bytes_after);
    std::snprintf(line, sizeof line, ", largest error %.3g\n", entry.max_error);
    out += line;
  }
  add("together", report.bytes_before(), report.bytes_after());
  return out;
}

KILN_MODULE_DEFINED(Quantized, values, scales, like_)

}  // namespace kiln::nn
