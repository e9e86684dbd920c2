// x[...] and x[...] = y, and the ops that gather and scatter.
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
    throw nb::type_error(concat("index: a float is no index; got ", number.to_double()).c_str());
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

void bind_gather(nb::module_& m, TensorClass& c) {
  using T = const Tensor&;
  const auto def = [&](const char* name, auto f, auto... extra) {
    def_both(m, c, name, f, extra...);
  };
  def(
      "index_select",
      [](T x, int64_t dim, T index) {
        Unlocked lock(x);
        return x.index_select(dim, index);
      },
      "dim"_a, "index"_a, "The slices of dim that index names.");
  def(
      "index_add",
      [](T x, int64_t dim, T index, T source, Scalar alpha) {
        Unlocked lock(x);
        const bool one = alpha.is_integral() && alpha.to_int() == 1;
        return x.index_add(dim, index, one ? source : source.mul(alpha));
      },
      "dim"_a, "index"_a, "source"_a, nb::kw_only(), "alpha"_a = 1,
      "x with slices of source added where index says.");
  def(
      "gather",
      [](T x, int64_t dim, T index) {
        Unlocked lock(x);
        return x.gather(dim, index);
      },
      "dim"_a, "index"_a, "out[i][j] = x[index[i][j]][j] for dim 0.");
  def(
      "scatter",
      [](T x, int64_t dim, T index, const Operand& src) {
        Unlocked lock(x);
        return x.scatter(
            dim, index,
            src.is_tensor() ? src.tensor() : full(index.shape(), src.scalar(), {x.dtype()}));
      },
      "dim"_a, "index"_a, "src"_a, "x with out[index[i][j]][j] = src[i][j] for dim 0.");
  def(
      "scatter_add",
      [](T x, int64_t dim, T index, T src) {
        Unlocked lock(x);
        return x.scatter_add(dim, index, src);
      },
      "dim"_a, "index"_a, "src"_a, "As scatter, but added.");
  def(
      "masked_fill",
      [](T x, T mask, const Operand& value) {
        Unlocked lock(x);
        return x.masked_fill(mask,
                             value.is_tensor() ? value.tensor().item_scalar() : value.scalar());
      },
      "mask"_a, "value"_a, "x with value where the mask holds.");
  def(
      "masked_select",
      [](T x, T mask) {
        Unlocked lock(x);
        return kiln::masked_select(x, mask);
      },
      "mask"_a, "The elements where the mask holds, in one dim.");
  def(
      "nonzero",
      [](T x, bool as_tuple) -> nb::object {
        Tensor positions = kiln::nonzero(x);
        if (!as_tuple) return nb::cast(positions);
        return tuple_of(positions.unbind(1));
      },
      nb::kw_only(), "as_tuple"_a = false, "The positions of what is not zero.");
  const auto put = [](Tensor& x, const nb::handle indices, T values, bool accumulate) {
    const std::vector<IndexEntry> entries = entries_of(nb::tuple(nb::borrow(indices)));
    Unlocked lock(x);
    index_put_(x, entries, values, accumulate);
    return x;
  };
  c.def("index_put_", put, "indices"_a, "values"_a, "accumulate"_a = false);
  c.def(
      "index_put",
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
  bind_gather(m, c);
}

}  // namespace kiln::python
