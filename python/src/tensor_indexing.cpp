// x[...] and x[...] = y.
#include "binding.h"
#include "kiln/tensor/advanced_index.h"

namespace kiln::python {

Tensor tensor_from(nb::handle data, std::optional<DType> dtype, std::optional<Device> device);

namespace {

std::optional<int64_t> slice_bound(nb::handle bound) {
  if (bound.is_none()) return std::nullopt;
  const Py_ssize_t v = PyNumber_AsSsize_t(bound.ptr(), nullptr);  // clamps
  if (v == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return v;
}

IndexEntry entry_of(nb::handle item) {
  PyObject* o = item.ptr();
  if (PyLong_CheckExact(o)) {
    Scalar number;
    scalar_of(item, &number);
    return IndexItem(number.to_int());
  }
  if (PySlice_Check(o)) {
    const auto* s = reinterpret_cast<PySliceObject*>(o);
    const std::optional<int64_t> step = slice_bound(s->step);
    return IndexItem(Slice(slice_bound(s->start), slice_bound(s->stop), step.value_or(1)));
  }
  if (item.is_none()) return IndexItem(None);
  if (o == Py_Ellipsis) return IndexItem(Ellipsis);
  if (const Tensor* x = tensor_pointer(o)) {
    if (x->dim() == 0 && is_integral(x->dtype())) return IndexItem(x->item<int64_t>());
    if (x->dtype() == DType::u8) return x->to(bool_);  // PyTorch's old masks
    return *x;
  }
  if (PyBool_Check(o)) return tensor(Scalar(o == Py_True));
  Scalar number;
  if (scalar_of(item, &number)) {
    if (number.is_integral()) return IndexItem(number.to_int());
    if (number.is_bool()) return tensor(number);
    throw_error<IndexError>("index: a float is no index; got ", number.to_double(),
                            "; expected an integer");
  }
  if (PyList_Check(o) && PyList_GET_SIZE(o) == 0) return empty({0}, {i64});
  return tensor_from(item, {}, {});
}

std::vector<IndexEntry> entries_of(nb::handle key) {
  std::vector<IndexEntry> entries;
  if (PyTuple_Check(key.ptr())) {
    for (nb::handle item : nb::borrow<nb::tuple>(key)) entries.push_back(entry_of(item));
  } else {
    entries.push_back(entry_of(key));
  }
  return entries;
}

Tensor get(const Tensor& x, nb::handle key) {
  if (PyLong_CheckExact(key.ptr())) {
    if (x.dim() == 0) {
      throw_error<IndexError>("index: a 0-d tensor has no elements to pick; try item()");
    }
    Scalar number;
    scalar_of(key, &number);
    return x.select(0, number.to_int());
  }
  const std::vector<IndexEntry> entries = entries_of(key);
  Unlocked lock(x);
  return kiln::index(x, entries);
}

void set(Tensor& x, nb::handle key, nb::handle value) {
  const std::vector<IndexEntry> entries = entries_of(key);
  Scalar number;
  Tensor source;
  if (const Tensor* given = tensor_pointer(value.ptr())) {
    source = given->to(x.device());
  } else if (scalar_of(value, &number)) {
    source = full({}, number, {x.dtype(), x.device()});
  } else {
    source = tensor_from(value, {}, x.device());
  }
  Unlocked lock(x);
  index_put_(x, entries, source);
}

void bind_put(nb::module_& m, TensorClass& c) {
  using T = const Tensor&;
  const auto put = [](Tensor& x, const nb::handle indices, T values, bool accumulate) {
    const std::vector<IndexEntry> entries = entries_of(nb::tuple(nb::borrow(indices)));
    Unlocked lock(x);
    index_put_(x, entries, values, accumulate);
    return x;
  };
  c.def("index_put_", put, "indices"_a, "values"_a, "accumulate"_a = false);
  def_both(
      m, c, "index_put",
      [put](T x, const nb::handle indices, T values, bool accumulate) {
        Tensor copy = x.clone();
        return put(copy, indices, values, accumulate);
      },
      "indices"_a, "values"_a, "accumulate"_a = false);
}

}  // namespace

void bind_indexing(nb::module_& m, TensorClass& c) {
  c.def("__getitem__", &get, nb::arg("key").none(),
        nb::sig("def __getitem__(self, key: typing.Any) -> Tensor"));
  c.def("__setitem__", &set, nb::arg("key").none(), nb::arg("value"),
        nb::sig("def __setitem__(self, key: typing.Any, value: typing.Any) -> None"));
  bind_put(m, c);
}

}  // namespace kiln::python
