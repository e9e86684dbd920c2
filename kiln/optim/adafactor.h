// Adafactor: a second moment kept by rows and columns (Shazeer & Stern, 2018).
#pragma once

#include "kiln/optim/ruled_optimizer.h"

namespace kiln::optim {

// rho = min(lr, 1 / sqrt(t));  alpha = max(eps[1], rms(p)) rho;  p *= 1 - lr weight_decay.
// With w = t^beta2_decay, the means of g^2 over rows and over columns are kept as running means of
// weight w; v = rows columns / mean(rows). A parameter of one dim keeps v itself.
// u = g / sqrt(v);  p -= alpha u / max(1, rms(u) / d).
struct AdafactorOptions {
  double lr = 1e-2;
  double beta2_decay = -0.8;
  // The first one's square is the least v; 0: the rounding unit of the parameter's dtype.
  std::array<double, 2> eps = {0.0, 1e-3};
  double d = 1.0;
  double weight_decay = 0.0;
  KILN_CONFIG(AdafactorOptions, lr, beta2_decay,
              doc(eps, "the first one's square is the least v; 0: the rounding unit of the dtype"),
              d, weight_decay)
};

struct AdafactorRule {
  using Options = AdafactorOptions;
  static constexpr const char* kName = "Adafactor";
  static void check(const std::string& op, const Options& options);
  static std::vector<StateInfo> slots(const Options& options);
  static std::vector<StateInfo> numbers(const Options&) { return {}; }
  static void compose(const Options& options, int64_t t, Tensor& p, const Tensor& g,
                      std::span<Tensor> slots);
};

extern template class RuledOptimizer<AdafactorRule>;

class Adafactor : public RuledOptimizer<AdafactorRule> {
  using RuledOptimizer::RuledOptimizer;
};

}  // namespace kiln::optim
