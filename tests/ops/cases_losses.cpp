// Losses and distances.
#include "kiln/nn/extra_losses.h"
#include "tests/ops/case.h"

namespace kiln::ops {

namespace F = kiln::functional;
using F::Reduction;

KILN_OP_CASES(losses) {
  const auto big = [] {
    return std::vector<Input>{real({1024, 1024}, 0.05, 0.95), real({1024, 1024}, 0.05, 0.95)};
  };
  // Means of a few numbers, whose order of summation may differ.
  op("nn.functional.l1_loss", "F.l1_loss(a, b)",
     [](const Tensors& x) { return F::l1_loss(x[0], x[1]); }, {real({3, 4}), real({3, 4}, 3, 5)})
      .loose(2)
      .big(big());
  op("nn.functional.l1_loss", "F.l1_loss(a, b, reduction='none')",
     [](const Tensors& x) { return F::l1_loss(x[0], x[1], Reduction::none); },
     {real({3, 4}), real({3, 4}, 3, 5)});
  op("nn.functional.mse_loss", "F.mse_loss(a, b, reduction='sum')",
     [](const Tensors& x) { return F::mse_loss(x[0], x[1], Reduction::sum); },
     {real({3, 4}), real({3, 4})})
      .loose(4)
      .big(big());
  op("nn.functional.mse_loss", "F.mse_loss(a, b, weight=c)",
     [](const Tensors& x) { return F::mse_loss(x[0], x[1], Reduction::mean, x[2]); },
     {real({3, 4}), real({3, 4}), constant({3, 4}, 0.5, 2)})
      .dtypes(kDoubles);
  op("nn.functional.smooth_l1_loss", "F.smooth_l1_loss(a, b, beta=0.5)",
     [](const Tensors& x) { return F::smooth_l1_loss(x[0], x[1], Reduction::mean, 0.5); },
     {real({3, 4}).away_from(0, 0.5), constant({3, 4}, 0, 0)})
      .loose(2)
      .big(big());
  op("nn.functional.smooth_l1_loss", "F.smooth_l1_loss(a, b, beta=0.0, reduction='none')",
     [](const Tensors& x) { return F::smooth_l1_loss(x[0], x[1], Reduction::none, 0.0); },
     {real({3, 4}), real({3, 4}, 3, 5)});
  op("nn.functional.huber_loss", "F.huber_loss(a, b, 'sum', 0.5)",
     [](const Tensors& x) { return F::huber_loss(x[0], x[1], Reduction::sum, 0.5); },
     {real({3, 4}).away_from(0, 0.5), constant({3, 4}, 0, 0)})
      .loose(4)
      .big(big());
  op("nn.functional.nll_loss", "F.nll_loss(a, b)",
     [](const Tensors& x) { return F::nll_loss(x[0], x[1]); }, {real({3, 4}), index({3}, 0, 4)})
      .loose(2)
      .big({real({4096, 256}), index({4096}, 0, 256)});
  op("nn.functional.nll_loss", "F.nll_loss(a, b, c, ignore_index=1)",
     [](const Tensors& x) { return F::nll_loss(x[0], x[1], x[2], 1); },
     {real({3, 4, 2}), indices({0, 1, 3, 2, 1, 2}, {3, 2}), constant({4}, 0.5, 2)})
      .loose(2);
  op("nn.functional.nll_loss", "F.nll_loss(a, b, c, reduction='none')",
     [](const Tensors& x) { return F::nll_loss(x[0], x[1], x[2], -100, Reduction::none); },
     {real({4}), indices({2}, {}), constant({4}, 0.5, 2)});
  op("nn.functional.cross_entropy", "F.cross_entropy(a, b, c, label_smoothing=0.1)",
     [](const Tensors& x) {
       return F::cross_entropy(x[0], x[1], {.weight = x[2], .label_smoothing = 0.1});
     },
     {real({3, 4}), index({3}, 0, 4), constant({4}, 0.5, 2)})
      .loose(2);
  op("nn.functional.linear_cross_entropy",
     "F.linear_cross_entropy(a, b, d, linear_bias=c, label_smoothing=0.1)",
     [](const Tensors& x) {
       return F::cross_entropy(F::linear(x[0], x[1], x[2]), x[3], {.label_smoothing = 0.1});
     },
     {real({5, 4}), real({6, 4}), real({6}), index({5}, 0, 6)})
      .loose(4);
  op("nn.functional.binary_cross_entropy", "F.binary_cross_entropy(a, b, c)",
     [](const Tensors& x) { return F::binary_cross_entropy(x[0], x[1], x[2]); },
     {real({3, 4}, 0.1, 0.9), real({3, 4}, 0, 1), constant({3, 4}, 0.5, 2)})
      .loose(4);
  op("nn.functional.binary_cross_entropy", "F.binary_cross_entropy(a, b)",
     [](const Tensors& x) { return F::binary_cross_entropy(x[0], x[1]); },
     {real({3, 4}, 0.1, 0.9), real({3, 4}, 0, 1)})
      .loose(4)
      .big(big());
  op("nn.functional.binary_cross_entropy", "F.binary_cross_entropy(a, b, reduction='none')",
     [](const Tensors& x) { return F::binary_cross_entropy(x[0], x[1], {}, Reduction::none); },
     {values({0, 0, 1, 1, 0.5}), values({0, 1, 0, 1, 0.5})})
      .no_gradient("PyTorch's is a large number at 0 and 1");
  op("nn.functional.binary_cross_entropy_with_logits",
     "F.binary_cross_entropy_with_logits(a, b, c, pos_weight=d)",
     [](const Tensors& x) {
       return F::binary_cross_entropy_with_logits(x[0], x[1], x[2], Reduction::mean, x[3]);
     },
     {real({3, 4}).away_from(0), constant({3, 4}, 0, 1), constant({4}, 0.5, 2),
      constant({4}, 0.5, 2)})
      .loose(4);
  op("nn.functional.binary_cross_entropy_with_logits", "F.binary_cross_entropy_with_logits(a, b)",
     [](const Tensors& x) { return F::binary_cross_entropy_with_logits(x[0], x[1]); },
     {real({3, 4}, -8, 8).away_from(0), real({3, 4}, 0, 1)})
      .loose(4)
      .big(big());
  op("nn.functional.kl_div", "F.kl_div(a, b, reduction='batchmean')",
     [](const Tensors& x) { return F::kl_div_batchmean(x[0], x[1]); },
     {real({3, 4}, -3, -0.1), real({3, 4}, 0.1, 1)})
      .loose(4)
      .big(big());
  op("nn.functional.kl_div", "F.kl_div(a, b, reduction='none', log_target=True)",
     [](const Tensors& x) { return F::kl_div(x[0], x[1], Reduction::none, true); },
     {real({3, 4}, -3, -0.1), real({3, 4}, -3, -0.1)})
      .loose(2);
  op("nn.functional.kl_div", "F.kl_div(a, b, reduction='none')",
     [](const Tensors& x) { return F::kl_div(x[0], x[1], Reduction::none); },
     {values({-1, -2, -3}), values({0, 0.5, 1})})
      .loose(2)
      .first_order("0 log 0 has no second derivative");
  op("nn.functional.poisson_nll_loss", "F.poisson_nll_loss(a, b, full=True)",
     [](const Tensors& x) { return F::poisson_nll_loss(x[0], x[1], true, true); },
     {real({3, 4}), constant({3, 4}, 0, 5)})
      .loose(4);
  op("nn.functional.poisson_nll_loss", "F.poisson_nll_loss(a, b, False, eps=1e-2)",
     [](const Tensors& x) { return F::poisson_nll_loss(x[0], x[1], false, false, 1e-2); },
     {real({3, 4}, 0.5, 3), real({3, 4}, 0, 5)})
      .loose(4);
  op("nn.functional.gaussian_nll_loss", "F.gaussian_nll_loss(a, b, c, True)",
     [](const Tensors& x) { return F::gaussian_nll_loss(x[0], x[1], x[2], true); },
     {real({3, 4}), real({3, 4}), real({3, 4}, 0.5, 2)})
      .loose(4);
  op("nn.functional.gaussian_nll_loss", "F.gaussian_nll_loss(a, b, c, reduction='sum')",
     [](const Tensors& x) {
       return F::gaussian_nll_loss(x[0], x[1], x[2], false, 1e-6, Reduction::sum);
     },
     {real({3, 4}), real({3, 4}), real({3}, 0.5, 2)})
      .loose(8);
  const std::vector<double> signs{1, -1, -1, 1, 1, -1};
  op("nn.functional.hinge_embedding_loss", "F.hinge_embedding_loss(a, b, 1.5, reduction='none')",
     [](const Tensors& x) { return F::hinge_embedding_loss(x[0], x[1], 1.5, Reduction::none); },
     {real({6}).away_from(1.5), values(signs)});
  op("nn.functional.soft_margin_loss", "F.soft_margin_loss(a, b)",
     [](const Tensors& x) { return F::soft_margin_loss(x[0], x[1]); },
     {real({6}).away_from(0), values(signs)})
      .first_order("a kink of the target at 0 meets none of its values")
      .loose(2);
  op("nn.functional.margin_ranking_loss", "F.margin_ranking_loss(a, b, c, 0.5)",
     [](const Tensors& x) { return F::margin_ranking_loss(x[0], x[1], x[2], 0.5); },
     {real({6}, -1, -0.6), real({6}, 0.6, 1), values(signs)})
      .loose(2);
  op("nn.functional.multi_margin_loss", "F.multi_margin_loss(a, b, 2, 1.5, c)",
     [](const Tensors& x) { return F::multi_margin_loss(x[0], x[1], 2, 1.5, x[2]); },
     {real({3, 4}, -0.7, 0.7), index({3}, 0, 4), constant({4}, 0.5, 2)})
      .loose(2);
  op("nn.functional.multi_margin_loss", "F.multi_margin_loss(a, b, reduction='none')",
     [](const Tensors& x) { return F::multi_margin_loss(x[0], x[1], 1, 1.0, {}, Reduction::none); },
     {real({4}, -0.4, 0.4), indices({2}, {})})
      .loose(2);
  op("nn.functional.multilabel_margin_loss", "F.multilabel_margin_loss(a, b, reduction='none')",
     [](const Tensors& x) { return F::multilabel_margin_loss(x[0], x[1], Reduction::none); },
     {real({2, 4}, -0.4, 0.4), indices({3, 0, -1, 1, 2, -1, 0, 1}, {2, 4})})
      .loose(2);
  op("nn.functional.multilabel_soft_margin_loss", "F.multilabel_soft_margin_loss(a, b, c)",
     [](const Tensors& x) { return F::multilabel_soft_margin_loss(x[0], x[1], x[2]); },
     {real({3, 4}).away_from(0), constant({3, 4}, 0, 1), constant({4}, 0.5, 2)})
      .loose(4);
  op("nn.functional.triplet_margin_loss", "F.triplet_margin_loss(a, b, c, 10.0)",
     [](const Tensors& x) { return F::triplet_margin_loss(x[0], x[1], x[2], 10.0); },
     {real({3, 4}), real({3, 4}), real({3, 4})})
      .loose(4);
  op("nn.functional.triplet_margin_loss", "F.triplet_margin_loss(a, b, c, 10.0, 3, swap=True)",
     [](const Tensors& x) { return F::triplet_margin_loss(x[0], x[1], x[2], 10.0, 3, 1e-6, true); },
     {real({4}), real({4}), real({4})})
      .loose(4);
  op("nn.functional.triplet_margin_with_distance_loss",
     "F.triplet_margin_with_distance_loss(a, b, c, "
     "distance_function=lambda x, y: (x - y).abs().sum(-1), margin=10.0)",
     [](const Tensors& x) {
       const auto distance = [](const Tensor& a, const Tensor& b) { return (a - b).abs().sum(-1); };
       return F::triplet_margin_with_distance_loss(x[0], x[1], x[2], distance, 10.0);
     },
     {real({3, 4}), real({3, 4}, 3, 4), real({3, 4}, 5, 6)})
      .loose(4);
  op("nn.functional.cosine_embedding_loss", "F.cosine_embedding_loss(a, b, c, -0.9)",
     [](const Tensors& x) { return F::cosine_embedding_loss(x[0], x[1], x[2], -0.9); },
     {real({4, 5}), real({4, 5}), indices({1, -1, -1, 1}, {4})})
      .loose(4);
  op("nn.functional.cosine_similarity", "F.cosine_similarity(a, b)",
     [](const Tensors& x) { return F::cosine_similarity(x[0], x[1]); },
     {real({3, 4}), real({1, 4})})
      .loose(4)
      .big({real({1024, 1024}), real({1024, 1024})});
  op("nn.functional.cosine_similarity", "F.cosine_similarity(a, b, 0, 1.0)",
     [](const Tensors& x) { return F::cosine_similarity(x[0], x[1], 0, 1.0); },
     {values({0, 0, 3, 0.1}, {2, 2}), values({1, 2, 3, 4}, {2, 2})})
      .loose(4);
  op("nn.functional.pairwise_distance", "F.pairwise_distance(a, b, 1.5, keepdim=True)",
     [](const Tensors& x) { return F::pairwise_distance(x[0], x[1], 1.5, 1e-6, true); },
     {real({3, 4}, -2, -1), real({3, 4}, 1, 2)})
      .loose(4);
  op("nn.functional.pairwise_distance", "F.pairwise_distance(a, b)",
     [](const Tensors& x) { return F::pairwise_distance(x[0], x[1]); }, {real({3, 4}), real({4})})
      .loose(4)
      .big({real({1024, 1024}), real({1024, 1024})});
}

KILN_OP_CASES(ctc_loss) {
  const auto loss = [](const Tensor& x, const Tensor& y, const std::vector<int64_t>& steps,
                       const std::vector<int64_t>& sizes, Reduction reduction,
                       bool zero_infinity = false) {
    return F::ctc_loss(x.log_softmax(-1), y, tensor(steps), tensor(sizes), 0, reduction,
                       zero_infinity);
  };
  op("nn.functional.ctc_loss",
     "F.ctc_loss(torch.log_softmax(a, 2), b, (6, 5, 6), (3, 2, 0), reduction='none')",
     [=](const Tensors& x) {
       return loss(x[0], x[1], {6, 5, 6}, {3, 2, 0}, Reduction::none);
     },
     {real({6, 3, 5}), indices({1, 2, 2, 3, 4, 4, 1, 1, 1}, {3, 3})})
      .dtypes(kDoubles)
      .loose(4);
  op("nn.functional.ctc_loss", "F.ctc_loss(torch.log_softmax(a, 2), b, (6, 5), (3, 2))",
     [=](const Tensors& x) {
       return loss(x[0], x[1], {6, 5}, {3, 2}, Reduction::mean);
     },
     {real({6, 2, 5}), indices({1, 2, 2, 3, 4}, {5})})
      .dtypes(kDoubles)
      .loose(4);
  op("nn.functional.ctc_loss",
     "F.ctc_loss(torch.log_softmax(a, 2), b, (3, 4), (3, 2), reduction='sum', zero_infinity=True)",
     [=](const Tensors& x) {
       return loss(x[0], x[1], {3, 4}, {3, 2}, Reduction::sum, true);
     },
     {real({4, 2, 5}), indices({2, 2, 2, 3, 4, 1}, {2, 3})})
      .dtypes(kDoubles)
      .loose(4);
  op("nn.functional.ctc_loss",
     "F.ctc_loss(torch.log_softmax(a, 1), b, torch.tensor(5), torch.tensor(2), reduction='none')",
     [](const Tensors& x) {
       return F::ctc_loss(x[0].log_softmax(-1), x[1], tensor(5), tensor(2), 0, Reduction::none);
     },
     {real({5, 4}), indices({1, 3}, {2})})
      .dtypes(kDoubles)
      .loose(4);
}

KILN_OP_CASES(extra_losses) {
  const char* no_peer = "PyTorch has none";
  op("nn.functional.focal_loss", "F.focal_loss(a, b)",
     [](const Tensors& x) { return F::focal_loss(x[0], x[1]); },
     {real({3, 4}), real({3, 4}, 0.1, 0.9)})
      .dtypes(kDoubles)
      .loose(4)
      .no_peer(no_peer);
  op("nn.functional.focal_loss", "F.focal_loss(a, b, -1, 1.5, 'none')",
     [](const Tensors& x) { return F::focal_loss(x[0], x[1], -1, 1.5, Reduction::none); },
     {real({3, 4}), real({3, 4}, 0.1, 0.9)})
      .dtypes(kDoubles)
      .loose(4)
      .no_peer(no_peer);
  op("nn.functional.dice_loss", "F.dice_loss(a, b, 0.5, 'none')",
     [](const Tensors& x) { return F::dice_loss(x[0], x[1], 0.5, Reduction::none); },
     {real({3, 2, 4}, 0, 1), real({3, 2, 4}, 0, 1)})
      .dtypes(kDoubles)
      .loose(4)
      .no_peer(no_peer);
  op("nn.functional.info_nce_loss", "F.info_nce_loss(a, b)",
     [](const Tensors& x) { return F::info_nce_loss(x[0], x[1]); }, {real({3, 4}), real({3, 4})})
      .dtypes(kDoubles)
      .loose(16)
      .no_peer(no_peer);
  op("nn.functional.info_nce_loss", "F.info_nce_loss(a, b, c, 0.5, 'sum')",
     [](const Tensors& x) { return F::info_nce_loss(x[0], x[1], x[2], 0.5, Reduction::sum); },
     {real({3, 4}), real({3, 4}), real({5, 4})})
      .dtypes(kDoubles)
      .loose(16)
      .no_peer(no_peer);
}

KILN_OP_CASES(rnnt_loss) {
  const char* no_peer = "PyTorch has it in torchaudio only";
  op("nn.functional.rnnt_loss", "F.rnnt_loss(a, b, c, d, 0, reduction='none')",
     [](const Tensors& x) {
       return F::rnnt_loss(x[0], x[1], x[2], x[3], 0, -1.0, Reduction::none);
     },
     {real({3, 4, 4, 5}), indices({1, 2, 2, 3, 4, 0, 1, 0, 0}, {3, 3}), indices({4, 3, 1}, {3}),
      indices({3, 2, 0}, {3})})
      .dtypes(kDoubles)
      .loose(4)
      .no_peer(no_peer);
  op("nn.functional.rnnt_loss", "F.rnnt_loss(a, b, c, d)",
     [](const Tensors& x) { return F::rnnt_loss(x[0], x[1], x[2], x[3]); },
     {real({2, 3, 3, 4}), indices({0, 2, 1, 1}, {2, 2}), indices({3, 3}, {2}),
      indices({2, 2}, {2})})
      .loose(4)
      .no_peer(no_peer);
  op("nn.functional.rnnt_loss", "F.rnnt_loss(a, b, c, d, 2, -1.0, 'sum', False)",
     [](const Tensors& x) {
       return F::rnnt_loss(x[0], x[1], x[2], x[3], 2, -1.0, Reduction::sum, false);
     },
     {real({2, 3, 2, 4}, -3, -1), indices({0, 1}, {2, 1}), indices({3, 2}, {2}),
      indices({1, 1}, {2})})
      .dtypes(kDoubles)
      .loose(4)
      .no_peer(no_peer);
}

}  // namespace kiln::ops
