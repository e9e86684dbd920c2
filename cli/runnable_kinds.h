// The kinds of model files, each as a Runnable.
#pragma once

#include <memory>
#include <string>

#include "cli/runnable.h"

namespace kiln::cli {

// Each throws what the kind's reader throws.
std::unique_ptr<Runnable> open_graph(const std::string& path);
std::unique_ptr<Runnable> open_onnx(const std::string& path);
std::unique_ptr<Runnable> open_pt2(const std::string& path);

// Each tensor with its name.
std::vector<std::pair<std::string, Tensor>> named(const std::vector<std::string>& names,
                                                  const TensorList& tensors);

// Normal numbers; integers are 0.
Tensor example_of(const Shape& shape, DType dtype);

}  // namespace kiln::cli
