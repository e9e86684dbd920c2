// Muon: momentum made orthogonal (Jordan et al., 2024), for matrices.
#pragma once

#include "kiln/optim/ruled_optimizer.h"

namespace kiln::optim {

// How the rate follows the shape [A, B] of a parameter.
enum class MuonRate {
  original,         // lr sqrt(max(1, A / B))
  match_rms_adamw,  // lr 0.2 sqrt(max(A, B)): steps as large as AdamW's (Liu et al., 2025)
};
KILN_CONFIG_ENUM(MuonRate, original, match_rms_adamw)

// buf = momentum buf + (1 - momentum) g;  u = nesterov ? (1 - momentum) g + momentum buf : buf;
// p *= 1 - lr weight_decay;  p -= rate O(u), where O makes the singular values of u about 1: u /
// |u|, and ns_steps times X = a X + b (X X^T) X + c (X X^T)^2 X with the ns_coefficients (a, b, c),
// in f32 (f64 for f64), where PyTorch rounds to bfloat16. Parameters that are no matrices (biases,
// and tables by custom) belong to another optimizer: a step on one throws ShapeError.
struct MuonOptions {
  double lr = 1e-3;
  double weight_decay = 0.1;
  double momentum = 0.95;
  bool nesterov = true;
  std::array<double, 3> ns_coefficients = {3.4445, -4.775, 2.0315};
  double eps = 1e-7;
  int64_t ns_steps = 5;
  MuonRate adjust_lr_fn = MuonRate::original;
  KILN_CONFIG(MuonOptions, lr, weight_decay, momentum, nesterov, ns_coefficients, eps, ns_steps,
              adjust_lr_fn)
};

struct MuonRule {
  using Options = MuonOptions;
  static constexpr const char* kName = "Muon";
  static void check(const std::string& op, const Options& options);
  static std::vector<StateInfo> slots(const Options& options);
  static std::vector<StateInfo> numbers(const Options&) { return {}; }
  static void compose(const Options& options, int64_t t, Tensor& p, const Tensor& g,
                      std::span<Tensor> slots);
};

extern template class RuledOptimizer<MuonRule>;

class Muon : public RuledOptimizer<MuonRule> {
  using RuledOptimizer::RuledOptimizer;
};

}  // namespace kiln::optim
