// The class kiln.Tensor: what a tensor is, and its conversions.
#include "binding.h"
#include "kiln/tensor/host_memory.h"
#include "tensor_from.h"

namespace kiln::python {

namespace {

Tensor to_device_dtype(const Tensor& x, std::optional<Device> device, std::optional<DType> dtype,
                       bool copy, bool non_blocking) {
  Unlocked lock(x);
  Tensor out = x;
  if (dtype) out = out.to(*dtype);
  if (device) out = non_blocking ? to_non_blocking(out, *device) : out.to(*device);
  return copy && out.is_same(x) ? x.clone() : out;
}

// x.to(dtype), x.to(device, dtype), x.to(other).
Tensor to(const Tensor& x, const nb::args& args, const nb::kwargs& kwargs) {
  std::optional<Device> device;
  std::optional<DType> dtype;
  bool copy = false;
  // What a keyword names alone; "" is any of the three.
  const auto take = [&](nb::handle value, const char* name, std::string_view kind) {
    DType t;
    Device d;
    if (value.is_none()) return;
    const auto may_be = [&](std::string_view k) { return kind.empty() || kind == k; };
    if (may_be("dtype") && dtype_from(value.ptr(), &t)) {
      dtype = t;
    } else if (may_be("device") && device_from(value, &d)) {
      device = d;
    } else if (const Tensor* other = may_be("other") ? tensor_pointer(value.ptr()) : nullptr) {
      dtype = other->dtype();
      device = other->device();
    } else {
      const std::string_view expected = kind.empty()      ? "a dtype, a device or a tensor"
                                        : kind == "other" ? "a tensor"
                                        : kind == "dtype" ? "a dtype"
                                                          : "a device";
      throw nb::type_error(
          concat("to: expected ", expected, "; got ", name, " of ", name_of_type(value)).c_str());
    }
  };
  size_t position = 0;
  bool flags = false;  // after the target: non_blocking, copy
  bool non_blocking = false;
  for (nb::handle arg : args) {
    if (PyBool_Check(arg.ptr())) {
      (flags ? copy : non_blocking) = arg.is(Py_True);
      flags = true;
      continue;
    }
    take(arg, concat("argument ", ++position).c_str(), "");
  }
  for (const auto& [key, value] : kwargs) {
    const auto name = nb::cast<std::string>(key);
    if (name == "dtype" || name == "device" || name == "other") {
      take(value, name.c_str(), name);
    } else if (name == "copy") {
      copy = value_arg<bool>("to", value, "a bool for copy");
    } else if (name == "non_blocking") {
      non_blocking = value_arg<bool>("to", value, "a bool for non_blocking");
    } else {
      throw nb::type_error(concat("to() got an unexpected keyword argument '", name, "'").c_str());
    }
  }
  return to_device_dtype(x, device, dtype, copy, non_blocking);
}

void bind_description(TensorClass& c) {
  c.def_prop_ro(
       "shape", [](const Tensor& x) { return x.shape(); }, "The sizes of the dims.")
      .def_prop_ro("dtype", [](const Tensor& x) { return x.dtype(); })
      .def_prop_ro("device", [](const Tensor& x) { return x.device(); })
      .def_prop_ro("ndim", [](const Tensor& x) { return x.dim(); })
      .def_prop_ro("itemsize", [](const Tensor& x) { return size_of(x.dtype()); })
      .def_prop_ro(
          "nbytes",
          [](const Tensor& x) { return static_cast<size_t>(x.numel()) * size_of(x.dtype()); })
      .def_prop_ro("is_cuda",
                   [](const Tensor& x) { return to_string(x.device()).starts_with("cuda"); })
      .def_prop_ro("is_cpu", [](const Tensor& x) { return x.device().type == kCpu; })
      .def_prop_ro("is_quantized", [](const Tensor& x) { return x.dtype() == DType::q8; })
      .def_prop_ro("_version", [](const Tensor& x) { return x.version(); })
      .def("dim", [](const Tensor& x) { return x.dim(); })
      .def("ndimension", [](const Tensor& x) { return x.dim(); })
      .def("numel", [](const Tensor& x) { return x.numel(); })
      .def("nelement", [](const Tensor& x) { return x.numel(); })
      .def("element_size", [](const Tensor& x) { return size_of(x.dtype()); })
      .def(
          "size",
          [](const Tensor& x, std::optional<int64_t> dim) -> nb::object {
            return dim ? nb::int_(x.size(*dim)) : size_object(x.shape());
          },
          "dim"_a = nb::none(), "All sizes, or that of one dim.",
          nb::sig("def size(self, dim: int | None = None) -> typing.Any"))
      .def(
          "stride",
          [](const Tensor& x, std::optional<int64_t> dim) -> nb::object {
            const Strides strides = x.stride();
            if (dim) return nb::int_(strides[normalize_dim("stride", *dim, x.dim())]);
            return nb::steal(PySequence_Tuple(size_object(strides).ptr()));
          },
          "dim"_a = nb::none(), "How many elements apart neighbours of a dim are.")
      .def("is_contiguous", [](const Tensor& x) { return x.is_contiguous(); })
      .def("storage_offset", [](const Tensor& x) { return interop::storage_offset(x); })
      .def("data_ptr",
           [](const Tensor& x) { return reinterpret_cast<uintptr_t>(interop::data(x)); })
      .def("is_floating_point", [](const Tensor& x) { return x.is_floating_point(); })
      .def(
          "is_same", [](const Tensor& x, const Tensor& other) { return x.is_same(other); },
          "other"_a)
      .def("get_device", [](const Tensor& x) { return x.device().type == kCpu ? -1 : 0; });
}

// The bytes of the memory behind a tensor; of one that is not in host memory, those that it
// reaches.
int64_t storage_nbytes(const Tensor& x) {
  if (const auto memory = host_memory(x)) return static_cast<int64_t>(memory->storage->bytes());
  if (x.numel() == 0) return 0;
  int64_t last = interop::storage_offset(x);
  const Strides stride = x.stride();
  for (int i = 0; i < x.dim(); ++i) last += (x.shape()[i] - 1) * stride[i];
  return (last + 1) * static_cast<int64_t>(size_of(x.dtype()));
}

void bind_conversions(TensorClass& c) {
  c.def("to", &to,
        "The same values as another dtype or on another device: to(dtype), to(device, dtype), "
        "to(other). Returns self when nothing changes, unless copy=True.")
      .def(
          "type_as", [](const Tensor& x, const Tensor& other) { return x.to(other.dtype()); },
          "other"_a)
      .def("cpu", [](const Tensor& x) { return x.to(Device{}); })
      .def(
          "cuda",
          [](const Tensor& x, const nb::object& device, bool non_blocking) {
            Device to;
            if (device.is_none()) {
              to = Device("cuda");
            } else if (PyLong_Check(device.ptr()) && !PyBool_Check(device.ptr())) {
              const auto index = value_arg<int64_t>("cuda", device, "a device or its number");
              to = Device(std::string_view(concat("cuda:", index)));
            } else if (!device_from(device, &to)) {
              throw nb::type_error("cuda: expected a device, its number or None");
            }
            if (!to_string(to).starts_with("cuda")) {
              throw_error<DeviceError>("cuda: another kind of device; got '", to,
                                       "'; expected 'cuda'");
            }
            Unlocked lock(x);
            return non_blocking ? to_non_blocking(x, to) : x.to(to);
          },
          "device"_a = nb::none(), "non_blocking"_a = false)
      .def(
          "pin_memory",
          [](const Tensor& x, std::optional<Device> device) {
            Unlocked lock(x);
            return pin_memory(x, device);
          },
          "device"_a = nb::none(),
          "A copy in memory that a GPU copies from by itself (its driver keeps it in place); for "
          "None "
          "of the first GPU. The tensor itself where it is in such memory, and where there is no "
          "GPU.")
      .def(
          "is_pinned",
          [](const Tensor& x, std::optional<Device> device) { return is_pinned(x, device); },
          "device"_a = nb::none(), "Whether it is in pinned memory (of this device's driver).")
      .def("contiguous",
           [](const Tensor& x) {
             Unlocked lock(x);
             return x.contiguous();
           })
      .def(
          "clone",
          [](const Tensor& x) {
            Unlocked lock(x);
            return x.clone();
          },
          "A differentiable copy with memory of its own.")
      .def(
          "share_memory_", [](Tensor& x) { return x.share_memory_(); },
          "Moves the values into memory that processes forked afterwards share.")
      .def("is_shared", [](const Tensor& x) { return x.is_shared(); })
      .def(
          "item", [](const Tensor& x) { return item_object(x); },
          "The only element, as a Python number.", nb::sig("def item(self) -> typing.Any"));
  const auto cast = [&c](const char* name, DType dtype) {
    c.def(name, [dtype](const Tensor& x) {
      Unlocked lock(x);
      return x.to(dtype);
    });
  };
  cast("double", f64);
  cast("float", f32);
  cast("half", f16);
  cast("bfloat16", bf16);
  cast("long", i64);
  cast("int", i32);
  cast("short", i16);
  cast("char", DType::i8);
  cast("byte", DType::u8);
  cast("bool", bool_);
}

// Tensor(2, 3), Tensor([1, 2]), Tensor(): PyTorch's first way to make tensors.
Tensor older_tensor(const nb::args& values) {
  if (values.size() == 0) return empty(Shape{0});
  if (values.size() == 1) {
    if (const Tensor* x = tensor_pointer(values[0].ptr())) return x->detach();
    if (!is_size(values[0]) && PyLong_Check(values[0].ptr()) == 0) {
      return tensor_from(values[0], default_dtype(), std::nullopt);
    }
  }
  return empty(shape_of_args("Tensor", values));
}

}  // namespace

TensorClass bind_tensor(nb::module_& m) {
  m.def("_storage_nbytes", &storage_nbytes, "tensor"_a);
  TensorClass c(m, "Tensor", nb::dynamic_attr(), nb::is_weak_referenceable(),
                nb::type_slots(tensor_slots()),
                "An n-dimensional array of one dtype on one device.");
  bind_description(c);
  bind_conversions(c);
  c.def(
      "__init__",
      [](Self<PyTensor> self, const nb::args& values) {
        auto* place = new (self.p) PyTensor(older_tensor(values));
        interop::foreign_object(*place) = self.h.ptr();
      },
      "values"_a,
      "Sizes: a tensor of them, whose values are not set. A sequence: its values as floats. A\n"
      "tensor: the same memory. kiln.tensor() and kiln.empty() say what they mean.");
  // nanobind would give derived classes its own slots.
  const nb::type_slots slots(tensor_slots());
  nb::class_<PyParameter, PyTensor>(m, "Parameter", slots,
                                    "A tensor that a module owns and trains: assigned to a "
                                    "module's attribute, it joins parameters().")
      .def(
          "__init__",
          [](Self<PyParameter> self, const OptionalTensor& data, bool requires_grad) {
            Tensor value = data.value.defined() ? data.value.detach() : empty(Shape{0});
            if (requires_grad) value.requires_grad_();
            auto* place = new (self.p) PyParameter(std::move(value));
            interop::foreign_object(*place) = self.h.ptr();
          },
          "data"_a = nb::none(), "requires_grad"_a = true);
  nb::class_<PyBuffer, PyTensor>(m, "Buffer", slots,
                                 "A tensor that belongs to a module's state and is not trained.")
      .def(
          "__init__",
          [](Self<PyBuffer> self, const OptionalTensor& data, bool persistent) {
            Tensor value = data.value.defined() ? data.value.detach() : empty(Shape{0});
            if (data.value.defined() && data.value.requires_grad()) value.requires_grad_();
            auto* place = new (self.p) PyBuffer(std::move(value));
            place->persistent = persistent;
            interop::foreign_object(*place) = self.h.ptr();
          },
          "data"_a = nb::none(), nb::kw_only(), "persistent"_a = true)
      .def_rw("persistent", &PyBuffer::persistent);
  find_dicts(c, m.attr("Parameter"), m.attr("Buffer"));
  return c;
}

}  // namespace kiln::python
