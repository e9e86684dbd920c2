// What the files that bind kiln.nn.functional share.
#pragma once

#include "binding.h"

namespace kiln::python {

namespace F = kiln::functional;

void bind_functional_convolutions(nb::module_& m);
void bind_functional_pooling(nb::module_& m);
void bind_functional_norms(nb::module_& m);
void bind_functional_activations(nb::module_& m);
void bind_functional_losses(nb::module_& m);
void bind_functional_images(nb::module_& m);

// The activation of linear() by its name.
Activation activation_of(const std::string& name);

// One number for all spatial dims, or one for each.
inline Sizes sizes_of(const IntList& list) { return Sizes(list.values); }
// None and () stand for the default.
inline std::optional<Sizes> optional_sizes_of(const std::optional<IntList>& list) {
  if (!list || list->values.empty()) return std::nullopt;
  return Sizes(list->values);
}

inline F::Reduction reduction_of(const char* op, const std::string& name) {
  if (name == "mean") return F::Reduction::mean;
  if (name == "sum") return F::Reduction::sum;
  if (name == "none") return F::Reduction::none;
  throw_error<ValueError>(op, ": expected reduction 'none', 'mean' or 'sum'; got '", name, "'");
}

// f(x), or that written into x. The graph then keeps a copy, for x itself changes.
template <class Function>
Tensor maybe_in_place(Tensor& x, bool inplace, Function f) {
  Unlocked lock(x);
  if (!inplace) return f(x);
  const Tensor out = f(x.requires_grad() ? x.clone() : x);
  return x.copy_(out);
}

// A parameter that may be None, and is when left out.
inline nb::arg_v optional_arg(const char* name) { return nb::arg(name).none() = nb::none(); }

}  // namespace kiln::python
