// Derivatives of functions as tensors: Jacobians, Hessians, and their products with vectors.
//
// Functions take and give one tensor or a list of them. They are called with recording on, on
// inputs that stand apart from the graph they came from; with `create_graph` the results can be
// differentiated again, also with respect to the inputs given.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "kiln/tensor/tensor.h"

namespace kiln::autograd {

using TensorList = std::vector<Tensor>;
using TensorFunction = std::function<Tensor(const Tensor&)>;
using ListFunction = std::function<TensorList(const TensorList&)>;

struct DerivativeOptions {
  bool create_graph = false;
  // AutodiffError, instead of zeros, where a result does not depend on an input.
  bool strict = false;
  // Jacobian column by column, by forward-mode products: for functions of few inputs and many
  // results. Not with create_graph.
  bool forward_mode = false;
};

// d f(x)_i / d x_j: [*shape of f(x), *shape of x].
Tensor jacobian(const TensorFunction& f, const Tensor& x, const DerivativeOptions& options = {});
// For each result and each input.
std::vector<TensorList> jacobian(const ListFunction& f, const TensorList& inputs,
                                 const DerivativeOptions& options = {});

// The second derivatives of a function with one element: [*shape of x, *shape of x].
Tensor hessian(const TensorFunction& f, const Tensor& x, const DerivativeOptions& options = {});
std::vector<TensorList> hessian(const ListFunction& f, const TensorList& inputs,
                                const DerivativeOptions& options = {});

// f(x) and v^T J: the gradient of sum(v * f(x)). v may be undefined for one element.
std::pair<Tensor, Tensor> vjp(const TensorFunction& f, const Tensor& x, const Tensor& v = {},
                              const DerivativeOptions& options = {});
std::pair<TensorList, TensorList> vjp(const ListFunction& f, const TensorList& inputs,
                                      const TensorList& v = {},
                                      const DerivativeOptions& options = {});

// f(x) and J v: the derivative along v, which has the shape of x.
std::pair<Tensor, Tensor> jvp(const TensorFunction& f, const Tensor& x, const Tensor& v,
                              const DerivativeOptions& options = {});
std::pair<TensorList, TensorList> jvp(const ListFunction& f, const TensorList& inputs,
                                      const TensorList& v, const DerivativeOptions& options = {});

// f(x), of one element, and H v, without forming H. vhp (v^T H) is the same: H is symmetric.
std::pair<Tensor, Tensor> hvp(const TensorFunction& f, const Tensor& x, const Tensor& v,
                              const DerivativeOptions& options = {});
std::pair<TensorList, TensorList> hvp(const ListFunction& f, const TensorList& inputs,
                                      const TensorList& v, const DerivativeOptions& options = {});

}  // namespace kiln::autograd
