#include "kiln/tensor/interop.h"

#include "kiln/backend/batched/batched_tensor.h"
#include "kiln/backend/dispatch/views.h"
#include "kiln/backend/host_tensor.h"
#include "kiln/backend/meta/meta_tensor.h"
#include "kiln/core/accelerator.h"
#include "kiln/core/kept_data.h"
#include "kiln/graph/capture.h"
#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln::interop {

using namespace kiln::detail;

namespace {

const HostTensor& host_of(const char* op, const Tensor& x) {
  const auto* host = dynamic_cast<const HostTensor*>(parts_or_value(op, x).inner.get());
  if (host == nullptr) {
    if (x.device().type == kMeta) meta::throw_no_values(op);
    batched::check_has_memory(op, parts_or_value(op, x).inner);
    throw_error<DeviceError>(op, ": the tensor is not in host memory; got device ", x.device(),
                             "; try to('cpu')");
  }
  return *host;
}

}  // namespace

Tensor from_blob(void* data, const Shape& shape, const Strides& strides, DType dtype,
                 void (*release)(void*), void* context) {
  if (strides.rank() != shape.rank()) {
    throw_error<ShapeError>("from_blob: expected one stride for each dim; got ", strides, " for ",
                            shape);
  }
  int64_t last = 0;
  const bool empty = checked_numel("from_blob", shape) == 0;
  for (int i = 0; i < shape.rank() && !empty; ++i) {
    if (strides[i] < 0) {
      throw_error<ValueError>("from_blob: negative strides are not supported; got ", strides,
                              "; try a copy");
    }
    last += (shape[i] - 1) * strides[i];
  }
  if (data == nullptr && !empty) {
    throw_error<ValueError>("from_blob: there is no memory; got a null pointer for shape ", shape);
  }
  const size_t bytes = empty ? 0 : static_cast<size_t>(last + 1) * size_of(dtype);
  Handle<Storage> storage = Storage::borrow(data, bytes, release, context);
  return wrap_host(shape, dtype, strides, 0, std::move(storage));
}

void* data(const Tensor& x) {
  graph::note_read("data_ptr", parts_or_value("data_ptr", x).inner);
  const HostTensor& host = host_of("data_ptr", x);
  detail::stop_keeping(*host.storage());
  return host.data();
}

Memory memory(const char* op, const Tensor& x) {
  const HostTensor& host = host_of(op, x);
  graph::note_read(op, parts_or_value(op, x).inner);
  const TensorImpl& state = state_of(x);
  detail::stop_keeping(*host.storage());
  return {host.data(), state.shape(), x.stride(), state.dtype(), host.storage()};
}
void* device_address(const char* op, const Tensor& x) {
  const std::string name = to_string(x.device());
  const detail::GpuPlugin* plugin = detail::gpu_plugin(name.substr(0, name.find(':')));
  if (plugin == nullptr) {
    throw_error<DeviceError>(op, ": expected a tensor in a GPU's memory; got one on ", name);
  }
  const ErasedTensor& inner = parts_or_value(op, x).inner;
  batched::check_has_memory(op, inner);
  graph::note_read(op, inner);
  return plugin->address(inner.get());
}
int64_t storage_offset(const Tensor& x) {
  const Layout layout = layout_of(parts_or_value("storage_offset", x).inner);
  if (!layout) host_of("storage_offset", x);
  const int64_t offset = layout.offset;
  return state_of(x).is_complex() ? offset / 2 : offset;
}

void set_data(Tensor& x, const Tensor& source) {
  const TensorImpl& target = impl_of("set_data", x);
  const Value& value = parts_or_value("set_data", source);
  if (target.value.node && kind_of_value(value) != Kind::floating) {
    throw_wrong_dtype("set_data", dtype_of_value(value),
                      "a floating point or complex tensor for one that requires a gradient");
  }
  auto state = make_handle<TensorImpl>(Value{value.inner, target.value.node, target.value.slot});
  if (state_of(source).is_complex()) {
    state->complex_shape = std::make_unique<const Shape>(source.shape());
  }
  if (!target.root) state->recorded_writes = target.recorded_writes;
  state->resting = target.resting;
  exchange(x.impl(), std::move(state));
}

namespace {

using autodiff::Foreign;

// The node that hooks and gradients of a tensor are in, or null.
const Handle<autodiff::Node<Dispatch>>& node_of(const TensorImpl& x) {
  return x.value.node ? x.value.node : x.resting;
}

// The node that x alone leads to, or null. Whoever else may run it or add to it holds it.
autodiff::Node<Dispatch>* own_node(const Tensor& x) {
  if (!x.defined() || !x.impl().unique() ||
      x.impl()->newest.load(std::memory_order_acquire) != nullptr) {
    return nullptr;
  }
  const Handle<autodiff::Node<Dispatch>>& node = node_of(*x.impl());
  return node.unique() ? node.get() : nullptr;
}

// Held by its callable and by who shows it, and by nobody who might be calling it.
bool is_own(const Foreign& foreign) { return foreign.use_count() == 2; }

}  // namespace

void visit_foreign(const Tensor& x, void (*visit)(void* object, void* context), void* context) {
  const autodiff::Node<Dispatch>* node = own_node(x);
  if (node == nullptr) return;
  const auto show = [&](const Foreign& foreign) {
    if (is_own(foreign)) visit(foreign.get(), context);
  };
  if (const Foreign* formula = node->foreign()) show(*formula);
  if (node->extras() == nullptr) return;
  for (const auto& hook : node->extras()->hooks) show(hook.foreign);
  for (const auto& hook : node->extras()->accumulated) show(hook.foreign);
}

void drop_foreign(const Tensor& x) {
  autodiff::Node<Dispatch>* const node = own_node(x);
  if (node == nullptr) return;
  // Their ends may run anything, and come back here.
  const Handle<autodiff::Node<Dispatch>> kept = node_of(*x.impl());
  if (node->extras() != nullptr) {
    const auto is_foreign = [](const auto& hook) { return hook.foreign != nullptr; };
    auto take = [&](auto& hooks) {
      auto dropped = std::move(hooks);
      hooks.clear();
      for (auto& hook : dropped) {
        if (!is_foreign(hook)) hooks.push_back(std::move(hook));
      }
      return dropped;
    };
    const auto hooks = take(node->extras()->hooks);
    const auto accumulated = take(node->extras()->accumulated);
  }
  if (node->foreign() != nullptr) {
    node->mark_released();
    node->release_saved();
  }
}

void*& foreign_object(const Tensor& x) { return x.impl()->foreign_object; }

}  // namespace kiln::interop
