// What the graph promises: explicit and accumulated gradients, freeing, versions, hooks, depth,
// orders.
#include <cmath>

#include <doctest/doctest.h>

#include "kiln/autodiff/autodiff.h"
#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/dispatch/dispatch.h"
#include "kiln/backend/reference/reference.h"
#include <kiln/kiln.h>

using namespace kiln;

static_assert(Backend<Cpu>);
static_assert(Backend<Reference>);
static_assert(Backend<Dispatch>);
static_assert(AutodiffBackend<Autodiff<Cpu>>);
static_assert(AutodiffBackend<Autodiff<Reference>>);
static_assert(AutodiffBackend<Autodiff<Dispatch>>);
static_assert(AutodiffBackend<Autodiff<Autodiff<Cpu>>>);
static_assert(!AutodiffBackend<Cpu>);

namespace {

std::vector<double> values(const Tensor& x) { return x.to_vector<double>(); }
using Doubles = std::vector<double>;

}  // namespace

TEST_CASE("backward gives explicit gradients and touches nothing else") {
  Tensor x = tensor({1.0, 2.0, 3.0}, {f64}).requires_grad_();
  Tensor unused = tensor({1.0}, {f64}).requires_grad_();
  const Tensor loss = (x * x).sum();
  Gradients grads = loss.backward();
  CHECK(grads.size() == 1);
  CHECK(values(*x.grad(grads)) == Doubles{2, 4, 6});
  CHECK_FALSE(unused.grad(grads).has_value());
  CHECK_FALSE(x.grad().defined());

  x.grad_replace(grads, tensor({7.0, 8.0, 9.0}, {f64}));
  CHECK(values(*grads.get(x)) == Doubles{7, 8, 9});
  unused.grad_replace(grads, tensor({5.0}, {f64}));  // registers one where none was
  CHECK(values(*unused.grad(grads)) == Doubles{5});
  CHECK(values(*x.grad_remove(grads)) == Doubles{7, 8, 9});
  CHECK_FALSE(x.grad(grads).has_value());
}

TEST_CASE("the accumulate form adds into each leaf's grad") {
  Tensor x = tensor({1.0, 2.0}, {f64}).requires_grad_();
  (x * 3.0).sum().backward_accumulate();
  CHECK(values(x.grad()) == Doubles{3, 3});
  const Tensor held = x.grad();
  (x * x).sum().backward_accumulate();
  CHECK(values(x.grad()) == Doubles{5, 7});
  CHECK(values(held) == Doubles{5, 7});  // the same tensor grew
  x.zero_grad(false);
  CHECK(values(x.grad()) == Doubles{0, 0});
  x.zero_grad();
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("gradients of two leaves never share memory") {
  Tensor a = tensor({1.0, 2.0}, {f64}).requires_grad_();
  Tensor b = tensor({1.0, 2.0}, {f64}).requires_grad_();
  (a + b).sum().backward_accumulate();
  a.grad().mul_(10.0);
  CHECK(values(a.grad()) == Doubles{10, 10});
  CHECK(values(b.grad()) == Doubles{1, 1});
  CHECK(a.grad().is_contiguous());
}

TEST_CASE("a tensor used several times gathers every contribution") {
  Tensor x = tensor({2.0}, {f64}).requires_grad_();
  const Tensor y = x * x;          // x^2
  const Tensor z = y * x + y + x;  // x^3 + x^2 + x: 3x^2 + 2x + 1 = 17
  CHECK(values(*x.grad(z.backward())) == Doubles{17});
}

TEST_CASE("derivatives of third order by recorded passes") {
  // x^4 exp(x): worked out with the product rule.
  Tensor x = tensor({0.5, 1.5}, {f64}).requires_grad_();
  const Tensor y = (x.pow(4) * x.exp()).sum();
  const Tensor d1 = grad({y}, {x}, {.create_graph = true})[0];
  const Tensor d2 = grad({d1.sum()}, {x}, {.create_graph = true})[0];
  const Tensor d3 = grad({d2.sum()}, {x})[0];
  for (int i = 0; i < 2; ++i) {
    const double v = i == 0 ? 0.5 : 1.5;
    const double e = std::exp(v);
    const double v2 = v * v;
    CHECK(d1[i].item() == doctest::Approx(e * (v2 * v2 + 4 * v2 * v)));
    CHECK(d2[i].item() == doctest::Approx(e * (v2 * v2 + 8 * v2 * v + 12 * v2)));
    CHECK(d3[i].item() == doctest::Approx(e * (v2 * v2 + 12 * v2 * v + 36 * v2 + 24 * v)));
  }
  CHECK_FALSE(d3.requires_grad());
}

TEST_CASE("Autodiff<Autodiff<Cpu>> differentiates a differentiation") {
  using Outer = Autodiff<Autodiff<Cpu>>;
  using Inner = Autodiff<Cpu>;
  // The inner graph records what the outer pass computes: first derivative outside, second inside.
  const auto leaf = Inner::require_grad(
      Inner::float_from_data(TensorData(std::vector<double>{2.0, 3.0}, Shape{2}), kCpu));
  const auto x = Outer::require_grad(Outer::from_inner(leaf));
  const auto cube =
      Outer::float_mul(x, Outer::float_mul(x, Outer::float_slice(x, 0, Range{0, 2, 1})));
  const auto grads = Outer::backward(Outer::float_sum(cube, Dims{0}, false));
  const auto first = Outer::grad(x, grads);  // 3x^2, a tensor of the inner graph
  REQUIRE(first.has_value());
  CHECK(Inner::float_into_data(*first).to_doubles() == Doubles{12, 27});
  const auto second = Inner::grad(leaf, Inner::backward(Inner::float_sum(*first, Dims{0}, false)));
  REQUIRE(second.has_value());
  CHECK(Cpu::float_into_data(*second).to_doubles() == Doubles{12, 18});  // 6x
}

TEST_CASE("the twelve functions of AutodiffBackend") {
  using A = Autodiff<Reference>;
  const auto data = TensorData(std::vector<double>{1.0, -2.0}, Shape{2});
  const auto x = A::require_grad(A::from_inner(Reference::float_from_data(data, kReference)));
  auto grads = A::backward(A::float_sum(A::float_square(x), Dims{0}, false));
  CHECK(Reference::float_into_data(*A::grad(x, grads)).to_doubles() == Doubles{2, -4});
  A::grad_replace(x, grads, Reference::float_from_data(data, kReference));
  CHECK(Reference::float_into_data(*A::grad_remove(x, grads)).to_doubles() == Doubles{1, -2});
  CHECK_FALSE(A::grad(x, grads).has_value());
  CHECK(Reference::float_into_data(A::inner(x)).to_doubles() == Doubles{1, -2});
  const auto ints =
      Reference::int_from_data(TensorData(std::vector<int64_t>{4, 5}, Shape{2}), kReference);
  CHECK(A::int_into_data(A::int_from_inner(A::int_inner(ints))).to_doubles() == Doubles{4, 5});
  const auto bools = Reference::int_greater_scalar(ints, Scalar(4));
  CHECK(A::bool_into_data(A::bool_from_inner(A::bool_inner(bools))).to_doubles() == Doubles{0, 1});
  const auto q = A::float_quantize(x, QuantScheme{0.5});
  CHECK(A::float_into_data(A::q_dequantize(A::q_from_inner(A::q_inner(q)), f64)).to_doubles() ==
        Doubles{1, -2});
}

TEST_CASE("grad_replace takes what is like the tensor") {
  Tensor x = tensor({1.0, 2.0}, {f32}).requires_grad_();
  Gradients grads = (x * x).sum().backward();
  CHECK_THROWS_AS(x.grad_replace(grads, ones({3}, {f32})), ShapeError);
  CHECK_THROWS_AS(x.grad_replace(grads, ones({1}, {f32})), ShapeError);
  CHECK_THROWS_AS(x.grad_replace(grads, ones({2}, {f64})), DTypeError);
  CHECK_THROWS_AS(x.grad_replace(grads, ones({2}, {.dtype = f32, .device = Device(kReference)})),
                  DeviceError);
  CHECK_THROWS_AS(ones({2}).grad_replace(grads, ones({2})), AutodiffError);
  CHECK(x.grad(grads)->to_data().to_doubles() == Doubles{2, 4});
  x.grad_replace(grads, tensor({5.0, 6.0}, {f32}));
  CHECK(x.grad(grads)->to_data().to_doubles() == Doubles{5, 6});
  Tensor other = ones({1}).requires_grad_();
  other.grad_replace(grads, ones({1}));  // there was none
  CHECK(other.grad(grads).has_value());

  using A = Autodiff<Reference>;
  const auto inner =
      Reference::float_from_data(TensorData(std::vector<double>{1.0, -2.0}, Shape{2}), kReference);
  const auto leaf = A::require_grad(A::from_inner(inner));
  auto map = A::backward(A::float_sum(leaf, Dims{0}, false));
  const auto three = Reference::float_from_data(
      TensorData(std::vector<double>{1.0, 2.0, 3.0}, Shape{3}), kReference);
  CHECK_THROWS_AS(A::grad_replace(leaf, map, three), ShapeError);
  CHECK_THROWS_AS(A::grad_replace(A::from_inner(inner), map, inner), AutodiffError);
}

TEST_CASE("no_grad records nothing") {
  Tensor x = tensor({1.0, 2.0}, {f64}).requires_grad_();
  const Tensor y = no_grad([&] { return x * 2.0; });
  CHECK_FALSE(y.requires_grad());
  {
    NoGradGuard off;
    CHECK_FALSE(is_grad_enabled());
    EnableGradGuard on;
    CHECK((x * 2.0).requires_grad());
  }
  CHECK(is_grad_enabled());
  CHECK_THROWS_AS((void)y.sum().backward(), AutodiffError);
}

TEST_CASE("a second pass over a freed graph is an error, unless it was retained") {
  Tensor x = tensor({1.0, 2.0}, {f64}).requires_grad_();
  const Tensor y = (x * x).sum();
  (void)y.backward({}, true);
  (void)y.backward();
  try {
    (void)y.backward();
    FAIL("expected an AutodiffError");
  } catch (const AutodiffError& e) {
    CHECK(std::string(e.what()).find("freed") != std::string::npos);
    CHECK(std::string(e.what()).find("retain_graph") != std::string::npos);
  }
}

TEST_CASE("a second pass goes through ops that saved nothing") {
  Tensor x = tensor({{1.0, 2.0}, {3.0, 4.0}}, {f64}).requires_grad_();
  const Tensor y = (x.t().reshape({4}) * 3.0 + 1.0).slice(0, 1, 4).sum();
  for (int pass = 0; pass < 3; ++pass) {
    const Gradients grads = y.backward();
    CHECK(equal(*grads.get(x), tensor({{0.0, 3.0}, {3.0, 3.0}}, {f64})));
  }
  // The product needs its operands, which the first pass frees.
  const Tensor z = (x * x).reshape({4}).sum();
  (void)z.backward();
  CHECK_THROWS_AS((void)z.backward(), AutodiffError);
}

TEST_CASE("what a node saved is freed as the pass goes") {
  empty_cache();
  Tensor x = ones({1 << 18}).requires_grad_();
  Tensor y = x;
  for (int i = 0; i < 20; ++i) y = y * 1.5 * x;
  const size_t before = memory_stats().bytes_in_use;
  const Tensor loss = y.sum();
  y = Tensor();
  const Gradients grads = loss.backward();
  // 20 products of 1 MiB each were saved; the loss still holds the graph, but no values.
  CHECK(memory_stats().bytes_in_use + (15u << 20) < before);
}

TEST_CASE("a saved tensor that was written over is noticed") {
  Tensor x = tensor({1.0, 2.0}, {f64}).requires_grad_();
  Tensor y = x * 2.0;
  const Tensor z = (y * y).sum();
  y.add_(1.0);
  try {
    (void)z.backward();
    FAIL("expected an AutodiffError");
  } catch (const AutodiffError& e) {
    CHECK(std::string(e.what()).find("mul") != std::string::npos);
    CHECK(std::string(e.what()).find("in place") != std::string::npos);
  }
  // A result that was saved and then written over.
  Tensor w = x.exp();
  const Tensor s = w.sum() * 1.0;
  w.mul_(2.0);
  CHECK_THROWS_AS((void)s.backward(), AutodiffError);
}

TEST_CASE("recorded writes in place are part of the history") {
  Tensor x = tensor({1.0, 2.0}, {f64}).requires_grad_();
  Tensor y = x * 1.0;
  y.mul_(3.0).add_(x);  // 3x + x
  CHECK(values(*x.grad(y.sum().backward())) == Doubles{4, 4});
  Tensor buffer = zeros({2}, {f64});
  buffer.copy_(x * x);
  CHECK(values(*x.grad(buffer.sum().backward())) == Doubles{2, 4});
  Tensor filled = x * 2.0;
  filled.fill_(7.0);
  CHECK(values(*x.grad((filled * x).sum().backward())) == Doubles{7, 7});
}

TEST_CASE("writes that cannot be recorded are refused with a reason") {
  Tensor x = tensor({1.0, 2.0}, {f64}).requires_grad_();
  CHECK_THROWS_AS(x.add_(1.0), AutodiffError);
  no_grad([&] { x.add_(1.0); });
  CHECK(values(x) == Doubles{2, 3});
  CHECK_THROWS_AS(x[0].fill_(1.0), AutodiffError);
  Tensor y = x * 1.0;
  CHECK_THROWS_AS(y.unbind()[0].fill_(1.0), AutodiffError);
  CHECK(values(y) == Doubles{2, 3});
  Tensor base = zeros({2, 2}, {f64});
  base[0].copy_(x);  // base learns of it
  CHECK(values(*x.grad(base.sum().backward())) == Doubles{1, 1});
}

TEST_CASE("hooks see and replace gradients, and can be removed") {
  Tensor x = tensor({1.0, 2.0}, {f64}).requires_grad_();
  Tensor y = x * 2.0;
  int calls = 0;
  HookHandle hook = y.register_hook([&](const Tensor& g) {
    ++calls;
    return g * 10.0;
  });
  x.register_hook([&](const Tensor&) {
    ++calls;
    return Tensor();
  });
  CHECK(values(*x.grad((y * y).sum().backward({}, true))) == Doubles{80, 160});
  CHECK(calls == 2);
  hook.remove();
  CHECK(values(*x.grad((y * y).sum().backward())) == Doubles{8, 16});
  CHECK(calls == 3);
}

TEST_CASE("retain_grad keeps the gradient of a tensor inside the graph") {
  Tensor x = tensor({1.0, 2.0}, {f64}).requires_grad_();
  Tensor y = x * 2.0;
  y.retain_grad();
  (y * y).sum().backward_accumulate();
  CHECK(values(y.grad()) == Doubles{4, 8});
  CHECK(values(x.grad()) == Doubles{8, 16});
}

TEST_CASE("grad() computes only what was asked for, also inside the graph") {
  Tensor x = tensor({3.0}, {f64}).requires_grad_();
  Tensor w = tensor({5.0}, {f64}).requires_grad_();
  const Tensor y = x * x;
  const Tensor z = y * w;
  const auto found = grad({z}, {y, w}, {.retain_graph = true});
  CHECK(values(found[0]) == Doubles{5});
  CHECK(values(found[1]) == Doubles{9});
  CHECK(values(grad({z}, {x}, {.retain_graph = true})[0]) == Doubles{30});
  CHECK(values(grad({z, y}, {x}, {.retain_graph = true})[0]) == Doubles{36});
  CHECK(values(grad({z}, {x}, {.grad_outputs = {tensor({2.0}, {f64})}})[0]) == Doubles{60});
  Tensor other = tensor({1.0}, {f64}).requires_grad_();
  CHECK_THROWS_AS(grad({w * 2.0}, {other}), AutodiffError);
  CHECK_FALSE(grad({w * 2.0}, {other}, {.allow_unused = true})[0].defined());
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("a chain of 200,000 nodes needs no stack, forward, backward or when it dies") {
  Tensor x = tensor({1.0}).requires_grad_();
  Tensor y = x;
  const Tensor one = tensor({1.0});
  for (int i = 0; i < 200000; ++i) y = y + one;
  CHECK(y.item() == 200001.0);
  CHECK(values(*x.grad(y.backward())) == Doubles{1});
  y = x;
  for (int i = 0; i < 200000; ++i) y = y + one;
  y = Tensor();  // dies without a pass
}

TEST_CASE("a graph dies with its last tensor") {
  const size_t before = memory_stats().bytes_in_use;
  {
    Tensor x = ones({1000}).requires_grad_();
    Tensor y = (x * x).exp();
    Tensor z = y.sum();
    const auto d = grad({z}, {x}, {.create_graph = true});
    (void)d[0].sum().backward({}, true);
  }
  CHECK(memory_stats().bytes_in_use == before);
}

TEST_CASE("backward refuses what has no gradient") {
  Tensor x = tensor({1.0, 2.0}).requires_grad_();
  CHECK_THROWS_AS((void)(x * 2.0).backward(), AutodiffError);  // no scalar, no gradient given
  CHECK_THROWS_AS((void)(x * 2.0).backward(tensor({1.0})), ShapeError);
  CHECK_THROWS_AS((void)tensor({1.0}).backward(), AutodiffError);
  CHECK_THROWS_AS(tensor({1, 2}).requires_grad_(), DTypeError);
  CHECK_THROWS_AS((x * 2.0).requires_grad_(false), AutodiffError);
  CHECK(values(*x.grad((x * 2.0).backward(tensor({1.0, 10.0})))) == Doubles{2, 20});
}
