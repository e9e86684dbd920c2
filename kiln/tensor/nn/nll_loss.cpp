// The negative log-likelihood of classes.
#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/nn/functional_support.h"
#include "kiln/tensor/nn/losses.h"

namespace kiln::functional {

using namespace detail;

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

  Shape planes = {dim == 0 ? 1 : input.size(0), input.size(dim), 1};  // [N, C, P]
  for (int d = 2; d < input.dim(); ++d) planes[2] *= input.size(d);
  const Shape places = {planes[0], planes[2]};
  const auto as = [](const Tensor& x, const Shape& s) { return x.shape() == s ? x : x.reshape(s); };
  const Tensor x = as(input, planes), classes = as(index, places);
  const Tensor loss =
      wrap(AD::float_nll_loss(value_of(op, x), value_of(op, classes).inner,
                              weight.defined() ? &value_of(op, weight) : nullptr, ignore_index));
  if (reduction == Reduction::none) return as(loss, expected);
  if (reduction == Reduction::sum) return loss.sum();
  const DType wide = wide_dtype(input.dtype());
  Tensor counts = classes.ne(ignore_index).to(wide);
  if (weight.defined()) {
    const Tensor safe = classes.masked_fill(classes.eq(ignore_index), 0);
    counts = weight.index_select(0, safe.reshape({-1})).to(wide) * counts.reshape({-1});
  }
  return (loss.to(wide).sum() / counts.sum()).to(input.dtype());
}

}  // namespace kiln::functional
