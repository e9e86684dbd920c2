#include "kiln/nn/lora.h"

#include <cmath>

#include "kiln/core/error.h"
#include "kiln/nn/computed_params.h"
#include "kiln/nn/init.h"
#include "kiln/nn/repr.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"

namespace kiln::nn {

Lora::Lora(Param<Tensor> former, const LoraOptions& options)
    : base(std::move(former)),
      rank_(options.rank),
      scaling_(options.alpha / static_cast<double>(options.rank)),
      dropout_(options.dropout) {
  const Shape shape = base.lazy_shape();
  int64_t width = 1;
  for (int d = 1; d < shape.rank(); ++d) width *= shape[d];
  const ParamOptions like{.dtype = base.lazy_dtype(), .device = base.lazy_device()};
  A = parameter(
      {rank_, width}, [](Tensor& x) { init::kaiming_uniform_(x, std::sqrt(5.0)); }, like);
  B = parameter({shape[0], rank_}, init::zeros_, like);
  merged = Buffer(zeros({}, {.dtype = bool_, .device = like.device}));
  if (!base.is_computed()) base.set_require_grad(false);
}

Tensor Lora::delta() const {
  return (B.get().matmul(A.get()) * scaling_).reshape(base.lazy_shape());
}

Tensor Lora::value() const {
  const Tensor w = base.val();
  return is_merged() ? w : w + delta();
}

Tensor Lora::linear(TensorArg x, const Tensor& bias) const {
  const Tensor& input = x.get();
  Tensor out = base.is_computed() ? detail::computed_linear(base, input, bias)
                                  : functional::linear(input, base.get(), bias);
  if (is_merged()) return out;
  const Tensor dropped = functional::dropout(input, dropout_, is_training());
  const Tensor inner = functional::linear(dropped, A.get());
  return out + functional::linear(inner, B.get()) * scaling_;
}

Tensor Lora::conv2d(TensorArg x, const Tensor& bias, const ConvOptions& options) const {
  const Tensor& input = x.get();
  if (is_merged() || dropout_ == 0.0 || !is_training()) {
    return detail::conv2d_with(input, value(), bias, options);
  }
  const Tensor dropped = functional::dropout(input, dropout_, true);
  return detail::conv2d_with(input, base.val(), bias, options) +
         detail::conv2d_with(dropped, delta(), {}, options);
}

void Lora::add_to_base(double sign) {
  NoGradGuard no_grad;
  Tensor values = base.get().detach();
  values.add_(delta(), sign);
}

void Lora::merge() {
  if (base.is_computed()) {
    throw_error<ValueError>("Lora: a quantized base cannot take the update; got a base of shape ",
                            base.lazy_shape(), "; try merge_and_unload(), which makes it dense");
  }
  if (is_merged()) return;
  add_to_base(1.0);
  merged->fill_(true);
}

void Lora::unmerge() {
  if (!is_merged()) return;
  add_to_base(-1.0);
  merged->fill_(false);
}

void Lora::visit_as(MemberVisitor& visitor, std::string_view name) {
  detail::visit_member(visitor, name, base);
  Parametrization::visit_as(visitor, name);
}

std::string Lora::extra_repr() const {
  std::string out = concat("rank=", rank_, ", alpha=", scaling_ * static_cast<double>(rank_));
  if (dropout_ > 0.0) out += concat(", dropout=", dropout_);
  if (is_merged()) out += ", merged";
  return out;
}

// ---- Modules

namespace {

void check(const char* op, const LoraOptions& options) {
  if (options.rank < 1)
    throw_error<ValueError>(op, ": rank must be at least 1; got ", options.rank);
  if (!(options.dropout >= 0.0 && options.dropout < 1.0)) {
    throw_error<ValueError>(op, ": dropout must be in [0, 1); got ", options.dropout);
  }
  if (!std::isfinite(options.alpha)) {
    throw_error<ValueError>(op, ": alpha must be finite; got ", options.alpha);
  }
}

[[noreturn]] void throw_no_target(const char* op, const Module& module, const PathFilter& targets) {
  throw_error<ValueError>(op, ": no weight of ", module.type_name(), " matches; got ",
                          targets.description(),
                          "; expected the paths of Linear layers or their weights");
}

// Every update of the module, with the parameter that it computes. Throws ValueError without any.
void for_each_lora(const char* op, Module& module,
                   const std::function<void(Param<Tensor>&, Lora&)>& f) {
  int64_t count = 0;
  detail::for_each_param(module, [&](const std::string&, Param<Tensor>& param, Module&) {
    auto* update = dynamic_cast<Lora*>(param.source());
    if (update == nullptr) return;
    f(param, *update);
    ++count;
  });
  if (count == 0) {
    throw_error<ValueError>(op, ": ", module.type_name(),
                            " has no updates; expected lora() before");
  }
}

}  // namespace

int64_t lora(Module& module, const LoraOptions& options) {
  check("lora", options);
  std::vector<Param<Tensor>*> targets;
  detail::for_each_param(module, [&](const std::string& path, Param<Tensor>& param, Module& owner) {
    if (!detail::is_target(options.targets, path, param, owner, false)) return;
    if (dynamic_cast<Lora*>(param.source()) != nullptr) {
      throw_error<ValueError>("lora: ", path,
                              " has an update already; try merge_and_unload() or unload() before");
    }
    targets.push_back(&param);
  });
  if (targets.empty()) throw_no_target("lora", module, options.targets);
  if (options.freeze_others) module.requires_grad_(false);
  for (Param<Tensor>* param : targets) {
    Lora& update = parametrize<Lora>(*param, options);
    update.train(module.is_training());
  }
  return static_cast<int64_t>(targets.size());
}

int64_t qlora(Module& module, const LoraOptions& options, const QuantScheme& scheme) {
  check("qlora", options);
  int64_t count = 0;
  detail::for_each_param(module, [&](const std::string& path, Param<Tensor>& param, Module& owner) {
    if (!detail::is_target(options.targets, path, param, owner, false)) return;
    ++count;
    if (!param.is_computed()) parametrize<Quantized>(param, scheme);
  });
  if (count == 0) throw_no_target("qlora", module, options.targets);
  return lora(module, options);
}

void merge(Module& module) {
  for_each_lora("merge", module, [](Param<Tensor>&, Lora& update) { update.merge(); });
}

void unmerge(Module& module) {
  for_each_lora("unmerge", module, [](Param<Tensor>&, Lora& update) { update.unmerge(); });
}

void merge_and_unload(Module& module) {
  for_each_lora("merge_and_unload", module,
                [](Param<Tensor>& param, Lora&) { unparametrize(param, false); });
}

void unload(Module& module) {
  for_each_lora("unload", module, [](Param<Tensor>& param, Lora& update) {
    update.unmerge();
    Param<Tensor> base = std::move(update.base);
    param = std::move(base);
  });
}

PathFilter lora_parameters() { return PathFilter::regex("_lora\\.[AB]$"); }

KILN_MODULE_DEFINED(Lora, A, B, merged)

}  // namespace kiln::nn
