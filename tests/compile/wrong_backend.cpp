// Backends that lack something, one for each CASE: check_backend says what, in a few lines. CASE 0
// only asks.
#include "kiln/backend/defaults.h"
#include "kiln/backend/dispatch/register.h"
#include "kiln/backend/host_tensor.h"

using namespace kiln;

struct Types {
  using Device = kiln::Device;
  using FloatElem = float;
  using IntElem = int64_t;
  using BoolElem = bool;
  using FloatTensorPrimitive = Handle<HostTensor>;
  using IntTensorPrimitive = Handle<HostTensor>;
  using BoolTensorPrimitive = Handle<HostTensor>;
  using QuantizedTensorPrimitive = Handle<HostTensor>;
};
struct Partial : Types, BackendDefaults<Partial> {
  static std::string name(Device) { return "partial"; }
  static void seed(Device, uint64_t) {}
  static void sync(Device) {}
  static Shape shape(const FloatTensorPrimitive& x) { return x->shape(); }
  static DType dtype(const FloatTensorPrimitive& x) { return x->dtype(); }
  static kiln::Device device(const FloatTensorPrimitive& x) { return x->device(); }
  static FloatTensorPrimitive float_from_data(const TensorData&, Device);
};
struct Nothing {};

static_assert(!Backend<Nothing> && !Backend<Types> && !Backend<Partial>);
static_assert(!AutodiffBackend<Nothing> && !AutodiffBackend<Partial>);

#if CASE == 1
void check() { check_backend<Partial>(); }
#elif CASE == 2
void check() { check_backend<Nothing>(); }
#elif CASE == 3
void check() { check_backend<Types>(); }
#elif CASE == 4
const DeviceType partial = register_backend<Partial>("partial");
#endif
