// x[...] and x[...] = y.
#include "kiln/tensor/autograd/vmap.h"
#include "kiln/tensor/index/advanced_index.h"
#include "tensor_from.h"

namespace kiln::python {

namespace {

std::optional<int64_t> slice_bound(nb::handle bound) {
  if (bound.is_none()) return std::nullopt;
  const Py_ssize_t v = PyNumber_AsSsize_t(bound.ptr(), nullptr);  // clamps
  if (v == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return v;
}

int64_t integer_of(nb::handle index) {
  int overflow = 0;
  const long long v = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0) throw_overflow(index, "int64");
  return v;
}

IndexEntry entry_of(nb::handle item) {
  PyObject* o = item.ptr();
  if (PyLong_CheckExact(o)) return IndexItem(integer_of(item));
  if (PySlice_Check(o)) {
    const SliceParts s = slice_parts(o);
    const std::optional<int64_t> step = slice_bound(s.step);
    return IndexItem(Slice(slice_bound(s.start), slice_bound(s.stop), step.value_or(1)));
  }
  if (item.is_none()) return IndexItem(None);
  if (o == Py_Ellipsis) return IndexItem(Ellipsis);
  if (const Tensor* x = tensor_pointer(o)) {
    if (x->dim() == 0 && is_integral(x->dtype()) && !kiln::detail::is_of_batch(*x)) {
      return IndexItem(x->item<int64_t>());
    }
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
  const nb::object list = nb::isinstance<nb::sequence>(item) && !is_array(item)
                              ? nb::steal(PySequence_List(o))
                              : nb::borrow(item);
  if (!list.is_valid()) throw nb::python_error();
  if (PyList_Check(list.ptr()) && list_size(list.ptr()) == 0) return empty({0}, {i64});
  return tensor_from(list, {}, {});
}

// PyTorch's rule, once NumPy's: a short sequence that holds anything but numbers is what a tuple
// would be, an index for each dim.
bool is_tuple_of_indices(nb::handle key) {
  PyObject* o = key.ptr();
  if (PyTuple_Check(o)) return true;
  if (tensor_pointer(o) != nullptr || !PySequence_Check(o) || is_array(key)) return false;
  const Py_ssize_t n = PySequence_Size(o);
  if (n < 0) PyErr_Clear();
  if (n < 0 || n >= 32) return false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    const nb::object item = nb::steal(PySequence_GetItem(o, i));
    if (!item.is_valid()) throw nb::python_error();
    PyObject* const p = item.ptr();
    if (tensor_pointer(p) != nullptr || PySequence_Check(p) || PySlice_Check(p) ||
        p == Py_Ellipsis || p == Py_None) {
      return true;
    }
  }
  return false;
}

std::vector<IndexEntry> entries_of(nb::handle key) {
  std::vector<IndexEntry> entries;
  if (is_tuple_of_indices(key)) {
    const nb::object items = nb::steal(PySequence_Tuple(key.ptr()));
    if (!items.is_valid()) throw nb::python_error();
    for (nb::handle item : nb::borrow<nb::tuple>(items)) entries.push_back(entry_of(item));
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
    return x.select(0, integer_of(key));
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
