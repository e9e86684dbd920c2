// Normalizations.
#include <cmath>

#include "kiln/pt2/ops/forms.h"
#include "kiln/tensor/nn/normalization.h"

namespace kiln::pt2 {

namespace {

// Mean and 1 / sqrt(variance + eps) of x over dims, for operators that also give these.
void statistics(Call& c, const Tensor& x, const Dims& dims, double eps, bool keepdim) {
  if (!c.needs(1) && !c.needs(2)) {
    c.out(Value{});
    c.out(Value{});
    return;
  }
  const NoGradGuard guard;  // as in PyTorch
  c.out(x.mean(dims, keepdim));
  c.out(x.var(dims, 0, keepdim).add(eps).rsqrt());
}
Dims all_but_channels(const Tensor& x) {
  Dims dims{0};
  for (int64_t d = 2; d < x.dim(); ++d) dims.push_back(d);
  return dims;
}
void check_channels(Call& c, const Tensor& x) {
  if (x.dim() < 2) c.fail("expected [N, C, ..]");
}

Tensor batch_normed(Call& c, const Tensor& mean, const Tensor& var, bool training) {
  const Tensor x = c.x();
  check_channels(c, x);
  return functional::batch_norm(x, mean, var, c.maybe("weight"), c.maybe("bias"), training,
                                c.f("momentum", 0.1), c.f("eps"));
}
void batch_norm_of(Call& c) {
  const Tensor mean = c.maybe("running_mean"), var = c.maybe("running_var");
  c.out(batch_normed(c, mean, var, c.b("training")));
}
// Also the batch's statistics; what runs is written in place.
void native_batch_norm(Call& c) {
  const bool training = c.b("training");
  const Tensor mean = c.maybe("running_mean"), var = c.maybe("running_var");
  c.out(batch_normed(c, mean, var, training));
  if (training) {
    statistics(c, c.x(), all_but_channels(c.x()), c.f("eps"), false);
  } else {
    const Tensor none = zeros({0}, {.dtype = c.x().dtype(), .device = c.x().device()});
    c.out(none);
    c.out(none);
  }
}
void batch_norm_eval(Call& c) {
  const Tensor mean = c.t("running_mean"), var = c.t("running_var");
  c.out(batch_normed(c, mean, var, false));
  const Tensor none = zeros({0}, {.dtype = c.x().dtype(), .device = c.x().device()});
  for (size_t i = 1; i < c.outputs(); ++i) c.out(none);
}
// The running statistics are results.
void batch_norm_functional(Call& c) {
  const bool training = c.b("training");
  const Tensor mean = c.t("running_mean").clone(), var = c.t("running_var").clone();
  c.out(batch_normed(c, mean, var, training));
  if (training) {
    statistics(c, c.x(), all_but_channels(c.x()), c.f("eps"), false);
  } else {
    c.out(Value{});
    c.out(Value{});
  }
  c.out(mean);
  c.out(var);
}

Dims last_dims(Call& c, const Tensor& x, const Shape& normalized) {
  if (normalized.rank() > x.dim()) c.fail("normalized_shape has more dims than the tensor");
  Dims dims;
  for (int64_t d = x.dim() - normalized.rank(); d < x.dim(); ++d) dims.push_back(d);
  return dims;
}
void layer_norm_of(Call& c) {
  c.ignore("cudnn_enable");
  const Tensor x = c.x();
  const Shape normalized = c.ints("normalized_shape");
  const double eps = c.f("eps", 1e-5);
  c.out(functional::layer_norm(x, normalized, c.maybe("weight"), c.maybe("bias"), eps));
  if (c.outputs() > 1) statistics(c, x, last_dims(c, x, normalized), eps, true);
}
void rms_norm_of(Call& c) {
  const Tensor x = c.x();
  const Shape normalized = c.ints("normalized_shape");
  c.out(functional::rms_norm(x, normalized, c.maybe("weight"), c.maybe_f("eps")));
  if (c.outputs() > 1) {
    if (!c.needs(1)) return c.out(Value{});
    const double least = x.dtype() == DType::f64 ? std::numeric_limits<double>::epsilon()
                                                 : std::numeric_limits<float>::epsilon();
    c.out(x.square().mean(last_dims(c, x, normalized), true).add(c.f("eps", least)).rsqrt());
  }
}
void group_norm_of(Call& c) {
  c.out(functional::group_norm(c.x(), c.i("num_groups"), c.maybe("weight"), c.maybe("bias"),
                               c.f("eps", 1e-5)));
}
void native_group_norm(Call& c) {
  for (const char* one : {"N", "C", "HxW"}) c.ignore(one);
  const Tensor x = c.x();
  check_channels(c, x);
  const int64_t groups = c.i("group");
  const double eps = c.f("eps");
  c.out(functional::group_norm(x, groups, c.maybe("weight"), c.maybe("bias"), eps));
  if (groups < 1) c.fail("expected at least one group");
  if (!c.needs(1) && !c.needs(2)) {
    c.out(Value{});
    c.out(Value{});
    return;
  }
  const Tensor rows = x.reshape({x.size(0), groups, -1});
  c.out(rows.mean(Dims{2}));  // unlike those of other norms, they have gradients
  c.out(rows.var(Dims{2}, 0.0).add(eps).rsqrt());
}
void instance_norm_of(Call& c) {
  c.out(functional::instance_norm(c.x(), c.maybe("running_mean"), c.maybe("running_var"),
                                  c.maybe("weight"), c.maybe("bias"), c.b("use_input_stats"),
                                  c.f("momentum"), c.f("eps")));
}

constexpr Operator kNormsOperators[] = {
    {"batch_norm", "default", batch_norm_of},
    {"native_batch_norm", "default", native_batch_norm},
    {"_native_batch_norm_legit", "default no_stats", native_batch_norm},
    {"_native_batch_norm_legit_functional", "default", batch_norm_functional},
    {"_native_batch_norm_legit_no_training", "default", batch_norm_eval},
    {"layer_norm", "default", layer_norm_of},
    {"native_layer_norm", "default", layer_norm_of},
    {"rms_norm", "default", rms_norm_of},
    {"_fused_rms_norm", "default", rms_norm_of},
    {"group_norm", "default", group_norm_of},
    {"native_group_norm", "default", native_group_norm},
    {"instance_norm", "default", instance_norm_of},
};

}  // namespace

std::span<const Operator> norm_operators() { return kNormsOperators; }

}  // namespace kiln::pt2
