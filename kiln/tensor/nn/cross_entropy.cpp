#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/nn/functional_support.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln::functional {

using namespace kiln::detail;

namespace {

// [N, C, d1, ..] -> [N d1 .., C], so that each row is one classification.
Tensor rows_of_classes(const Tensor& x) {
  if (x.dim() <= 2) return x;
  Dims order{0};
  int64_t rows = x.size(0);
  for (int i = 2; i < x.dim(); ++i) {
    order.push_back(i);
    rows *= x.size(i);
  }
  order.push_back(1);
  return x.permute(order).reshape({rows, x.size(1)});  // there may be no classes
}

Tensor cross_entropy_with_probabilities(const Tensor& logits, const Tensor& target,
                                        const CrossEntropyLossOptions& options) {
  if (!(target.shape() == logits.shape())) {
    throw_error<ShapeError>("cross_entropy: probabilities must have the shape of the logits; got ",
                            target.shape(), "; expected ", logits.shape());
  }
  const int64_t class_dim = logits.dim() == 1 ? 0 : 1;
  const auto classes = static_cast<double>(logits.size(class_dim));
  const double s = options.label_smoothing;
  Tensor expected = target.to(logits.dtype());
  if (s > 0) expected = expected * (1.0 - s) + s / classes;
  if (options.weight.defined()) {
    Shape broadcast = Shape::filled(logits.dim(), 1);
    broadcast[static_cast<int>(class_dim)] = logits.size(class_dim);
    expected = expected * options.weight.reshape(broadcast);
  }
  const Tensor loss = -(expected * logits.log_softmax(class_dim)).sum({class_dim});
  return reduced_loss(loss, options.reduction);
}

// Loss of each row, and what each row counts for in a mean: the weight of its class, 0 when
// ignored.
std::pair<Tensor, Tensor> weighted_rows(const Tensor& rows, const Tensor& target,
                                        const CrossEntropyLossOptions& options) {
  const Tensor ignored = target.eq(options.ignore_index);
  const Tensor safe = target.masked_fill(ignored, 0);
  const Tensor log_p = rows.log_softmax(1);
  const Tensor counts = options.weight.index_select(0, safe).masked_fill(ignored, 0.0);
  const Tensor picked = log_p.gather(1, safe.unsqueeze(1)).squeeze(1);
  Tensor loss = -(picked * counts);
  const double s = options.label_smoothing;
  if (s > 0) {
    const auto classes = static_cast<double>(rows.size(1));
    const Tensor smooth = -(log_p * options.weight).sum({1}).masked_fill(ignored, 0.0);
    loss = loss * (1.0 - s) + smooth * (s / classes);
  }
  return {loss, counts};
}

void check_targets(const Shape& logits, const Shape& target) {
  Shape expected = logits;
  expected.erase(logits.rank() == 1 ? 0 : 1);
  if (!(target == expected)) {
    throw_error<ShapeError>("cross_entropy: the class indices do not fit the logits; got logits ",
                            logits, " and target ", target, "; expected target ", expected);
  }
}

}  // namespace

Tensor cross_entropy(TensorArg logits, const Tensor& target,
                     const CrossEntropyLossOptions& options) {
  KILN_AUTOCAST(f32, cross_entropy, logits, target,
                amp::detail::cast_member(options, &CrossEntropyLossOptions::weight, f32));
  const Tensor& x = logits.get();
  const Value& value = value_of("cross_entropy", x);
  const Value& t = value_of("cross_entropy", target);
  check_same_device("cross_entropy", value, t);
  if (kind_of_value(value) != Kind::floating) {
    throw_wrong_dtype("cross_entropy", dtype_of_value(value), "floating point logits");
  }
  if (x.dim() == 0) {
    throw_error<ShapeError>("cross_entropy: expected logits [N, C], [C] or [N, C, ..]; got []");
  }
  if (!(options.label_smoothing >= 0.0 && options.label_smoothing <= 1.0)) {
    throw_error<ValueError>("cross_entropy: expected a label_smoothing in [0, 1]; got ",
                            options.label_smoothing);
  }
  const int64_t classes = x.dim() == 1 ? x.shape()[0] : x.shape()[1];
  if (options.weight.defined()) {
    const Value& weight = value_of("cross_entropy", options.weight);
    check_same_device("cross_entropy", value, weight);
    if (!(shape_of(weight) == Shape{classes})) {
      throw_error<ShapeError>("cross_entropy: expected a weight for each class; got ",
                              shape_of(weight), " for logits ", x.shape(), "; expected [", classes,
                              "]");
    }
    if (dtype_of_value(weight) != dtype_of_value(value)) {
      throw_error<DTypeError>("cross_entropy: the weight must have the dtype of the logits; got ",
                              dtype_of_value(weight), "; expected ", dtype_of_value(value));
    }
  }
  if (kind_of_value(t) == Kind::floating) {
    return cross_entropy_with_probabilities(x, target, options);
  }
  check_targets(x.shape(), target.shape());

  const Tensor rows = x.dim() == 1 ? x.reshape({1, classes}) : rows_of_classes(x);
  const ErasedTensor indices = index_value("cross_entropy", target);
  const ErasedTensor flat =
      target.dim() == 1 ? indices : Dispatch::int_reshape(indices, Shape{rows.shape()[0]});
  Tensor loss;
  Tensor counts;
  if (options.weight.defined()) {
    std::tie(loss, counts) = naming<IndexError>(
        "cross_entropy", [&] { return weighted_rows(rows, wrap(flat), options); });
  } else {
    const CrossEntropyOptions fused{options.ignore_index, options.label_smoothing};
    loss = wrap(AD::float_cross_entropy(value_of("cross_entropy", rows), flat, fused).first);
  }
  switch (options.reduction) {
    case Reduction::none:
      return target.dim() == 1 ? loss : loss.reshape(target.shape());
    case Reduction::sum:
      return loss.sum();
    default:
      break;
  }
  if (!counts.defined()) {
    const ErasedTensor counted = Dispatch::int_not_equal_scalar(flat, Scalar(options.ignore_index));
    counts = wrap(Dispatch::bool_into_float(counted, dtype_of_value(value)));
  }
  // Sums of a large batch leave the range of half precision, their quotient does not.
  const DType dtype = dtype_of_value(value);
  const DType wide = dtype == f16 || dtype == bf16 ? f32 : dtype;
  return (loss.to(wide).sum() / counts.to(wide).sum()).to(dtype);
}

}  // namespace kiln::functional
