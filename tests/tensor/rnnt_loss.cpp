// rnnt_loss against the sum over all alignments, one by one.
#include <cmath>
#include <functional>

#include <doctest/doctest.h>

#include "tests/support/near.h"
#include <kiln/kiln.h>

using namespace kiln;
using namespace kiln::test;
namespace F = kiln::functional;

namespace {

// -log of the sum of the probabilities of all paths of blanks and labels through T steps.
double all_alignments(const Tensor& log_probs, const std::vector<int64_t>& target, int64_t steps,
                      int64_t blank) {
  const int64_t labels = static_cast<int64_t>(target.size());
  const std::function<double(int64_t, int64_t)> from = [&](int64_t t, int64_t u) -> double {
    if (t == steps) return u == labels ? 1.0 : 0.0;
    const auto p = [&](int64_t c) { return std::exp(log_probs[t][u][c].item()); };
    double sum = p(blank) * from(t + 1, u);
    if (u < labels) sum += p(target[static_cast<size_t>(u)]) * from(t, u + 1);
    return sum;
  };
  return -std::log(from(0, 0));
}

Tensor targets() { return tensor({{1, 2, 2}, {3, 0, 0}, {0, 0, 0}}); }
Tensor steps() { return tensor({4, 3, 2}); }
Tensor sizes() { return tensor({3, 1, 0}); }

}  // namespace

TEST_CASE("rnnt_loss: the sum over all alignments") {
  const Tensor x = pattern({3, 4, 4, 5}, 7, 23, 5.0);
  const Tensor p = x.log_softmax(3);
  const std::vector<std::vector<int64_t>> labels = {{1, 2, 2}, {3}, {}};
  std::vector<double> expected;
  for (int64_t n = 0; n < 3; ++n) {
    expected.push_back(
        all_alignments(p[n], labels[static_cast<size_t>(n)], steps()[n].item<int64_t>(), 4));
  }
  const auto reduced = [&](F::Reduction reduction) {
    return F::rnnt_loss(x, targets(), steps(), sizes(), -1, -1.0, reduction);
  };
  CHECK(near(reduced(F::Reduction::none), expected, 1e-12));
  const double sum = expected[0] + expected[1] + expected[2];
  CHECK(near(reduced(F::Reduction::sum), {sum}, 1e-12));
  CHECK(near(reduced(F::Reduction::mean), {sum / 3}, 1e-12));
  CHECK(near(F::rnnt_loss(x, targets(), steps(), sizes(), 4), {sum / 3}, 1e-12));
  CHECK(near(F::rnnt_loss(p, targets(), steps(), sizes(), -1, -1.0, F::Reduction::sum, false),
             {sum}, 1e-12));
  CHECK(near(F::rnnt_loss(x.to(f32), targets().to(i32), steps().to(i32), sizes().to(i32)),
             {sum / 3}, 1e-5));
  nn::RNNTLoss loss({.blank = 4, .reduction = F::Reduction::none});
  CHECK(near(loss(x, targets(), steps(), sizes()), expected, 1e-12));
}

TEST_CASE("rnnt_loss: the gradient is zero outside of the lengths, and may be clamped") {
  const Tensor start = pattern({3, 4, 4, 5}, 7, 23, 5.0);
  const auto slope = [&](double clamp) {
    Tensor x = start.clone().requires_grad_();
    F::rnnt_loss(x, targets(), steps(), sizes(), 4, clamp, F::Reduction::sum).backward_accumulate();
    return x.grad();
  };
  const Tensor g = slope(-1.0);
  CHECK(g[1].slice(0, 3).abs().sum().item() == 0.0);
  CHECK(g[2].slice(1, 1).abs().sum().item() == 0.0);
  CHECK(near(g.sum(3), std::vector<double>(48, 0.0), 1e-12));  // softmax: shifts change nothing
  CHECK(slope(0.1).allclose(g.clamp(-0.1, 0.1)));
  Tensor x = start.clone().requires_grad_();
  const Tensor loss = F::rnnt_loss(x, targets(), steps(), sizes(), 4, 0.1, F::Reduction::sum);
  CHECK(grad({loss}, {x}, {.create_graph = true})[0].allclose(g.clamp(-0.1, 0.1)));
}

TEST_CASE("rnnt_loss: what does not fit") {
  const Tensor x = zeros({3, 4, 4, 5});
  CHECK_THROWS_AS(F::rnnt_loss(x[0], targets(), steps(), sizes()), ShapeError);
  CHECK_THROWS_AS(F::rnnt_loss(x.to(i64), targets(), steps(), sizes()), DTypeError);
  CHECK_THROWS_AS(F::rnnt_loss(x, targets().slice(1, 1), steps(), sizes()), ShapeError);
  CHECK_THROWS_AS(F::rnnt_loss(x, targets(), steps().slice(0, 1), sizes()), ShapeError);
  CHECK_THROWS_AS(F::rnnt_loss(x, targets().to(f32), steps(), sizes()), DTypeError);
  CHECK_THROWS_AS(F::rnnt_loss(x, targets(), steps() + 1, sizes()), ValueError);
  CHECK_THROWS_AS(F::rnnt_loss(x, targets(), steps() * 0, sizes()), ValueError);
  CHECK_THROWS_AS(F::rnnt_loss(x, targets(), steps(), sizes() + 1), ValueError);
  CHECK_THROWS_AS(F::rnnt_loss(x, targets(), steps(), sizes(), 5), ValueError);
  CHECK_THROWS_AS(F::rnnt_loss(x, targets(), steps(), sizes(), 1), ValueError);  // 1 is a target
}
