#include "kiln/backend/dispatch/dispatch.h"

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/dispatch/profiled_table.h"
#include "kiln/backend/dispatch/register.h"
#include "kiln/backend/dispatch/views.h"
#include "kiln/backend/meta/meta.h"
#include "kiln/backend/reference/reference.h"

namespace kiln {

namespace {

// Kiln's own backends are constants, not registered by static initializers: a static library keeps
// them.
constinit const BackendTable kCpuTable = detail::make_table<Cpu>();
constinit const BackendTable kReferenceTable = detail::make_table<Reference>();
constinit const BackendTable kMetaTable = detail::make_table<Meta>();
constinit const ViewTable kCpuViews = detail::make_views<Cpu>();
constinit const ViewTable kReferenceViews = detail::make_views<Reference>();
constinit const ViewTable kMetaViews = detail::make_views<Meta>();

}  // namespace

namespace detail {

constinit std::atomic<const BackendTable*> backend_tables[kDeviceTypeValues] = {
    &kCpuTable, &kReferenceTable, &kMetaTable};

constinit std::atomic<const ViewTable*> view_tables[kDeviceTypeValues] = {
    &kCpuViews, &kReferenceViews, &kMetaViews};

DeviceType add_backend(std::string_view name, const BackendTable* table, const ViewTable* views) {
  const DeviceType type = register_device_type(name);
  view_tables[type].store(views, std::memory_order_release);
  profiled::add_table(type, table);
  return type;
}

void throw_no_backend(Device device) {
  throw_error<DeviceError>("device: no backend is registered for it; got ", device,
                           "; expected a device of a registered backend");
}

}  // namespace detail

ErasedTensor Dispatch::float_to_device(Arg<ErasedTensor> x, Device device) {
  if (x->device() == device) return x.take();
  if (x->device().type == device.type) return detail::table_of(device).float_to_device(x, device);
  if (device.type == kMeta)
    return detail::table_of(device).float_empty(x->shape(), x->dtype(), device);
  return detail::table_of(device).float_from_data(detail::table_of(x->device()).float_into_data(x),
                                                  device);
}

ErasedTensor Dispatch::int_to_device(Arg<ErasedTensor> x, Device device) {
  if (x->device() == device) return x.take();
  if (x->device().type == device.type) return detail::table_of(device).int_to_device(x, device);
  if (device.type == kMeta)
    return detail::table_of(device).int_empty(x->shape(), x->dtype(), device);
  return detail::table_of(device).int_from_data(detail::table_of(x->device()).int_into_data(x),
                                                device);
}

ErasedTensor Dispatch::bool_to_device(Arg<ErasedTensor> x, Device device) {
  if (x->device() == device) return x.take();
  if (x->device().type == device.type) return detail::table_of(device).bool_to_device(x, device);
  if (device.type == kMeta) return detail::table_of(device).bool_empty(x->shape(), device);
  return detail::table_of(device).bool_from_data(detail::table_of(x->device()).bool_into_data(x),
                                                 device);
}

}  // namespace kiln
