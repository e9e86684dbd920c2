// Normalization, embeddings and attention.
#include "tests/ops/case.h"

namespace kiln::ops {

namespace F = kiln::functional;

KILN_OP_CASES(normalization) {
  op("nn.functional.batch_norm", "F.batch_norm(a, None, None, b, c, True)",
     [](const Tensors& x) { return F::batch_norm(x[0], {}, {}, x[1], x[2], true); },
     {real({2, 3, 4}), real({3}), real({3})})
      .dtypes(kDoubles);
  op("nn.functional.batch_norm", "F.batch_norm(a, b, c, None, None, False, 0.1, 1e-3)",
     [](const Tensors& x) { return F::batch_norm(x[0], x[1], x[2], {}, {}, false, 0.1, 1e-3); },
     {real({4, 3}), constant({3}), constant({3}, 0.5, 2)})
      .dtypes(kDoubles);
  op("nn.functional.batch_norm", "F.batch_norm(a, None, None, None, None, True)",
     [](const Tensors& x) { return F::batch_norm(x[0], {}, {}, {}, {}, true); },
     {real({2, 3, 2, 2, 2})})
      .dtypes(kDoubles);
  op("nn.functional.instance_norm", "F.instance_norm(a, None, None, b, c)",
     [](const Tensors& x) { return F::instance_norm(x[0], {}, {}, x[1], x[2]); },
     {real({2, 3, 2, 3}), real({3}), real({3})})
      .dtypes(kDoubles)
      .big({real({8, 64, 48, 48}), real({64}), real({64})});
  op("nn.functional.instance_norm", "F.instance_norm(a, b, c, use_input_stats=False)",
     [](const Tensors& x) { return F::instance_norm(x[0], x[1], x[2], {}, {}, false); },
     {real({2, 3, 4}), constant({3}), constant({3}, 0.5, 2)})
      .dtypes(kDoubles);
  op("nn.functional.group_norm", "F.group_norm(a, 2, b, c)",
     [](const Tensors& x) { return F::group_norm(x[0], 2, x[1], x[2]); },
     {real({2, 4, 3, 2}), real({4}), real({4})})
      .loose(2)
      .big({real({8, 64, 48, 48}), real({64}), real({64})});
  op("nn.functional.group_norm", "F.group_norm(a, 3, eps=1e-2)",
     [](const Tensors& x) { return F::group_norm(x[0], 3, {}, {}, 1e-2); }, {real({2, 6})})
      .loose(2);
  op("nn.functional.layer_norm", "F.layer_norm(a, a.shape[-1:], b, c)",
     [](const Tensors& x) { return F::layer_norm(x[0], {x[0].size(-1)}, x[1], x[2]); },
     {real({2, 3, 4}), real({4}), real({4})})
      .loose(2)
      .big({real({1024, 1024}), real({1024}), real({1024})});
  op("nn.functional.rms_norm", "F.rms_norm(a, a.shape[-1:], b)",
     [](const Tensors& x) { return F::rms_norm(x[0], {x[0].size(-1)}, x[1]); },
     {real({2, 3, 4}), real({4})})
      .loose(2)
      .big({real({1024, 1024}), real({1024})});
  op("nn.functional.rms_norm", "F.rms_norm(a, (3, 4), None, 1e-3)",
     [](const Tensors& x) {
       return F::rms_norm(x[0], {3, 4}, {}, 1e-3);
     },
     {real({2, 3, 4})})
      .loose(2);
  op("nn.functional.rms_norm", "F.rms_norm(a, (4,), b)",
     [](const Tensors& x) { return F::rms_norm(x[0], {4}, x[1]); },
     {complex_({2, 4}), complex_({4})})
      .dtypes(kComplex)
      .gradient_tolerance(1e-5);
  op("nn.functional.local_response_norm", "F.local_response_norm(a, 3, 0.5, 0.75, 1.5)",
     [](const Tensors& x) { return F::local_response_norm(x[0], 3, 0.5, 0.75, 1.5); },
     {real({2, 5, 3, 2})})
      .dtypes(kDoubles)
      .big({real({8, 64, 48, 48})});
  op("nn.functional.local_response_norm", "F.local_response_norm(a, 2, 0.5)",
     [](const Tensors& x) { return F::local_response_norm(x[0], 2, 0.5); }, {real({2, 5, 3})})
      .dtypes(kDoubles);
  op("nn.functional.normalize", "F.normalize(a)",
     [](const Tensors& x) { return F::normalize(x[0]); }, {real({3, 4})})
      .loose(2)
      .big({real({1024, 1024})});
  op("nn.functional.normalize", "F.normalize(a, 1.0, 0)",
     [](const Tensors& x) { return F::normalize(x[0], 1.0, {0}); }, {real({3, 4}).away_from(0)})
      .loose(2);
  op("nn.functional.normalize", "F.normalize(a, 3.0, -1, 10.0)",
     [](const Tensors& x) { return F::normalize(x[0], 3.0, {-1}, 10.0); },
     {real({3, 4}).away_from(0)})
      .loose(2);
  op("nn.functional.normalize", "F.normalize(a)",
     [](const Tensors& x) { return F::normalize(x[0]); }, {values({0, 0, 3, 4}, {2, 2})});
}

KILN_OP_CASES(embedding) {
  op("nn.functional.embedding", "F.embedding(a, b)",
     [](const Tensors& x) { return F::embedding(x[0], x[1]); }, {index({2, 3}, 0, 5), real({5, 4})})
      .big({index({4096}, 0, 1000), real({1000, 256})});
  op("nn.functional.embedding", "F.embedding(a, b)",
     [](const Tensors& x) { return F::embedding(x[0], x[1]); },
     {index({2, 3}, 0, 5), constant({5, 4}, -9, 9)})
      .dtypes(kIntsAndBool);
  op("nn.functional.embedding", "F.embedding(a, b, 1)",
     [](const Tensors& x) { return F::embedding(x[0], x[1], 1); },
     {indices({0, 1, 1, 3, 4, 1}, {2, 3}), real({5, 4})})
      .no_gradient("the row padding_idx has none by definition");
  op("nn.functional.embedding", "F.embedding(a, b.clone(), None, 1.5, 2.0)",
     [](const Tensors& x) { return F::embedding(x[0], x[1].clone(), {}, 1.5, 2.0); },
     {indices({0, 1, 1, 3}, {4}), constant({5, 4})})
      .loose(2);
  op("nn.functional.embedding", "F.embedding(a, b, scale_grad_by_freq=True)",
     [](const Tensors& x) { return F::embedding(x[0], x[1], {}, {}, 2.0, true); },
     {indices({0, 1, 1, 3}, {4}), real({5, 4})})
      .no_gradient("it is scaled by definition");
  const auto bag = [](F::BagMode mode) {
    F::EmbeddingBagOptions options;
    options.mode = mode;
    return options;
  };
  op("nn.functional.embedding_bag", "F.embedding_bag(a, b)",
     [](const Tensors& x) { return F::embedding_bag(x[0], x[1]); },
     {index({3, 4}, 0, 5), real({5, 2})})
      .loose(2)
      .big({index({2048, 8}, 0, 10000), real({10000, 64})});
  std::vector<double> every_eighth;
  for (int i = 0; i < 16384; i += 8) every_eighth.push_back(i);
  const Input starts = indices(every_eighth, {2048});
  op("nn.functional.embedding_bag", "F.embedding_bag(a, b, c, mode='sum')",
     [=](const Tensors& x) { return F::embedding_bag(x[0], x[1], x[2], bag(F::BagMode::sum)); },
     {index({7}, 0, 5), real({5, 2}), indices({0, 2, 2, 5}, {4})})
      .loose(2)
      .big({index({16384}, 0, 10000), real({10000, 64}), starts});
  op("nn.functional.embedding_bag", "F.embedding_bag(a, b, c, mode='max')",
     [=](const Tensors& x) { return F::embedding_bag(x[0], x[1], x[2], bag(F::BagMode::max)); },
     {index({7}, 0, 5), real({5, 2}), indices({0, 2, 2, 5}, {4})})
      .big({index({16384}, 0, 10000), real({10000, 64}), starts});
  op("nn.functional.embedding_bag",
     "F.embedding_bag(a, b, c, mode='mean', include_last_offset=True, padding_idx=1)",
     [](const Tensors& x) {
       F::EmbeddingBagOptions options;
       options.include_last_offset = true;
       options.padding_idx = 1;
       return F::embedding_bag(x[0], x[1], x[2], options);
     },
     {indices({0, 1, 1, 1, 3, 2, 1}, {7}), real({5, 2}), indices({0, 2, 4, 7}, {4})})
      .loose(2);
  op("nn.functional.embedding_bag", "F.embedding_bag(a, b, mode='sum', per_sample_weights=c)",
     [=](const Tensors& x) {
       F::EmbeddingBagOptions options = bag(F::BagMode::sum);
       options.per_sample_weights = x[2];
       return F::embedding_bag(x[0], x[1], {}, options);
     },
     {index({3, 4}, 0, 5), real({5, 2}), real({3, 4})})
      .loose(4);
}

KILN_OP_CASES(attention) {
  op("nn.functional.scaled_dot_product_attention", "F.scaled_dot_product_attention(a, b, c)",
     [](const Tensors& x) { return F::scaled_dot_product_attention(x[0], x[1], x[2]); },
     {real({2, 3, 4}), real({2, 5, 4}), real({2, 5, 3})})
      .loose(4);
  op("nn.functional.scaled_dot_product_attention",
     "F.scaled_dot_product_attention(a, b, c, is_causal=True, scale=0.3)",
     [](const Tensors& x) {
       return F::scaled_dot_product_attention(x[0], x[1], x[2], {}, 0.0, true, 0.3);
     },
     {real({1, 2, 4, 4}), real({1, 2, 4, 4}), real({1, 2, 4, 4})})
      .loose(4);
  op("nn.functional.scaled_dot_product_attention",
     "F.scaled_dot_product_attention(a, b, c, d, enable_gqa=True)",
     [](const Tensors& x) {
       return F::scaled_dot_product_attention(x[0], x[1], x[2], x[3], 0.0, false, {}, true);
     },
     {real({1, 4, 3, 4}), real({1, 2, 5, 4}), real({1, 2, 5, 4}), real({3, 5})})
      .loose(4);
}

}  // namespace kiln::ops
