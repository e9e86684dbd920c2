// Statistics: quantiles, modes, histograms, covariances.
#include "kiln/tensor/autograd/finite_gradient.h"
#include "kiln/tensor/reduce/reductions.h"
#include "kiln/tensor/reduce/renorm.h"
#include "kiln/tensor/reduce/statistics.h"
#include "return_types.h"

namespace kiln::python {

namespace {

using T = const Tensor&;

template <class Many, class One>
void def_quantile(nb::module_& m, TensorClass& c, const char* name, Many many, One one,
                  const char* doc) {
  def_both(
      m, c, name,
      [many, one](T x, const Operand& q, std::optional<int64_t> dim, bool keepdim,
                  const std::string& interpolation) {
        Unlocked lock(x);
        return Tensor(q.is_tensor() ? many(x, q.tensor(), dim, keepdim, interpolation)
                                    : one(x, q.scalar().to_double(), dim, keepdim, interpolation));
      },
      "q"_a, "dim"_a = nb::none(), "keepdim"_a = false, nb::kw_only(), "interpolation"_a = "linear",
      doc);
}

template <class Spacing>
void def_gradient(nb::module_& m, const char* doc) {
  m.def(
      "gradient",
      [](T x, const Spacing& spacing, const std::optional<IntList>& dim, int64_t edge_order) {
        std::vector<Tensor> found;
        {
          Unlocked lock(x);
          found = gradient(x, spacing, dim ? dim->values : Dims{}, edge_order);
        }
        return tuple_of(found);
      },
      "input"_a, nb::kw_only(), "spacing"_a, "dim"_a = nb::none(), "edge_order"_a = 1, doc);
}

void bind_gradient(nb::module_& m, TensorClass& c) {
  const char* doc =
      "The derivatives of values at the points of a grid, along each dim; spacing is a number, a "
      "number for each dim or a row of coordinates for each.";
  m.def(
      "gradient",
      [](T x, std::optional<double> spacing, const std::optional<IntList>& dim,
         int64_t edge_order) {
        std::vector<Tensor> found;
        {
          Unlocked lock(x);
          found = gradient(x, spacing.value_or(1.0), dim ? dim->values : Dims{}, edge_order);
        }
        return tuple_of(found);
      },
      "input"_a, nb::kw_only(), "spacing"_a = nb::none(), "dim"_a = nb::none(), "edge_order"_a = 1,
      doc);
  def_gradient<std::vector<double>>(m, doc);
  def_gradient<std::vector<Tensor>>(m, doc);
  def_both(
      m, c, "renorm",
      [](T x, double p, int64_t dim, double maxnorm) {
        Unlocked lock(x);
        return renorm(x, p, dim, maxnorm);
      },
      "p"_a, "dim"_a, "maxnorm"_a, "Slices along dim scaled down to the p-norm maxnorm.");
  c.def(
      "renorm_",
      [](Tensor& x, double p, int64_t dim, double maxnorm) {
        Unlocked lock(x);
        return renorm_(x, p, dim, maxnorm);
      },
      "p"_a, "dim"_a, "maxnorm"_a);
}

void bind_histograms(nb::module_& m, TensorClass& c) {
  def_both(
      m, c, "bincount",
      [](T x, const OptionalTensor& weights, int64_t minlength) {
        Unlocked lock(x);
        return bincount(x, weights, minlength);
      },
      "weights"_a = nb::none(), "minlength"_a = 0,
      "How often each number 0, 1, .. occurs, or the sums of its weights.");
  def_both(
      m, c, "histc",
      [](T x, int64_t bins, double min, double max) {
        Unlocked lock(x);
        return histc(x, bins, min, max);
      },
      "bins"_a = 100, "min"_a = 0.0, "max"_a = 0.0,
      "How many elements lie in each of `bins` equal intervals of [min, max].");
  def_both(
      m, c, "histogram",
      [type = PairType("histogram", "hist", "bin_edges")](
          T x, const Operand& bins, const std::optional<std::pair<double, double>>& range,
          const OptionalTensor& weight, bool density) {
        if (!bins.is_tensor() && !bins.scalar().is_integral()) {
          throw nb::type_error("histogram: expected bins to be an integer or a tensor of edges");
        }
        std::pair<Tensor, Tensor> found;
        {
          Unlocked lock(x);
          const HistogramOptions options{range, weight, density};
          found = bins.is_tensor() ? histogram(x, bins.tensor(), options)
                                   : histogram(x, bins.scalar().to_int(), options);
        }
        return type(std::move(found));
      },
      "bins"_a = 100, nb::kw_only(), "range"_a = nb::none(), "weight"_a = nb::none(),
      "density"_a = false, "(hist, bin_edges) over equal intervals or given edges.");
}

}  // namespace

void bind_statistics(nb::module_& m, TensorClass& c) {
  def_quantile(
      m, c, "quantile", [](T x, T q, auto d, bool k, auto& i) { return quantile(x, q, d, k, i); },
      [](T x, double q, auto d, bool k, auto& i) { return quantile(x, q, d, k, i); },
      "The q-quantiles along dim; NaN where there is one.");
  def_quantile(
      m, c, "nanquantile",
      [](T x, T q, auto d, bool k, auto& i) { return nanquantile(x, q, d, k, i); },
      [](T x, double q, auto d, bool k, auto& i) { return nanquantile(x, q, d, k, i); },
      "The q-quantiles along dim of what is not NaN.");
  def_both(
      m, c, "mode",
      [type = PairType("mode", "values", "indices")](T x, int64_t dim, bool keepdim) {
        std::pair<Tensor, Tensor> found;
        {
          Unlocked lock(x);
          found = mode(x, dim, keepdim);
        }
        return type(std::move(found));
      },
      "dim"_a = -1, "keepdim"_a = false, "The most frequent value along dim, and where it stands.");
  bind_gradient(m, c);
  bind_histograms(m, c);
  def_both(
      m, c, "cov",
      [](T x, int64_t correction, const OptionalTensor& fweights, const OptionalTensor& aweights) {
        Unlocked lock(x);
        return cov(x, correction, fweights, aweights);
      },
      nb::kw_only(), "correction"_a = 1, "fweights"_a = nb::none(), "aweights"_a = nb::none(),
      "Covariances of the rows.");
  def_both(
      m, c, "corrcoef",
      [](T x) {
        Unlocked lock(x);
        return corrcoef(x);
      },
      "Correlation coefficients of the rows.");
}

}  // namespace kiln::python
