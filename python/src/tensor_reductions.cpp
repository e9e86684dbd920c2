// Reductions, as methods and as functions.
#include <Python.h>
#include <structseq.h>

#include "binding.h"

namespace kiln::python {

namespace {

// The class of the named tuple (values, indices).
PyTypeObject* pair_type(const char* name) {
  static PyStructSequence_Field fields[] = {{"values", ""}, {"indices", ""}, {nullptr, nullptr}};
  PyStructSequence_Desc description{name, "Values and the positions they were found at.", fields,
                                    2};
  PyTypeObject* type = PyStructSequence_NewType(&description);
  if (type == nullptr) throw nb::python_error();
  return type;
}

nb::object named_pair(PyTypeObject* type, std::pair<Tensor, Tensor> pair) {
  nb::object out = nb::steal(PyStructSequence_New(type));
  if (!out.is_valid()) throw nb::python_error();
  PyStructSequence_SetItem(out.ptr(), 0, tensor_object(std::move(pair.first)));
  PyStructSequence_SetItem(out.ptr(), 1, tensor_object(std::move(pair.second)));
  return out;
}

// sum and mean: over dims, by default all.
template <class F>
void def_sum(nb::module_& m, TensorClass& c, const char* name, F f, const char* doc) {
  def_both(
      m, c, name,
      [f](const Tensor& x, const std::optional<IntList>& dim, bool keepdim,
          std::optional<DType> dtype) {
        Unlocked lock(x);
        return Tensor(f(dtype ? x.to(*dtype) : x, dim ? dim->values : Shape(), keepdim));
      },
      "dim"_a = nb::none(), "keepdim"_a = false, nb::kw_only(), "dtype"_a = nb::none(), doc);
}

// prod, any, all, argmax, argmin: over one dim, or over everything.
template <class All, class One>
void def_over_dim(nb::module_& m, TensorClass& c, const char* name, All all, One one,
                  const char* doc) {
  def_both(
      m, c, name,
      [all, one](const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
        Unlocked lock(x);
        if (dim) return Tensor(one(x, *dim, keepdim));
        Tensor out(all(x));
        return keepdim ? out.reshape(Shape::filled(x.dim(), 1)) : out;
      },
      "dim"_a = nb::none(), "keepdim"_a = false, doc);
}

// var and std: unbiased unless correction says otherwise.
template <class F>
void def_variance(nb::module_& m, TensorClass& c, const char* name, F f, const char* doc) {
  def_both(
      m, c, name,
      [f](const Tensor& x, const nb::object& dim, std::optional<double> correction, bool keepdim,
          std::optional<bool> unbiased) {
        double divisor = correction.value_or(1.0);
        Shape dims;
        if (PyBool_Check(dim.ptr())) {
          divisor = nb::cast<bool>(dim) ? 1.0 : 0.0;  // x.var(False)
        } else if (!dim.is_none()) {
          IntList list;
          if (!nb::try_cast(dim, list)) {
            throw nb::type_error("dim: expected an integer or a sequence of integers");
          }
          dims = list.values;
        }
        if (unbiased) divisor = *unbiased ? 1.0 : 0.0;
        Unlocked lock(x);
        return Tensor(f(x, dims, divisor, keepdim));
      },
      nb::arg("dim").none() = nb::none(), nb::kw_only(), "correction"_a = nb::none(),
      "keepdim"_a = false, "unbiased"_a = nb::none(), doc);
}

// max and min: the extremum; with a dim, also where it is; with a tensor, elementwise.
template <class All, class One, class Both>
void def_extremum(nb::module_& m, TensorClass& c, const char* name, const char* type_name, All all,
                  One one, Both both, const char* doc) {
  PyTypeObject* const type = pair_type(type_name);
  m.attr((std::string("_") + name + "_result").c_str()) =
      nb::borrow(reinterpret_cast<PyObject*>(type));
  def_both(
      m, c, name,
      [type, all, one, both](const Tensor& x, const std::optional<Operand>& dim,
                             bool keepdim) -> nb::object {
        if (dim && !dim->is_tensor()) {
          std::pair<Tensor, Tensor> found;
          {
            Unlocked lock(x);
            found = one(x, dim->scalar().to_int(), keepdim);
          }
          return named_pair(type, std::move(found));
        }
        Tensor out;
        {
          Unlocked lock(x);
          out = dim ? both(x, dim->tensor()) : all(x);
        }
        return nb::cast(out);
      },
      "dim"_a = nb::none(), "keepdim"_a = false, doc);
}

void bind_norm(nb::module_& m, TensorClass& c) {
  def_both(
      m, c, "norm",
      [](const Tensor& x, const nb::object& p, const std::optional<IntList>& dim, bool keepdim) {
        double order = 2.0;
        Scalar number;
        if (scalar_of(p, &number)) {
          order = number.to_double();
        } else if (!p.is_none() &&
                   !(PyUnicode_Check(p.ptr()) && nb::cast<std::string>(p) == "fro")) {
          throw_error<ValueError>("norm: expected p to be a number or 'fro'");
        }
        Unlocked lock(x);
        const Shape dims = dim ? dim->values : Shape();
        if (order == 2.0 && dims.empty() && !keepdim) return x.norm();
        const Tensor size = x.abs();
        if (std::isinf(order))
          return order > 0 ? size.amax(dims, keepdim) : size.amin(dims, keepdim);
        if (order == 0.0) return size.ne(0).to(x.dtype()).sum(dims, keepdim);
        if (order == 1.0) return size.sum(dims, keepdim);
        if (order == 2.0) return size.square().sum(dims, keepdim).sqrt();
        return size.pow(order).sum(dims, keepdim).pow(1.0 / order);
      },
      nb::arg("p").none() = 2.0, "dim"_a = nb::none(), "keepdim"_a = false,
      "(sum |x|^p)^(1/p); p = inf: the largest |x|");
}

}  // namespace

void bind_reductions(nb::module_& m, TensorClass& c) {
  using T = const Tensor&;
  def_sum(
      m, c, "sum",
      [](T x, const Shape& d, bool k) { return d.empty() && !k ? x.sum() : x.sum(d, k); },
      "the sum over dim (all by default)");
  def_sum(
      m, c, "mean",
      [](T x, const Shape& d, bool k) { return d.empty() && !k ? x.mean() : x.mean(d, k); },
      "the mean over dim (all by default)");
  def_over_dim(
      m, c, "prod", [](T x) { return x.prod(); },
      [](T x, int64_t d, bool k) { return x.prod(d, k); }, "the product over dim");
  def_over_dim(
      m, c, "argmax", [](T x) { return x.argmax(); },
      [](T x, int64_t d, bool k) { return x.argmax(d, k); }, "where the largest element is");
  def_over_dim(
      m, c, "argmin", [](T x) { return x.argmin(); },
      [](T x, int64_t d, bool k) { return x.argmin(d, k); }, "where the smallest element is");
  def_over_dim(
      m, c, "any", [](T x) { return x.any(); }, [](T x, int64_t d, bool k) { return x.any(d, k); },
      "whether any element is not zero");
  def_over_dim(
      m, c, "all", [](T x) { return x.all(); }, [](T x, int64_t d, bool k) { return x.all(d, k); },
      "whether no element is zero");
  def_variance(
      m, c, "var", [](T x, const Shape& d, double n, bool k) { return x.var(d, n, k); },
      "the variance over dim, divided by n - correction");
  def_variance(
      m, c, "std", [](T x, const Shape& d, double n, bool k) { return x.std(d, n, k); },
      "the standard deviation over dim, with n - correction");
  def_extremum(
      m, c, "max", "kiln.return_types.max", [](T x) { return x.max(); },
      [](T x, int64_t d, bool k) { return x.max(d, k); }, [](T x, T y) { return x.maximum(y); },
      "the largest element; max(dim) gives (values, indices), max(other) the larger of both");
  def_extremum(
      m, c, "min", "kiln.return_types.min", [](T x) { return x.min(); },
      [](T x, int64_t d, bool k) { return x.min(d, k); }, [](T x, T y) { return x.minimum(y); },
      "the smallest element; min(dim) gives (values, indices), min(other) the smaller of both");
  const auto over_dims = [&](const char* name, auto f, const char* doc) {
    def_both(
        m, c, name,
        [f](T x, const std::optional<IntList>& dim, bool keepdim) {
          Unlocked lock(x);
          return Tensor(f(x, dim ? dim->values : Shape(), keepdim));
        },
        "dim"_a = nb::none(), "keepdim"_a = false, doc);
  };
  over_dims(
      "amax", [](T x, const Shape& d, bool k) { return x.amax(d, k); },
      "the largest element over dim");
  over_dims(
      "amin", [](T x, const Shape& d, bool k) { return x.amin(d, k); },
      "the smallest element over dim");
  def_both(
      m, c, "logsumexp",
      [](T x, const IntList& dim, bool keepdim) {
        Unlocked lock(x);
        return x.logsumexp(dim.values, keepdim);
      },
      "dim"_a, "keepdim"_a = false, "log(sum(exp(x))) over dim, without overflow");
  def_both(
      m, c, "cumsum",
      [](T x, int64_t dim, std::optional<DType> dtype) {
        Unlocked lock(x);
        return (dtype ? x.to(*dtype) : x).cumsum(dim);
      },
      "dim"_a, nb::kw_only(), "dtype"_a = nb::none(), "running sums along dim");
  bind_norm(m, c);
}

}  // namespace kiln::python
