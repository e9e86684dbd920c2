// Pooling.
#include "kiln/tensor/nn/pooling.h"

#include "kiln/pt2/ops/forms.h"
#include "kiln/tensor/nn/fractional_pooling.h"

namespace kiln::pt2 {

namespace {

Sizes sizes_of(Call& c, const char* name, int64_t otherwise) {
  const auto given = c.maybe_ints(name);
  return given && !given->empty() ? Sizes(*given) : Sizes(otherwise);
}
// Absent, or an empty list: that of the window.
std::optional<Sizes> stride_of(Call& c) {
  const auto given = c.maybe_ints("stride");
  return given && !given->empty() ? std::optional(Sizes(*given)) : std::nullopt;
}

using MaxPool = Tensor (*)(const Tensor&, const Sizes&, const std::optional<Sizes>&, const Sizes&,
                           const Sizes&, bool);
using MaxPoolPlaces = std::pair<Tensor, Tensor> (*)(const Tensor&, const Sizes&,
                                                    const std::optional<Sizes>&, const Sizes&,
                                                    const Sizes&, bool);
template <MaxPool F>
void max_pool(Call& c) {
  c.out(F(c.x(), c.ints("kernel_size"), stride_of(c), sizes_of(c, "padding", 0),
          sizes_of(c, "dilation", 1), c.b("ceil_mode", false)));
}
template <MaxPoolPlaces F>
void max_pool_places(Call& c) {
  c.out(F(c.x(), c.ints("kernel_size"), stride_of(c), sizes_of(c, "padding", 0),
          sizes_of(c, "dilation", 1), c.b("ceil_mode", false)));
}
void avg_pool1d_of(Call& c) {
  c.out(functional::avg_pool1d(c.x(), c.ints("kernel_size"), stride_of(c),
                               sizes_of(c, "padding", 0), c.b("ceil_mode", false),
                               c.b("count_include_pad", true)));
}
template <Tensor (*F)(const Tensor&, const Sizes&, const std::optional<Sizes>&, const Sizes&, bool,
                      bool, std::optional<int64_t>)>
void avg_pool(Call& c) {
  c.out(F(c.x(), c.ints("kernel_size"), stride_of(c), sizes_of(c, "padding", 0),
          c.b("ceil_mode", false), c.b("count_include_pad", true), c.maybe_i("divisor_override")));
}
template <Tensor (*F)(const Tensor&, const Sizes&)>
void adaptive(Call& c) {
  c.out(F(c.x(), c.ints("output_size")));
}
template <std::pair<Tensor, Tensor> (*F)(const Tensor&, const Sizes&)>
void adaptive_places(Call& c) {
  c.out(F(c.x(), c.ints("output_size")));
}
template <std::pair<Tensor, Tensor> (*F)(const Tensor&, const Sizes&,
                                         const functional::FractionalPoolOptions&)>
void fractional(Call& c) {
  functional::FractionalPoolOptions options;
  options.output_size = Sizes(c.ints("output_size"));
  options.random_samples = c.t("random_samples");
  c.out(F(c.x(), c.ints("kernel_size"), options));
}
// The places in the flattened spatial dims say all: the windows do not matter.
template <int kDims>
void max_unpool(Call& c) {
  c.ignore("stride");
  c.ignore("padding");
  const Tensor x = c.x();
  const Shape size = c.ints("output_size");
  if (x.dim() < kDims || size.rank() != kDims) c.fail("expected a size for each spatial dim");
  int64_t count = 1;
  for (const int64_t d : size) {
    if (d < 0 || __builtin_mul_overflow(count, d, &count)) c.fail("a size that does not exist");
  }
  const Tensor flat = x.flatten(x.dim() - kDims, -1);
  const Tensor places = c.t("indices").flatten(c.t("indices").dim() - kDims, -1);
  Shape rows = flat.shape(), whole;
  rows.back() = count;
  for (int d = 0; d + 1 < rows.rank(); ++d) whole.push_back(rows[d]);
  for (const int64_t d : size) whole.push_back(d);
  const Tensor y = zeros(rows, {.dtype = x.dtype(), .device = x.device()});
  c.out(y.scatter(-1, places, flat).reshape(whole));
}

namespace f = functional;

constexpr Operator kPoolingOperators[] = {
    {"max_pool1d", "default", max_pool<f::max_pool1d>},
    {"max_pool2d", "default", max_pool<f::max_pool2d>},
    {"max_pool3d", "default", max_pool<f::max_pool3d>},
    {"max_pool1d_with_indices", "default", max_pool_places<f::max_pool1d_with_indices>},
    {"max_pool2d_with_indices", "default", max_pool_places<f::max_pool2d_with_indices>},
    {"max_pool3d_with_indices", "default", max_pool_places<f::max_pool3d_with_indices>},
    {"avg_pool1d", "default", avg_pool1d_of},
    {"avg_pool2d", "default", avg_pool<f::avg_pool2d>},
    {"avg_pool3d", "default", avg_pool<f::avg_pool3d>},
    {"adaptive_avg_pool1d", "default", adaptive<f::adaptive_avg_pool1d>},
    {"adaptive_avg_pool2d", "default", adaptive<f::adaptive_avg_pool2d>},
    {"adaptive_avg_pool3d", "default", adaptive<f::adaptive_avg_pool3d>},
    {"_adaptive_avg_pool2d", "default", adaptive<f::adaptive_avg_pool2d>},
    {"_adaptive_avg_pool3d", "default", adaptive<f::adaptive_avg_pool3d>},
    {"adaptive_max_pool1d", "default", adaptive_places<f::adaptive_max_pool1d_with_indices>},
    {"adaptive_max_pool2d", "default", adaptive_places<f::adaptive_max_pool2d_with_indices>},
    {"adaptive_max_pool3d", "default", adaptive_places<f::adaptive_max_pool3d_with_indices>},
    {"fractional_max_pool2d", "default", fractional<f::fractional_max_pool2d_with_indices>},
    {"fractional_max_pool3d", "default", fractional<f::fractional_max_pool3d_with_indices>},
    {"max_unpool2d", "default", max_unpool<2>},
    {"max_unpool3d", "default", max_unpool<3>},
};

}  // namespace

std::span<const Operator> pooling_operators() { return kPoolingOperators; }

}  // namespace kiln::pt2
