#include "kiln/tensor/pinned_memory.h"

#include <typeinfo>

#include "kiln/backend/host_tensor.h"
#include "kiln/core/accelerator.h"
#include "kiln/graph/capture.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/interop.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

using namespace detail;

namespace {

[[noreturn]] void refuse(const char* why, Device device) {
  throw DeviceError(why + to_string(device));
}

// Null for a device that is no GPU's.
const GpuPlugin* plugin_of(Device device) {
  const std::string name = to_string(device);
  return gpu_plugin(name.substr(0, name.find(':')));
}

struct Pinner {
  const GpuPlugin* plugin = nullptr;
  int index = 0;
};

// A processor's OpenCL driver is asked only by name: it computes on the host's memory anyway.
Pinner pinner_of(std::optional<Device> device) {
  if (device) {
    const Pinner out{plugin_of(*device), device->index};
    if (out.plugin == nullptr) {
      refuse("pin_memory: only a GPU's driver has pinned memory; expected 'cuda' or 'opencl'; got ",
             *device);
    }
    return out;
  }
  for (const char* name : {"cuda", "opencl"}) {
    const GpuPlugin* plugin = gpu_plugin(name);
    if (plugin != nullptr && !plugin->is_processor(0)) return {plugin, 0};
  }
  return {};
}

const HostTensor* host_of(const ErasedTensor& x) {
  const TensorBase& inner = *x;
  return typeid(inner) == typeid(HostTensor) && x->device().type == kCpu
             ? static_cast<const HostTensor*>(&inner)
             : nullptr;
}

TensorData data_of(const HostTensor& x) {
  return TensorData(x.shape(), x.dtype(), x.storage(),
                    static_cast<size_t>(x.offset()) * size_of(x.dtype()));
}

// Whether copies of x may go by rows that nothing records.
bool is_recorded(const Tensor& x) {
  return graph::is_capturing() || (x.requires_grad() && is_grad_enabled());
}

ErasedTensor empty_like(const ErasedTensor& x, Device device) {
  switch (kind_of(x->dtype())) {
    case Kind::floating:
      return Dispatch::float_empty(x->shape(), x->dtype(), device);
    case Kind::integer:
      return Dispatch::int_empty(x->shape(), x->dtype(), device);
    case Kind::boolean:
      return Dispatch::bool_empty(x->shape(), device);
    default:
      return {};
  }
}

// x on the device, its copy enqueued; null where it has to be waited for.
ErasedTensor enqueued(const ErasedTensor& x, Device device) {
  if (const HostTensor* host = host_of(x)) {
    const GpuPlugin* plugin = plugin_of(device);
    if (plugin == nullptr || !host->is_contiguous()) return {};
    const TensorData data = data_of(*host);
    if (!plugin->is_pinned(data.data(), data.bytes())) return {};
    ErasedTensor out = empty_like(x, device);
    return out && plugin->write_pinned(out.get(), data) ? out : ErasedTensor();
  }
  const GpuPlugin* plugin = device.type == kCpu ? plugin_of(x->device()) : nullptr;
  if (plugin == nullptr || kind_of(x->dtype()) == Kind::quantized) return {};
  const size_t bytes = static_cast<size_t>(x->shape().numel()) * size_of(x->dtype());
  Handle<Storage> storage = plugin->allocate_pinned(bytes, x->device().index);
  if (!storage) return {};
  const TensorData data(x->shape(), x->dtype(), storage);
  if (!plugin->read_pinned(x.get(), data)) return {};
  return make_handle<HostTensor>(x->shape(), x->dtype(), device, contiguous_strides(x->shape()), 0,
                                 std::move(storage));
}

}  // namespace

Tensor pin_memory(const Tensor& x, std::optional<Device> device) {
  const Value& value = parts_or_value("pin_memory", x);
  const HostTensor* host = host_of(value.inner);
  if (host == nullptr) {
    refuse("pin_memory: only the cpu's dense tensors can be pinned; got one on ", x.device());
  }
  const Pinner pinner = pinner_of(device);
  if (pinner.plugin == nullptr || is_pinned(x, device)) return x;
  const size_t bytes = static_cast<size_t>(host->numel()) * size_of(host->dtype());
  Handle<Storage> storage = pinner.plugin->allocate_pinned(bytes, pinner.index);
  if (!storage) {
    throw ValueError("pin_memory: the driver has no pinned memory left; got a request for " +
                     std::to_string(bytes) + " bytes");
  }
  Tensor out =
      wrap_host(x.shape(), x.dtype(), contiguous_strides(x.shape()), 0, std::move(storage));
  out.copy_(x);
  return out;
}

bool is_pinned(const Tensor& x, std::optional<Device> device) {
  const HostTensor* host = host_of(parts_or_value("is_pinned", x).inner);
  // A device that nobody has opened has pinned nothing.
  if (host == nullptr) return false;
  const void* address = host->storage()->data();
  const size_t bytes = host->storage()->bytes();
  if (device) {
    const GpuPlugin* plugin = plugin_of(*device);
    return plugin != nullptr && plugin->is_pinned(address, bytes);
  }
  for (const char* name : {"cuda", "opencl"}) {
    const GpuPlugin* plugin = opened_gpu_plugin(name);
    if (plugin != nullptr && plugin->is_pinned(address, bytes)) return true;
  }
  return false;
}

Tensor to_non_blocking(const Tensor& x, Device device) {
  const Value& value = parts_or_value("to", x);
  if (value.inner->device() != device && !is_recorded(x)) {
    if (ErasedTensor out = enqueued(value.inner, device)) {
      return state_of(x).is_complex() ? wrap_complex(Value{std::move(out)}) : wrap(std::move(out));
    }
  }
  return x.to(device);
}

Tensor& copy_non_blocking(Tensor& to, const Tensor& from) {
  const TensorImpl& target = impl_of("copy_", to);
  const TensorImpl& source = impl_of("copy_", from);
  if (target.device() == source.device()) return to.copy_(from);
  const HostTensor* host = host_of(target.value.inner);
  if (host == nullptr) {
    if (!broadcasts_to(source.shape(), target.shape())) return to.copy_(from);  // throws
    return to.copy_(to_non_blocking(from, target.device()));
  }
  const GpuPlugin* plugin = plugin_of(source.device());
  if (plugin == nullptr || !host->is_contiguous() || is_recorded(to) || is_recorded(from) ||
      to.requires_grad() || target.dtype() != source.dtype()) {
    return to.copy_(from);
  }
  if (!plugin->read_pinned(source.value.inner.get(), data_of(*host))) return to.copy_(from);
  host->storage()->bump_version();
  return to;
}

}  // namespace kiln
