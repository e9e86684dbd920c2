// Dispatch: the backend that chooses another one at run time, by device.
//
// Each registered backend has a BackendTable: one function pointer for every row of ops.def, over
// erased handles.
#pragma once

#include <atomic>

#include "kiln/backend/backend.h"
#include "kiln/backend/tensor_base.h"

namespace kiln {

using ErasedTensor = Handle<TensorBase>;

struct DispatchTypes {
  using Device = kiln::Device;
  using FloatElem = float;
  using IntElem = int64_t;
  using BoolElem = bool;
  using FloatTensorPrimitive = ErasedTensor;
  using IntTensorPrimitive = ErasedTensor;
  using BoolTensorPrimitive = ErasedTensor;
  using QuantizedTensorPrimitive = ErasedTensor;
};

namespace op {

template <class R, class... P>
struct Erased {
  using Result = typename Return<DispatchTypes, R>::Type;
  using Pointer = Result (*)(typename Param<DispatchTypes, P>::Type...);
};

struct BackendTable {
  std::string (*name)(Device);
  void (*seed)(Device, uint64_t);
  void (*sync)(Device);
  uint32_t (*version)(const ErasedTensor&);
  ErasedTensor (*own_version)(const ErasedTensor&);
  bool (*owns_memory)(const ErasedTensor&);
#define KILN_OP(level, name, ...) typename Erased<__VA_ARGS__>::Pointer name;
#include "kiln/backend/ops.def"
};

}  // namespace op

using op::BackendTable;

namespace detail {

// Tables by device type; null where none is registered. A place for every number that a DeviceType
// can be, so that a made-up device needs no test. While a profile is being taken, every entry is
// the table whose ops measure and then call the backend's (profile.cpp): a program that takes none
// pays nothing.
inline constexpr int kDeviceTypeValues = 256;
static_assert(sizeof(DeviceType) == 1);
extern std::atomic<const BackendTable*> backend_tables[kDeviceTypeValues];
[[noreturn]] void throw_no_backend(Device device);

// Which backend an op goes to: that of the first tensor or device among its arguments.
inline bool find_device(Device device, Device* found) {
  *found = device;
  return true;
}
inline bool find_device(const Arg<ErasedTensor>& x, Device* found) {
  *found = x->device();
  return true;
}
inline bool find_device(const ErasedTensor& x, Device* found) {
  *found = x->device();
  return true;
}
inline bool find_device(std::span<const ErasedTensor> xs, Device* found) {
  if (xs.empty()) return false;
  *found = xs[0]->device();
  return true;
}
inline bool find_device(std::span<ErasedTensor> xs, Device* found) {
  return find_device(std::span<const ErasedTensor>(xs), found);
}
template <class T>
bool find_device(const T&, Device*) {
  return false;
}

inline const BackendTable& table_of(Device device) {
  const BackendTable* table = backend_tables[device.type].load(std::memory_order_relaxed);
  if (table == nullptr) throw_no_backend(device);
  return *table;
}

template <class... A>
const BackendTable& pick_table(const A&... args) {
  Device device;
  (void)(find_device(args, &device) || ...);
  return table_of(device);
}

}  // namespace detail

// Every op of the table, forwarded.
struct DispatchOps : DispatchTypes {
#define KILN_OP(level, op_name, ...)                                             \
  template <class... A>                                                          \
  static auto op_name(A&&... args)                                               \
      ->decltype(detail::table_of(Device{}).op_name(std::forward<A>(args)...)) { \
    return detail::pick_table(args...).op_name(std::forward<A>(args)...);        \
  }
#include "kiln/backend/ops.def"
};

struct Dispatch : DispatchOps {
  static std::string name(Device device) { return detail::table_of(device).name(device); }
  static void seed(Device device, uint64_t seed) { detail::table_of(device).seed(device, seed); }
  static void sync(Device device) { detail::table_of(device).sync(device); }

  static const Shape& shape(const ErasedTensor& x) { return x->shape(); }
  static DType dtype(const ErasedTensor& x) { return x->dtype(); }
  static kiln::Device device(const ErasedTensor& x) { return x->device(); }
  static uint32_t version(const ErasedTensor& x) {
    return detail::table_of(x->device()).version(x);
  }
  // x's memory, as a tensor whose writes x's version does not count. x itself where the backend has
  // none.
  static ErasedTensor own_version(const ErasedTensor& x) {
    return detail::table_of(x->device()).own_version(x);
  }
  static bool owns_memory(const ErasedTensor& x) {
    return detail::table_of(x->device()).owns_memory(x);
  }

  // Between backends a tensor travels through host memory.
  static ErasedTensor float_to_device(Arg<ErasedTensor> x, Device device);
  static ErasedTensor int_to_device(Arg<ErasedTensor> x, Device device);
  static ErasedTensor bool_to_device(Arg<ErasedTensor> x, Device device);
};

}  // namespace kiln
