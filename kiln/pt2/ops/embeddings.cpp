// Rows of tables.
#include "kiln/pt2/ops/forms.h"
#include "kiln/tensor/nn/embedding.h"

namespace kiln::pt2 {

namespace {

// The format writes -1 where no row is left out.
std::optional<int64_t> padding_of(Call& c) {
  const auto row = c.maybe_i("padding_idx");
  return row && *row != -1 ? row : std::nullopt;
}
void embedding_of(Call& c) {
  c.out(functional::embedding(c.t("indices"), c.t("weight"), padding_of(c), {}, 2.0,
                              c.b("scale_grad_by_freq", false)));
}
void embedding_bag_of(Call& c) {
  functional::EmbeddingBagOptions options;
  options.scale_grad_by_freq = c.b("scale_grad_by_freq", false);
  const int64_t mode = c.i("mode", 0);
  if (mode < 0 || mode > 2) c.fail(concat("mode ", mode, "; expected 0, 1 or 2"));
  options.mode = mode == 0   ? functional::BagMode::sum
                 : mode == 1 ? functional::BagMode::mean
                             : functional::BagMode::max;
  options.per_sample_weights = c.maybe("per_sample_weights");
  options.include_last_offset = c.b("include_last_offset", false);
  options.padding_idx = padding_of(c);
  c.out(functional::embedding_bag(c.t("indices"), c.t("weight"), c.t("offsets"), options));
  for (size_t i = 1; i < c.outputs(); ++i) c.out(Value{});  // what a backward pass keeps
}
void one_hot_of(Call& c) { c.out(one_hot(c.x(), c.i("num_classes", -1))); }

constexpr Operator kEmbeddingsOperators[] = {
    {"embedding", "default", embedding_of},
    {"embedding_bag", "default padding_idx", embedding_bag_of},
    {"_embedding_bag", "default", embedding_bag_of},
    {"_embedding_bag_forward_only", "default", embedding_bag_of},
    {"one_hot", "default", one_hot_of},
};

}  // namespace

std::span<const Operator> embedding_operators() { return kEmbeddingsOperators; }

}  // namespace kiln::pt2
