// Functions that make tensors.
#include <cstring>

#include "tensor_from.h"

namespace kiln::python {

namespace {

struct Options {
  std::optional<DType> dtype;
  std::optional<Device> device;
  bool requires_grad;

  operator TensorOptions() const { return {dtype, device.value_or(Device{}), requires_grad}; }
};

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

template <class F>
void def_like(nb::module_& m, const char* name, F f) {
  m.def(
      name,
      [f](const Tensor& x, std::optional<DType> dtype, std::optional<Device> device,
          bool requires_grad) {
        Unlocked lock(x);
        return Tensor(f(x.shape(), Options{dtype ? *dtype : x.dtype(),
                                           device ? *device : x.device(), requires_grad}));
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
          throw nb::type_error(concat("from_numpy: expected a numpy.ndarray; got ",
                                      std::string_view(Py_TYPE(array.ptr())->tp_name))
                                   .c_str());
        }
        return tensor_over("from_numpy", array);
      },
      "array"_a, "A tensor over the array's memory: each sees what is written to the other.");
  m.def(
      "frombuffer",
      [](nb::handle buffer, DType dtype, int64_t count, int64_t offset) {
        const Tensor bytes = tensor_over(
            "frombuffer",
            nb::module_::import_("builtins").attr("memoryview")(buffer).attr("cast")("B"));
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
        return Tensor(values);
      },
      "buffer"_a, nb::kw_only(), "dtype"_a, "count"_a = -1, "offset"_a = 0,
      "A copy of a buffer's bytes, read as dtype.");
  m.def(
      "is_tensor", [](nb::handle x) { return tensor_pointer(x.ptr()) != nullptr; },
      nb::arg("obj").none());
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
  def_sized(
      m, "rand", [](const Shape& s, const Options& o) { return rand(s, o); },
      "Uniform random numbers in [0, 1).");
  def_sized(
      m, "randn", [](const Shape& s, const Options& o) { return randn(s, o); },
      "Random numbers of the standard normal distribution.");
  def_like(m, "empty_like", [](const Shape& s, const Options& o) { return empty(s, o); });
  def_like(m, "zeros_like", [](const Shape& s, const Options& o) { return zeros(s, o); });
  def_like(m, "ones_like", [](const Shape& s, const Options& o) { return ones(s, o); });
  def_like(m, "rand_like", [](const Shape& s, const Options& o) { return rand(s, o); });
  def_like(m, "randn_like", [](const Shape& s, const Options& o) { return randn(s, o); });
  m.def(
      "full",
      [](const IntList& size, Scalar value, std::optional<DType> dtype,
         std::optional<Device> device, bool requires_grad) {
        checked_numel("full", size.values);
        Unlocked lock(size.values.numel());
        return full(size.values, value, Options{dtype, device, requires_grad});
      },
      "size"_a, "fill_value"_a, nb::kw_only(), KILN_PY_OPTIONS, "A tensor of one value.");
  m.def(
      "full_like",
      [](const Tensor& x, Scalar value, std::optional<DType> dtype, std::optional<Device> device,
         bool requires_grad) {
        Unlocked lock(x);
        return full(
            x.shape(), value,
            Options{dtype ? *dtype : x.dtype(), device ? *device : x.device(), requires_grad});
      },
      "input"_a, "fill_value"_a, nb::kw_only(), KILN_PY_OPTIONS);
  m.def(
      "eye",
      [](int64_t n, std::optional<int64_t> columns, std::optional<DType> dtype,
         std::optional<Device> device, bool requires_grad) {
        const int64_t width = columns.value_or(n);
        checked_numel("eye", {n, width});
        TensorOptions options = Options{dtype, device, false};
        if (width == n) return marked(eye(n, options), requires_grad);
        const Tensor square = eye(std::max(n, width), options);
        return marked(square.narrow(0, 0, n).narrow(1, 0, width).contiguous(), requires_grad);
      },
      "n"_a, "m"_a = nb::none(), nb::kw_only(), KILN_PY_OPTIONS, "Ones on the diagonal.");
}

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
      [](double start, double end, int64_t steps, std::optional<DType> dtype,
         std::optional<Device> device, bool requires_grad) {
        return linspace(start, end, steps, Options{dtype, device, requires_grad});
      },
      "start"_a, "end"_a, "steps"_a, nb::kw_only(), KILN_PY_OPTIONS,
      "Evenly spaced numbers, both ends included.");
  m.def(
      "randint",
      [](int64_t a, const nb::object& b, const nb::object& c, std::optional<Shape> size,
         std::optional<DType> dtype, std::optional<Device> device, bool requires_grad) {
        // randint(high, size) and randint(low, high, size)
        int64_t low = 0;
        int64_t high = a;
        Shape shape;
        if (PyLong_Check(b.ptr())) {
          low = a;
          high = nb::cast<int64_t>(b);
          if (!c.is_none() && integers_of(c, &shape)) size = shape;
        } else if (!b.is_none() && integers_of(b, &shape)) {
          size = shape;
        }
        if (!size) throw nb::type_error("randint: expected a size, as in randint(0, 10, (2, 3))");
        return randint(low, high, *size, Options{dtype, device, requires_grad});
      },
      "low"_a, nb::arg("high").none() = nb::none(), nb::arg("size_").none() = nb::none(),
      nb::kw_only(), "size"_a = nb::none(), KILN_PY_OPTIONS,
      "Random integers in [low, high): randint(high, size) or randint(low, high, size).",
      nb::sig("def randint(low: int, high: typing.Any = None, size: typing.Any = None, *, dtype: "
              "dtype | None = None, device: device | str | None = None, requires_grad: bool = "
              "False) -> Tensor"));
  m.def(
      "randperm",
      [](int64_t n, std::optional<DType> dtype, std::optional<Device> device) {
        return randperm(n, Options{dtype, device, false});
      },
      "n"_a, nb::kw_only(), "dtype"_a = nb::none(), "device"_a = nb::none(),
      "A random permutation of 0 to n - 1.");
  m.def(
      "bernoulli", [](const Tensor& p) { return bernoulli(p); }, "input"_a,
      "Ones with the probabilities of input, else zeros.");
  m.def(
      "one_hot", [](const Tensor& x, int64_t classes) { return one_hot(x, classes); }, "input"_a,
      "num_classes"_a = -1, "A row of zeros with a one at input, for each element.");
}

}  // namespace

void bind_creation(nb::module_& m) {
  bind_from_values(m);
  bind_filled(m);
  bind_sequences(m);
}

}  // namespace kiln::python
