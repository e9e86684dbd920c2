// Parameters as one vector.
#pragma once

#include <initializer_list>
#include <span>

#include "kiln/tensor/tensor.h"

namespace kiln::nn {

// The elements of all parameters, one after another. Gradients flow through it. Throws ValueError
// for none, DeviceError for parameters on several devices.
Tensor parameters_to_vector(std::span<const Tensor> params);
inline Tensor parameters_to_vector(std::initializer_list<Tensor> params) {
  return parameters_to_vector(std::span(params.begin(), params.size()));
}
// Writes the elements of a vector to the parameters, in their order and without recording. Throws
// ShapeError unless it has as many as they, and writes nothing then.
void vector_to_parameters(const Tensor& vector, std::span<const Tensor> params);

}  // namespace kiln::nn
