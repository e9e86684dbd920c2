#include "kiln/tensor/autograd/saved_tensors_hooks.h"

#include <thread>

#include <doctest/doctest.h>

#include "kiln/kiln.h"

namespace kiln {
namespace {

using autograd::SavedTensorsHooks;

Tensor leaf(std::vector<double> values) {
  const Shape shape{static_cast<int64_t>(values.size())};
  Tensor x(TensorData(std::move(values), shape));
  x.requires_grad_();
  return x;
}

// Counts, and keeps a copy.
struct Counted {
  int packed = 0;
  int unpacked = 0;
  autograd::PackHook pack() {
    return [this](const Tensor& x) {
      ++packed;
      CHECK_FALSE(x.requires_grad());
      return std::any(x.clone());
    };
  }
  autograd::UnpackHook unpack() {
    return [this](const std::any& kept) {
      ++unpacked;
      return std::any_cast<Tensor>(kept);
    };
  }
};

struct Cube : Function<Cube> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x) {
    ctx.save_for_backward({x});
    return x * x * x;
  }
  static TensorList backward(FunctionContext& ctx, const TensorList& grads) {
    return {grads[0] * 3 * ctx.saved_tensors()[0].pow(2)};
  }
};

TEST_CASE("saved_tensors_hooks: what is saved goes through them, and gradients stay the same") {
  const Tensor x = leaf({1, 2, 3});
  Counted hooks;
  Tensor y;
  {
    SavedTensorsHooks scope(hooks.pack(), hooks.unpack());
    y = (x * x).exp().sum();  // x twice, and the result of exp
  }
  CHECK(hooks.packed == 3);
  CHECK(hooks.unpacked == 0);
  const Tensor g = *x.grad(y.backward({}, true));
  CHECK(hooks.unpacked == 3);
  (void)y.backward();
  CHECK(hooks.unpacked == 6);
  const Tensor plain = *x.grad((x * x).exp().sum().backward());
  CHECK(hooks.packed == 3);
  CHECK(g.equal(plain));
}

TEST_CASE("saved_tensors_hooks: int and bool tensors, custom functions, higher orders") {
  const Tensor x = leaf({1, 2, 3});
  Counted hooks;
  const auto run = [&] {
    const Tensor index(TensorData(std::vector<int64_t>{2, 0}, {2}));
    const Tensor mask = x.gt(1.5).logical_not();
    const Tensor a = Cube::apply(x.index_select(0, index)).sum();
    return a + x.masked_fill(mask, 0).pow(3).sum();
  };
  Tensor y;
  {
    SavedTensorsHooks scope(hooks.pack(), hooks.unpack());
    y = run();
  }
  CHECK(hooks.packed >= 4);
  const Tensor first = grad({y}, {x}, {.create_graph = true})[0];
  const Tensor second = grad({first.sum()}, {x})[0];
  const Tensor plain = grad({run()}, {x}, {.create_graph = true})[0];
  CHECK(first.equal(plain));
  CHECK(second.equal(grad({plain.sum()}, {x})[0]));
  CHECK(second.to_vector<double>() == std::vector<double>{6, 12, 36});
}

TEST_CASE("saved_tensors_hooks: a change that the hooks make is what the gradient sees") {
  const Tensor x = leaf({1, 2});
  Tensor y;
  {
    SavedTensorsHooks scope([](const Tensor& saved) { return std::any(saved * 10); },
                            [](const std::any& kept) { return std::any_cast<Tensor>(kept); });
    y = x.square().sum();
  }
  CHECK(x.grad(y.backward())->to_vector<double>() == std::vector<double>{20, 40});
}

TEST_CASE("saved_tensors_hooks: what was packed may be written over") {
  const Tensor x = leaf({1, 2});
  Tensor z = x * 1;
  Counted hooks;
  Tensor y;
  {
    SavedTensorsHooks scope(hooks.pack(), hooks.unpack());
    y = z.square().sum();
  }
  z.fill_(7);
  CHECK(x.grad(y.backward())->to_vector<double>() == std::vector<double>{2, 4});
}

TEST_CASE("saved_tensors_hooks: the innermost count, on their thread only") {
  const Tensor x = leaf({1, 2});
  Counted outer, inner;
  SavedTensorsHooks first(outer.pack(), outer.unpack());
  {
    SavedTensorsHooks second(inner.pack(), inner.unpack());
    (void)x.exp();
  }
  CHECK(inner.packed == 1);
  CHECK(outer.packed == 0);
  (void)x.exp();
  CHECK(outer.packed == 1);
  std::thread([&] { (void)x.exp(); }).join();
  CHECK(outer.packed == 1);
}

TEST_CASE(
    "saved_tensors_hooks: with balanced checkpointing, what is computed again is not packed") {
  const Tensor x = leaf({1, 2});
  Counted hooks;
  Tensor y;
  {
    autograd::BalancedCheckpointingGuard balanced;
    SavedTensorsHooks scope(hooks.pack(), hooks.unpack());
    y = x.exp().square().sum();
  }
  const Tensor plain = *x.grad(x.exp().square().sum().backward());
  CHECK(x.grad(y.backward())->equal(plain));
  CHECK(hooks.packed >= 1);
}

TEST_CASE("saved_tensors_hooks: what hooks must not do") {
  const Tensor x = leaf({1, 2});
  const auto keep = [](const Tensor& saved) { return std::any(saved); };
  const auto give = [](const std::any& kept) { return std::any_cast<Tensor>(kept); };
  CHECK_THROWS_AS(autograd::pop_saved_tensors_hooks(), AutodiffError);
  CHECK_THROWS_AS(SavedTensorsHooks(nullptr, give), ValueError);
  {
    SavedTensorsHooks scope(
        [](const Tensor& saved) {
          Tensor mine = saved;
          mine.zero_();
          return std::any(mine);
        },
        give);
    CHECK_THROWS_WITH_AS((void)x.exp(), doctest::Contains("pack wrote into"), AutodiffError);
  }
  Tensor wrong_shape, wrong_dtype, nothing;
  {
    SavedTensorsHooks scope(keep, [&](const std::any& kept) { return give(kept).unsqueeze(0); });
    wrong_shape = x.exp().sum();
  }
  {
    SavedTensorsHooks scope(keep, [&](const std::any& kept) { return give(kept).to(f32); });
    wrong_dtype = x.exp().sum();
  }
  {
    SavedTensorsHooks scope(keep, [](const std::any&) { return Tensor(); });
    nothing = x.exp().sum();
  }
  CHECK_THROWS_AS((void)wrong_shape.backward(), AutodiffError);
  CHECK_THROWS_AS((void)wrong_dtype.backward(), AutodiffError);
  CHECK_THROWS_AS((void)nothing.backward(), AutodiffError);
}

}  // namespace
}  // namespace kiln
