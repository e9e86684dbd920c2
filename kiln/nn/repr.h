// Values as Python writes them, for the text form of layers.
#pragma once

#include <string>

#include "kiln/core/scalar.h"
#include "kiln/core/shape.h"
#include "kiln/nn/real.h"
#include "kiln/nn/size2d.h"
#include "kiln/nn/size_nd.h"

namespace kiln::nn::detail {

std::string repr(bool value);         // True
std::string repr(double value);       // 0.5, 1.0, 1e-05: the fewest digits that give the value back
std::string repr(const Real& value);  // 1 or 1.0
std::string repr(const Scalar& value);       // 1 or 1.0
std::string repr(const Shape& value);        // (5,), (2, 3)
std::string repr(const Size2d& value);       // 3 when given as one number, else (3, 5)
std::string repr(const SizeNd& value);       // 3 when given as one number, else (3, 5)
std::string repr_pair(const Size2d& value);  // (3, 3)

}  // namespace kiln::nn::detail
