#include "kiln/nn/parameter_vector.h"

#include <vector>

#include "kiln/core/error.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

Tensor parameters_to_vector(std::span<const Tensor> params) {
  if (params.empty()) {
    throw_error<ValueError>("parameters_to_vector: expected at least one parameter");
  }
  std::vector<Tensor> parts;
  for (const Tensor& x : params) {
    if (x.device() != params[0].device()) {
      throw_error<DeviceError>("parameters_to_vector: parameters are on several devices; got ",
                               params[0].device(), " and ", x.device());
    }
    parts.push_back(x.reshape({-1}));
  }
  return cat(parts, 0);
}

void vector_to_parameters(const Tensor& vector, std::span<const Tensor> params) {
  int64_t count = 0;
  for (const Tensor& x : params) count += x.numel();
  if (vector.dim() != 1 || vector.numel() != count) {
    throw_error<ShapeError>("vector_to_parameters: expected a vector of ", count,
                            " elements; got shape ", vector.shape());
  }
  NoGradGuard no_grad;
  int64_t at = 0;
  for (Tensor x : params) {
    x.copy_(vector.narrow(0, at, x.numel()).reshape(x.shape()));
    at += x.numel();
  }
}

}  // namespace kiln::nn
