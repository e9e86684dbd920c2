#include "kiln/tensor/graph_hooks.h"

#include "kiln/tensor/tensor_impl.h"

namespace kiln::detail {
namespace {

using Grads = autodiff::Extras<Dispatch>::Grads;

GradientList to_list(Grads grads) {
  GradientList out;
  for (const std::optional<Value>& grad : grads) out.push_back(grad ? wrap(*grad) : Tensor());
  return out;
}

void from_list(const GradientList& list, Grads grads) {
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!list[i].defined()) {
      grads[i].reset();
      continue;
    }
    const Value& value = value_of("hook", list[i]);
    if (grads[i] && (!(shape_of(*grads[i]) == shape_of(value)) ||
                     dtype_of_value(*grads[i]) != dtype_of_value(value))) {
      throw_error<ShapeError>("hook: the replaced gradient must be like the first; got ",
                              shape_of(value), " ", dtype_of_value(value), "; expected ",
                              shape_of(*grads[i]), " ", dtype_of_value(*grads[i]));
    }
    grads[i] = value;
  }
}

Tensor view_of(const Tensor& x, Handle<autodiff::Node<Dispatch>> node, uint32_t slot) {
  auto impl = make_handle<TensorImpl>(Value{x.impl()->value.inner, std::move(node), slot});
  impl->root = x.impl()->root ? x.impl()->root : x.impl();
  impl->root_writes = impl->root->recorded_writes;
  return Tensor(std::move(impl));
}

}  // namespace

std::vector<Tensor> pass_through(const std::vector<Tensor>& tensors,
                                 std::function<void(GradientList&)> see) {
  std::vector<autodiff::Edge<Dispatch>> edges;
  for (const Tensor& x : tensors) {
    const bool tracked = x.defined() && x.requires_grad();
    edges.push_back(tracked
                        ? autodiff::Edge<Dispatch>{value_of("hook", x).node, x.impl()->value.slot}
                        : autodiff::Edge<Dispatch>{});
  }
  auto node = make_handle<autodiff::IdentityNode<Dispatch>>("module_hook", std::move(edges));
  node->ensure_extras().before.push_back([see = std::move(see)](Grads grads) {
    GradientList list = to_list(grads);
    see(list);
    from_list(list, grads);
  });
  std::vector<Tensor> out;
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    const Tensor& x = tensors[i];
    out.push_back(x.defined() && x.requires_grad() ? view_of(x, node, i) : x);
  }
  return out;
}

HookHandle after_node(const Tensor& result,
                      std::function<void(GradientList& given, const GradientList& grads)> see) {
  const Value& x = value_of("hook", result);
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
