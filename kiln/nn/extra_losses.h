// Losses that PyTorch has not: focal, Dice and InfoNCE, as functions and as layers.
#pragma once

#include "kiln/nn/loss_layers.h"

namespace kiln::functional {

// The cross-entropy of logits x with targets y in [0, 1], less where it is small already: with
// p = s(x) y + (1 - s(x)) (1 - y), s the sigmoid, (1 - p)^gamma (-y log s(x) - (1 - y) log(1 -
// s(x))), times alpha y + (1 - alpha) (1 - y) unless alpha < 0 (Lin et al., 2017). Both tensors
// have one shape. Throws ValueError for alpha > 1 and for a negative gamma.
Tensor focal_loss(const Tensor& input, const Tensor& target, double alpha = 0.25,
                  double gamma = 2.0, Reduction reduction = Reduction::mean);
// 1 - (2 sum(x y) + smooth) / (sum(x) + sum(y) + smooth) of probabilities x and targets y [N, ..],
// sums over all dims but the first (Milletari et al., 2016) -> [N], reduced. Throws ValueError for
// a negative smooth.
Tensor dice_loss(const Tensor& input, const Tensor& target, double smooth = 1.0,
                 Reduction reduction = Reduction::mean);
// How badly a query finds its own key: the cross-entropy of cos(q_i, k_j) / temperature over keys j
// with class i (van den Oord et al., 2018). query and positive_key [N, D]; the other keys are those
// of the batch or, when they are defined, negative_keys [M, D]. -> [N], reduced. Throws ValueError
// unless temperature > 0.
Tensor info_nce_loss(const Tensor& query, const Tensor& positive_key,
                     const Tensor& negative_keys = {}, double temperature = 0.1,
                     Reduction reduction = Reduction::mean);

}  // namespace kiln::functional

namespace kiln::nn {

struct FocalLossConfig {
  Real alpha = 0.25;
  Real gamma = 2.0;
  functional::Reduction reduction = functional::Reduction::mean;
  KILN_CONFIG(FocalLossConfig, doc(alpha, "weight of positive targets; negative: none"),
              doc(gamma, "how little easy samples count"), reduction)
};
class FocalLoss : public Layer<FocalLossConfig> {
 public:
  explicit FocalLoss(FocalLossConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(FocalLoss)
  Tensor forward(const Tensor& input, const Tensor& target) const;
};

struct DiceLossConfig {
  Real smooth = 1.0;
  functional::Reduction reduction = functional::Reduction::mean;
  KILN_CONFIG(DiceLossConfig, doc(smooth, "added above and below"), reduction)
};
class DiceLoss : public Layer<DiceLossConfig> {
 public:
  explicit DiceLoss(DiceLossConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(DiceLoss)
  Tensor forward(const Tensor& input, const Tensor& target) const;
};

struct InfoNCELossConfig {
  Real temperature = 0.1;
  functional::Reduction reduction = functional::Reduction::mean;
  KILN_CONFIG(InfoNCELossConfig, temperature, reduction)
};
class InfoNCELoss : public Layer<InfoNCELossConfig> {
 public:
  explicit InfoNCELoss(InfoNCELossConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(InfoNCELoss)
  Tensor forward(const Tensor& query, const Tensor& positive_key,
                 const Tensor& negative_keys = {}) const;
};

}  // namespace kiln::nn
