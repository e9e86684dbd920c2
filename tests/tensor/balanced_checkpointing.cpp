// Balanced checkpointing gives the same gradients and keeps less.
#include <functional>

#include "kiln/core/allocator.h"
#include "kiln/core/error.h"
#include "kiln/nn/nn.h"
#include "kiln/tensor/autograd/checkpoint.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/elementwise/special.h"
#include "kiln/tensor/nn/activations.h"
#include "tests/support/tensor_check.h"

namespace kiln::test {
namespace {

using autograd::BalancedCheckpointingGuard;
using Unary = std::function<Tensor(const Tensor&)>;

// Everything that a recipe knows, one op at a time: gradients to the second order.
TEST_CASE("balanced checkpointing: the same gradients, bit for bit") {
  const std::vector<Unary> ops = {
      [](const Tensor& x) { return x.exp(); },
      [](const Tensor& x) { return x.sin(); },
      [](const Tensor& x) { return x.tanh(); },
      [](const Tensor& x) { return x.sigmoid(); },
      [](const Tensor& x) { return x.sqrt(); },
      [](const Tensor& x) { return x.log(); },
      [](const Tensor& x) { return x.erf(); },
      [](const Tensor& x) { return special::erfc(x); },
      [](const Tensor& x) { return relu(x); },
      [](const Tensor& x) { return silu(x); },
      [](const Tensor& x) { return gelu(x); },
      [](const Tensor& x) { return gelu(x, "tanh"); },
      [](const Tensor& x) { return x.clamp(0.4, 0.9); },
      [](const Tensor& x) { return x.pow(2.5); },
      [](const Tensor& x) { return x * x.exp(); },
      [](const Tensor& x) { return x / x.cosh(); },
  };
  on_devices([&](Device device) {
    const Tensor x = tensor({0.3, 0.5, 0.8, 1.4}, {f64, device}).requires_grad_();
    const Tensor w = tensor({1.0, -2.0, 0.5, 3.0}, {f64, device}).requires_grad_();
    for (size_t i = 0; i < ops.size(); ++i) {
      CAPTURE(i);
      const auto gradients = [&] {
        // What consumes the result saves it; the op's own formula may do so too.
        const Tensor y = ops[i](x);
        const std::vector<Tensor> first = grad({(y * w * y).sum()}, {x, w}, {.create_graph = true});
        std::vector<Tensor> all =
            grad({(first[0] * first[0]).sum()}, {x, w}, {.retain_graph = true});
        all.push_back(first[0]);
        all.push_back(first[1]);
        return all;
      };
      const std::vector<Tensor> plain = gradients();
      const BalancedCheckpointingGuard guard;
      const std::vector<Tensor> balanced = gradients();
      for (size_t k = 0; k < plain.size(); ++k) CHECK(plain[k].equal(balanced[k]));
    }
  });
}

std::vector<Tensor> gradients_of(const Tensor& y, const std::vector<Tensor>& inputs) {
  return grad(std::span<const Tensor>(&y, 1), inputs);
}

int64_t bytes_in_use() { return static_cast<int64_t>(memory_stats().bytes_in_use); }

TEST_CASE("balanced checkpointing: activations between layers are not kept") {
  constexpr int64_t kBytes = 256 * 256 * 4;
  const Tensor x = randn({256, 256});
  std::vector<Tensor> weights;
  for (int i = 0; i < 4; ++i) weights.push_back(randn({256, 256}).requires_grad_());
  const auto forward = [&] {
    Tensor y = x;
    for (const Tensor& w : weights) y = gelu(y.matmul(w));
    return y.sum();
  };
  // For each layer the product, which gelu saves; and its result, which the next layer saves.
  const auto kept = [&] {
    const int64_t before = bytes_in_use();
    const Tensor loss = forward();
    return static_cast<double>(bytes_in_use() - before) / kBytes;
  };
  CHECK(kept() >= 6.9);
  const std::vector<Tensor> plain = gradients_of(forward(), weights);
  const BalancedCheckpointingGuard guard;
  CHECK(kept() <= 4.5);
  const std::vector<Tensor> balanced = gradients_of(forward(), weights);
  for (size_t i = 0; i < weights.size(); ++i) CHECK(plain[i].equal(balanced[i]));
}

TEST_CASE("balanced checkpointing: a long chain keeps some of its results, and ends") {
  const auto chain = [](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 6000; ++i) y = y.sin();
    return y.sum();
  };
  const Tensor x = rand({1000}).requires_grad_();
  int64_t before = bytes_in_use();
  Tensor y = chain(x);
  const int64_t plain_bytes = bytes_in_use() - before;
  const Tensor plain = grad({y}, {x})[0];
  const BalancedCheckpointingGuard guard;
  y = Tensor();
  before = bytes_in_use();
  y = chain(x);
  CHECK(bytes_in_use() - before < plain_bytes / 4);
  CHECK(grad({y}, {x})[0].equal(plain));
}

TEST_CASE("balanced checkpointing: graphs that are freed, used twice, or written to") {
  Tensor x = tensor({0.3, 0.7}, {f64}).requires_grad_();
  Tensor w = tensor({1.0, 2.0}, {f64}).requires_grad_();
  const BalancedCheckpointingGuard guard;
  // A pass that frees the exponential leaves the product's other gradient computable.
  const Tensor y = x.exp();
  const Tensor product = y * w;
  grad({y.sum()}, {x});
  CHECK(grad({product.sum()}, {w})[0].equal(x.detach().exp()));

  const Tensor twice = (x.exp() * w).sum();
  const auto first = grad({twice}, {x, w}, {.retain_graph = true});
  const auto second = grad({twice}, {x, w});
  for (int i = 0; i < 2; ++i) CHECK(first[i].equal(second[i]));
  CHECK_THROWS_AS(grad({twice}, {x}), AutodiffError);

  Tensor base = x * 2.0;
  const Tensor loss = (base.exp() * w).sum();
  base.add_(1.0);  // what the exponential would be computed from
  CHECK_THROWS_WITH_AS(grad({loss}, {w}), doctest::Contains("mul"), AutodiffError);
}

TEST_CASE("balanced checkpointing: a setting of the thread") {
  CHECK_FALSE(autograd::is_balanced_checkpointing());
  {
    const BalancedCheckpointingGuard on;
    CHECK(autograd::is_balanced_checkpointing());
    const BalancedCheckpointingGuard off(false);
    CHECK_FALSE(autograd::is_balanced_checkpointing());
  }
  CHECK_FALSE(autograd::is_balanced_checkpointing());
}

}  // namespace
}  // namespace kiln::test
