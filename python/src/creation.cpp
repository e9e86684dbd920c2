// Functions that make tensors.
#include <cstring>

#include "default_device.h"
#include "kiln/core/warning.h"
#include "tensor_from.h"

namespace kiln::python {

namespace {

struct Options {
  std::optional<DType> dtype;
  std::optional<Device> device;
  bool requires_grad;

  operator TensorOptions() const { return {dtype, device_or_default(device), requires_grad}; }
};

// A number, or the only element of a tensor.
Scalar scalar_in(const Operand& x) { return x.is_tensor() ? x.tensor().item_scalar() : x.scalar(); }

Tensor marked(Tensor x, bool requires_grad) {
  if (requires_grad) x.requires_grad_();
  return x;
}

// zeros(2, 3), zeros((2, 3)), zeros(size=(2, 3)).
template <class F>
void def_sized(nb::module_& m, const char* name, F f, const char* doc) {
  const std::string op = name;
  const std::string signature =
      "def " + op +
      "(*size: int | collections.abc.Sequence[int], dtype: dtype | None = None, device: device | "
      "str | None = None, requires_grad: bool = False) -> Tensor";
  m.def(
      name,
      [f, op](const nb::args& args, const std::optional<Shape>& size, std::optional<DType> dtype,
              std::optional<Device> device, bool requires_grad) {
        const Shape shape = size ? *size : shape_of_args(op.c_str(), args);
        checked_numel(op.c_str(), shape);
        Unlocked lock(shape.numel());
        return Tensor(f(shape, Options{dtype, device, requires_grad}));
      },
      "args"_a, "size"_a = nb::none(), "dtype"_a = nb::none(), "device"_a = nb::none(),
      "requires_grad"_a = false, doc, nb::sig(signature.c_str()));
}

// x.new_zeros(2, 3), x.new_zeros((2, 3)), x.new_zeros(size=(2, 3)).
template <class F>
void def_new(TensorClass& c, const char* name, F f, const char* doc) {
  const std::string op = name;
  const std::string signature =
      "def " + op +
      "(self, *size: int | collections.abc.Sequence[int], dtype: dtype | None = None, device: "
      "device | str | None = None, requires_grad: bool = False) -> Tensor";
  c.def(
      name,
      [f, op](const Tensor& x, const nb::args& args, const std::optional<Shape>& size,
              std::optional<DType> dtype, std::optional<Device> device, bool requires_grad) {
        if (size && args.size() > 0) {
          throw nb::type_error(concat(op, "() got multiple values for argument 'size'").c_str());
        }
        const Shape shape = size ? *size : shape_of_args(op.c_str(), args);
        checked_numel(op.c_str(), shape);
        Unlocked lock(shape.numel());
        return Tensor(f(shape, Options{dtype ? *dtype : x.dtype(), device ? *device : x.device(),
                                       requires_grad}));
      },
      "args"_a, "size"_a = nb::none(), "dtype"_a = nb::none(), "device"_a = nb::none(),
      "requires_grad"_a = false, doc, nb::sig(signature.c_str()));
}

template <class F>
void def_like(nb::module_& m, const char* name, F f) {
  m.def(
      name,
      [f](const Tensor& x, std::optional<DType> dtype, std::optional<Device> device,
          bool requires_grad) {
        Unlocked lock(x);
        const Options options{dtype ? *dtype : x.dtype(), device ? *device : x.device(),
                              requires_grad};
        return kiln::detail::made_like(x, [&](const Shape& s) { return Tensor(f(s, options)); });
      },
      "input"_a, nb::kw_only(), "dtype"_a = nb::none(), "device"_a = nb::none(),
      "requires_grad"_a = false, "As the function without _like, in the shape and dtype of input.");
}

#define KILN_PY_OPTIONS "dtype"_a = nb::none(), "device"_a = nb::none(), "requires_grad"_a = false

void bind_from_values(nb::module_& m) {
  m.def(
      "tensor",
      [](nb::handle data, std::optional<DType> dtype, std::optional<Device> device,
         bool requires_grad) { return marked(tensor_from(data, dtype, device), requires_grad); },
      "data"_a, nb::kw_only(), KILN_PY_OPTIONS,
      "A copy of numbers, nested lists of them, an array or another tensor.",
      nb::sig("def tensor(data: typing.Any, *, dtype: dtype | None = None, device: device | str | "
              "None = None, requires_grad: bool = False) -> Tensor"));
  const auto as_tensor = [](nb::handle data, std::optional<DType> dtype,
                            std::optional<Device> device) {
    if (const Tensor* x = tensor_pointer(data.ptr())) {
      const Tensor out = dtype ? x->to(*dtype) : *x;
      return device ? out.to(*device) : out;
    }
    if (is_array(data)) {
      const Tensor over = tensor_over("as_tensor", data);
      const Tensor out = dtype ? over.to(*dtype) : over;
      return device ? out.to(*device) : out;
    }
    return tensor_from(data, dtype, device);
  };
  for (const char* name : {"as_tensor", "asarray"}) {
    m.def(name, as_tensor, "data"_a, "dtype"_a = nb::none(), "device"_a = nb::none(),
          "data as a tensor: itself if it is one, over the memory of an array, else a copy.");
  }
  m.def(
      "from_numpy",
      [](nb::handle array) {
        if (!is_array(array)) {
          throw nb::type_error(
              concat("from_numpy: expected a numpy.ndarray; got ", name_of_type(array)).c_str());
        }
        const Tensor out = tensor_over("from_numpy", array);
        if (is_read_only(array)) {
          warn("from_numpy: the array is read-only, so that the tensor is a copy of it");
        }
        return out;
      },
      "array"_a,
      "A tensor over the array's memory: each sees what is written to the other. Of a read-only "
      "array a copy, with a warning.");
  m.def(
      "frombuffer",
      [](nb::handle buffer, DType dtype, int64_t count, int64_t offset) {
        const Tensor bytes = tensor_over(
            "frombuffer",
            nb::module_::import_("builtins").attr("memoryview")(buffer).attr("cast")("B"),
            Access::read);
        const auto size = static_cast<int64_t>(size_of(dtype));
        const int64_t n = count >= 0 ? count : (bytes.numel() - offset) / size;
        if (offset < 0 || n < 0 || n > (bytes.numel() - offset) / size) {
          throw_error<ValueError>("frombuffer: the buffer is too small; got ", bytes.numel(),
                                  " bytes for ", n, " elements of ", dtype, " at ", offset);
        }
        TensorData values(Shape{n}, dtype);
        if (n > 0) {
          std::memcpy(values.mutable_data(),
                      static_cast<const std::byte*>(interop::data(bytes)) + offset, values.bytes());
        }
        const Tensor out(values);
        check_bools("frombuffer", out);
        return out;
      },
      "buffer"_a, nb::kw_only(), "dtype"_a, "count"_a = -1, "offset"_a = 0,
      "A copy of a buffer's bytes, read as dtype.");
  m.def(
      "is_tensor", [](nb::handle x) { return tensor_pointer(x.ptr()) != nullptr; },
      nb::arg("obj").none());
}

void bind_filled_alike(TensorClass& c) {
  def_new(
      c, "new_empty", [](const Shape& s, const Options& o) { return empty(s, o); },
      "Memory with this tensor's dtype and device, of no particular values.");
  def_new(
      c, "new_zeros", [](const Shape& s, const Options& o) { return zeros(s, o); },
      "Zeros with this tensor's dtype and device.");
  def_new(
      c, "new_ones", [](const Shape& s, const Options& o) { return ones(s, o); },
      "Ones with this tensor's dtype and device.");
  c.def(
      "new_full",
      [](const Tensor& x, const IntList& size, const Operand& fill_value,
         std::optional<DType> dtype, std::optional<Device> device, bool requires_grad) {
        const Scalar number = scalar_in(fill_value);
        checked_numel("new_full", size.values);
        Unlocked lock(size.values.numel());
        return full(
            size.values, number,
            Options{dtype ? *dtype : x.dtype(), device ? *device : x.device(), requires_grad});
      },
      "size"_a, "fill_value"_a, nb::kw_only(), KILN_PY_OPTIONS,
      "fill_value everywhere, with this tensor's dtype and device.");
}

void bind_filled(nb::module_& m) {
  def_sized(
      m, "empty", [](const Shape& s, const Options& o) { return empty(s, o); },
      "A tensor whose values are whatever the memory held.");
  def_sized(
      m, "zeros", [](const Shape& s, const Options& o) { return zeros(s, o); },
      "A tensor of zeros.");
  def_sized(
      m, "ones", [](const Shape& s, const Options& o) { return ones(s, o); }, "A tensor of ones.");
  def_like(m, "empty_like", [](const Shape& s, const Options& o) { return empty(s, o); });
  def_like(m, "zeros_like", [](const Shape& s, const Options& o) { return zeros(s, o); });
  def_like(m, "ones_like", [](const Shape& s, const Options& o) { return ones(s, o); });
  m.def(
      "full",
      [](const IntList& size, const Operand& fill_value, std::optional<DType> dtype,
         std::optional<Device> device, bool requires_grad) {
        if (fill_value.is_uint64() && !dtype) {
          throw_error<OverflowError>("full: the int does not fit int64; expected a dtype that ",
                                     "holds it");
        }
        const Scalar number = scalar_in(fill_value);
        checked_numel("full", size.values);
        Unlocked lock(size.values.numel());
        return full(size.values, number, Options{dtype, device, requires_grad});
      },
      "size"_a, "fill_value"_a, nb::kw_only(), KILN_PY_OPTIONS, "A tensor of one value.");
  m.def(
      "full_like",
      [](const Tensor& x, const Operand& value, std::optional<DType> dtype,
         std::optional<Device> device, bool requires_grad) {
        const Scalar number = scalar_in(value);
        Unlocked lock(x);
        const Options options{dtype ? *dtype : x.dtype(), device ? *device : x.device(),
                              requires_grad};
        return kiln::detail::made_like(x, [&](const Shape& s) { return full(s, number, options); });
      },
      "input"_a, "fill_value"_a, nb::kw_only(), KILN_PY_OPTIONS);
  m.def(
      "eye",
      [](int64_t n, std::optional<int64_t> columns, std::optional<DType> dtype,
         std::optional<Device> device, bool requires_grad) {
        const int64_t width = columns.value_or(n);
        checked_numel("eye", {n, width});
        return eye(n, width, Options{dtype, device, requires_grad});
      },
      "n"_a, "m"_a = nb::none(), nb::kw_only(), KILN_PY_OPTIONS, "Ones on the diagonal.");
}

double number_of(const Operand& x) { return scalar_in(x).to_double(); }

void bind_sequences(nb::module_& m) {
  m.def(
      "arange",
      [](Scalar a, std::optional<Scalar> b, Scalar step, std::optional<DType> dtype,
         std::optional<Device> device, bool requires_grad) {
        const Options options{dtype, device, requires_grad};
        return b ? arange(a, *b, step, options) : arange(Scalar(0), a, step, options);
      },
      "start"_a, "end"_a = nb::none(), "step"_a = 1, nb::kw_only(), KILN_PY_OPTIONS,
      "start, start + step, ... below end; with one argument from 0.");
  m.def(
      "linspace",
      [](const Operand& start, const Operand& end, int64_t steps, std::optional<DType> dtype,
         std::optional<Device> device, bool requires_grad) {
        return linspace(number_of(start), number_of(end), steps,
                        Options{dtype, device, requires_grad});
      },
      "start"_a, "end"_a, "steps"_a, nb::kw_only(), KILN_PY_OPTIONS,
      "Evenly spaced numbers, both ends included.");
  m.def(
      "logspace",
      [](const Operand& start, const Operand& end, int64_t steps, double base,
         std::optional<DType> dtype, std::optional<Device> device, bool requires_grad) {
        return logspace(number_of(start), number_of(end), steps, base,
                        Options{dtype, device, requires_grad});
      },
      "start"_a, "end"_a, "steps"_a, "base"_a = 10.0, nb::kw_only(), KILN_PY_OPTIONS,
      "base to the numbers of linspace(start, end, steps).");
  m.def(
      "range",
      [](double start, double end, double step, std::optional<DType> dtype,
         std::optional<Device> device, bool requires_grad) {
        return kiln::range(start, end, step, Options{dtype, device, requires_grad});
      },
      "start"_a, "end"_a, "step"_a = 1.0, nb::kw_only(), KILN_PY_OPTIONS,
      "start, start + step, ... up to and including end.");
  m.def(
      "scalar_tensor",
      [](Scalar s, std::optional<DType> dtype, std::optional<Device> device, bool requires_grad) {
        return scalar_tensor(s, Options{dtype, device, requires_grad});
      },
      "s"_a, nb::kw_only(), KILN_PY_OPTIONS, "A 0-d tensor of the default dtype.");
  m.def(
      "empty_strided",
      [](const Shape& size, const Shape& stride, std::optional<DType> dtype,
         std::optional<Device> device, bool requires_grad) {
        return empty_strided(size, stride, Options{dtype, device, requires_grad});
      },
      "size"_a, "stride"_a, nb::kw_only(), KILN_PY_OPTIONS,
      "Memory that is not initialized, laid out by strides.");
  m.def(
      "one_hot", [](const Tensor& x, int64_t classes) { return one_hot(x, classes); }, "input"_a,
      "num_classes"_a = -1, "A row of zeros with a one at input, for each element.");
}

// A tensor's or a list's tensors: f(a, b) and f([a, b]).
std::vector<Tensor> tensors_of(const char* op, const nb::args& args) {
  std::vector<Tensor> out;
  nb::object list = args;
  if (args.size() == 1 && tensor_pointer(args[0].ptr()) == nullptr) {
    list = nb::steal(PySequence_Tuple(nb::object(args[0]).ptr()));
    if (!list.is_valid()) throw nb::python_error();
  }
  for (nb::handle item : list) out.push_back(tensor_arg(op, item));
  return out;
}

void bind_triangles(nb::module_& m, TensorClass& c) {
  for (const bool lower : {true, false}) {
    const auto f = [lower](const Tensor& x, int64_t diagonal) {
      Unlocked lock(x);
      return lower ? tril(x, diagonal) : triu(x, diagonal);
    };
    const auto g = [lower](Tensor& x, int64_t diagonal) {
      Unlocked lock(x);
      return lower ? tril_(x, diagonal) : triu_(x, diagonal);
    };
    def_both(m, c, lower ? "tril" : "triu", f, "diagonal"_a = 0,
             "x with zeros on the other side of a diagonal.");
    c.def(lower ? "tril_" : "triu_", g, "diagonal"_a = 0);
    m.def(
        lower ? "tril_indices" : "triu_indices",
        [lower](int64_t row, int64_t col, int64_t offset, std::optional<DType> dtype,
                std::optional<Device> device) {
          const Options options{dtype, device, false};
          return lower ? tril_indices(row, col, offset, options)
                       : triu_indices(row, col, offset, options);
        },
        "row"_a, "col"_a, "offset"_a = 0, nb::kw_only(), "dtype"_a = nb::none(),
        "device"_a = nb::none(), "The rows and columns of that part of a matrix: [2, n].");
  }
}

void bind_grids(nb::module_& m) {
  m.def(
      "meshgrid",
      [](const nb::args& args, const std::optional<std::string>& indexing) {
        return tuple_of(meshgrid(tensors_of("meshgrid", args), indexing.value_or("ij")));
      },
      "tensors"_a, "indexing"_a = nb::none(),
      "Vectors as grids of one shape; indexing 'ij' or 'xy'.",
      nb::sig("def meshgrid(*tensors: typing.Any, indexing: str | None = None) -> "
              "tuple[Tensor, ...]"));
  m.def(
      "cartesian_prod",
      [](const nb::args& args) {
        const std::vector<Tensor> tensors = tensors_of("cartesian_prod", args);
        return cartesian_prod(tensors);
      },
      "tensors"_a, "Every combination of one value of each vector.",
      nb::sig("def cartesian_prod(*tensors: Tensor) -> Tensor"));
  m.def(
      "combinations",
      [](const Tensor& x, int64_t r, bool with_replacement) {
        Unlocked lock(x);
        return combinations(x, r, with_replacement);
      },
      "input"_a, "r"_a = 2, "with_replacement"_a = false, "Every choice of r values of a vector.");
  m.def(
      "vander",
      [](const Tensor& x, std::optional<int64_t> n, bool increasing) {
        Unlocked lock(x);
        return vander(x, n, increasing);
      },
      "x"_a, "N"_a = nb::none(), "increasing"_a = false, "Powers of a vector as columns.");
}

}  // namespace

void bind_creation(nb::module_& m, TensorClass& c) {
  bind_triangles(m, c);
  bind_grids(m);
  bind_from_values(m);
  bind_filled(m);
  bind_filled_alike(c);
  bind_sequences(m);
}

}  // namespace kiln::python
