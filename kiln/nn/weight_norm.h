// Weight norm and spectral norm: parametrizations of a weight, with the keys that PyTorch's
// nn.utils.weight_norm and nn.utils.spectral_norm have.
//
//   nn::weight_norm(linear.weight);                 // weight_g, weight_v
//   nn::spectral_norm(conv.weight);                 // weight_orig, weight_u, weight_v
//   nn::remove_weight_norm(linear.weight);          // an ordinary parameter again
#pragma once

#include <optional>

#include "kiln/nn/buffer.h"
#include "kiln/nn/parametrization.h"

namespace kiln::nn {

// g v / |v|, with a norm for each index of dim, or one for all (Salimans & Kingma, 2016).
class WeightNorm : public Parametrization {
 public:
  // Throws ShapeError for a dim that the parameter has not.
  WeightNorm(Param<Tensor> former, std::optional<int64_t> dim);

  Param<Tensor> g;  // the norms, with sizes 1 but in dim
  Param<Tensor> v;  // the directions
  void visit_members(MemberVisitor& visitor) override;
  KILN_MODULE_DECLARED_WITHOUT_OPTIONS(WeightNorm)
  void visit_unnamed(MemberVisitor& visitor) override;

  Tensor value() const override;
  void visit_as(MemberVisitor& visitor, std::string_view name) override;
  const Param<Tensor>& like() const override { return v; }
  std::string suffix() const override { return "norm"; }
  bool is_require_grad() const override { return v.lazy_is_require_grad(); }
  void set_require_grad(bool value) override;

 private:
  std::optional<int64_t> dim_;
};

struct SpectralNormOptions {
  int64_t n_power_iterations = 1;  // of each reading in training
  double eps = 1e-12;
  int64_t dim = 0;  // of the outputs: 1 for transposed convolutions
};

// The weight over its largest singular value, as power iteration tells it (Miyato et al., 2018). In
// training each reading of the weight goes on with the iteration.
class SpectralNorm : public Parametrization {
 public:
  // Throws ShapeError below two dims and for a dim that the parameter has not, ValueError for fewer
  // than 1 iteration.
  SpectralNorm(Param<Tensor> former, const SpectralNormOptions& options);

  Param<Tensor> orig;
  Buffer u;  // [size of dim]
  Buffer v;  // [product of the others]
  void visit_members(MemberVisitor& visitor) override;
  KILN_MODULE_DECLARED_WITHOUT_OPTIONS(SpectralNorm)
  void visit_unnamed(MemberVisitor& visitor) override;

  Tensor value() const override;
  void visit_as(MemberVisitor& visitor, std::string_view name) override;
  const Param<Tensor>& like() const override { return orig; }
  std::string suffix() const override { return "spectral"; }
  bool is_require_grad() const override { return orig.lazy_is_require_grad(); }
  void set_require_grad(bool value) override { orig.set_require_grad(value); }

 private:
  SpectralNormOptions options_;
};

// Throw ValueError for a parameter that is None or computed already.
WeightNorm& weight_norm(Param<Tensor>& weight, std::optional<int64_t> dim = 0);
SpectralNorm& spectral_norm(Param<Tensor>& weight, const SpectralNormOptions& options = {});
// Throw ValueError unless the parameter has such a norm.
void remove_weight_norm(Param<Tensor>& weight);
void remove_spectral_norm(Param<Tensor>& weight);

}  // namespace kiln::nn
