// Memory shared with other libraries: NumPy and DLPack; and pickling.
#include <array>
#include <cstring>

#include <nanobind/ndarray.h>

#include "tensor_from.h"

namespace kiln::python {

namespace {

// DLPack's structures (https://dmlc.github.io/dlpack), version 0: what every library reads.
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
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};

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

// What keeps a tensor's memory alive while another library looks at it.
struct Exported {
  Tensor tensor;
  Shape shape;
  Strides strides;
  DLManagedTensor managed;
};

void check_exportable(const char* op, const Tensor& x) {
  if (x.dtype() == DType::q8) {
    throw_error<DTypeError>(op, ": a quantized tensor has no plain memory; try dequantize()");
  }
  if (x.requires_grad()) {
    throw_error<AutodiffError>(
        op,
        ": the tensor requires a gradient, and writes from outside are not recorded; try "
        "detach() first");
  }
}

nb::object to_dlpack(const Tensor& x) {
  check_exportable("__dlpack__", x);
  auto* exported = new Exported{x, x.shape(), x.stride(), {}};
  DLManagedTensor& managed = exported->managed;
  managed.tensor = {
      interop::data(x),          {1, 0}, x.dim(), dl_type(x.dtype()), exported->shape.begin(),
      exported->strides.begin(), 0};
  managed.context = exported;
  managed.deleter = [](DLManagedTensor* m) { delete static_cast<Exported*>(m->context); };
  PyObject* capsule = PyCapsule_New(&managed, "dltensor", [](PyObject* object) {
    if (!PyCapsule_IsValid(object, "dltensor")) return;  // its consumer frees it
    auto* m = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(object, "dltensor"));
    m->deleter(m);
  });
  if (capsule == nullptr) {
    delete exported;
    throw nb::python_error();
  }
  return nb::steal(capsule);
}

Tensor from_dlpack(nb::handle source) {
  nb::object capsule = nb::borrow(source);
  if (nb::hasattr(source, "__dlpack__")) capsule = source.attr("__dlpack__")();
  if (!PyCapsule_IsValid(capsule.ptr(), "dltensor")) {
    throw nb::type_error(
        "from_dlpack: expected an object with __dlpack__(), or its capsule that "
        "nobody has used yet");
  }
  auto* m = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  const DLTensor& t = m->tensor;
  if (t.device.type != 1 && t.device.type != 3) {
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
        auto* managed = static_cast<DLManagedTensor*>(context);
        if (managed->deleter == nullptr) return;
        if (!nb::is_alive() || !Py_IsInitialized()) return;
        Locked lock;  // the producer may be written in Python
        managed->deleter(managed);
      },
      m);
  PyCapsule_SetName(capsule.ptr(), "used_dltensor");
  return out;
}

nb::dlpack::dtype numpy_type(DType t) {
  if (t == DType::bf16) {
    throw nb::type_error("numpy: NumPy has no bfloat16; try float() first");
  }
  const DLDataType d = dl_type(t);
  return {d.code, d.bits, d.lanes};
}

nb::object to_numpy(const Tensor& x, bool force) {
  if (!force) check_exportable("numpy", x);
  const Tensor held = force ? x.detach().to(Device{}) : x;
  const Shape shape = held.shape();
  const Strides strides = held.stride();
  std::array<size_t, kMaxRank> sizes{};
  std::array<int64_t, kMaxRank> steps{};
  for (int i = 0; i < shape.rank(); ++i) {
    sizes[static_cast<size_t>(i)] = static_cast<size_t>(shape[i]);
    steps[static_cast<size_t>(i)] = strides[i];
  }
  auto* owner = new Tensor(held);
  const nb::capsule keep(owner, [](void* p) noexcept { delete static_cast<Tensor*>(p); });
  nb::ndarray<nb::numpy> array(interop::data(held), shape.size(), sizes.data(), keep, steps.data(),
                               numpy_type(held.dtype()));
  return array.cast(nb::rv_policy::reference);
}

nb::object reduce(nb::handle self) {
  const Tensor& x = *tensor_pointer(self.ptr());
  const Tensor detached = x.detach();
  if (x.requires_grad() && !x.is_leaf()) {
    throw_error<AutodiffError>(
        "pickle: only leaves can be pickled, not results of recorded ops; try detach()");
  }
  const TensorData data = detached.contiguous().to_data();
  nb::object bytes = nb::steal(PyBytes_FromStringAndSize(reinterpret_cast<const char*>(data.data()),
                                                         static_cast<Py_ssize_t>(data.bytes())));
  nb::object state = nb::none();
  if (nb::hasattr(self, "__dict__") && nb::len(nb::object(self.attr("__dict__"))) > 0) {
    state = self.attr("__dict__");
  }
  const char* kind = nb::isinstance<PyParameter>(self) ? "parameter"
                     : nb::isinstance<PyBuffer>(self)  ? "buffer"
                                                       : "tensor";
  return nb::make_tuple(
      nb::module_::import_("kiln._pickle").attr("rebuild_tensor"),
      nb::make_tuple(bytes, x.dtype(), size_object(x.shape()), x.device(), x.requires_grad(), kind),
      state);
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

nb::object deepcopy(nb::handle self, nb::dict memo) {
  const nb::object key = nb::int_(reinterpret_cast<uintptr_t>(self.ptr()));
  if (memo.contains(key)) return memo[key];
  const Tensor& x = *tensor_pointer(self.ptr());
  if (!x.is_leaf()) {
    throw_error<AutodiffError>(
        "deepcopy: only leaves can be copied deeply, not results of recorded ops; try "
        "detach()");
  }
  Tensor copy = x.detach().clone();
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
  c.def(
      "__array__",
      [](const Tensor& x, const nb::object& dtype, const nb::object& copy) -> nb::object {
        nb::object array = to_numpy(x, false);
        if (!dtype.is_none()) array = array.attr("astype")(dtype, "copy"_a = false);
        if (!copy.is_none() && nb::cast<bool>(copy)) array = array.attr("copy")();
        return array;
      },
      nb::arg("dtype").none() = nb::none(), nb::arg("copy").none() = nb::none());
  c.def_prop_ro("__array_priority__", [](const Tensor&) { return 1000; });
  c.def(
      "__dlpack__", [](const Tensor& x, const nb::kwargs&) { return to_dlpack(x); },
      "The memory as a DLPack capsule.");
  c.def("__dlpack_device__", [](const Tensor&) { return nb::make_tuple(1, 0); });
  m.def("from_dlpack", &from_dlpack, "ext_tensor"_a,
        "A tensor over the memory of an object with __dlpack__().");
  m.def("to_dlpack", &to_dlpack, "tensor"_a);
  c.def(
      "__reduce_ex__", [](nb::handle self, int) { return reduce(self); }, "protocol"_a);
  c.def("__deepcopy__", &deepcopy, "memo"_a);
  m.def("_rebuild", &rebuild);
}

}  // namespace kiln::python
