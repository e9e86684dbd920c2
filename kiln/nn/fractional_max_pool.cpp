#include "kiln/nn/fractional_max_pool.h"

#include "kiln/core/error.h"

namespace kiln::nn {

namespace {

using Config = FractionalMaxPoolConfig;
using Options = functional::FractionalPoolOptions;

Config checked(const char* type, Config config) {
  if (config.output_size.has_value() == config.output_ratio.empty()) return config;
  throw_error<ValueError>(type, ": expected either output_size or output_ratio; got ",
                          config.output_size ? "both" : "neither");
}

Config config_of(const Sizes& kernel_size, Options options) {
  return {.kernel_size = kernel_size,
          .output_size = std::move(options.output_size),
          .output_ratio = std::move(options.output_ratio),
          ._random_samples = std::move(options.random_samples)};
}

Options options_of(const Config& config, const Tensor& random_samples) {
  return {config.output_size, config.output_ratio, random_samples};
}

}  // namespace

FractionalMaxPool2d::FractionalMaxPool2d(const Sizes& kernel_size, Options options)
    : FractionalMaxPool2d(config_of(kernel_size, std::move(options))) {}
FractionalMaxPool2d::FractionalMaxPool2d(Config config)
    : Layer(checked("FractionalMaxPool2d", std::move(config))),
      _random_samples(std::exchange(config_._random_samples, {})) {}
std::pair<Tensor, Tensor> FractionalMaxPool2d::forward_with_indices(TensorArg x) const {
  return functional::fractional_max_pool2d_with_indices(x.get(), config_.kernel_size,
                                                        options_of(config_, _random_samples));
}

FractionalMaxPool3d::FractionalMaxPool3d(const Sizes& kernel_size, Options options)
    : FractionalMaxPool3d(config_of(kernel_size, std::move(options))) {}
FractionalMaxPool3d::FractionalMaxPool3d(Config config)
    : Layer(checked("FractionalMaxPool3d", std::move(config))),
      _random_samples(std::exchange(config_._random_samples, {})) {}
std::pair<Tensor, Tensor> FractionalMaxPool3d::forward_with_indices(TensorArg x) const {
  return functional::fractional_max_pool3d_with_indices(x.get(), config_.kernel_size,
                                                        options_of(config_, _random_samples));
}

KILN_MODULE_DEFINED(FractionalMaxPool2d, _random_samples)
KILN_MODULE_DEFINED(FractionalMaxPool3d, _random_samples)

}  // namespace kiln::nn
