#include "kiln/nn/state_adapter.h"

namespace kiln::nn {
namespace {

bool is_linear_weight(const StateName& name) {
  return name.owner == "Linear" && name.name == "weight";
}

bool is_norm(const StateName& name) { return name.owner.find("Norm") != std::string::npos; }

}  // namespace

std::string BurnAdapter::foreign_name(const StateName& name) const {
  StateName out = name;
  if (is_norm(name) && name.name == "weight") out.name = "gamma";
  if (is_norm(name) && name.name == "bias") out.name = "beta";
  return out.full();
}

Tensor BurnAdapter::to_module(const StateName& name, Tensor foreign) const {
  return is_linear_weight(name) && foreign.dim() == 2 ? foreign.t().contiguous() : foreign;
}

Tensor BurnAdapter::from_module(const StateName& name, Tensor own) const {
  return is_linear_weight(name) ? own.t().contiguous() : own;
}

Shape BurnAdapter::shape_in_module(const StateName& name, const Shape& foreign) const {
  if (!is_linear_weight(name) || foreign.rank() != 2) return foreign;
  return {foreign[1], foreign[0]};
}

std::string ChainAdapter::foreign_name(const StateName& name) const {
  // Each names by Kiln's name; the outermost that changes it decides.
  for (auto adapter = adapters_.rbegin(); adapter != adapters_.rend(); ++adapter) {
    const std::string out = (*adapter)->foreign_name(name);
    if (out != name.full()) return out;
  }
  return name.full();
}

Tensor ChainAdapter::to_module(const StateName& name, Tensor foreign) const {
  for (auto adapter = adapters_.rbegin(); adapter != adapters_.rend(); ++adapter) {
    foreign = (*adapter)->to_module(name, std::move(foreign));
  }
  return foreign;
}

Tensor ChainAdapter::from_module(const StateName& name, Tensor own) const {
  for (const auto& adapter : adapters_) own = adapter->from_module(name, std::move(own));
  return own;
}

Shape ChainAdapter::shape_in_module(const StateName& name, const Shape& foreign) const {
  Shape shape = foreign;
  for (auto adapter = adapters_.rbegin(); adapter != adapters_.rend(); ++adapter) {
    shape = (*adapter)->shape_in_module(name, shape);
  }
  return shape;
}

}  // namespace kiln::nn
