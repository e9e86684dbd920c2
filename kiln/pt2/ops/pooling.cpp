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
// The places say all: the window does not matter.
void max_unpool2d_of(Call& c) {
  c.out(functional::max_unpool2d(c.x(), c.t("indices"), 1, 1, 0, c.ints("output_size")));
}
void max_unpool3d_of(Call& c) {
  c.ignore("stride");
  c.ignore("padding");
  c.out(functional::max_unpool3d(c.x(), c.t("indices"), 1, 1, 0, c.ints("output_size")));
}

namespace f = functional;

constexpr Operator kOperators[] = {
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
    {"max_unpool2d", "default", max_unpool2d_of},
    {"max_unpool3d", "default", max_unpool3d_of},
};

}  // namespace

std::span<const Operator> pooling_operators() { return kOperators; }

}  // namespace kiln::pt2
