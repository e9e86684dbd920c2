// Checks of a tensor's values before an op uses them: indices in range, probabilities, counts.
// Internal to kiln/tensor.
#pragma once

#include "kiln/graph/capture.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln::detail {

// Whether this thread captures a graph. f(x), which throws where x's values are not legal, is then
// done now and again in each replay; so f holds no tensor and no reference.
template <class F>
bool check_again(const char* op, const Tensor& x, F f) {
  if (!graph::is_capturing()) [[likely]]
    return false;
  graph::check_values(value_of(op, x).inner,
                      [f](const ErasedTensor& now) { static_cast<void>(f(wrap(now))); });
  return true;
}

// f(x), now and in each replay of a graph.
template <class F>
void check_values(const char* op, const Tensor& x, F f) {
  if (!check_again(op, x, f)) f(x);
}

}  // namespace kiln::detail
