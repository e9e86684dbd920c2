// Parts of the text of tensors, for what consists of several.
#pragma once

#include <string>
#include <vector>

#include "kiln/tensor/tensor.h"

namespace kiln::detail {

// The numbers of x in brackets: "[[1., 2.],\n [3., 4.]]" where `indent` spaces stand before it.
std::string elements_text(const Tensor& x, int indent);
// "(2, 3)"
std::string size_text(const Shape& shape);
// Appends `suffixes` and ")". Each goes on the last line if it fits there, the first one on a line
// of its own where `breaks`.
std::string with_suffixes(std::string text, const std::vector<std::string>& suffixes, int indent,
                          bool breaks);

}  // namespace kiln::detail
