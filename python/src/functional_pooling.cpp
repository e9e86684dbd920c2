// kiln.nn.functional: pooling.
#include "functional.h"

namespace kiln::python {

namespace {

using MaxPool = std::pair<Tensor, Tensor> (*)(const Tensor&, const Sizes&,
                                              const std::optional<Sizes>&, const Sizes&,
                                              const Sizes&, bool);
using MaxPoolValues = Tensor (*)(const Tensor&, const Sizes&, const std::optional<Sizes>&,
                                 const Sizes&, const Sizes&, bool);

void def_max_pool(nb::module_& m, const std::string& name, MaxPoolValues values, MaxPool both) {
  m.def(
      name.c_str(),
      [values, both](const Tensor& x, const IntList& kernel_size,
                     const std::optional<IntList>& stride, const IntList& padding,
                     const IntList& dilation, bool ceil_mode, bool return_indices) -> nb::object {
        std::pair<Tensor, Tensor> out;
        {
          Unlocked lock(x);
          const Sizes kernel = sizes_of(kernel_size);
          const std::optional<Sizes> step = optional_sizes_of(stride);
          if (return_indices) {
            out = both(x, kernel, step, sizes_of(padding), sizes_of(dilation), ceil_mode);
          } else {
            out.first = values(x, kernel, step, sizes_of(padding), sizes_of(dilation), ceil_mode);
          }
        }
        return return_indices ? nb::object(nb::make_tuple(out.first, out.second))
                              : nb::cast(out.first);
      },
      "input"_a, "kernel_size"_a, "stride"_a = nb::none(), "padding"_a = 0, "dilation"_a = 1,
      "ceil_mode"_a = false, "return_indices"_a = false,
      "The largest element of each window, and with return_indices where it stood.");
  m.def((name + "_with_indices").c_str(),
        [both](const Tensor& x, const IntList& kernel_size, const std::optional<IntList>& stride,
               const IntList& padding, const IntList& dilation, bool ceil_mode) {
          Unlocked lock(x);
          return both(x, sizes_of(kernel_size), optional_sizes_of(stride), sizes_of(padding),
                      sizes_of(dilation), ceil_mode);
        },
        "input"_a, "kernel_size"_a, "stride"_a = nb::none(), "padding"_a = 0, "dilation"_a = 1,
        "ceil_mode"_a = false, "The largest element of each window, and where it stood.");
}

using AvgPool = Tensor (*)(const Tensor&, const Sizes&, const std::optional<Sizes>&, const Sizes&,
                           bool, bool, std::optional<int64_t>);

void def_avg_pool(nb::module_& m, const char* name, AvgPool f) {
  m.def(
      name,
      [f](const Tensor& x, const IntList& kernel_size, const std::optional<IntList>& stride,
          const IntList& padding, bool ceil_mode, bool count_include_pad,
          std::optional<int64_t> divisor_override) {
        Unlocked lock(x);
        return f(x, sizes_of(kernel_size), optional_sizes_of(stride), sizes_of(padding), ceil_mode,
                 count_include_pad, divisor_override);
      },
      "input"_a, "kernel_size"_a, "stride"_a = nb::none(), "padding"_a = 0, "ceil_mode"_a = false,
      "count_include_pad"_a = true, "divisor_override"_a = nb::none(), "The mean of each window.");
}

using LpPool = Tensor (*)(const Tensor&, double, const Sizes&, const std::optional<Sizes>&, bool);

void def_lp_pool(nb::module_& m, const char* name, LpPool f) {
  m.def(
      name,
      [f](const Tensor& x, double norm_type, const IntList& kernel_size,
          const std::optional<IntList>& stride, bool ceil_mode) {
        Unlocked lock(x);
        return f(x, norm_type, sizes_of(kernel_size), optional_sizes_of(stride), ceil_mode);
      },
      "input"_a, "norm_type"_a, "kernel_size"_a, "stride"_a = nb::none(), "ceil_mode"_a = false,
      "(sum of x^norm_type over each window)^(1 / norm_type).");
}

using Unpool = Tensor (*)(const Tensor&, const Tensor&, const Sizes&, const std::optional<Sizes>&,
                          const Sizes&, const std::optional<Shape>&);

void def_unpool(nb::module_& m, const char* name, Unpool f) {
  m.def(
      name,
      [f](const Tensor& x, const Tensor& indices, const IntList& kernel_size,
          const std::optional<IntList>& stride, const IntList& padding,
          const std::optional<Shape>& output_size) {
        Unlocked lock(x);
        return f(x, indices, sizes_of(kernel_size), optional_sizes_of(stride), sizes_of(padding),
                 output_size);
      },
      "input"_a, "indices"_a, "kernel_size"_a, "stride"_a = nb::none(), "padding"_a = 0,
      "output_size"_a = nb::none(),
      "Each element where max pooling took it from, and 0 elsewhere.");
}

// A number, or a list in which None keeps the input's size.
Sizes output_sizes(const char* op, const nb::object& size) {
  const auto checked = [op](int64_t n) {
    if (n < 0) throw_error<ValueError>(op, ": expected sizes >= 0 or None; got ", n);
    return n;
  };
  IntList list;
  if (try_value(size, list)) {
    for (const int64_t n : list.values) checked(n);
    return sizes_of(list);
  }
  std::vector<std::optional<int64_t>> entries;
  if (!try_value(size, entries)) {
    throw nb::type_error(concat(op, ": output_size must be integers or None").c_str());
  }
  Shape out;
  for (const std::optional<int64_t>& n : entries) out.push_back(n ? checked(*n) : -1);
  return Sizes(out);
}

using AdaptiveAvg = Tensor (*)(const Tensor&, const Sizes&);
using AdaptiveMax = std::pair<Tensor, Tensor> (*)(const Tensor&, const Sizes&);

void def_adaptive(nb::module_& m, const char* dims, AdaptiveAvg avg, AdaptiveMax max) {
  const std::string avg_name = concat("adaptive_avg_pool", dims);
  const std::string max_name = concat("adaptive_max_pool", dims);
  m.def(
      avg_name.c_str(),
      [avg](const Tensor& x, const nb::object& output_size) {
        const Sizes size = output_sizes("adaptive_avg_pool", output_size);
        Unlocked lock(x);
        return avg(x, size);
      },
      "input"_a, "output_size"_a, "Means of windows that divide the input into output_size parts.");
  m.def(
      max_name.c_str(),
      [max](const Tensor& x, const nb::object& output_size, bool return_indices) -> nb::object {
        const Sizes size = output_sizes("adaptive_max_pool", output_size);
        std::pair<Tensor, Tensor> out;
        {
          Unlocked lock(x);
          out = max(x, size);
        }
        return return_indices ? nb::object(nb::make_tuple(out.first, out.second))
                              : nb::cast(out.first);
      },
      "input"_a, "output_size"_a, "return_indices"_a = false,
      "Maxima of windows that divide the input into output_size parts.");
  m.def((max_name + "_with_indices").c_str(),
        [max](const Tensor& x, const nb::object& output_size) {
          const Sizes size = output_sizes("adaptive_max_pool", output_size);
          Unlocked lock(x);
          return max(x, size);
        },
        "input"_a, "output_size"_a, "The same, and where they stood.");
}

using FractionalPool = std::pair<Tensor, Tensor> (*)(const Tensor&, const Sizes&,
                                                     const F::FractionalPoolOptions&);

void def_fractional(nb::module_& m, const std::string& name, FractionalPool pool) {
  const auto call = [pool, name](const Tensor& x, const IntList& kernel_size,
                                 const std::optional<IntList>& output_size,
                                 const nb::object& output_ratio, const OptionalTensor& samples) {
    F::FractionalPoolOptions options;
    options.output_size = optional_sizes_of(output_size);
    double ratio = 0.0;
    if (output_ratio.is_none()) {
    } else if (try_value(output_ratio, ratio)) {
      options.output_ratio = {ratio};
    } else if (!try_value(output_ratio, options.output_ratio)) {
      throw nb::type_error(concat(name, ": output_ratio must be one number or several").c_str());
    }
    options.random_samples = samples;
    Unlocked lock(x);
    return pool(x, sizes_of(kernel_size), options);
  };
  m.def(
      name.c_str(),
      [call](const Tensor& x, const IntList& kernel_size, const std::optional<IntList>& output_size,
             const nb::object& output_ratio, bool return_indices,
             const OptionalTensor& samples) -> nb::object {
        const auto out = call(x, kernel_size, output_size, output_ratio, samples);
        return return_indices ? nb::object(nb::make_tuple(out.first, out.second))
                              : nb::cast(out.first);
      },
      "input"_a, "kernel_size"_a, "output_size"_a = nb::none(), "output_ratio"_a = nb::none(),
      "return_indices"_a = false, optional_arg("_random_samples"),
      "The largest element of each window; the windows begin at pseudo-random steps.");
  m.def((name + "_with_indices").c_str(), call, "input"_a, "kernel_size"_a,
        "output_size"_a = nb::none(), "output_ratio"_a = nb::none(),
        optional_arg("_random_samples"), "The same, and where the elements stood.");
}

}  // namespace

void bind_functional_pooling(nb::module_& m) {
  def_max_pool(m, "max_pool1d", &F::max_pool1d, &F::max_pool1d_with_indices);
  def_max_pool(m, "max_pool2d", &F::max_pool2d, &F::max_pool2d_with_indices);
  def_max_pool(m, "max_pool3d", &F::max_pool3d, &F::max_pool3d_with_indices);
  m.def(
      "avg_pool1d",
      [](const Tensor& x, const IntList& kernel_size, const std::optional<IntList>& stride,
         const IntList& padding, bool ceil_mode, bool count_include_pad) {
        Unlocked lock(x);
        return F::avg_pool1d(x, sizes_of(kernel_size), optional_sizes_of(stride), sizes_of(padding),
                             ceil_mode, count_include_pad);
      },
      "input"_a, "kernel_size"_a, "stride"_a = nb::none(), "padding"_a = 0, "ceil_mode"_a = false,
      "count_include_pad"_a = true, "The mean of each window.");
  def_avg_pool(m, "avg_pool2d", &F::avg_pool2d);
  def_avg_pool(m, "avg_pool3d", &F::avg_pool3d);
  def_lp_pool(m, "lp_pool1d", &F::lp_pool1d);
  def_lp_pool(m, "lp_pool2d", &F::lp_pool2d);
  def_lp_pool(m, "lp_pool3d", &F::lp_pool3d);
  def_unpool(m, "max_unpool1d", &F::max_unpool1d);
  def_unpool(m, "max_unpool2d", &F::max_unpool2d);
  def_unpool(m, "max_unpool3d", &F::max_unpool3d);
  def_fractional(m, "fractional_max_pool2d", &F::fractional_max_pool2d_with_indices);
  def_fractional(m, "fractional_max_pool3d", &F::fractional_max_pool3d_with_indices);
  def_adaptive(m, "1d", &F::adaptive_avg_pool1d, &F::adaptive_max_pool1d_with_indices);
  def_adaptive(m, "2d", &F::adaptive_avg_pool2d, &F::adaptive_max_pool2d_with_indices);
  def_adaptive(m, "3d", &F::adaptive_avg_pool3d, &F::adaptive_max_pool3d_with_indices);
}

}  // namespace kiln::python
