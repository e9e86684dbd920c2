// Losses at their edges, and what does not fit. Values are compared in tests/ops.
#include <cmath>
#include <limits>

#include "kiln/tensor/nn/ctc_loss.h"
#include "kiln/tensor/nn/losses.h"
#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;
using functional::Reduction;

TEST_CASE("large logits cost what they should") {
  const Tensor x = tensor({1000.0, -1000.0}), y = tensor({0.0, 1.0});
  CHECK(mismatch(functional::binary_cross_entropy_with_logits(x, y, {}, Reduction::none), {2},
                 {1000, 1000}) == "");
  CHECK(mismatch(functional::soft_margin_loss(x, tensor({-1.0, 1.0}), Reduction::none), {2},
                 {1000, 1000}) == "");
}

TEST_CASE("gradients at the corners are finite") {
  Tensor p = tensor({0.0, 1.0, 0.5}).requires_grad_();
  const Tensor loss = functional::binary_cross_entropy(p, tensor({0.0, 1.0, 1.0}));
  CHECK(p.grad(loss.backward())->isfinite().all().item<bool>());
  Tensor a = ones({2, 3}).requires_grad_();
  const Tensor distance = functional::pairwise_distance(a, ones({2, 3}), 2.0, 0.0).sum();
  CHECK(mismatch(*a.grad(distance.backward()), {2, 3}, {0, 0, 0, 0, 0, 0}) == "");
  Tensor v = zeros({1, 3}).requires_grad_();
  const Tensor cosine = functional::cosine_similarity(v, ones({1, 3})).sum();
  CHECK(v.grad(cosine.backward())->isfinite().all().item<bool>());
}

TEST_CASE("ctc_loss: by hand, and targets that fit no alignment") {
  on_devices([](Device device) {
    // Two steps, classes blank, a, b, each with probability 1/3: "a" is aa, a_, _a.
    const double third = std::log(1.0 / 3.0);
    const Tensor x = full({2, 1, 3}, third, {f64, device});
    const Tensor a = tensor({1}, {i64, device}).reshape({1, 1});
    const auto loss = [&](const Tensor& targets, int64_t size, bool zero = false) {
      return functional::ctc_loss(x, targets, tensor(std::vector<int64_t>{2}, {.device = device}),
                                  tensor(std::vector<int64_t>{size}, {.device = device}), 0,
                                  Reduction::sum, zero);
    };
    CHECK(loss(a, 1).item() == doctest::Approx(-std::log(3.0 / 9.0)));
    CHECK(loss(a, 0).item() == doctest::Approx(-std::log(1.0 / 9.0)));
    const Tensor aa = tensor({1, 1}, {i64, device}).reshape({1, 2});  // needs a blank between
    CHECK(loss(aa, 2).item() == std::numeric_limits<double>::infinity());
    CHECK(loss(aa, 2, true).item() == 0.0);
  });
}

TEST_CASE("losses: what does not fit") {
  using namespace functional;
  const Tensor x = zeros({2, 3});
  CHECK(error_lacks<ShapeError>([&] { l1_loss(x, zeros({2, 2})); }, {"l1_loss"}) == "");
  CHECK(error_lacks<ShapeError>([&] { binary_cross_entropy(x, zeros({3})); }, {"one shape"}) == "");
  CHECK(error_lacks<ValueError>([&] { binary_cross_entropy(x + 2, x); }, {"[0, 1]", "2"}) == "");
  CHECK(error_lacks<ShapeError>([&] { nll_loss(x, zeros({3}, {i64})); }, {"nll_loss", "[2]"}) ==
        "");
  CHECK(error_lacks<IndexError>([&] { nll_loss(x, full({2}, 3)); }, {"nll_loss"}) == "");
  CHECK(error_lacks<ValueError>([&] { multi_margin_loss(x, zeros({2}, {i64}), 3); }, {"p = 1"}) ==
        "");
  CHECK(error_lacks<ValueError>([&] { huber_loss(x, x, Reduction::mean, 0.0); }, {"delta"}) == "");
  CHECK(error_lacks<ValueError>([&] { gaussian_nll_loss(x, x, x - 1); }, {"negative"}) == "");
  CHECK(error_lacks<ValueError>([&] { triplet_margin_loss(x, x, x, 0.0); }, {"margin"}) == "");
  CHECK(error_lacks<DTypeError>([&] { l1_loss(x.to(i64), x.to(i64)); }, {"l1_loss"}) == "");
  const Tensor steps = full({2}, 4), sizes = full({2}, 1);
  const Tensor log_probs = zeros({4, 2, 3});
  const auto ctc = [&](const Tensor& targets, const Tensor& ends, int64_t blank) {
    return functional::ctc_loss(log_probs, targets, ends, sizes, blank);
  };
  const Tensor labels = ones({2, 1}, {i64});
  CHECK(error_lacks<ValueError>([&] { ctc(labels + 2, steps, 0); }, {"ctc_loss", "3"}) == "");
  CHECK(error_lacks<ValueError>([&] { ctc(labels, steps + 1, 0); }, {"input_lengths", "5"}) == "");
  CHECK(error_lacks<ValueError>([&] { ctc(labels, steps, 3); }, {"blank"}) == "");
  CHECK(error_lacks<ShapeError>([&] { ctc(ones({3}, {i64}), steps, 0); }, {"targets"}) == "");
}
