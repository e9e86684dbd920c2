// Memory shared with other libraries: NumPy and DLPack; and pickling.
#include <array>
#include <cstring>

#include <nanobind/ndarray.h>
// ndarray.h goes first: binding.h forbids what it uses.
#include "kiln/tensor/host_memory.h"
#include "overrides.h"
#include "tensor_from.h"

namespace kiln::python {

namespace {

// DLPack's structures (https://dmlc.github.io/dlpack), as dlpack.h has them: version 1, and the one
// without a version that it came from.
struct DLDevice {
  int32_t type;
  int32_t id;
};
struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  static constexpr const char* kName = "dltensor";
  static constexpr const char* kUsedName = "used_dltensor";
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};
struct DLPackVersion {
  uint32_t major;
  uint32_t minor;
};
struct DLManagedTensorVersioned {
  static constexpr const char* kName = "dltensor_versioned";
  static constexpr const char* kUsedName = "used_dltensor_versioned";
  DLPackVersion version;
  void* context;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  DLTensor tensor;
};
constexpr uint64_t kDLReadOnly = 1, kDLCopied = 2;
constexpr int32_t kDLCpu = 1, kDLCuda = 2, kDLHostOfCuda = 3, kDLOpenCl = 4;
constexpr DLPackVersion kDLVersion = {1, 0};

enum : uint8_t {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6
};

DLDataType dl_type(DType t) {
  const auto bits = static_cast<uint8_t>(8 * size_of(t));
  if (t == DType::bf16) return {kDLBfloat, 16, 1};
  if (t == bool_) return {kDLBool, 8, 1};
  if (is_complex(t)) return {kDLComplex, bits, 1};
  if (t == DType::u8) return {kDLUInt, 8, 1};
  return {is_integral(t) ? kDLInt : kDLFloat, bits, 1};
}

std::optional<DType> dtype_of_dl(DLDataType t) {
  for (const DType candidate : {f64, f32, f16, bf16, i64, i32, i16, i8, u8, bool_, c64, c128}) {
    const DLDataType c = dl_type(candidate);
    if (c.code == t.code && c.bits == t.bits && t.lanes == 1) return candidate;
  }
  return std::nullopt;
}

// What keeps a tensor's memory alive while another library looks at it: the memory itself, since
// the tensor may be given another (x.data = y, module.half(), share_memory_()).
template <class Managed>
struct Exported {
  interop::Memory memory;
  Tensor held;  // of a GPU's memory
  Managed managed;
};

// Whether a copy is asked for; None leaves it open.
bool must_copy(const char* op, const nb::object& copy) {
  return !copy.is_none() && value_arg<bool>(op, copy, "a bool or None for copy");
}

void check_exportable(const char* op, const Tensor& x, bool records = true) {
  if (x.dtype() == DType::q8) {
    throw_error<DTypeError>(op, ": a quantized tensor has no plain memory; try dequantize()");
  }
  if (records && x.requires_grad()) {
    throw_error<AutodiffError>(
        op,
        ": the tensor requires a gradient, and writes from outside are not recorded; try "
        "detach() first");
  }
}

template <class Managed>
nb::object capsule_of(interop::Memory memory, uint64_t flags, DLDevice device = {kDLCpu, 0},
                      const Tensor& held = {}) {
  auto* exported = new Exported<Managed>{std::move(memory), held, {}};
  interop::Memory& from = exported->memory;
  Managed& managed = exported->managed;
  managed.tensor = {from.data,
                    device,
                    from.shape.rank(),
                    dl_type(from.dtype),
                    from.shape.begin(),
                    from.strides.begin(),
                    0};
  managed.context = exported;
  managed.deleter = [](Managed* m) { delete static_cast<Exported<Managed>*>(m->context); };
  if constexpr (requires { managed.flags; }) {
    managed.version = kDLVersion;
    managed.flags = flags;
  }
  PyObject* capsule = PyCapsule_New(&managed, Managed::kName, [](PyObject* object) {
    if (!PyCapsule_IsValid(object, Managed::kName)) return;  // its consumer frees it
    auto* m = static_cast<Managed*>(PyCapsule_GetPointer(object, Managed::kName));
    m->deleter(m);
  });
  if (capsule == nullptr) {
    delete exported;
    throw nb::python_error();
  }
  return nb::steal(capsule);
}

[[noreturn]] void throw_buffer_error(const std::string& message) {
  PyErr_SetString(PyExc_BufferError, message.c_str());
  throw nb::python_error();
}

// The two numbers of a version or a device; false for anything else.
bool pair_of(nb::handle object, int64_t* first, int64_t* second) {
  Shape numbers;
  if (!PyTuple_Check(object.ptr()) || !integers_of(object, &numbers) || numbers.rank() != 2) {
    return false;
  }
  *first = numbers[0];
  *second = numbers[1];
  return true;
}

// DLPack's numbers of x's device.
DLDevice dl_device_of(const Tensor& x) {
  const std::string name = to_string(x.device());
  const int32_t type = name.starts_with("cuda")     ? kDLCuda
                       : name.starts_with("opencl") ? kDLOpenCl
                                                    : kDLCpu;
  return {type, type == kDLCpu ? 0 : x.device().index};
}

// Of a GPU's tensor. All that writes to it is done when its address is known: so whatever stream
// its consumer names may read it.
nb::object device_to_dlpack(const Tensor& x, DLDevice device, bool versioned,
                            const nb::object& copy) {
  const bool copied = must_copy("__dlpack__", copy);
  const Tensor held = copied ? x.clone() : x.detach();
  interop::Memory memory{
      interop::device_address("__dlpack__", held), held.shape(), held.stride(), held.dtype(), {}};
  if (versioned) {
    return capsule_of<DLManagedTensorVersioned>(std::move(memory), copied ? kDLCopied : 0, device,
                                                held);
  }
  return capsule_of<DLManagedTensor>(std::move(memory), 0, device, held);
}

nb::dict cuda_array_interface(const Tensor& x) {
  const DLDevice device = dl_device_of(x);
  // As objects without that memory do.
  if (device.type != kDLCuda) {
    throw nb::attribute_error("__cuda_array_interface__: the tensor is not on a CUDA device");
  }
  check_exportable("__cuda_array_interface__", x);
  if (x.dtype() == DType::bf16) {
    throw nb::attribute_error("__cuda_array_interface__: it has no bfloat16");
  }
  nb::dict out;
  const DLDataType type = dl_type(x.dtype());
  const char kind = type.code == kDLBool      ? 'b'
                    : type.code == kDLUInt    ? 'u'
                    : type.code == kDLInt     ? 'i'
                    : type.code == kDLComplex ? 'c'
                                              : 'f';
  out["typestr"] =
      concat(size_of(x.dtype()) == 1 ? "|" : "<", std::string(1, kind), size_of(x.dtype()));
  nb::list shape, strides;
  for (int64_t size : x.shape()) shape.append(size);
  for (int64_t step : x.stride()) strides.append(step * static_cast<int64_t>(size_of(x.dtype())));
  out["shape"] = nb::tuple(shape);
  out["strides"] = nb::tuple(strides);
  const auto address = reinterpret_cast<uintptr_t>(
      x.numel() == 0 ? nullptr : interop::device_address("__cuda_array_interface__", x));
  out["data"] = nb::make_tuple(address, false);
  out["version"] = 3;
  out["stream"] = nb::none();  // nothing is left to wait for
  return out;
}

nb::object to_dlpack(const Tensor& x, const nb::object& stream, const nb::object& max_version,
                     const nb::object& dl_device, const nb::object& copy) {
  check_exportable("__dlpack__", x);
  const DLDevice device = dl_device_of(x);
  if (device.type == kDLCpu && !stream.is_none()) {
    throw_error<ValueError>("__dlpack__: host memory has no streams; expected stream=None");
  }
  int64_t major = 0, minor = 0;
  if (!max_version.is_none() && !pair_of(max_version, &major, &minor)) {
    throw nb::type_error("__dlpack__: expected max_version as (major, minor)");
  }
  int64_t type = device.type, id = device.id;
  if (!dl_device.is_none() && !pair_of(dl_device, &type, &id)) {
    throw nb::type_error("__dlpack__: expected dl_device as (type, id)");
  }
  if (type != device.type || id != device.id) {
    throw_buffer_error(concat(
        "__dlpack__: the tensor lies in ", device.type == kDLCpu ? "host memory" : "a GPU's memory",
        ", device (", device.type, ", ", device.id, "); got dl_device (", type, ", ", id, ")"));
  }
  if (device.type != kDLCpu) return device_to_dlpack(x, device, major >= 1, copy);
  const bool copied = must_copy("__dlpack__", copy);
  const Tensor held = copied ? x.clone() : x;
  interop::Memory memory = interop::memory("__dlpack__", held);
  if (major >= 1) {
    return capsule_of<DLManagedTensorVersioned>(std::move(memory), copied ? kDLCopied : 0);
  }
  return capsule_of<DLManagedTensor>(std::move(memory), 0);
}

// The capsule that a producer gives, of as new a version as both know.
nb::object capsule_from(nb::handle source, const nb::object& copy) {
  if (!nb::hasattr(source, "__dlpack__")) return nb::borrow(source);
  const nb::object produce = source.attr("__dlpack__");
  nb::dict wishes;
  wishes["max_version"] = nb::make_tuple(kDLVersion.major, kDLVersion.minor);
  if (!copy.is_none()) wishes["copy"] = copy;
  try {
    return produce(**wishes);
  } catch (const nb::python_error& error) {
    // Producers from before these arguments came up.
    if (!error.matches(PyExc_TypeError)) throw;
    return produce();
  }
}

template <class Managed>
Tensor over_capsule(nb::handle capsule, bool must_share, bool copy) {
  auto* m = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), Managed::kName));
  if constexpr (requires { m->flags; }) {
    if (m->version.major != kDLVersion.major) {
      throw_buffer_error(concat("from_dlpack: only version 1 is known; got version ",
                                m->version.major, ".", m->version.minor));
    }
    if ((m->flags & kDLCopied) != 0) copy = false;
    if ((m->flags & kDLReadOnly) != 0) {
      if (must_share) {
        throw_buffer_error(
            "from_dlpack: the memory is read-only, and a tensor would write to it; try copy=True");
      }
      copy = true;
    }
  }
  const DLTensor& t = m->tensor;
  if (t.device.type != kDLCpu && t.device.type != kDLHostOfCuda) {
    throw_error<DeviceError>("from_dlpack: only host memory can be shared; got device type ",
                             t.device.type);
  }
  const std::optional<DType> dtype = dtype_of_dl(t.dtype);
  if (!dtype) {
    throw_error<DTypeError>("from_dlpack: no such dtype; got type code ", int{t.dtype.code}, " of ",
                            int{t.dtype.bits}, " bits");
  }
  if (t.ndim < 0 || t.ndim > kMaxRank) detail::throw_rank_error(static_cast<size_t>(t.ndim));
  const Shape shape(std::span<const int64_t>(t.shape, static_cast<size_t>(t.ndim)));
  const Strides strides =
      t.strides == nullptr
          ? contiguous_strides(shape)
          : Strides(std::span<const int64_t>(t.strides, static_cast<size_t>(t.ndim)));
  const Tensor out = interop::from_blob(
      static_cast<char*>(t.data) + t.byte_offset, shape, strides, *dtype,
      [](void* context) {
        auto* managed = static_cast<Managed*>(context);
        if (managed->deleter == nullptr) return;
        if (!nb::is_alive() || !Py_IsInitialized()) return;
        Locked lock;  // the producer may be written in Python
        managed->deleter(managed);
      },
      m);
  PyCapsule_SetName(capsule.ptr(), Managed::kUsedName);
  check_bools("from_dlpack", out);
  return copy ? out.clone() : out;
}

Tensor from_dlpack(nb::handle source, const nb::object& copy) {
  const bool copied = must_copy("from_dlpack", copy);
  const bool must_share = !copy.is_none() && !copied;
  const nb::object capsule = capsule_from(source, copy);
  if (PyCapsule_IsValid(capsule.ptr(), DLManagedTensorVersioned::kName)) {
    return over_capsule<DLManagedTensorVersioned>(capsule, must_share, copied);
  }
  if (PyCapsule_IsValid(capsule.ptr(), DLManagedTensor::kName)) {
    return over_capsule<DLManagedTensor>(capsule, must_share, copied);
  }
  throw nb::type_error(
      "from_dlpack: expected an object with __dlpack__(), or its capsule that nobody has used yet");
}

nb::dlpack::dtype numpy_type(DType t) {
  if (t == DType::bf16) {
    throw nb::type_error("numpy: NumPy has no bfloat16; try float() first");
  }
  const DLDataType d = dl_type(t);
  return {d.code, d.bits, d.lanes};
}

nb::object to_numpy(const Tensor& x, bool force) {
  if (!force) check_exportable("numpy", x, is_grad_enabled());  // else nothing is recorded anyway
  const interop::Memory memory = interop::memory("numpy", force ? x.detach().to(Device{}) : x);
  std::array<size_t, kMaxRank> sizes{};
  for (int i = 0; i < memory.shape.rank(); ++i) {
    sizes[static_cast<size_t>(i)] = static_cast<size_t>(memory.shape[i]);
  }
  auto* owner = new Handle<Storage>(memory.owner);
  const nb::capsule keep(owner, [](void* p) noexcept { delete static_cast<Handle<Storage>*>(p); });
  nb::ndarray<nb::numpy> array(memory.data, memory.shape.size(), sizes.data(), keep,
                               memory.strides.begin(), numpy_type(memory.dtype));
  return array.cast(nb::rv_policy::reference);
}

// NumPy's protocol: copy=True gives new memory, copy=False the tensor's or an error.
nb::object to_array(const Tensor& x, const nb::object& dtype, const nb::object& copy) {
  nb::object array = to_numpy(x, false);
  const bool copied = must_copy("__array__", copy);
  if (!dtype.is_none()) {
    nb::object cast = array.attr("astype")(dtype, "copy"_a = copied);
    if (cast.is(array) || copied) return cast;
    if (!copy.is_none()) {
      throw_error<ValueError>(
          "__array__: another dtype needs new memory; got copy=False; expected None or True");
    }
    return cast;
  }
  return copied ? array.attr("copy")() : array;
}

nb::object reduce_plain(nb::handle self) {
  const Tensor& x = tensor_arg("pickle", self);
  const Tensor detached = x.detach();
  if (x.requires_grad() && !x.is_leaf()) {
    throw_error<AutodiffError>(
        "pickle: only leaves can be pickled, not results of recorded ops; try detach()");
  }
  nb::object state = nb::none();
  if (nb::hasattr(self, "__dict__") && nb::len(nb::object(self.attr("__dict__"))) > 0) {
    state = self.attr("__dict__");
  }
  const char* kind = nb::isinstance<PyParameter>(self) ? "parameter"
                     : nb::isinstance<PyBuffer>(self)  ? "buffer"
                                                       : "tensor";
  const nb::module_ pickle = nb::module_::import_("kiln._pickle");
  if (kind_of(x.dtype()) == Kind::quantized) {
    // Its values alone say nothing: it travels as its parts.
    const nb::object scheme = nb::module_::import_("kiln._C").attr("quant_scheme")(self);
    return nb::make_tuple(pickle.attr("rebuild_quantized"),
                          nb::make_tuple(quantized_values(detached), quantized_scales(detached),
                                         size_object(x.shape()), scheme, kind),
                          state);
  }
  const TensorData data = detached.contiguous().to_data();
  nb::object bytes = nb::steal(PyBytes_FromStringAndSize(reinterpret_cast<const char*>(data.data()),
                                                         static_cast<Py_ssize_t>(data.bytes())));
  return nb::make_tuple(
      pickle.attr("rebuild_tensor"),
      nb::make_tuple(bytes, x.dtype(), size_object(x.shape()), x.device(), x.requires_grad(), kind),
      state);
}

// How pickle makes it again; one of a derived class is made as its base, and then gets its class.
nb::object reduce(nb::handle self) {
  nb::object plain = reduce_plain(self);
  if (is_own_class(self)) return plain;
  return nb::make_tuple(nb::module_::import_("kiln._pickle").attr("rebuild_subclass"),
                        nb::make_tuple(self.type(), plain[0], plain[1]), plain[2]);
}

nb::object rebuild(const nb::bytes& bytes, DType dtype, const Shape& shape, Device device,
                   bool requires_grad, const std::string& kind) {
  checked_numel("unpickle", shape);
  TensorData data(shape, dtype);
  if (bytes.size() != data.bytes()) {
    throw_error<ValueError>("unpickle: the values do not fit the shape; got ", bytes.size(),
                            " bytes; expected ", data.bytes());
  }
  if (data.bytes() != 0) std::memcpy(data.mutable_data(), bytes.data(), data.bytes());
  Tensor out(data, device);
  if (requires_grad) out.requires_grad_();
  if (kind == "parameter") return nb::steal(parameter_object(std::move(out)));
  if (kind == "buffer") return nb::module_::import_("kiln._C").attr("Buffer")(nb::cast(out));
  return nb::cast(out);
}

// A copy of x in its place of a copy of the memory behind it, so that copies of tensors that share
// memory share it, too. `memo` holds the copies of memories, under tuples ("memory", address).
Tensor copy_of(const Tensor& x, nb::dict memo) {
  const auto memory = x.numel() == 0 ? std::nullopt : host_memory(x);
  const auto bytes = memory ? memory->storage->bytes() : 0;
  const size_t element = size_of(x.dtype());
  const nb::object key =
      nb::make_tuple("memory", memory ? reinterpret_cast<uintptr_t>(memory->storage->data()) : 0,
                     nb::str(std::string(name_of(x.dtype())).c_str()));
  const bool known = memory && memo.contains(key);
  if (!known && (!memory || bytes == x.detach().numel() * element || bytes % element != 0)) {
    Tensor copy = x.detach().clone();
    if (memory && copy.is_contiguous() && x.is_contiguous()) memo[key] = nb::cast(copy.detach());
    return copy;
  }
  if (!known) {
    const auto count = static_cast<int64_t>(bytes / element);
    memo[key] = nb::cast(tensor_over(memory->storage, x.dtype(), Shape{count}, Strides{1}).clone());
  }
  const auto shared = host_memory(nb::cast<Tensor>(memo[key]));
  return tensor_over(shared->storage, x.dtype(), x.shape(), memory->stride, memory->offset);
}

nb::object deepcopy(nb::handle self, nb::dict memo) {
  const nb::object key = nb::int_(reinterpret_cast<uintptr_t>(self.ptr()));
  if (memo.contains(key)) return memo[key];
  const Tensor& x = tensor_arg("deepcopy", self);
  if (!x.is_leaf()) {
    throw_error<AutodiffError>(
        "deepcopy: only leaves can be copied deeply, not results of recorded ops; try "
        "detach()");
  }
  Tensor copy = copy_of(x, memo);
  if (x.requires_grad()) {
    copy.requires_grad_();
    if (const Tensor grad = x.grad(); grad.defined()) copy.set_grad(grad.detach().clone());
  }
  nb::object out;
  if (nb::isinstance<PyParameter>(self)) {
    out = nb::steal(parameter_object(copy));
  } else if (nb::isinstance<PyBuffer>(self)) {
    out = nb::module_::import_("kiln._C").attr("Buffer")(
        nb::cast(copy), "persistent"_a = nb::inst_ptr<PyBuffer>(self)->persistent);
  } else {
    out = nb::cast(copy);
  }
  if (!is_own_class(self))
    out = nb::module_::import_("kiln._pickle").attr("of_class")(self.type(), out);
  memo[key] = out;
  if (nb::len(nb::object(self.attr("__dict__"))) > 0) {
    out.attr("__dict__")
        .attr("update")(nb::module_::import_("copy").attr("deepcopy")(self.attr("__dict__"), memo));
  }
  return out;
}

}  // namespace

void bind_interop(nb::module_& m, TensorClass& c) {
  c.def("numpy", &to_numpy, nb::kw_only(), "force"_a = false,
        "A NumPy array over the same memory; with force, of a detached copy where needed.",
        nb::sig("def numpy(self, *, force: bool = False) -> typing.Any"));
  c.def("__array__", &to_array, nb::arg("dtype").none() = nb::none(),
        nb::arg("copy").none() = nb::none());
  c.def_prop_ro("__array_priority__", [](const Tensor&) { return 1000; });
  c.def("__dlpack__", &to_dlpack, nb::kw_only(), nb::arg("stream").none() = nb::none(),
        nb::arg("max_version").none() = nb::none(), nb::arg("dl_device").none() = nb::none(),
        nb::arg("copy").none() = nb::none(),
        "The memory as a DLPack capsule: of version 1 for max_version=(1, 0) or later, else of the "
        "one before. copy=True gives a copy's memory.");
  c.def("__dlpack_device__", [](const Tensor& x) {
    const DLDevice device = dl_device_of(x);
    return nb::make_tuple(device.type, device.id);
  });
  c.def_prop_ro("__cuda_array_interface__", &cuda_array_interface,
                nb::sig("def __cuda_array_interface__(self) -> dict[str, typing.Any]"));
  m.def("from_dlpack", &from_dlpack, "ext_tensor"_a, nb::kw_only(),
        nb::arg("copy").none() = nb::none(),
        "A tensor over the memory of an object with __dlpack__(). Read-only memory is copied, and "
        "so is any with copy=True; copy=False raises BufferError where that is needed.");
  m.def(
      "to_dlpack",
      [](const Tensor& x) {
        const nb::object none = nb::none();
        return to_dlpack(x, none, none, none, none);
      },
      "tensor"_a);
  c.def(
      "__reduce_ex__", [](nb::handle self, int) { return reduce(self); }, "protocol"_a);
  c.def("__deepcopy__", &deepcopy, "memo"_a);
  m.def("_rebuild", &rebuild);
}

}  // namespace kiln::python
