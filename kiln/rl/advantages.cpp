#include "kiln/rl/advantages.h"

#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"

namespace kiln::rl {

Advantages gae(const Tensor& reward, const Tensor& value, const Tensor& next_value,
               const Tensor& terminated, const Tensor& ended, double gamma, double lambda) {
  if (reward.dim() != 2) throw_error<ShapeError>("gae: expected [T, N]; got ", reward.shape());
  for (const Tensor* x : {&value, &next_value, &terminated, &ended}) {
    if (x->shape() != reward.shape()) {
      throw_error<ShapeError>("gae: all tensors have one shape; got ", x->shape(), " beside ",
                              reward.shape());
    }
  }
  if (!(gamma >= 0 && gamma <= 1 && lambda >= 0 && lambda <= 1)) {
    throw_error<ValueError>("gae: gamma and lambda must be from 0 to 1; got ", gamma, " and ",
                            lambda);
  }
  const auto rewards = reward.detach().to_vector<double>();
  const auto values = value.detach().to_vector<double>();
  const auto next_values = next_value.detach().to_vector<double>();
  const auto stops = terminated.to_vector<double>();
  const auto ends = ended.to_vector<double>();
  const int64_t steps = reward.size(0), count = reward.size(1);
  std::vector<double> advantages(rewards.size());
  std::vector<double> returns(rewards.size());
  for (int64_t n = 0; n < count; ++n) {
    double next = 0;
    for (int64_t t = steps - 1; t >= 0; --t) {
      const auto i = static_cast<size_t>(t * count + n);
      const double future = stops[i] != 0 ? 0.0 : gamma * next_values[i];
      next = rewards[i] + future - values[i] + (ends[i] != 0 ? 0.0 : gamma * lambda * next);
      advantages[i] = next;
      returns[i] = next + values[i];
    }
  }
  return {from_vector(advantages, reward.shape(), {.dtype = f32}),
          from_vector(returns, reward.shape(), {.dtype = f32})};
}

}  // namespace kiln::rl
