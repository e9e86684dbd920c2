#include "kiln/nn/fractional_max_pool.h"

#include "kiln/core/error.h"

namespace kiln::nn {

namespace {

using Options = functional::FractionalPoolOptions;

Options checked(const char* type, Options options) {
  if (options.output_size.has_value() == options.output_ratio.empty()) return options;
  throw_error<ValueError>(type, ": expected either output_size or output_ratio; got ",
                          options.output_size ? "both" : "neither");
}

std::string repr(const Sizes& kernel_size, const Options& options) {
  std::string out = "kernel_size=" + to_string(kernel_size.values());
  if (options.output_size) return out + ", output_size=" + to_string(options.output_size->values());
  out += ", output_ratio=[";
  for (size_t i = 0; i < options.output_ratio.size(); ++i) {
    out += concat(i == 0 ? "" : ", ", options.output_ratio[i]);
  }
  return out + "]";
}

}  // namespace

FractionalMaxPool2d::FractionalMaxPool2d(const Sizes& kernel_size, Options options)
    : kernel_size_(kernel_size), options_(checked("FractionalMaxPool2d", std::move(options))) {}
std::string FractionalMaxPool2d::extra_repr() const { return repr(kernel_size_, options_); }

FractionalMaxPool3d::FractionalMaxPool3d(const Sizes& kernel_size, Options options)
    : kernel_size_(kernel_size), options_(checked("FractionalMaxPool3d", std::move(options))) {}
std::string FractionalMaxPool3d::extra_repr() const { return repr(kernel_size_, options_); }

}  // namespace kiln::nn
