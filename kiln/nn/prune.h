// Pruning: elements of a parameter that stay zero, by a mask; as in torch.nn.utils.prune.
//
//   nn::prune::l1_unstructured(linear.weight, 0.3);   // 30 % of the elements, the smallest
//   linear.state_dict();                              // weight_orig, weight_mask, bias
//   nn::prune::remove(linear.weight);                 // an ordinary parameter with zeros
#pragma once

#include <span>
#include <variant>

#include "kiln/nn/buffer.h"
#include "kiln/nn/parametrization.h"

namespace kiln::nn::prune {

// The product of a parameter and its mask.
class Pruned : public Parametrization {
 public:
  Pruned(Param<Tensor> former, Tensor mask);

  Param<Tensor> orig;
  Buffer mask;
  void visit_members(MemberVisitor& visitor) override;
  KILN_MODULE_DECLARED_WITHOUT_OPTIONS(Pruned)
  void visit_unnamed(MemberVisitor& visitor) override;

  Tensor value() const override;
  void visit_as(MemberVisitor& visitor, std::string_view name) override;
  const Param<Tensor>& like() const override { return orig; }
  std::string suffix() const override { return "pruned"; }
  bool is_require_grad() const override { return orig.lazy_is_require_grad(); }
  void set_require_grad(bool value) override { orig.set_require_grad(value); }
};

// How much: so many (an int), or that part of all (a double in [0, 1]).
using Amount = std::variant<int64_t, double>;

// Each of these prunes what earlier pruning left, and throws ValueError for an amount that makes no
// sense or is more than there is, ShapeError for a dim that the parameter has not, and ValueError
// for a parameter that something else computes.
void identity(Param<Tensor>& param);
void random_unstructured(Param<Tensor>& param, Amount amount);
// The elements of the smallest magnitude, or importance in the parameter's shape.
void l1_unstructured(Param<Tensor>& param, Amount amount, const Tensor& importance = {});
// Whole channels along a dim: at random, or those of the smallest n-norm.
void random_structured(Param<Tensor>& param, Amount amount, int64_t dim);
void ln_structured(Param<Tensor>& param, Amount amount, double n, int64_t dim,
                   const Tensor& importance = {});
// Where the mask is 0.
void custom_from_mask(Param<Tensor>& param, const Tensor& mask);

enum class Method : uint8_t { l1, random };
// Several parameters as if they were one.
void global_unstructured(std::span<Param<Tensor>* const> params, Method method, Amount amount);

// The parameter with its zeros as an ordinary one. ValueError unless it is pruned.
void remove(Param<Tensor>& param);
bool is_pruned(const Param<Tensor>& param);
// Whether a parameter of the module or of its parts is pruned.
bool is_pruned(Module& module);

}  // namespace kiln::nn::prune
