// Reductions, as methods and as functions.
#include "integer_arg.h"
#include "kiln/tensor/reduce/reductions.h"
#include "return_types.h"

namespace kiln::python {

namespace {

// sum and mean: over dims, by default all.
template <class F>
void def_sum(nb::module_& m, TensorClass& c, const char* name, F f, const char* doc) {
  def_both(
      m, c, name,
      [f](const Tensor& x, const std::optional<IntList>& dim, bool keepdim,
          std::optional<DType> dtype) {
        Unlocked lock(x);
        const Tensor out = f(dtype ? x.to(*dtype) : x, dim ? dim->values : Shape(), keepdim);
        return dtype ? out.to(*dtype) : out;  // sums of integers are i64 unless asked otherwise
      },
      "dim"_a = nb::none(), "keepdim"_a = false, nb::kw_only(), "dtype"_a = nb::none(), doc);
}

// argmax, argmin: over one dim, or over everything.
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

// var, std and the like: unbiased unless correction says otherwise. PyTorch's old forms,
// x.var(False) and x.var(0, False, True), are understood too.
template <class F>
void def_variance(nb::module_& m, TensorClass& c, const char* name, F f, const char* doc) {
  def_both(
      m, c, name,
      [f](const Tensor& x, const nb::object& dim, std::optional<bool> unbiased_arg,
          std::optional<bool> keepdim_arg, std::optional<double> correction, bool keepdim,
          std::optional<bool> unbiased) {
        double divisor = correction.value_or(1.0);
        Shape dims;
        if (PyBool_Check(dim.ptr())) {
          divisor = nb::cast<bool>(dim) ? 1.0 : 0.0;
        } else if (!dim.is_none()) {
          IntList list;
          if (!try_value(dim, list)) {
            throw nb::type_error("dim: expected an integer or a sequence of integers");
          }
          dims = list.values;
        }
        if (unbiased_arg) unbiased = unbiased_arg;
        if (unbiased) divisor = *unbiased ? 1.0 : 0.0;
        return f(x, dims, divisor, keepdim_arg.value_or(keepdim));
      },
      nb::arg("dim").none() = nb::none(), nb::arg("_unbiased").none() = nb::none(),
      nb::arg("_keepdim").none() = nb::none(), nb::kw_only(), "correction"_a = nb::none(),
      "keepdim"_a = false, "unbiased"_a = nb::none(), doc);
}

// max and min: the extremum; with a dim, also where it is; with a tensor, elementwise.
template <class All, class One, class Both>
void def_extremum(nb::module_& m, TensorClass& c, const char* name, All all, One one, Both both,
                  const char* doc) {
  const PairType type(name, "values", "indices");
  def_both(
      m, c, name,
      [type, all, one, both, name](const Tensor& x, const std::optional<Operand>& dim,
                                   bool keepdim) -> nb::object {
        if (dim && !dim->is_tensor()) {
          std::pair<Tensor, Tensor> found;
          {
            Unlocked lock(x);
            found = one(x, integer_arg(name, *dim), keepdim);
          }
          return type(std::move(found));
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
      [](const Tensor& x, const nb::object& p, const std::optional<IntList>& dim, bool keepdim,
         std::optional<DType> dtype) {
        double order = 2.0;
        Scalar number;
        const std::string name = PyUnicode_Check(p.ptr()) ? nb::cast<std::string>(p) : "fro";
        if (scalar_of(p, &number)) {
          order = number.to_double();
        } else if ((!p.is_none() && !PyUnicode_Check(p.ptr())) ||
                   (name != "fro" && name != "nuc")) {
          throw_error<ValueError>("norm: expected p to be a number, 'fro' or 'nuc'");
        }
        const Tensor numbers = dtype ? x.to(*dtype) : x;
        Unlocked lock(x);
        if (name == "nuc") {
          return linalg::norm(numbers, name, dim ? dim->values : Shape(), keepdim);
        }
        return norm(numbers, order, dim ? dim->values : Shape(), keepdim);
      },
      nb::arg("p").none() = 2.0, "dim"_a = nb::none(), "keepdim"_a = false, "dtype"_a = nb::none(),
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
  def_sum(
      m, c, "nansum", [](T x, const Shape& d, bool k) { return nansum(x, d, k); },
      "the sum over dim of what is not NaN");
  def_sum(
      m, c, "nanmean", [](T x, const Shape& d, bool k) { return nanmean(x, d, k); },
      "the mean over dim of what is not NaN");
  def_both(
      m, c, "prod",
      [](T x, std::optional<int64_t> dim, bool keepdim, std::optional<DType> dtype) {
        Unlocked lock(x);
        const Tensor numbers = dtype ? x.to(*dtype) : x;
        const Tensor out = dim ? numbers.prod(*dim, keepdim) : numbers.prod();
        return dtype ? out.to(*dtype) : out;
      },
      "dim"_a = nb::none(), "keepdim"_a = false, nb::kw_only(), "dtype"_a = nb::none(),
      "the product over dim");
  def_over_dim(
      m, c, "argmax", [](T x) { return x.argmax(); },
      [](T x, int64_t d, bool k) { return x.argmax(d, k); }, "where the largest element is");
  def_over_dim(
      m, c, "argmin", [](T x) { return x.argmin(); },
      [](T x, int64_t d, bool k) { return x.argmin(d, k); }, "where the smallest element is");
  const auto over_dims = [&](const char* name, auto f, const char* doc) {
    def_both(
        m, c, name,
        [f](T x, const std::optional<IntList>& dim, bool keepdim) {
          Unlocked lock(x);
          return Tensor(f(x, dim ? dim->values : Shape(), keepdim));
        },
        "dim"_a = nb::none(), "keepdim"_a = false, doc);
  };
  // Over an empty list of dims they say of each element whether it is not zero; others take it as
  // all dims.
  const auto truth = [&](const char* name, auto f, const char* doc) {
    def_both(
        m, c, name,
        [f](T x, const std::optional<IntList>& dim, bool keepdim) {
          Unlocked lock(x);
          if (dim && !dim->is_number && dim->values.empty()) {
            return x.dtype() == DType::u8 ? x.ne(0).to(DType::u8) : x.ne(0);
          }
          return Tensor(f(x, dim ? dim->values : Shape(), keepdim));
        },
        "dim"_a = nb::none(), "keepdim"_a = false, doc);
  };
  truth(
      "any", [](T x, const Shape& d, bool k) { return any(x, d, k); },
      "whether any element is not zero");
  truth(
      "all", [](T x, const Shape& d, bool k) { return all(x, d, k); },
      "whether no element is zero");
  def_both(
      m, c, "count_nonzero",
      [](T x, const std::optional<IntList>& dim) {
        Unlocked lock(x);
        return count_nonzero(x, dim ? dim->values : Shape());
      },
      "dim"_a = nb::none(), "how many elements are not zero");
  def_variance(
      m, c, "var",
      [](T x, const Shape& d, double n, bool k) {
        Unlocked lock(x);
        return x.var(d, n, k);
      },
      "the variance over dim, divided by n - correction");
  def_variance(
      m, c, "std",
      [](T x, const Shape& d, double n, bool k) {
        Unlocked lock(x);
        return x.std(d, n, k);
      },
      "the standard deviation over dim, with n - correction");
  const auto with_mean = [](auto f) {
    return [f](T x, const Shape& d, double n, bool k) {
      std::pair<Tensor, Tensor> both;
      {
        Unlocked lock(x);
        both = f(x, d, n, k);
      }
      return tuple_of({both.first, both.second});
    };
  };
  def_variance(m, c, "var_mean", with_mean([](T x, const Shape& d, double n, bool k) {
                 return var_mean(x, d, n, k);
               }),
               "(variance, mean) over dim");
  def_variance(m, c, "std_mean", with_mean([](T x, const Shape& d, double n, bool k) {
                 return std_mean(x, d, n, k);
               }),
               "(standard deviation, mean) over dim");
  def_both(
      m, c, "aminmax",
      [type = PairType("aminmax", "min", "max")](T x, std::optional<int64_t> dim, bool keepdim) {
        std::pair<Tensor, Tensor> both;
        {
          Unlocked lock(x);
          both = aminmax(x, dim, keepdim);
        }
        return type(std::move(both));
      },
      nb::kw_only(), "dim"_a = nb::none(), "keepdim"_a = false, "(smallest, largest) over dim");
  def_extremum(
      m, c, "max", [](T x) { return x.max(); }, [](T x, int64_t d, bool k) { return x.max(d, k); },
      [](T x, T y) { return x.maximum(y); },
      "the largest element; max(dim) gives (values, indices), max(other) the larger of both");
  def_extremum(
      m, c, "min", [](T x) { return x.min(); }, [](T x, int64_t d, bool k) { return x.min(d, k); },
      [](T x, T y) { return x.minimum(y); },
      "the smallest element; min(dim) gives (values, indices), min(other) the smaller of both");
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
  bind_norm(m, c);
}

}  // namespace kiln::python
