// Embeddings and bags at their edges.
#include "kiln/tensor/nn/embedding.h"

#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;
using functional::BagMode;

TEST_CASE("max_norm scales the rows that are used, in place") {
  on_devices([](Device device) {
    Tensor w = tensor({{3.0, 4.0}, {3.0, 4.0}, {0.3, 0.4}}, {f64, device});
    const Tensor rows = functional::embedding(tensor({1, 2, 1}, {.device = device}), w, {}, 1.0);
    CHECK(mismatch(rows, {3, 2}, {0.6, 0.8, 0.3, 0.4, 0.6, 0.8}, 1e-6) == "");
    CHECK(mismatch(w, {3, 2}, {3, 4, 0.6, 0.8, 0.3, 0.4}, 1e-6) == "");
  });
}

TEST_CASE("padding_idx has no gradient; scale_grad_by_freq divides it") {
  Tensor w = ones({3, 2}, {f64}).requires_grad_();
  const Tensor index = tensor({0, 1, 1, 2});
  CHECK(mismatch(*w.grad(functional::embedding(index, w, 1).sum().backward()), {3, 2},
                 {1, 1, 0, 0, 1, 1}) == "");
  CHECK(mismatch(*w.grad(functional::embedding(index, w, {}, {}, 2.0, true).sum().backward()),
                 {3, 2}, {1, 1, 1, 1, 1, 1}) == "");
}

TEST_CASE("empty bags give zeros") {
  on_devices([](Device device) {
    const Tensor w = ones({3, 2}, {f32, device});
    const Tensor none = zeros({0}, {i64, device}), starts = zeros({2}, {i64, device});
    for (const BagMode mode : {BagMode::sum, BagMode::mean, BagMode::max}) {
      functional::EmbeddingBagOptions options;
      options.mode = mode;
      CHECK(mismatch(functional::embedding_bag(none, w, starts, options), {2, 2}, {0, 0, 0, 0}) ==
            "");
      options.padding_idx = -2;
      const Tensor padded =
          functional::embedding_bag(tensor({{1, 1}, {1, 2}}, {.device = device}), w, {}, options);
      CHECK(mismatch(padded, {2, 2}, {0, 0, 1, 1}) == "");
    }
  });
}

TEST_CASE("embeddings: what does not fit") {
  using functional::embedding_bag;
  const Tensor w = zeros({3, 2}), index = tensor({0, 1});
  CHECK(error_lacks<IndexError>([&] { embedding_bag(tensor({{0, 3}}), w); }, {"3"}) == "");
  CHECK(error_lacks<IndexError>([&] { functional::embedding(tensor({-1}), w, 0); }, {"-1"}) == "");
  CHECK(error_lacks<ValueError>([&] { embedding_bag(index, w); }, {"offsets"}) == "");
  CHECK(error_lacks<ValueError>(
            [&] {
              embedding_bag(index, w, tensor({0, 3}));
            },
            {"offsets"}) == "");
  CHECK(error_lacks<ValueError>([&] { embedding_bag(index, w, tensor({1})); }, {"start at 0"}) ==
        "");
  CHECK(error_lacks<ValueError>([&] { embedding_bag(tensor({{0}}), w, tensor({0})); },
                                {"no offsets"}) == "");
  CHECK(error_lacks<DTypeError>([&] { embedding_bag(w, w); }, {"embedding_bag"}) == "");
}
