// How linear and convolution layers begin: He's uniform values with a = sqrt(5) for the weight,
// which lie within 1 / sqrt(fan_in), and the same bound for the bias.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>

#include "kiln/nn/init.h"

namespace kiln::nn::detail {

inline void fill_weight(Tensor& x) { init::kaiming_uniform_(x, std::sqrt(5.0)); }

inline std::function<void(Tensor&)> fill_bias(int64_t fan_in) {
  const double bound = fan_in > 0 ? 1.0 / std::sqrt(static_cast<double>(fan_in)) : 0.0;
  return [bound](Tensor& x) { init::uniform_(x, -bound, bound); };
}
inline std::function<void(Tensor&)> fill_bias(const Shape& weight) {
  return fill_bias(init::calculate_fan(weight).fan_in);
}

}  // namespace kiln::nn::detail
