// AdamW8bit from C++: near AdamW, with two bytes for each parameter, and saved states go on.
#include "kiln/optim/adamw_8bit.h"

#include "kiln/kiln.h"
#include "tests/support/tensor_check.h"
#include "tests/support/throws.h"

namespace kiln::test {
namespace {

TEST_CASE("AdamW8bit: a code has 256 numbers, with 0 and 1") {
  for (const bool with_signs : {true, false}) {
    const std::vector<float> code = optim::dynamic_code(with_signs);
    CHECK(code.size() == 256);
    CHECK(std::is_sorted(code.begin(), code.end()));
    CHECK(code.back() == 1.0F);
    CHECK(std::count(code.begin(), code.end(), 0.0F) == 1);
  }
}

TEST_CASE("AdamW8bit: steps near AdamW's; a saved state goes on") {
  manual_seed(0);
  Tensor p = randn({50, 100}).requires_grad_(), q = p.detach().clone().requires_grad_();
  Tensor small = randn({10}).requires_grad_();
  optim::AdamW8bit one({p, small}, {.lr = 0.01});
  optim::AdamW two({q}, {.lr = 0.01});
  const auto step = [&](auto& optimizer, Tensor& x, const Tensor& g) {
    x.set_grad(g);
    optimizer.step();
  };
  for (int i = 0; i < 4; ++i) {
    const Tensor g = randn({50, 100});
    small.set_grad(ones({10}));
    step(one, p, g);
    step(two, q, g);
  }
  CHECK(p.allclose(q, 1e-2, 5e-3));
  const optim::OptimizerState state = one.state_dict();
  CHECK(state.tensors.find("state.0.state1")->dtype() == u8);
  CHECK(state.tensors.find("state.0.absmax2")->shape() == Shape{20});
  CHECK(state.tensors.find("state.1.state1")->dtype() == f32);

  Tensor again = p.detach().clone().requires_grad_();
  Tensor other = small.detach().clone().requires_grad_();
  optim::AdamW8bit three({again, other}, {.lr = 1.0});
  three.load_state_dict(state);
  const Tensor g = randn({50, 100});
  small.zero_grad();
  step(one, p, g);
  step(three, again, g);
  CHECK(p.equal(again));
  CHECK_THROWS_AS(optim::AdamW8bit({ones({2}).requires_grad_()}, {.block_size = 0}), ValueError);
}

}  // namespace
}  // namespace kiln::test
