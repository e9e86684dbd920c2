#include "kiln/nn/prune.h"

#include <cmath>
#include <vector>

#include "kiln/core/error.h"
#include "kiln/nn/computed_params.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/index/advanced_index.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/reduce/reductions.h"

namespace kiln::nn::prune {
namespace {

Pruned* pruned(const Param<Tensor>& param) { return dynamic_cast<Pruned*>(parametrization(param)); }

// How many of `size`.
int64_t count_of(const char* op, Amount amount, int64_t size) {
  if (const auto* part = std::get_if<double>(&amount)) {
    if (!(*part >= 0.0 && *part <= 1.0)) {
      throw_error<ValueError>(op, ": amount must be a part in [0, 1] or a number of elements; got ",
                              *part);
    }
    return static_cast<int64_t>(std::nearbyint(*part * static_cast<double>(size)));
  }
  const int64_t count = std::get<int64_t>(amount);
  if (count < 0 || count > size) {
    throw_error<ValueError>(op, ": amount must be from 0 to ", size, ", as many as there are; got ",
                            count);
  }
  return count;
}

// What is pruned: the values as they are without a mask, and the mask so far.
struct State {
  Tensor values, mask;
};
State state_of(const char* op, const Param<Tensor>& param) {
  if (Pruned* const by = pruned(param)) return {by->orig.get().detach(), *by->mask};
  if (!param.defined() || param.is_computed()) {
    throw_error<ValueError>(op, ": expected a parameter with a value of its own, or a pruned one");
  }
  const Tensor values = param.get().detach();
  return {values, ones_like(values)};
}

void set_mask(Param<Tensor>& param, const Tensor& mask) {
  if (Pruned* const by = pruned(param)) {
    by->mask = mask;
  } else {
    parametrize<Pruned>(param, mask);
  }
}

// The mask without the `count` elements of the smallest score among those that are left.
Tensor without_smallest(const char* op, const Tensor& scores, const Tensor& mask, Amount amount) {
  const Tensor flat = mask.reshape({-1});
  const Tensor left = nonzero(flat.ne(0)).squeeze(1);
  const int64_t count = count_of(op, amount, left.numel());
  if (count == 0) return mask.clone();
  const Tensor of_left = scores.reshape({-1}).index_select(0, left);
  const Tensor lost = left.index_select(0, of_left.topk(count, 0, false).second);
  const Tensor none = zeros({count}, {.dtype = flat.dtype(), .device = flat.device()});
  return flat.clone().scatter(0, lost, none).reshape(mask.shape());
}

// The mask without `count` of the channels along dim that are left.
Tensor without_channels(const char* op, const Tensor& scores, const Tensor& mask, Amount amount,
                        int64_t dim) {
  const int64_t size = mask.size(dim);
  Dims others;
  for (int64_t d = 0; d < mask.dim(); ++d) {
    if (d != dim) others.push_back(d);
  }
  const Tensor channels = mask.ne(0).to(f32).sum(others).ne(0).to(mask.dtype());
  const Tensor kept = without_smallest(op, scores, channels, amount);
  Shape shape = Shape::filled(static_cast<int>(mask.dim()), 1);
  shape[static_cast<int>(dim)] = size;
  return mask * kept.reshape(shape);
}

int64_t checked_dim(const char* op, const Tensor& values, int64_t dim) {
  const int64_t rank = values.dim();
  if (rank < 2) {
    throw_error<ShapeError>(op, ": channels need a parameter of 2 dims or more; got shape ",
                            values.shape());
  }
  if (dim < -rank || dim >= rank) {
    throw_error<ShapeError>(op, ": the parameter has no dim ", dim, "; got shape ", values.shape());
  }
  return dim < 0 ? dim + rank : dim;
}

Tensor checked_importance(const char* op, const Tensor& importance, const Tensor& values) {
  if (!importance.defined()) return values;
  if (!(importance.shape() == values.shape())) {
    throw_error<ShapeError>(op, ": importance must have the parameter's shape; got ",
                            importance.shape(), "; expected ", values.shape());
  }
  return importance.detach();
}

}  // namespace

Pruned::Pruned(Param<Tensor> former, Tensor keep)
    : orig(std::move(former)), mask(std::move(keep)) {}

Tensor Pruned::value() const { return *orig * mask->to(orig->dtype()); }

void Pruned::visit_unnamed(MemberVisitor& visitor) {
  visitor.parameter("orig", orig);
  visitor.buffer("mask", mask);
}

void Pruned::visit_as(MemberVisitor& visitor, std::string_view name) {
  detail::visit_member(visitor, std::string(name) + "_orig", orig);
  detail::visit_member(visitor, std::string(name) + "_mask", mask);
  Parametrization::visit_as(visitor, name);
}

void identity(Param<Tensor>& param) {
  const State state = state_of("prune::identity", param);
  set_mask(param, state.mask);
}

void random_unstructured(Param<Tensor>& param, Amount amount) {
  const char* op = "prune::random_unstructured";
  const State state = state_of(op, param);
  const Tensor chance = rand(state.values.shape(), {.device = state.values.device()});
  set_mask(param, without_smallest(op, chance, state.mask, amount));
}

void l1_unstructured(Param<Tensor>& param, Amount amount, const Tensor& importance) {
  const char* op = "prune::l1_unstructured";
  const State state = state_of(op, param);
  const Tensor scores = checked_importance(op, importance, state.values).abs();
  set_mask(param, without_smallest(op, scores, state.mask, amount));
}

void random_structured(Param<Tensor>& param, Amount amount, int64_t dim) {
  const char* op = "prune::random_structured";
  const State state = state_of(op, param);
  dim = checked_dim(op, state.values, dim);
  const Tensor chance = rand({state.values.size(dim)}, {.device = state.values.device()});
  set_mask(param, without_channels(op, chance, state.mask, amount, dim));
}

void ln_structured(Param<Tensor>& param, Amount amount, double n, int64_t dim,
                   const Tensor& importance) {
  const char* op = "prune::ln_structured";
  const State state = state_of(op, param);
  dim = checked_dim(op, state.values, dim);
  Dims others;
  for (int64_t d = 0; d < state.values.dim(); ++d) {
    if (d != dim) others.push_back(d);
  }
  const Tensor norms = norm(checked_importance(op, importance, state.values), n, others);
  set_mask(param, without_channels(op, norms, state.mask, amount, dim));
}

void custom_from_mask(Param<Tensor>& param, const Tensor& mask) {
  const State state = state_of("prune::custom_from_mask", param);
  if (!(mask.shape() == state.values.shape())) {
    throw_error<ShapeError>(
        "prune::custom_from_mask: the mask must have the parameter's shape; got ", mask.shape(),
        "; expected ", state.values.shape());
  }
  set_mask(param, state.mask * mask.detach().to(state.mask.dtype()));
}

void global_unstructured(std::span<Param<Tensor>* const> params, Method method, Amount amount) {
  const char* op = "prune::global_unstructured";
  if (params.empty()) throw_error<ValueError>(op, ": expected at least one parameter");
  std::vector<State> states;
  std::vector<Tensor> scores, masks;
  for (const Param<Tensor>* param : params) {
    states.push_back(state_of(op, *param));
    const State& state = states.back();
    scores.push_back(method == Method::random
                         ? rand({state.values.numel()}, {.device = state.values.device()})
                         : state.values.abs().reshape({-1}).to(f64));
    masks.push_back(state.mask.reshape({-1}).to(f64));
  }
  const Tensor kept = without_smallest(op, cat(scores, 0), cat(masks, 0), amount);
  int64_t at = 0;
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor& mask = states[i].mask;
    set_mask(*params[i], kept.narrow(0, at, mask.numel()).reshape(mask.shape()).to(mask.dtype()));
    at += mask.numel();
  }
}

void remove(Param<Tensor>& param) {
  if (pruned(param) == nullptr) {
    throw_error<ValueError>("prune::remove: the parameter is not pruned");
  }
  unparametrize(param, pruned(param)->is_require_grad());
}

bool is_pruned(const Param<Tensor>& param) { return pruned(param) != nullptr; }

bool is_pruned(Module& module) {
  bool found = false;
  nn::detail::for_each_param(module, [&found](const std::string&, Param<Tensor>& param, Module&) {
    found = found || is_pruned(param);
  });
  return found;
}

KILN_MODULE_DEFINED(Pruned)

}  // namespace kiln::nn::prune
