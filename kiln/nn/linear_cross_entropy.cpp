#include "kiln/nn/linear_cross_entropy.h"

#include "kiln/core/error.h"
#include "kiln/nn/repr.h"

namespace kiln::nn {
namespace {

int64_t rows_of(int64_t num_classes, const LinearCrossEntropyLossOptions& o) {
  Shape places{num_classes};
  for (const int64_t size : o.out_features) places.push_back(size);
  for (const int64_t size : places) {
    if (size >= 1) continue;
    throw_error<ValueError>("LinearCrossEntropyLoss: sizes must be at least 1; got ", places);
  }
  if (o.weight.defined() && !(o.weight.shape() == Shape{num_classes})) {
    throw_error<ShapeError>("LinearCrossEntropyLoss: expected a weight of shape ",
                            Shape{num_classes}, "; got ", o.weight.shape());
  }
  if (!(o.label_smoothing >= 0.0 && o.label_smoothing <= 1.0)) {
    throw_error<ValueError>(
        "LinearCrossEntropyLoss: expected label_smoothing between 0 and 1; got ",
        detail::repr(o.label_smoothing));
  }
  return places.numel();
}

}  // namespace

LinearCrossEntropyLoss::LinearCrossEntropyLoss(int64_t in_features, int64_t num_classes,
                                               const LinearCrossEntropyLossOptions& options,
                                               const ParamOptions& param_options)
    : weight(options.weight),
      linear(in_features, rows_of(num_classes, options), options.bias, param_options),
      num_classes_(num_classes),
      options_(options) {
  options_.weight = {};
}

Tensor LinearCrossEntropyLoss::forward(const Tensor& input, const Tensor& target) const {
  Tensor logits = linear.forward(input);
  if (!options_.out_features.empty()) {
    if (input.dim() != 2) {
      throw_error<ShapeError>(
          "LinearCrossEntropyLoss: expected input [N, in_features] beside out_features; got ",
          input.shape());
    }
    Shape shape{input.size(0), num_classes_};
    for (const int64_t size : options_.out_features) shape.push_back(size);
    logits = logits.reshape(shape);
  }
  return functional::cross_entropy(logits, target,
                                   {.weight = weight.defined() ? weight.get() : Tensor(),
                                    .ignore_index = options_.ignore_index.value_or(-100),
                                    .reduction = options_.reduction,
                                    .label_smoothing = options_.label_smoothing});
}

std::string LinearCrossEntropyLoss::extra_repr() const {
  Shape places;
  for (const int64_t size : options_.out_features) places.push_back(size);
  constexpr const char* kReductions[] = {"none", "mean", "sum"};
  return concat(
      "in_features=", linear.in_features(), ", num_classes=", num_classes_,
      ", out_features=", detail::repr(places), ", bias=", detail::repr(linear.bias.defined()),
      ", reduction=",
      kReductions[static_cast<size_t>(
          static_cast<functional::Reduction::Value>(options_.reduction))],
      ", ignore_index=", options_.ignore_index ? std::to_string(*options_.ignore_index) : "None",
      ", label_smoothing=", detail::repr(options_.label_smoothing), ", options=None");
}

KILN_MODULE_DEFINED(LinearCrossEntropyLoss, weight, linear)

}  // namespace kiln::nn
