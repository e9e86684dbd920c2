// kiln.nn.functional: the neural ops without modules.
#include "binding.h"

namespace kiln::python {

namespace {

namespace F = kiln::functional;

// One number for both, or two.
Pair pair_of(const char* op, const char* name, const IntList& list) {
  const Shape& v = list.values;
  if (v.rank() == 1) return {v[0], v[0]};
  if (v.rank() != 2) {
    throw_error<ValueError>(op, ": ", name, " must be one or two integers; got ", v);
  }
  return {v[0], v[1]};
}

F::Reduction reduction_of(const char* op, const std::string& name) {
  if (name == "mean") return F::Reduction::mean;
  if (name == "sum") return F::Reduction::sum;
  if (name == "none") return F::Reduction::none;
  throw_error<ValueError>(op, ": expected reduction 'none', 'mean' or 'sum'; got '", name, "'");
}

Pair conv_padding(const nb::object& padding, const Tensor& weight, const Pair& stride,
                  const Pair& dilation) {
  if (PyUnicode_Check(padding.ptr())) {
    const auto mode = nb::cast<std::string>(padding);
    if (mode == "valid") return {0, 0};
    if (mode != "same" || weight.dim() != 4) {
      throw_error<ValueError>("conv2d: expected padding 'valid', 'same' or integers; got '", mode,
                              "'");
    }
    Pair out{};
    for (size_t i = 0; i < 2; ++i) {
      const int64_t total = dilation[i] * (weight.size(static_cast<int64_t>(i) + 2) - 1);
      if (stride[i] != 1 || total % 2 != 0) {
        throw_error<ValueError>(
            "conv2d: padding 'same' needs stride 1 and a kernel of odd extent; got stride ",
            stride[i], " and extent ", total + 1);
      }
      out[i] = total / 2;
    }
    return out;
  }
  IntList list;
  if (!nb::try_cast(padding, list)) {
    throw nb::type_error("conv2d: padding must be 'valid', 'same', an integer or two of them");
  }
  return pair_of("conv2d", "padding", list);
}

void bind_layers(nb::module_& m) {
  m.def(
      "linear",
      [](const Tensor& x, const Tensor& weight, const OptionalTensor& bias) {
        Unlocked lock(x, weight);
        return F::linear(x, weight, bias);
      },
      "input"_a, "weight"_a, nb::arg("bias").none() = nb::none(),
      "x W^T + b: [.., in] with weight [out, in] -> [.., out].");
  m.def(
      "conv2d",
      [](const Tensor& x, const Tensor& weight, const OptionalTensor& bias, const IntList& stride,
         const nb::object& padding, const IntList& dilation, int64_t groups) {
        ConvOptions options;
        options.stride = pair_of("conv2d", "stride", stride);
        options.dilation = pair_of("conv2d", "dilation", dilation);
        options.padding = conv_padding(padding, weight, options.stride, options.dilation);
        options.groups = groups;
        Unlocked lock;
        return F::conv2d(x, weight, bias, options);
      },
      "input"_a, "weight"_a, nb::arg("bias").none() = nb::none(), "stride"_a = 1, "padding"_a = 0,
      "dilation"_a = 1, "groups"_a = 1);
  m.def(
      "max_pool2d",
      [](const Tensor& x, const IntList& kernel, const std::optional<IntList>& stride,
         const IntList& padding, const IntList& dilation, bool ceil_mode,
         bool return_indices) -> nb::object {
        PoolOptions options;
        options.kernel = pair_of("max_pool2d", "kernel_size", kernel);
        options.stride = stride && !stride->values.empty()
                             ? pair_of("max_pool2d", "stride", *stride)
                             : options.kernel;
        options.padding = pair_of("max_pool2d", "padding", padding);
        options.dilation = pair_of("max_pool2d", "dilation", dilation);
        options.ceil_mode = ceil_mode;
        if (return_indices) {
          auto [values, indices] = F::max_pool2d_with_indices(x, options);
          return nb::make_tuple(values, indices);
        }
        Tensor out;
        {
          Unlocked lock;
          out = F::max_pool2d(x, options);
        }
        return nb::cast(out);
      },
      "input"_a, "kernel_size"_a, "stride"_a = nb::none(), "padding"_a = 0, "dilation"_a = 1,
      "ceil_mode"_a = false, "return_indices"_a = false);
  m.def(
      "avg_pool2d",
      [](const Tensor& x, const IntList& kernel, const std::optional<IntList>& stride,
         const IntList& padding, bool ceil_mode, bool count_include_pad) {
        PoolOptions options;
        options.kernel = pair_of("avg_pool2d", "kernel_size", kernel);
        options.stride = stride && !stride->values.empty()
                             ? pair_of("avg_pool2d", "stride", *stride)
                             : options.kernel;
        options.padding = pair_of("avg_pool2d", "padding", padding);
        options.ceil_mode = ceil_mode;
        options.count_include_pad = count_include_pad;
        Unlocked lock;
        return F::avg_pool2d(x, options);
      },
      "input"_a, "kernel_size"_a, "stride"_a = nb::none(), "padding"_a = 0, "ceil_mode"_a = false,
      "count_include_pad"_a = true);
  m.def(
      "batch_norm",
      [](const Tensor& x, const OptionalTensor& running_mean, const OptionalTensor& running_var,
         const OptionalTensor& weight, const OptionalTensor& bias, bool training, double momentum,
         double eps) {
        Unlocked lock;
        return F::batch_norm(x, running_mean, running_var, weight, bias, training, momentum, eps);
      },
      "input"_a, nb::arg("running_mean").none(), nb::arg("running_var").none(),
      nb::arg("weight").none() = nb::none(), nb::arg("bias").none() = nb::none(),
      "training"_a = false, "momentum"_a = 0.1, "eps"_a = 1e-5);
  m.def(
      "layer_norm",
      [](const Tensor& x, const IntList& normalized_shape, const OptionalTensor& weight,
         const OptionalTensor& bias, double eps) {
        Unlocked lock(x);
        return F::layer_norm(x, normalized_shape.values, weight, bias, eps);
      },
      "input"_a, "normalized_shape"_a, nb::arg("weight").none() = nb::none(),
      nb::arg("bias").none() = nb::none(), "eps"_a = 1e-5);
  m.def(
      "embedding",
      [](const Tensor& index, const Tensor& weight) {
        Unlocked lock(index, weight);
        return F::embedding(index, weight);
      },
      "input"_a, "weight"_a, "Rows of weight [n, d] by index [..] -> [.., d].");
}

void bind_activations(nb::module_& m) {
  m.def(
      "dropout",
      [](Tensor& x, double p, bool training, bool inplace) {
        Unlocked lock(x);
        Tensor out = F::dropout(x, p, training);
        return inplace ? x.copy_(out) : out;
      },
      "input"_a, "p"_a = 0.5, "training"_a = true, "inplace"_a = false);
  m.def(
      "relu",
      [](Tensor& x, bool inplace) {
        Unlocked lock(x);
        return inplace ? x.relu_() : x.relu();
      },
      "input"_a, "inplace"_a = false);
  m.def(
      "silu",
      [](Tensor& x, bool inplace) {
        Unlocked lock(x);
        return inplace ? x.silu_() : x.silu();
      },
      "input"_a, "inplace"_a = false);
  m.def(
      "gelu",
      [](const Tensor& x, const std::string& approximate) {
        Unlocked lock(x);
        return x.gelu(approximate);
      },
      "input"_a, "approximate"_a = "none");
  m.def(
      "threshold",
      [](Tensor& x, double threshold, double value, bool inplace) {
        Unlocked lock(x);
        Tensor out = F::threshold(x, threshold, value);
        return inplace ? x.copy_(out) : out;
      },
      "input"_a, "threshold"_a, "value"_a, "inplace"_a = false);
  m.def(
      "prelu",
      [](const Tensor& x, const Tensor& weight) {
        Unlocked lock(x);
        return F::prelu(x, weight);
      },
      "input"_a, "weight"_a);
}

void bind_losses(nb::module_& m) {
  m.def(
      "cross_entropy",
      [](const Tensor& input, const Tensor& target, const OptionalTensor& weight,
         int64_t ignore_index, const std::string& reduction, double label_smoothing) {
        F::CrossEntropyLossOptions options;
        options.weight = weight.value;
        options.ignore_index = ignore_index;
        options.reduction = reduction_of("cross_entropy", reduction);
        options.label_smoothing = label_smoothing;
        Unlocked lock(input);
        return F::cross_entropy(input, target, options);
      },
      "input"_a, "target"_a, nb::arg("weight").none() = nb::none(), nb::kw_only(),
      "ignore_index"_a = -100, "reduction"_a = "mean", "label_smoothing"_a = 0.0);
  m.def(
      "mse_loss",
      [](const Tensor& input, const Tensor& target, const std::string& reduction) {
        Unlocked lock(input);
        return F::mse_loss(input, target, reduction_of("mse_loss", reduction));
      },
      "input"_a, "target"_a, nb::kw_only(), "reduction"_a = "mean");
}

}  // namespace

void bind_functional(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("_functional", "The neural ops without modules.");
  bind_layers(m);
  bind_activations(m);
  bind_losses(m);
}

}  // namespace kiln::python
