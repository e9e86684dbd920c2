#include "kiln/tensor/autograd/graph_hooks.h"

#include "kiln/tensor/tensor_impl.h"

namespace kiln::detail {
namespace {

using Grads = autodiff::Extras<Dispatch>::Grads;

// `complex` says which gradients are the parts of complex numbers; without it none is.
GradientList to_list(Grads grads, const std::vector<bool>& complex = {}) {
  GradientList out;
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i]) {
      out.emplace_back();
    } else {
      out.push_back(i < complex.size() && complex[i] ? wrap_complex(*grads[i]) : wrap(*grads[i]));
    }
  }
  return out;
}

void from_list(const GradientList& list, Grads grads) {
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!list[i].defined()) {
      grads[i].reset();
      continue;
    }
    const Value& value = parts_or_value("hook", list[i]);
    if (grads[i] && (!(shape_of(*grads[i]) == shape_of(value)) ||
                     dtype_of_value(*grads[i]) != dtype_of_value(value))) {
      throw_error<ShapeError>("hook: the replaced gradient must be like the first; got ",
                              shape_of(value), " ", dtype_of_value(value), "; expected ",
                              shape_of(*grads[i]), " ", dtype_of_value(*grads[i]));
    }
    grads[i] = value;
  }
}

}  // namespace

std::vector<Tensor> pass_through(const std::vector<Tensor>& tensors,
                                 std::function<void(GradientList&)> see) {
  std::vector<autodiff::Edge<Dispatch>> edges;
  std::vector<bool> complex;
  for (const Tensor& x : tensors) {
    const bool tracked = x.defined() && x.requires_grad();
    complex.push_back(x.defined() && state_of(x).is_complex());
    edges.push_back(
        tracked ? autodiff::Edge<Dispatch>{parts_or_value("hook", x).node, state_of(x).value.slot}
                : autodiff::Edge<Dispatch>{});
  }
  auto node = make_handle<autodiff::IdentityNode<Dispatch>>("module_hook", std::move(edges));
  node->ensure_extras().before.push_back(
      [see = std::move(see), complex = std::move(complex)](Grads grads) {
        GradientList list = to_list(grads, complex);
        see(list);
        from_list(list, grads);
      });
  std::vector<Tensor> out;
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    const Tensor& x = tensors[i];
    if (!x.defined() || !x.requires_grad()) {
      out.push_back(x);
      continue;
    }
    out.push_back(wrap_alias(x, Value{state_of(x).value.inner, node, i}, ViewKind::function));
  }
  return out;
}

HookHandle after_node(const Tensor& result,
                      std::function<void(GradientList& given, const GradientList& grads)> see) {
  const Value& x = parts_or_value("hook", result);
  if (!x.node || x.node->is_leaf()) return {};
  auto alive = std::make_shared<bool>(true);
  auto call = [see = std::move(see)](Grads given, Grads grads) {
    GradientList list = to_list(given);
    see(list, to_list(grads));
    from_list(list, given);
  };
  x.node->lock().lock();
  x.node->ensure_extras().after.push_back({std::move(call), alive});
  x.node->lock().unlock();
  return HookHandle([alive = std::move(alive)] { *alive = false; });
}

}  // namespace kiln::detail
