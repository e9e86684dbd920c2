// Losses.
#include "kiln/tensor/nn/losses.h"

#include "kiln/pt2/ops/forms.h"
#include "kiln/tensor/nn/ctc_loss.h"
#include "kiln/tensor/reduce/cumulative.h"

namespace kiln::pt2 {

namespace {

using functional::Reduction;

Reduction reduction(Call& c) {
  const int64_t number = c.i("reduction", 1);
  if (number < 0 || number > 2) c.fail(concat("reduction ", number, "; expected 0, 1 or 2"));
  return number == 0 ? Reduction::none : number == 1 ? Reduction::mean : Reduction::sum;
}

void mse(Call& c) { c.out(functional::mse_loss(c.x(), c.t("target"), reduction(c))); }
void l1(Call& c) { c.out(functional::l1_loss(c.x(), c.t("target"), reduction(c))); }
void smooth_l1(Call& c) {
  c.out(functional::smooth_l1_loss(c.x(), c.t("target"), reduction(c), c.f("beta", 1.0)));
}
void huber(Call& c) {
  c.out(functional::huber_loss(c.x(), c.t("target"), reduction(c), c.f("delta", 1.0)));
}
void nll(Call& c) {
  const Tensor target = c.t("target"), weight = c.maybe("weight");
  const int64_t ignored = c.i("ignore_index", -100);
  c.out(functional::nll_loss(c.x(), target, weight, ignored, reduction(c)));
  if (c.outputs() < 2) return;
  if (!c.needs(1)) return c.out(Value{});
  const Tensor counts = target.ne(ignored);
  if (!weight.defined()) return c.out(counts.sum().to(c.x().dtype()));
  const Tensor classes = target.masked_fill(counts.logical_not(), 0).reshape({-1});
  c.out(weight.index_select(0, classes).mul(counts.reshape({-1})).sum());
}
void cross_entropy_of(Call& c) {
  functional::CrossEntropyLossOptions options;
  options.weight = c.maybe("weight");
  options.ignore_index = c.i("ignore_index", -100);
  options.reduction = reduction(c);
  options.label_smoothing = c.f("label_smoothing", 0.0);
  c.out(functional::cross_entropy(c.x(), c.t("target"), options));
}
void bce(Call& c) {
  c.out(functional::binary_cross_entropy(c.x(), c.t("target"), c.maybe("weight"), reduction(c)));
}
void bce_with_logits(Call& c) {
  c.out(functional::binary_cross_entropy_with_logits(c.x(), c.t("target"), c.maybe("weight"),
                                                     reduction(c), c.maybe("pos_weight")));
}
void kl_div_of(Call& c) {
  c.out(functional::kl_div(c.x(), c.t("target"), reduction(c), c.b("log_target", false)));
}
void poisson_nll(Call& c) {
  c.out(functional::poisson_nll_loss(c.x(), c.t("target"), c.b("log_input"), c.b("full"),
                                     c.f("eps"), reduction(c)));
}
void hinge_embedding(Call& c) {
  c.out(functional::hinge_embedding_loss(c.x(), c.t("target"), c.f("margin", 1.0), reduction(c)));
}
void margin_ranking(Call& c) {
  c.out(functional::margin_ranking_loss(c.x(), c.t("input2"), c.t("target"), c.f("margin", 0.0),
                                        reduction(c)));
}
void multi_margin(Call& c) {
  c.out(functional::multi_margin_loss(c.x(), c.t("target"), c.scalar("p", 1).to_int(),
                                      c.f("margin", 1.0), c.maybe("weight"), reduction(c)));
}
void multilabel_margin(Call& c) {
  const Tensor x = c.x(), target = c.t("target");
  c.out(functional::multilabel_margin_loss(x, target, reduction(c)));
  if (c.outputs() < 2) return;
  if (!c.needs(1)) return c.out(Value{});
  // 1 at the classes that a row names before its first -1.
  const Tensor named = cumprod(target.ge(0).to(DType::i64), -1);
  const Tensor count = kiln::zeros_like(target).scatter_add(-1, target.mul(named), named);
  c.out(count.gt(0).to(x.dtype()));
}
void soft_margin(Call& c) {
  c.out(functional::soft_margin_loss(c.x(), c.t("target"), reduction(c)));
}
void triplet(Call& c) {
  c.out(functional::triplet_margin_loss(c.x(), c.t("positive"), c.t("negative"), c.f("margin", 1.0),
                                        c.f("p", 2.0), c.f("eps", 1e-6), c.b("swap", false),
                                        reduction(c)));
}
void cosine_embedding(Call& c) {
  c.out(functional::cosine_embedding_loss(c.x(), c.t("input2"), c.t("target"), c.f("margin", 0.0),
                                          reduction(c)));
}
// Lengths are a tensor, or numbers.
Tensor lengths(Call& c, const char* name) {
  if (c.value(name).tensor() != nullptr) return c.t(name);
  const auto numbers = c.maybe_floats(name);
  std::vector<int64_t> out;
  if (numbers) {
    for (const double n : *numbers) out.push_back(Scalar(n).to_int());
  }
  return tensor(out);
}
void ctc(Call& c) {
  c.out(functional::ctc_loss(c.x(), c.t("targets"), lengths(c, "input_lengths"),
                             lengths(c, "target_lengths"), c.i("blank", 0), reduction(c),
                             c.b("zero_infinity", false)));
}
void cosine_similarity_of(Call& c) {
  c.out(functional::cosine_similarity(c.t("x1"), c.t("x2"), c.i("dim", 1), c.f("eps", 1e-8)));
}
void pairwise_distance_of(Call& c) {
  c.out(functional::pairwise_distance(c.t("x1"), c.t("x2"), c.f("p", 2.0), c.f("eps", 1e-6),
                                      c.b("keepdim", false)));
}

constexpr Operator kLossesOperators[] = {
    {"mse_loss", "default", mse},
    {"l1_loss", "default", l1},
    {"smooth_l1_loss", "default", smooth_l1},
    {"huber_loss", "default", huber},
    {"nll_loss", "default", nll},
    {"nll_loss_nd", "default", nll},
    {"nll_loss2d", "default", nll},
    {"nll_loss_forward", "default", nll},
    {"nll_loss2d_forward", "default", nll},
    {"cross_entropy_loss", "default", cross_entropy_of},
    {"binary_cross_entropy", "default", bce},
    {"binary_cross_entropy_with_logits", "default", bce_with_logits},
    {"kl_div", "default", kl_div_of},
    {"poisson_nll_loss", "default", poisson_nll},
    {"hinge_embedding_loss", "default", hinge_embedding},
    {"margin_ranking_loss", "default", margin_ranking},
    {"multi_margin_loss", "default", multi_margin},
    {"multilabel_margin_loss", "default", multilabel_margin},
    {"multilabel_margin_loss_forward", "default", multilabel_margin},
    {"soft_margin_loss", "default", soft_margin},
    {"triplet_margin_loss", "default", triplet},
    {"cosine_embedding_loss", "default", cosine_embedding},
    {"ctc_loss", "Tensor IntList", ctc},
    {"cosine_similarity", "default", cosine_similarity_of},
    {"pairwise_distance", "default", pairwise_distance_of},
};

}  // namespace

std::span<const Operator> loss_operators() { return kLossesOperators; }

}  // namespace kiln::pt2
