// Sorting and searching, running results, distinct values.
#include "kiln/tensor/index/sorting.h"
#include "kiln/tensor/index/unique.h"
#include "kiln/tensor/reduce/cumulative.h"
#include "return_types.h"

namespace kiln::python {

namespace {

using T = const Tensor&;

// Runs f() without the interpreter's lock where x is large, and names its results.
template <class F>
nb::object named(const PairType& type, const Tensor& x, F f) {
  std::pair<Tensor, Tensor> pair;
  {
    Unlocked lock(x);
    pair = f();
  }
  return type(std::move(pair));
}

void bind_sorts(nb::module_& m, TensorClass& c) {
  def_both(
      m, c, "sort",
      [type = PairType("sort", "values", "indices")](T x, int64_t dim, bool descending, bool) {
        return named(type, x, [&] { return x.sort(dim, descending); });
      },
      "dim"_a = -1, "descending"_a = false, "stable"_a = false,
      "(values, indices) in ascending order along dim. Always stable; NaN is the largest.");
  def_both(
      m, c, "argsort",
      [](T x, int64_t dim, bool descending, bool) {
        Unlocked lock(x);
        return x.argsort(dim, descending);
      },
      "dim"_a = -1, "descending"_a = false, "stable"_a = false, "The indices that sort() gives.");
  def_both(
      m, c, "msort",
      [](T x) {
        Unlocked lock(x);
        return msort(x);
      },
      "Sorted along dim 0.");
  def_both(
      m, c, "topk",
      [type = PairType("topk", "values", "indices")](T x, int64_t k, int64_t dim, bool largest,
                                                     bool) {
        return named(type, x, [&] { return x.topk(k, dim, largest); });
      },
      "k"_a, "dim"_a = -1, "largest"_a = true, "sorted"_a = true,
      "(values, indices) of the k largest or smallest along dim, always in order.");
  def_both(
      m, c, "kthvalue",
      [type = PairType("kthvalue", "values", "indices")](T x, int64_t k, int64_t dim,
                                                         bool keepdim) {
        return named(type, x, [&] { return x.kthvalue(k, dim, keepdim); });
      },
      "k"_a, "dim"_a = -1, "keepdim"_a = false, "The k-th smallest along dim, k from 1.");
  const auto def_median = [&](const char* name, auto all, auto along, const char* doc) {
    def_both(
        m, c, name,
        [type = PairType(name, "values", "indices"), all, along](T x, std::optional<int64_t> dim,
                                                                 bool keepdim) -> nb::object {
          if (dim) return named(type, x, [&] { return along(x, *dim, keepdim); });
          Tensor out;
          {
            Unlocked lock(x);
            out = all(x);
          }
          return nb::cast(std::move(out));
        },
        "dim"_a = nb::none(), "keepdim"_a = false, doc);
  };
  def_median(
      "median", [](T x) { return x.median(); },
      [](T x, int64_t d, bool k) { return x.median(d, k); },
      "The lower of the two middle values; NaN where there is one.");
  def_median(
      "nanmedian", [](T x) { return x.nanmedian(); },
      [](T x, int64_t d, bool k) { return x.nanmedian(d, k); },
      "The lower of the two middle values that are not NaN.");
}

void bind_searches(nb::module_& m) {
  m.def(
      "searchsorted",
      [](T sorted, const Operand& input, bool out_int32, bool right,
         const std::optional<std::string>& side, const OptionalTensor& sorter) {
        if (side && *side != "left" && *side != "right") {
          throw_error<ValueError>("searchsorted: expected side 'left' or 'right'; got '", *side,
                                  "'");
        }
        if (side == "left" && right) {
          throw_error<ValueError>("searchsorted: side 'left' and right=True contradict each other");
        }
        const bool behind = right || side == "right";
        Unlocked lock(sorted);
        return input.is_tensor() ? searchsorted(sorted, input.tensor(), behind, out_int32, sorter)
                                 : searchsorted(sorted, input.scalar(), behind, out_int32, sorter);
      },
      "sorted_sequence"_a, "input"_a, nb::kw_only(), "out_int32"_a = false, "right"_a = false,
      "side"_a = nb::none(), "sorter"_a = nb::none(),
      "Where in its ascending row each value belongs: before its equals, or behind them.");
  m.def(
      "bucketize",
      [](const Operand& input, T boundaries, bool out_int32, bool right) {
        Unlocked lock(boundaries);
        return input.is_tensor() ? bucketize(input.tensor(), boundaries, right, out_int32)
                                 : bucketize(input.scalar(), boundaries, right, out_int32);
      },
      "input"_a, "boundaries"_a, nb::kw_only(), "out_int32"_a = false, "right"_a = false,
      "The number of the interval between boundaries that each value lies in.");
}

void bind_running(nb::module_& m, TensorClass& c) {
  const auto with_dtype = [&](const char* name, auto f, const char* doc) {
    def_both(
        m, c, name,
        [f](T x, int64_t dim, std::optional<DType> dtype) {
          Unlocked lock(x);
          const Tensor out = f(dtype ? x.to(*dtype) : x, dim);
          return dtype ? out.to(*dtype) : out;
        },
        "dim"_a, nb::kw_only(), "dtype"_a = nb::none(), doc);
    c.def((std::string(name) + "_").c_str(),
          [f](Tensor& x, int64_t dim, std::optional<DType> dtype) {
            Unlocked lock(x);
            x.copy_(f(dtype ? x.to(*dtype) : x, dim));
            return x;
          },
          "dim"_a, nb::kw_only(), "dtype"_a = nb::none());
  };
  with_dtype(
      "cumsum", [](T x, int64_t dim) { return x.cumsum(dim); }, "Running sums along dim.");
  with_dtype(
      "cumprod", [](T x, int64_t dim) { return cumprod(x, dim); }, "Running products along dim.");
  def_both(
      m, c, "cummax",
      [type = PairType("cummax", "values", "indices")](T x, int64_t dim) {
        return named(type, x, [&] { return cummax(x, dim); });
      },
      "dim"_a, "The largest element so far along dim, and where it stands.");
  def_both(
      m, c, "cummin",
      [type = PairType("cummin", "values", "indices")](T x, int64_t dim) {
        return named(type, x, [&] { return cummin(x, dim); });
      },
      "dim"_a, "The smallest element so far along dim, and where it stands.");
  def_both(
      m, c, "logcumsumexp",
      [](T x, int64_t dim) {
        Unlocked lock(x);
        return logcumsumexp(x, dim);
      },
      "dim"_a, "log of running sums of exp(x) along dim.");
  def_both(
      m, c, "diff",
      [](T x, int64_t n, int64_t dim, const OptionalTensor& prepend, const OptionalTensor& append) {
        Unlocked lock(x);
        return diff(x, n, dim, prepend, append);
      },
      "n"_a = 1, "dim"_a = -1, "prepend"_a = nb::none(), "append"_a = nb::none(),
      "Differences of neighbours along dim, n times over.");
  const auto integral = [&](const char* name, auto spaced, auto placed, const char* doc) {
    m.def(
        name,
        [spaced, placed](T y, const OptionalTensor& x, std::optional<double> dx, int64_t dim) {
          if (x.value.defined() && dx) {
            throw_error<ValueError>("trapezoid: expected x or dx; got both");
          }
          Unlocked lock(y);
          return Tensor(x.value.defined() ? placed(y, x.value, dim)
                                          : spaced(y, dx.value_or(1.0), dim));
        },
        "y"_a, "x"_a = nb::none(), nb::kw_only(), "dx"_a = nb::none(), "dim"_a = -1, doc);
  };
  for (const char* name : {"trapezoid", "trapz"}) {
    integral(
        name, [](T y, double dx, int64_t dim) { return trapezoid(y, dx, dim); },
        [](T y, T x, int64_t dim) { return trapezoid(y, x, dim); },
        "The integral of y along dim by the trapezoidal rule.");
  }
  integral(
      "cumulative_trapezoid",
      [](T y, double dx, int64_t dim) { return cumulative_trapezoid(y, dx, dim); },
      [](T y, T x, int64_t dim) { return cumulative_trapezoid(y, x, dim); },
      "The running integral of y along dim by the trapezoidal rule.");
  m.def(
      "linear_scan",
      [](T a, T b, int64_t dim, bool reversed) {
        Unlocked lock(a);
        return linear_scan(a, b, dim, reversed);
      },
      "a"_a, "b"_a, "dim"_a, nb::kw_only(), "reversed"_a = false,
      "h[i] = a[i] h[i - 1] + b[i] along dim, from h[-1] = 0 on.");
}

nb::object unique_result(Unique found) {
  if (!found.inverse.defined() && !found.counts.defined()) return nb::cast(found.values);
  std::vector<Tensor> parts{found.values};
  if (found.inverse.defined()) parts.push_back(found.inverse);
  if (found.counts.defined()) parts.push_back(found.counts);
  return tuple_of(parts);
}

void bind_unique(nb::module_& m, TensorClass& c) {
  def_both(
      m, c, "unique",
      [](T x, bool, bool return_inverse, bool return_counts, std::optional<int64_t> dim) {
        Unique found;
        {
          Unlocked lock(x);
          found = unique(x, return_inverse, return_counts, dim);
        }
        return unique_result(std::move(found));
      },
      "sorted"_a = true, "return_inverse"_a = false, "return_counts"_a = false,
      "dim"_a = nb::none(), "The distinct elements (or slices of dim), always in order.");
  def_both(
      m, c, "unique_consecutive",
      [](T x, bool return_inverse, bool return_counts, std::optional<int64_t> dim) {
        Unique found;
        {
          Unlocked lock(x);
          found = unique_consecutive(x, return_inverse, return_counts, dim);
        }
        return unique_result(std::move(found));
      },
      "return_inverse"_a = false, "return_counts"_a = false, "dim"_a = nb::none(),
      "The first of each run of equal elements (or slices of dim).");
}

}  // namespace

void bind_sorting(nb::module_& m, TensorClass& c) {
  bind_sorts(m, c);
  bind_searches(m);
  bind_running(m, c);
  bind_unique(m, c);
}

}  // namespace kiln::python
