// The calls that wait for the end of a backward pass: see pass_end.h.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "kiln/tensor/tensor.h"

namespace kiln::detail {

// Exists while a pass runs on a thread. That of a pass within another one stays empty.
class PassCallbacks {
 public:
  PassCallbacks();
  ~PassCallbacks();
  PassCallbacks(const PassCallbacks&) = delete;
  PassCallbacks& operator=(const PassCallbacks&) = delete;

  static PassCallbacks* of_this_thread();  // null where no pass runs
  void add(std::function<void()> then) { calls_.push_back(std::move(then)); }
  void call();

 private:
  bool outermost_;
  std::vector<std::function<void()>> calls_;
};

// See register_gradients_hook().
void call_gradients_hooks(Gradients& gradients);

}  // namespace kiln::detail
