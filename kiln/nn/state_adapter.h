// StateAdapter: how another system names and lays out what a Kiln module holds.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kiln/tensor/tensor.h"

namespace kiln::nn {

// A tensor of a module's state: "encoder.fc", "weight", "Linear".
struct StateName {
  std::string path;   // of the module that owns it; "" at the top
  std::string name;   // among that module's parts
  std::string owner;  // that module's type_name()

  std::string full() const { return path.empty() ? name : path + "." + name; }
};

// Kiln's names and layouts are PyTorch's, so PyTorch's files need the identity: this class itself.
class StateAdapter {
 public:
  virtual ~StateAdapter() = default;
  // How the other system calls it.
  virtual std::string foreign_name(const StateName& name) const { return name.full(); }
  virtual Tensor to_module(const StateName&, Tensor foreign) const { return foreign; }
  virtual Tensor from_module(const StateName&, Tensor own) const { return own; }
  // The shape that to_module gives.
  virtual Shape shape_in_module(const StateName&, const Shape& foreign) const { return foreign; }
};

// Burn: the weights of Linear layers are [in, out], and those of norms are called gamma and beta.
class BurnAdapter : public StateAdapter {
 public:
  std::string foreign_name(const StateName& name) const override;
  Tensor to_module(const StateName& name, Tensor foreign) const override;
  Tensor from_module(const StateName& name, Tensor own) const override;
  Shape shape_in_module(const StateName& name, const Shape& foreign) const override;
};

// Saves floating point tensors in another dtype. (Loading converts to the module's in any case.)
class FloatCastAdapter : public StateAdapter {
 public:
  explicit FloatCastAdapter(DType dtype) : dtype_(dtype) {}
  Tensor from_module(const StateName&, Tensor own) const override {
    return own.is_floating_point() ? own.to(dtype_) : own;
  }

 private:
  DType dtype_;
};

// One after the other, the first nearest to the module. The last one that renames a tensor names
// it.
class ChainAdapter : public StateAdapter {
 public:
  explicit ChainAdapter(std::vector<std::shared_ptr<const StateAdapter>> adapters)
      : adapters_(std::move(adapters)) {}
  std::string foreign_name(const StateName& name) const override;
  Tensor to_module(const StateName& name, Tensor foreign) const override;
  Tensor from_module(const StateName& name, Tensor own) const override;
  Shape shape_in_module(const StateName& name, const Shape& foreign) const override;

 private:
  std::vector<std::shared_ptr<const StateAdapter>> adapters_;
};

}  // namespace kiln::nn
