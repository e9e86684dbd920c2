// AveragedModel: a copy of a model whose parameters are averages over training, of all steps
// (stochastic weight averaging, Izmailov et al., 2018) or exponential (EMA).
#pragma once

#include <cstdint>
#include <optional>

#include "kiln/core/config.h"
#include "kiln/nn/module.h"

namespace kiln::optim {

struct AveragedModelOptions {
  std::optional<double> decay =
      {};                    // averaged = decay averaged + (1 - decay) current; else the mean
  bool use_buffers = false;  // average floating-point buffers too; else copy them
  KILN_CONFIG(AveragedModelOptions, doc(decay, "of an exponential average; null: the plain mean"),
              use_buffers)
};

namespace detail {

void check_average(const AveragedModelOptions& options);
void check_n_averaged(int64_t count);
// Takes `current` into the averages, which hold `count` updates so far. Throws ValueError when the
// modules have other parameters or buffers.
void average_into(nn::Module& averaged, nn::Module& current, const AveragedModelOptions& options,
                  int64_t count);

}  // namespace detail

//   optim::AveragedModel ema(net, {.decay = 0.999});
//   ...
//   optimizer.step();
//   ema.update_parameters(net);
//   ...
//   ema.module(x);
template <class M>
class AveragedModel {
 public:
  // Throws ValueError for a decay outside [0, 1].
  explicit AveragedModel(const M& model, const AveragedModelOptions& options = {})
      : module(model), options_(options) {
    detail::check_average(options_);
  }

  // The first call copies the parameters, each later one takes them into the averages.
  void update_parameters(M& model) {
    detail::average_into(module, model, options_, n_averaged_);
    ++n_averaged_;
  }
  // How many updates the averages hold. To resume, save it with the module, and set it after the
  // module was loaded: at 0 the next update begins anew. Throws ValueError below 0.
  int64_t n_averaged() const { return n_averaged_; }
  void set_n_averaged(int64_t count) {
    detail::check_n_averaged(count);
    n_averaged_ = count;
  }

  M module;

 private:
  AveragedModelOptions options_;
  int64_t n_averaged_ = 0;
};

}  // namespace kiln::optim
