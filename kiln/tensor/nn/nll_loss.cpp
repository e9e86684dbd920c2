// The negative log-likelihood of classes.
#include <optional>

#include "kiln/backend/batched/batched_tensor.h"
#include "kiln/core/parallel.h"
#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/interop.h"
#include "kiln/tensor/nn/functional_support.h"
#include "kiln/tensor/nn/losses.h"

namespace kiln::functional {

using namespace detail;

namespace {

struct Totals {
  double loss = 0.0;
  double weight = 0.0;
  bool outside = false;  // a class that there is not
};

// Rows [begin, end) of x [N, C, places] and index [N, places]; where `losses` is given, each one's.
template <class T>
Totals loss_of_rows(const T* x, const int64_t* index, const T* weight, int64_t classes,
                    int64_t places, int64_t ignored, int64_t begin, int64_t end, T* losses) {
  Totals totals;
  int64_t example = begin / places, place = begin % places;
  for (int64_t row = begin; row < end; ++row, ++place) {
    if (place == places) {
      place = 0;
      ++example;
    }
    const int64_t y = index[row];
    T loss = T(0);
    if (y != ignored) {
      if (y < 0 || y >= classes) return {0.0, 0.0, true};
      const T w = weight == nullptr ? T(1) : weight[y];
      loss = -x[(example * classes + y) * places + place] * w;
      totals.loss += static_cast<double>(loss);
      totals.weight += static_cast<double>(w);
    }
    if (losses != nullptr) losses[row] = loss;
  }
  return totals;
}

// The loss in one pass over host memory, where nothing is recorded; none where that does not apply,
// or where a class is out of range.
std::optional<Tensor> on_host(const Tensor& input, const Tensor& index, const Tensor& weight,
                              int dim, int64_t ignored, Reduction reduction) {
  const bool tracked =
      is_grad_enabled() && (input.requires_grad() || (weight.defined() && weight.requires_grad()));
  const DType dtype = input.dtype();
  if (tracked || input.device() != Device(kCpu) || (dtype != f32 && dtype != f64)) {
    return std::nullopt;
  }
  for (const Tensor& x : {input, index, weight}) {  // of vmap's batch
    if (x.defined() && batched::as_batched(value_of("nll_loss", x).inner) != nullptr) {
      return std::nullopt;
    }
  }
  const Tensor x = input.detach().contiguous(), y = index.to(i64).contiguous();
  const Tensor w = weight.defined() ? weight.detach().contiguous() : Tensor();
  const bool reduces = reduction != Reduction::none;
  const Tensor losses = reduces ? Tensor() : empty(y.shape(), {dtype});
  const int64_t rows = y.numel(), classes = x.size(dim);
  const int64_t places = dim == 0 || rows == 0 ? 1 : rows / x.size(0);
  constexpr int64_t kRows = 4096;
  std::vector<Totals> parts(static_cast<size_t>((rows + kRows - 1) / kRows));
  const auto run = [&]<class T>() {
    const auto data = [](const Tensor& t) {
      return t.defined() ? static_cast<T*>(interop::data(t)) : nullptr;
    };
    parallel_for(rows, kRows, [&](int64_t begin, int64_t end) {
      parts[static_cast<size_t>(begin / kRows)] =
          loss_of_rows<T>(data(x), static_cast<const int64_t*>(interop::data(y)), data(w), classes,
                          places, ignored, begin, end, data(losses));
    });
  };
  if (dtype == f32) {
    run.operator()<float>();
  } else {
    run.operator()<double>();
  }
  Totals all;
  for (const Totals& part : parts) {
    if (part.outside) return std::nullopt;
    all.loss += part.loss;
    all.weight += part.weight;
  }
  if (!reduces) return losses;
  return full({}, reduction == Reduction::mean ? all.loss / all.weight : all.loss, {dtype});
}

}  // namespace

Tensor nll_loss(const Tensor& input, const Tensor& target, const Tensor& weight,
                int64_t ignore_index, Reduction reduction) {
  KILN_AUTOCAST(f32, nll_loss, input, target, weight, ignore_index, reduction);
  constexpr const char* op = "nll_loss";
  require_floating(op, input);
  const Tensor index = wrap(index_value(op, target, value_of(op, input)));
  if (input.dim() == 0) throw_error<ShapeError>(op, ": expected [N, C], [C] or [N, C, ..]; got []");
  const int dim = input.dim() == 1 ? 0 : 1;
  Shape expected = input.shape();
  expected.erase(dim);
  if (!(index.shape() == expected)) {
    throw_error<ShapeError>(op, ": the classes do not fit the input; got input ", input.shape(),
                            " and target ", index.shape(), "; expected target ", expected);
  }
  require_param(op, input, weight, "weight", Shape{input.size(dim)});
  if (const auto direct = on_host(input, index, weight, dim, ignore_index, reduction)) {
    return *direct;
  }
  const Tensor ignored = index.eq(ignore_index);
  const Tensor safe = index.masked_fill(ignored, 0);
  Tensor loss, counts;
  naming<IndexError>(op, [&] {
    loss = -input.gather(dim, safe.unsqueeze(dim)).squeeze(dim);
    if (weight.defined()) counts = weight.index_select(0, safe.reshape({-1})).reshape(expected);
  });
  if (weight.defined()) loss = loss * counts;
  loss = loss.masked_fill(ignored, 0.0);
  if (reduction != Reduction::mean) return reduced_loss(loss, reduction);
  counts = weight.defined() ? counts.masked_fill(ignored, 0.0)
                            : ignored.logical_not().to(wide_dtype(input.dtype()));
  const DType wide = wide_dtype(input.dtype());
  return (loss.to(wide).sum() / counts.to(wide).sum()).to(input.dtype());
}

}  // namespace kiln::functional
