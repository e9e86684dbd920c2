// kiln.nn.functional: normalization, dropout, embeddings, attention.
#include "functional.h"

namespace kiln::python {

namespace {

void bind_norms(nb::module_& m) {
  m.def(
      "batch_norm",
      [](const Tensor& x, const OptionalTensor& running_mean, const OptionalTensor& running_var,
         const OptionalTensor& weight, const OptionalTensor& bias, bool training, double momentum,
         double eps) {
        Unlocked lock(x);
        return F::batch_norm(x, running_mean, running_var, weight, bias, training, momentum, eps);
      },
      "input"_a, nb::arg("running_mean").none(), nb::arg("running_var").none(),
      optional_arg("weight"), optional_arg("bias"), "training"_a = false, "momentum"_a = 0.1,
      "eps"_a = 1e-5, "Each channel (dim 1) normalized over all other dims.");
  m.def(
      "instance_norm",
      [](const Tensor& x, const OptionalTensor& running_mean, const OptionalTensor& running_var,
         const OptionalTensor& weight, const OptionalTensor& bias, bool use_input_stats,
         double momentum, double eps) {
        Unlocked lock(x);
        return F::instance_norm(x, running_mean, running_var, weight, bias, use_input_stats,
                                momentum, eps);
      },
      "input"_a, optional_arg("running_mean"), optional_arg("running_var"), optional_arg("weight"),
      optional_arg("bias"), "use_input_stats"_a = true, "momentum"_a = 0.1, "eps"_a = 1e-5,
      "Each channel of each instance normalized.");
  m.def(
      "group_norm",
      [](const Tensor& x, int64_t num_groups, const OptionalTensor& weight,
         const OptionalTensor& bias, double eps) {
        Unlocked lock(x);
        return F::group_norm(x, num_groups, weight, bias, eps);
      },
      "input"_a, "num_groups"_a, optional_arg("weight"), optional_arg("bias"), "eps"_a = 1e-5,
      "Groups of channels of each instance normalized.");
  m.def(
      "layer_norm",
      [](const Tensor& x, const IntList& normalized_shape, const OptionalTensor& weight,
         const OptionalTensor& bias, double eps) {
        Unlocked lock(x);
        return F::layer_norm(x, normalized_shape.values, weight, bias, eps);
      },
      "input"_a, "normalized_shape"_a, optional_arg("weight"), optional_arg("bias"), "eps"_a = 1e-5,
      "The last dims normalized.");
  m.def(
      "rms_norm",
      [](const Tensor& x, const IntList& normalized_shape, const OptionalTensor& weight,
         std::optional<double> eps) {
        Unlocked lock(x);
        return F::rms_norm(x, normalized_shape.values, weight, eps);
      },
      "input"_a, "normalized_shape"_a, optional_arg("weight"), "eps"_a = nb::none(),
      "x / sqrt(mean(x^2) + eps) over the last dims.");
  m.def(
      "local_response_norm",
      [](const Tensor& x, int64_t size, double alpha, double beta, double k) {
        Unlocked lock(x);
        return F::local_response_norm(x, size, alpha, beta, k);
      },
      "input"_a, "size"_a, "alpha"_a = 1e-4, "beta"_a = 0.75, "k"_a = 1.0,
      "x / (k + alpha mean(x^2 over `size` neighbouring channels))^beta.");
  m.def(
      "normalize",
      [](const Tensor& x, double p, const IntList& dim, double eps) {
        Unlocked lock(x);
        return F::normalize(x, p, dim.values, eps);
      },
      "input"_a, "p"_a = 2.0, "dim"_a = 1, "eps"_a = 1e-12,
      "x / max(|x|_p, eps) of the vectors along dim.");
}

using ChannelDropout = Tensor (*)(const Tensor&, double, bool);

void def_dropout(nb::module_& m, const char* name, ChannelDropout f, bool training,
                 const char* doc) {
  m.def(
      name,
      [f](Tensor& x, double p, bool is_training, bool inplace) {
        return maybe_in_place(x, inplace, [&](const Tensor& v) { return f(v, p, is_training); });
      },
      "input"_a, "p"_a = 0.5, "training"_a = training, "inplace"_a = false, doc);
}

void bind_dropouts(nb::module_& m) {
  def_dropout(
      m, "dropout",
      [](const Tensor& x, double p, bool training) { return F::dropout(x, p, training); }, true,
      "Zeroes elements with probability p and scales the others by 1 / (1 - p).");
  def_dropout(m, "dropout1d", &F::dropout1d, true, "Dropout of whole channels of [N, C, L].");
  def_dropout(m, "dropout2d", &F::dropout2d, true, "Dropout of whole channels of [N, C, H, W].");
  def_dropout(m, "dropout3d", &F::dropout3d, true, "Dropout of whole channels of [N, C, D, H, W].");
  def_dropout(m, "alpha_dropout", &F::alpha_dropout, false,
              "Dropout that keeps mean 0 and variance 1.");
  def_dropout(m, "feature_alpha_dropout", &F::feature_alpha_dropout, false,
              "alpha_dropout of whole channels.");
}

F::BagMode bag_mode_of(const std::string& name) {
  if (name == "sum") return F::BagMode::sum;
  if (name == "mean") return F::BagMode::mean;
  if (name == "max") return F::BagMode::max;
  throw_error<ValueError>("embedding_bag: expected mode 'sum', 'mean' or 'max'; got '", name, "'");
}

void bind_embeddings(nb::module_& m) {
  m.def(
      "embedding",
      [](const Tensor& index, const Tensor& weight, std::optional<int64_t> padding_idx,
         std::optional<double> max_norm, double norm_type, bool scale_grad_by_freq, bool) {
        Unlocked lock(index, weight);
        return F::embedding(index, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq);
      },
      "input"_a, "weight"_a, "padding_idx"_a = nb::none(), "max_norm"_a = nb::none(),
      "norm_type"_a = 2.0, "scale_grad_by_freq"_a = false, "sparse"_a = false,
      "Rows of weight [n, d] by index [..] -> [.., d]. Gradients are dense, also with sparse.");
  m.def(
      "embedding_bag",
      [](const Tensor& index, const Tensor& weight, const OptionalTensor& offsets,
         std::optional<double> max_norm, double norm_type, bool scale_grad_by_freq,
         const std::string& mode, bool, const OptionalTensor& per_sample_weights,
         bool include_last_offset, std::optional<int64_t> padding_idx) {
        const F::EmbeddingBagOptions options{
            max_norm,           norm_type,           scale_grad_by_freq, bag_mode_of(mode),
            per_sample_weights, include_last_offset, padding_idx};
        Unlocked lock(index, weight);
        return F::embedding_bag(index, weight, offsets, options);
      },
      "input"_a, "weight"_a, optional_arg("offsets"), "max_norm"_a = nb::none(),
      "norm_type"_a = 2.0, "scale_grad_by_freq"_a = false, "mode"_a = "mean", "sparse"_a = false,
      optional_arg("per_sample_weights"), "include_last_offset"_a = false,
      "padding_idx"_a = nb::none(), "The sum, mean or maximum of the rows of each bag.");
}

}  // namespace

void bind_functional_norms(nb::module_& m) {
  bind_norms(m);
  bind_dropouts(m);
  bind_embeddings(m);
  m.def(
      "scaled_dot_product_attention",
      [](const Tensor& query, const Tensor& key, const Tensor& value,
         const OptionalTensor& attn_mask, double dropout_p, bool is_causal,
         std::optional<double> scale, bool enable_gqa) {
        Unlocked lock(query, key);
        return F::scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal,
                                               scale, enable_gqa);
      },
      "query"_a, "key"_a, "value"_a, optional_arg("attn_mask"), "dropout_p"_a = 0.0,
      "is_causal"_a = false, "scale"_a = nb::none(), "enable_gqa"_a = false,
      "softmax(scale query key^T + mask) value: [.., L, E], [.., S, E], [.., S, V] -> [.., L, V].");
}

}  // namespace kiln::python
