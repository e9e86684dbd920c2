// What layers with an option `inplace` do with their result.
#pragma once

#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/tensor.h"

namespace kiln::nn::detail {

// f(x), or with `inplace` x, which then holds that. What the gradient needs of x is kept.
template <class F>
Tensor in_place(bool inplace, const Tensor& x, const F& f) {
  if (!inplace) return f(x);
  const Tensor y = f(x.requires_grad() && is_grad_enabled() ? x.clone() : x);
  Tensor out = x;
  out.copy_(y);
  return out;
}

// The same with `f_`, which writes over its argument: for where nothing is recorded.
template <class F, class InPlace>
Tensor in_place(bool inplace, const Tensor& x, const F& f, const InPlace& f_) {
  if (!inplace || (x.requires_grad() && is_grad_enabled())) return in_place(inplace, x, f);
  Tensor out = x;
  f_(out);
  return out;
}

}  // namespace kiln::nn::detail
