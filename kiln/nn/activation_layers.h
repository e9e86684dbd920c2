// The activations without parameters, as layers; kiln/tensor/nn/activations.h says what each
// computes and which paper it is from.
//
// Each takes a tensor of any shape and gives one of the same shape (GLU half of it). With `inplace`
// the input itself is changed and returned. nn::ELU({.alpha = 0.5}).
#pragma once

#include <optional>
#include <string>

#include "kiln/nn/layer.h"
#include "kiln/nn/real.h"
#include "kiln/tensor/tensor.h"

namespace kiln::nn {

// ---- Options, shared by activations that have the same

struct InplaceConfig {
  bool inplace = false;
  KILN_CONFIG(InplaceConfig, inplace)
};
struct NoOptionsConfig {
  KILN_CONFIG(NoOptionsConfig)
};
struct ELUConfig {
  Real alpha = 1.0;
  bool inplace = false;
  KILN_CONFIG(ELUConfig, alpha, inplace)
};
struct GLUConfig {
  int64_t dim = -1;
  KILN_CONFIG(GLUConfig, doc(dim, "the dim that is halved"))
};
struct ShrinkConfig {
  Real lambd = 0.5;
  KILN_CONFIG(ShrinkConfig, lambd)
};
struct HardtanhConfig {
  Real min_val = -1.0;
  Real max_val = 1.0;
  bool inplace = false;
  KILN_CONFIG(HardtanhConfig, min_val, max_val, inplace)
};
struct LeakyReLUConfig {
  Real negative_slope = 0.01;
  bool inplace = false;
  KILN_CONFIG(LeakyReLUConfig, negative_slope, inplace)
};
struct RReLUConfig {
  Real lower = 1.0 / 8;
  Real upper = 1.0 / 3;
  bool inplace = false;
  KILN_CONFIG(RReLUConfig, lower, upper, inplace)
};
struct SoftminConfig {
  std::optional<int64_t> dim = {};
  KILN_CONFIG(SoftminConfig, doc(dim, "the dim whose elements sum to one"))
};
struct SoftplusConfig {
  Real beta = 1.0;
  Real threshold = 20.0;
  KILN_CONFIG(SoftplusConfig, beta, doc(threshold, "beta x above it: x itself"))
};

// ---- The layers

class ELU : public Layer<ELUConfig> {
 public:
  explicit ELU(ELUConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(ELU)
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
};

class CELU : public Layer<ELUConfig> {
 public:
  explicit CELU(ELUConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(CELU)
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
};

class SELU : public Layer<InplaceConfig> {
 public:
  explicit SELU(InplaceConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(SELU)
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
};

class Mish : public Layer<InplaceConfig> {
 public:
  explicit Mish(InplaceConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(Mish)
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
};

class ReLU6 : public Layer<InplaceConfig> {
 public:
  explicit ReLU6(InplaceConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(ReLU6)
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
};

class Hardsigmoid : public Layer<InplaceConfig> {
 public:
  explicit Hardsigmoid(InplaceConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(Hardsigmoid)
  Tensor forward(const Tensor& x) const;
};

class Hardswish : public Layer<InplaceConfig> {
 public:
  explicit Hardswish(InplaceConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(Hardswish)
  Tensor forward(const Tensor& x) const;
};

// Throws ValueError unless min_val < max_val.
class Hardtanh : public Layer<HardtanhConfig> {
 public:
  explicit Hardtanh(HardtanhConfig config = {});
  KILN_MODULE_DECLARED(Hardtanh)
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
};

class LeakyReLU : public Layer<LeakyReLUConfig> {
 public:
  explicit LeakyReLU(LeakyReLUConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(LeakyReLU)
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
};

// Draws slopes in training mode only.
class RReLU : public Layer<RReLUConfig> {
 public:
  explicit RReLU(RReLUConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(RReLU)
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
};

class GLU : public Layer<GLUConfig> {
 public:
  explicit GLU(GLUConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(GLU)
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
};

class Hardshrink : public Layer<ShrinkConfig> {
 public:
  explicit Hardshrink(ShrinkConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(Hardshrink)
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
};

class Softshrink : public Layer<ShrinkConfig> {
 public:
  explicit Softshrink(ShrinkConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(Softshrink)
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
};

// Without dim: as Softmax, dim 0 of x with 0, 1 or 3 dims, else dim 1.
class Softmin : public Layer<SoftminConfig> {
 public:
  explicit Softmin(SoftminConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(Softmin)
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
};

// Over the channels of x [N, C, H, W] or [C, H, W]. Throws ShapeError for other numbers of dims.
class Softmax2d : public Layer<NoOptionsConfig> {
 public:
  explicit Softmax2d(NoOptionsConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(Softmax2d)
  Tensor forward(const Tensor& x) const;
};

class Softplus : public Layer<SoftplusConfig> {
 public:
  explicit Softplus(SoftplusConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(Softplus)
  Tensor forward(const Tensor& x) const;
  std::string extra_repr() const override;
};

class LogSigmoid : public Layer<NoOptionsConfig> {
 public:
  explicit LogSigmoid(NoOptionsConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(LogSigmoid)
  Tensor forward(const Tensor& x) const;
};

class Softsign : public Layer<NoOptionsConfig> {
 public:
  explicit Softsign(NoOptionsConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(Softsign)
  Tensor forward(const Tensor& x) const;
};

class Tanhshrink : public Layer<NoOptionsConfig> {
 public:
  explicit Tanhshrink(NoOptionsConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(Tanhshrink)
  Tensor forward(const Tensor& x) const;
};

}  // namespace kiln::nn
