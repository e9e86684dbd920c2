// Checkpoints give the gradients that the same computation gives without one, and keep less.
#include "kiln/tensor/autograd/checkpoint.h"

#include "kiln/core/allocator.h"
#include "kiln/nn/nn.h"
#include "tests/support/tensor_check.h"

namespace kiln::test {
namespace {

using List = std::vector<Tensor>;

TEST_CASE("checkpoint: values and gradients of inputs and of what the function captured") {
  on_devices([](Device device) {
    const Tensor values = tensor({{0.5, -1.0}, {2.0, 0.1}}, {f64, device});
    Tensor x = values.clone().requires_grad_();
    Tensor w = tensor({{1.0, 2.0}, {-0.5, 0.3}}, {f64, device}).requires_grad_();
    const auto f = [&](const Tensor& v) { return v.matmul(w).tanh() * v; };
    const auto plain = grad({f(x).sum()}, {x, w});
    int calls = 0;
    const auto counted = [&](const Tensor& v) {
      ++calls;
      return f(v);
    };
    const Tensor y = autograd::checkpoint(counted, x);
    CHECK(y.grad_fn() == "checkpoint");
    CHECK(calls == 1);
    const auto checked = grad({y.sum()}, {x, w});
    CHECK(calls == 2);
    for (int i = 0; i < 2; ++i) CHECK(plain[i].equal(checked[i]));
    // The input needs no gradient of its own.
    const auto captured = grad({autograd::checkpoint(f, values).sum()}, {w});
    CHECK(captured[0].equal(plain[1]));
  });
}

TEST_CASE("checkpoint: second derivatives, several results, nesting") {
  Tensor x = tensor({0.3, 0.7}, {f64}).requires_grad_();
  const auto inner = [](const Tensor& v) { return v.sin() * v; };
  const auto f = [&](const List& in) {
    const Tensor a = autograd::checkpoint(inner, in[0]);
    return List{a * a, in[0], a.exp()};
  };
  const auto g = [&](const List& in) {
    const Tensor a = inner(in[0]);
    return List{a * a, in[0], a.exp()};
  };
  const auto second = [&](const List& y) {
    const Tensor s = (y[0] * 2 + y[1] * 3 + y[2]).sum();
    const Tensor first = grad({s}, {x}, {.create_graph = true})[0];
    return grad({(first * first).sum()}, {x})[0];
  };
  const List y = autograd::checkpoint(f, List{x});
  CHECK(y[1].is_same(x));
  CHECK(second(y).allclose(second(g({x})), 1e-12));
}

TEST_CASE("checkpoint after checkpoint over the same parameter: each path counts once") {
  Tensor x = tensor({0.3, 0.7}, {f64}).requires_grad_();
  Tensor w = tensor({2.0, -1.0}, {f64}).requires_grad_();
  const auto block = [&](const Tensor& v) { return (v * w).tanh() + w; };
  const auto plain = grad({block(block(block(x))).sum()}, {x, w});
  const Tensor y =
      autograd::checkpoint(block, autograd::checkpoint(block, autograd::checkpoint(block, x)));
  const auto checked = grad({y.sum()}, {x, w});
  CHECK(checked[0].allclose(plain[0], 1e-14));
  CHECK(checked[1].allclose(plain[1], 1e-14));
}

TEST_CASE("checkpoint: dropout draws the same mask again, and nobody else's numbers change") {
  manual_seed(5);
  Tensor x = ones({1000}).requires_grad_();
  const auto f = [](const Tensor& v) { return functional::dropout(v, 0.5); };
  const Tensor y = autograd::checkpoint(f, x);
  const Tensor after = rand({3});
  const Tensor g = grad({y.sum()}, {x})[0];
  CHECK(g.equal(y.detach()));  // 2 where kept, else 0
  const Tensor next = rand({3});
  manual_seed(5);
  f(ones({1000}));
  CHECK(after.equal(rand({3})));
  CHECK(next.equal(rand({3})));
}

TEST_CASE("checkpoint: a hook of a parameter runs once for each pass") {
  Tensor w = tensor({2.0}, {f64}).requires_grad_();
  int calls = 0;
  w.register_hook([&](const Tensor& g) {
    ++calls;
    return g * 10;
  });
  const Tensor y = autograd::checkpoint([&](const Tensor& v) { return v * w; }, ones({1}, {f64}));
  y.sum().backward_accumulate();
  CHECK(calls == 1);
  CHECK(w.grad().item() == 10);
}

TEST_CASE("checkpoint keeps only its inputs") {
  const auto kept_by = [](bool checkpointed) {
    Tensor x = ones({1 << 16}).requires_grad_();
    const auto f = [](const Tensor& v) {
      Tensor y = v;
      for (int i = 0; i < 20; ++i) y = y.exp().sin();
      return y;
    };
    const size_t before = memory_stats().bytes_in_use;
    const Tensor y = checkpointed ? autograd::checkpoint(f, x) : f(x);
    return memory_stats().bytes_in_use - before;
  };
  CHECK(kept_by(true) <= 2 * (sizeof(float) << 16));    // the result
  CHECK(kept_by(false) >= 20 * (sizeof(float) << 16));  // what exp gave and sin took, 20 times
}

TEST_CASE("checkpoint_sequential, and what is refused") {
  Tensor x = tensor({0.1, 0.2, 0.3}, {f64}).requires_grad_();
  std::vector<std::function<Tensor(const Tensor&)>> layers(
      5, [](const Tensor& v) { return v.tanh() + v; });
  Tensor plain = x;
  for (const auto& f : layers) plain = f(plain);
  for (const int64_t segments : {1, 2, 5}) {
    const Tensor y = autograd::checkpoint_sequential(layers, segments, x);
    CHECK(y.equal(plain));
    CHECK(grad({y.sum()}, {x})[0].equal(grad({plain.sum()}, {x}, {.retain_graph = true})[0]));
  }
  CHECK(error_lacks<ValueError>([&] { autograd::checkpoint_sequential(layers, 6, x); },
                                {"1 to 5", "got 6"}) == "");

  Tensor input = tensor({1.0, 2.0}, {f64});
  Tensor w = tensor({3.0}, {f64}).requires_grad_();
  const Tensor y = autograd::checkpoint([&](const Tensor& v) { return v * w; }, input);
  input.mul_(2);
  CHECK(error_lacks<AutodiffError>([&] { y.sum().backward_accumulate(); },
                                   {"checkpoint", "modified in place"}) == "");
  int call = 0;
  const Tensor z = autograd::checkpoint(
      [&](const Tensor& v) { return call++ == 0 ? v * w : (v * w).sum(); }, input);
  CHECK(error_lacks<AutodiffError>([&] { z.sum().backward_accumulate(); },
                                   {"checkpoint", "called again"}) == "");
}

TEST_CASE("anomaly mode names the op whose gradient has NaN") {
  Tensor x = tensor({0.0, 1.0}, {f64}).requires_grad_();
  {
    const DetectAnomalyGuard guard;
    CHECK(is_anomaly_enabled());
    // d sqrt(0) * 0 = inf * 0
    const Tensor y = (x.sqrt() * tensor({0.0, 1.0}, {f64})).sum();
    CHECK(error_lacks<AutodiffError>([&] { y.backward_accumulate(); },
                                     {"sqrt", "operand 0", "NaN"}) == "");
  }
  CHECK_FALSE(is_anomaly_enabled());
  (x.sqrt() * tensor({0.0, 1.0}, {f64})).sum().backward_accumulate();
  const DetectAnomalyGuard guard(false);
  (x.sqrt() * tensor({0.0, 1.0}, {f64})).sum().backward_accumulate();
  const Tensor y = x.exp();
  const Tensor z = y * y;
  Tensor written = y.detach();
  written.add_(1);
  CHECK(error_lacks<AutodiffError>([&] { z.sum().backward_accumulate(); },
                                   {"mul", "modified in place"}) == "");
}

TEST_CASE("a hook after accumulation sees the whole gradient and may free it") {
  Tensor x = tensor({1.0, 2.0}, {f64}).requires_grad_();
  int calls = 0;
  HookHandle hook = register_post_accumulate_grad_hook(x, [&](const Tensor& p) {
    ++calls;
    Tensor same = p;
    CHECK(mismatch(same.grad(), {2}, {5, 7}) == "");
    same.zero_grad();
  });
  (x * x + x * 3).sum().backward_accumulate();
  CHECK(calls == 1);
  CHECK_FALSE(x.grad().defined());
  hook.remove();
  x.sum().backward_accumulate();
  CHECK(calls == 1);
  CHECK(error_lacks<AutodiffError>(
            [&] { register_post_accumulate_grad_hook(x * 2, [](const Tensor&) {}); },
            {"leaf", "recorded"}) == "");
}

}  // namespace
}  // namespace kiln::test
