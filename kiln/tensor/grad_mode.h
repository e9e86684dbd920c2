// Whether ops on tracked tensors are recorded, and differentiation without backward().
#pragma once

#include <span>
#include <vector>

#include "kiln/tensor/tensor.h"

namespace kiln {

// Per thread; true at start.
bool is_grad_enabled();
void set_grad_enabled(bool enabled);

// While it lives, ops of this thread are not recorded.
class NoGradGuard {
 public:
  NoGradGuard() : before_(is_grad_enabled()) { set_grad_enabled(false); }
  ~NoGradGuard() { set_grad_enabled(before_); }
  NoGradGuard(const NoGradGuard&) = delete;
  NoGradGuard& operator=(const NoGradGuard&) = delete;

 private:
  bool before_;
};

class EnableGradGuard {
 public:
  EnableGradGuard() : before_(is_grad_enabled()) { set_grad_enabled(true); }
  ~EnableGradGuard() { set_grad_enabled(before_); }
  EnableGradGuard(const EnableGradGuard&) = delete;
  EnableGradGuard& operator=(const EnableGradGuard&) = delete;

 private:
  bool before_;
};

// f() without recording.
template <class F>
decltype(auto) no_grad(F&& f) {
  NoGradGuard guard;
  return f();
}

struct GradOptions {
  std::vector<Tensor> grad_outputs = {};  // one for each output; may be left out for scalars
  std::optional<bool> retain_graph = {};  // default: create_graph
  bool create_graph = false;              // record the backward pass: derivatives of any order
  bool allow_unused =
      false;  // an input that no output depends on: undefined instead of AutodiffError
};
// The gradients of the sum of `outputs` with respect to each of `inputs`; touches no .grad.
std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                         const GradOptions& options = {});
inline std::vector<Tensor> grad(std::initializer_list<Tensor> outputs,
                                std::initializer_list<Tensor> inputs,
                                const GradOptions& options = {}) {
  return grad(std::span<const Tensor>(outputs.begin(), outputs.size()),
              std::span<const Tensor>(inputs.begin(), inputs.size()), options);
}

}  // namespace kiln
