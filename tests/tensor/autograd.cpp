// Gradients as users of Tensor see them. (What the graph below promises is tested in
// tests/autodiff.)
#include <thread>

#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("requires_grad_ marks leaves") {
  on_devices(kFloatTypes, [](Device device, DType dtype) {
    Tensor x = ones({2}, {dtype, device});
    CHECK_FALSE(x.requires_grad());
    CHECK(x.is_leaf());
    CHECK(x.grad_fn() == "");
    CHECK(x.requires_grad_().is_same(x));
    CHECK(x.requires_grad());
    const Tensor y = x * 2;
    CHECK(y.requires_grad());
    CHECK_FALSE(y.is_leaf());
    CHECK(y.grad_fn() == "mul");
    CHECK_THROWS_AS(Tensor(y).requires_grad_(false), AutodiffError);
    CHECK(Tensor(y).requires_grad_().is_same(y));
    x.requires_grad_(false);
    CHECK_FALSE((x * 2).requires_grad());
    CHECK(ones({1}, {.dtype = dtype, .device = device, .requires_grad = true}).requires_grad());
  });
  CHECK_THROWS_AS(ones({1}, {i64}).requires_grad_(), DTypeError);
  CHECK_THROWS_AS(ones({1}, {.dtype = bool_, .requires_grad = true}), DTypeError);
  Tensor ints = ones({1}, {i64});
  CHECK_FALSE(ints.requires_grad_(false).requires_grad());
}

TEST_CASE("a requires_grad_ after the fact does not reach into the past") {
  Tensor x = ones({2});
  const Tensor y = x * 2;
  x.requires_grad_();
  CHECK_FALSE(y.requires_grad());
  CHECK_THROWS_AS((void)y.sum().backward(), AutodiffError);
}

TEST_CASE("results that carry no gradient") {
  const Tensor x = ones({2, 2}, {.requires_grad = true});
  CHECK_FALSE(x.eq(1).requires_grad());
  CHECK_FALSE(x.argmax(0).requires_grad());
  CHECK_FALSE(x.to(i64).requires_grad());
  CHECK_FALSE(x.detach().requires_grad());
  CHECK_FALSE(x.max(0).second.requires_grad());
  CHECK(x.max(0).first.requires_grad());
  CHECK_FALSE(zeros_like(x).requires_grad());
  CHECK(x.to(f64).requires_grad());
  CHECK(x.clone().requires_grad());
  CHECK(x.floor().requires_grad());  // a gradient of zeros
  CHECK(mismatch(*x.grad(x.floor().sum().backward()), {2, 2}, {0, 0, 0, 0}) == "");
}

TEST_CASE("detach shares memory but not history") {
  on_devices([](Device device) {
    Tensor x = tensor({1.0, 2.0}, {.device = device}).requires_grad_();
    const Tensor y = x * 3.0;
    Tensor d = y.detach();
    CHECK(d.is_leaf());
    d[0].fill_(9);
    CHECK(mismatch(y, {2}, {9, 6}) == "");
    const Tensor z = (x * y.detach()).sum();
    CHECK(mismatch(*x.grad(z.backward()), {2}, {9, 6}) == "");
  });
}

TEST_CASE("no_grad, its guards and their nesting") {
  const Tensor x = ones({2}, {.requires_grad = true});
  CHECK(is_grad_enabled());
  {
    NoGradGuard off;
    CHECK_FALSE(is_grad_enabled());
    CHECK_FALSE((x * 2).requires_grad());
    {
      EnableGradGuard on;
      CHECK((x * 2).requires_grad());
      CHECK(no_grad([&] { return x * 2; }).is_leaf());
    }
    CHECK_FALSE(is_grad_enabled());
    CHECK(ones({1}).requires_grad_().requires_grad());  // leaves can still be made
  }
  CHECK(is_grad_enabled());
  try {
    no_grad([]() -> int { throw ValueError("out"); });
  } catch (const ValueError&) {
  }
  CHECK(is_grad_enabled());  // also after an exception
  set_grad_enabled(false);
  bool other_thread = false;
  std::thread([&] { other_thread = is_grad_enabled(); }).join();
  set_grad_enabled(true);
  CHECK(other_thread);  // each thread has its own
}

TEST_CASE("backward_accumulate adds into grad()") {
  on_devices(kFloatTypes, [](Device device, DType dtype) {
    Tensor x = tensor({1.0, 2.0}, {dtype, device}).requires_grad_();
    CHECK_FALSE(x.grad().defined());
    (x * x).sum().backward_accumulate();
    CHECK(mismatch(x.grad(), {2}, {2, 4}) == "");
    CHECK(x.grad().dtype() == dtype);
    (x * 3).backward_accumulate(tensor({1, 10}, {dtype, device}));
    CHECK(mismatch(x.grad(), {2}, {5, 34}) == "");
    x.zero_grad(false);
    CHECK(mismatch(x.grad(), {2}, {0, 0}) == "");
    x.zero_grad();
    CHECK_FALSE(x.grad().defined());
    x.set_grad(tensor({7, 8}, {dtype, device}));
    x.sum().backward_accumulate();
    CHECK(mismatch(x.grad(), {2}, {8, 9}) == "");
    x.set_grad(Tensor());
    CHECK_FALSE(x.grad().defined());
    // A leaf may be its own root.
    Tensor s = tensor(2.0, {dtype, device}).requires_grad_();
    s.backward_accumulate();
    CHECK(mismatch(s.grad(), {}, {1}) == "");
  });
  Tensor x = ones({2}, {.requires_grad = true});
  CHECK_THROWS_AS(x.set_grad(ones({3})), Error);
  CHECK_THROWS_AS(x.set_grad(ones({2}, {f64})), Error);
  CHECK_THROWS_AS(ones({2}, {i64}).set_grad(ones({2}, {i64})), AutodiffError);
  CHECK_THROWS_AS((x * 2).set_grad(ones({2})), AutodiffError);
}

TEST_CASE("backward() gives the gradients and touches nothing") {
  on_devices([](Device device) {
    Tensor x = tensor({1.0, 2.0}, {.device = device}).requires_grad_();
    const Tensor fixed = tensor({3.0, 4.0}, {.device = device});
    Gradients grads = (x * fixed).sum().backward();
    CHECK(mismatch(*grads.get(x), {2}, {3, 4}) == "");
    CHECK_FALSE(grads.get(fixed).has_value());
    CHECK_FALSE(x.grad().defined());
    CHECK(grads.size() == 1);
    Gradients moved = std::move(grads);
    CHECK(moved.size() == 1);
    CHECK_THROWS_AS(fixed.grad_replace(moved, fixed), AutodiffError);
    CHECK_FALSE(fixed.grad_remove(moved).has_value());
    CHECK(Gradients().size() == 0);
    CHECK_FALSE(x.grad(Gradients()).has_value());
  });
}

TEST_CASE("the gradient that a pass starts from") {
  const Tensor x = tensor({1.0, 2.0}).requires_grad_();
  const Tensor y = x * 2;
  CHECK(error_lacks<AutodiffError>([&] { (void)y.backward(); }, {"backward", "[2]", "gradient"}) ==
        "");
  CHECK(error_lacks<ShapeError>([&] { (void)y.backward(ones({3})); }, {"backward", "[3]", "[2]"}) ==
        "");
  CHECK_THROWS_AS((void)y.backward(ones({2}, {.device = kReference})), DeviceError);
  CHECK(mismatch(*x.grad(y.backward(tensor({1, 3}))), {2}, {2, 6}) == "");   // converted
  CHECK(mismatch(*x.grad(x.slice(0, 0, 1).backward()), {2}, {1, 0}) == "");  // one element
}

TEST_CASE("retain_graph and create_graph") {
  on_devices([](Device device) {
    Tensor x = tensor({2.0}, {f64, device}).requires_grad_();
    const Tensor y = x.pow(3);
    (void)y.backward({}, true);
    const Gradients first = y.backward({}, false, true);
    const Tensor slope = *x.grad(first);  // 3 x^2, with a history
    CHECK(slope.requires_grad());
    CHECK(mismatch(*x.grad(slope.backward({}, true)), {1}, {12}) == "");
    x.zero_grad();
    slope.backward_accumulate();
    CHECK(mismatch(x.grad(), {1}, {12}) == "");
    const Tensor z = x.pow(2);
    (void)z.backward();
    CHECK(error_lacks<AutodiffError>([&] { (void)z.backward(); }, {"pow", "retain_graph"}) == "");
  });
}

TEST_CASE("grad()") {
  on_devices([](Device device) {
    const TensorOptions on{f64, device};
    Tensor x = tensor({1.0, 2.0}, on).requires_grad_();
    Tensor w = tensor({3.0}, on).requires_grad_();
    const Tensor y = x * w;
    const auto both = grad({y.sum()}, {x, w}, {.retain_graph = true});
    CHECK(mismatch(both[0], {2}, {3, 3}) == "");
    CHECK(mismatch(both[1], {1}, {3}) == "");
    CHECK_FALSE(x.grad().defined());
    // Inside the graph; an output as its own input; several outputs; weights.
    const Tensor z = y.square();
    CHECK(mismatch(grad({z.sum()}, {y}, {.retain_graph = true})[0], {2}, {6, 12}) == "");
    CHECK(mismatch(
              grad({y}, {y}, {.grad_outputs = {tensor({5.0, 6.0}, on)}, .retain_graph = true})[0],
              {2}, {5, 6}) == "");
    CHECK(mismatch(grad({y.sum(), z.sum()}, {y}, {.retain_graph = true})[0], {2}, {7, 13}) == "");
    CHECK(mismatch(
              grad({y}, {x}, {.grad_outputs = {tensor({1.0, 10.0}, on)}, .retain_graph = true})[0],
              {2}, {3, 30}) == "");
    // The same input twice.
    const auto twice = grad({y.sum()}, {x, x}, {.retain_graph = true});
    CHECK(mismatch(twice[1], {2}, {3, 3}) == "");
    // Not connected.
    Tensor other = ones({2}, on).requires_grad_();
    CHECK(error_lacks<AutodiffError>(
              [&] {
                grad({y.sum()}, {x, other}, {.retain_graph = true});
              },
              {"input 1", "allow_unused"}) == "");
    const auto some = grad({y.sum()}, {x, other}, {.retain_graph = true, .allow_unused = true});
    CHECK(some[0].defined());
    CHECK_FALSE(some[1].defined());
    CHECK_THROWS_AS(grad({y.sum()}, {ones({2}, on)}), AutodiffError);
    CHECK_THROWS_AS(grad({ones({1}, on)}, {x}), AutodiffError);
    CHECK_THROWS_AS(grad({y}, {x}), AutodiffError);  // no scalar
    CHECK_THROWS_AS(grad({y}, {x}, {.grad_outputs = {ones({3}, on)}}), ShapeError);
    CHECK_THROWS_AS(grad({y}, {x}, {.grad_outputs = {y, y}}), ValueError);
    // Without create_graph the result has no history.
    CHECK_FALSE(grad({y.sum()}, {x})[0].requires_grad());
  });
}

TEST_CASE("hooks") {
  on_devices([](Device device) {
    const TensorOptions on{f64, device};
    Tensor x = tensor({1.0, 2.0}, on).requires_grad_();
    std::vector<int> order;
    const HookHandle none;
    x.register_hook([&](const Tensor& g) {
      order.push_back(1);
      return g * 2.0;
    });
    HookHandle second = x.register_hook([&](const Tensor& g) {
      order.push_back(2);
      CHECK(mismatch(g, {2}, {6, 6}) == "");  // what the first one gave
      return g + 1.0;
    });
    CHECK(mismatch(*x.grad((x * 3.0).sum().backward()), {2}, {7, 7}) == "");
    CHECK(order == std::vector<int>{1, 2});
    second.remove();
    CHECK(mismatch(*x.grad((x * 3.0).sum().backward()), {2}, {6, 6}) == "");
    (x * 3.0).sum().backward_accumulate();
    CHECK(mismatch(x.grad(), {2}, {6, 6}) == "");
    // On a tensor inside the graph, also for grad().
    Tensor y = x * 1.0;
    y.register_hook([](const Tensor& g) { return -g; });
    CHECK(mismatch(grad({y.sum()}, {x}, {.retain_graph = true})[0], {2}, {-2, -2}) == "");
    Tensor bad = x * 1.0;
    bad.register_hook([](const Tensor&) { return ones({5}); });
    CHECK_THROWS_AS((void)bad.sum().backward(), Error);
    Tensor throwing = x * 1.0;
    throwing.register_hook([](const Tensor&) -> Tensor { throw IndexError("mine"); });
    CHECK_THROWS_AS((void)throwing.sum().backward(), IndexError);
    CHECK_THROWS_AS(ones({1}, on).register_hook([](const Tensor& g) { return g; }), AutodiffError);
  });
}

TEST_CASE("retain_grad") {
  on_devices([](Device device) {
    Tensor x = tensor({1.0, 2.0}, {.device = device}).requires_grad_();
    Tensor y = x * 3.0;
    y.retain_grad().retain_grad();
    const Tensor z = (y * y).sum();
    z.backward_accumulate({}, true);
    CHECK(mismatch(y.grad(), {2}, {6, 12}) == "");
    z.backward_accumulate({}, true);
    CHECK(mismatch(y.grad(), {2}, {12, 24}) == "");
    CHECK(mismatch(*y.grad(z.backward()), {2}, {6, 12}) == "");
    y.zero_grad();
    CHECK_FALSE(y.grad().defined());
    x.retain_grad();  // a leaf: nothing to do
    CHECK_THROWS_AS(ones({1}).retain_grad(), AutodiffError);
    CHECK_FALSE((x * 2.0).grad().defined());
  });
}

TEST_CASE("gradients flow through views and back to the whole") {
  on_devices([](Device device) {
    const TensorOptions on{f64, device};
    Tensor x = arange(6, on).requires_grad_();
    const Tensor m = x.view({2, 3});
    const Tensor loss =
        (m[0] * m[1]).sum() + m.t().slice(0, 0, 1).sum() + m.expand({2, 2, 3}).sum();
    CHECK(mismatch(*x.grad(loss.backward()), {6}, {6, 6, 7, 3, 3, 4}) == "");
    // Through another device and back.
    const Device there = device.type == kCpu ? kReference : kCpu;
    const Tensor far = (x.to(there) * 2.0).to(device) * 3.0;
    const Tensor g = *x.grad(far.sum().backward());
    CHECK(mismatch(g, {6}, Doubles(6, 6.0)) == "");
    CHECK(g.device() == device);
  });
}

TEST_CASE("mixed dtypes: each operand gets its gradient in its own dtype") {
  on_devices([](Device device) {
    Tensor a = tensor({1.0, 2.0}, {f16, device}).requires_grad_();
    Tensor b = tensor({3.0, 4.0}, {f64, device}).requires_grad_();
    const Tensor y = a * b;
    CHECK(y.dtype() == f64);
    const Gradients grads = y.sum().backward();
    CHECK(a.grad(grads)->dtype() == f16);
    CHECK(b.grad(grads)->dtype() == f64);
    CHECK(mismatch(*a.grad(grads), {2}, {3, 4}) == "");
    CHECK(mismatch(*a.grad((a * tensor({2, 3}, {i64, device})).sum().backward()), {2}, {2, 3}) ==
          "");
  });
}
