// Recorded writes through views: gradients of first and second order against finite differences,
// and what is freed.
#include <functional>
#include <memory>
#include <thread>

#include "kiln/tensor/interop.h"
#include "tests/support/near.h"
#include "tests/support/tensor_check.h"
#include <kiln/kiln.h>

using namespace kiln;
using namespace kiln::test;

namespace {

using Program = std::function<Tensor(const Tensor& x, const Tensor& w)>;

Tensor weighted(const Tensor& y) {
  const Tensor weights = arange(y.numel(), {f64, y.device()}).add(1.0).reshape(y.shape()).sin();
  return (y * weights).sum();
}

Tensor numbers(const Shape& shape, double phase, Device device) {
  return arange(shape.numel(), {f64, device}).mul(0.7).add(phase).sin().reshape(shape);
}

// d f / d x by central differences, f a number.
std::vector<double> differences(const std::function<double(const Tensor&)>& f, const Tensor& x) {
  std::vector<double> out;
  const double h = 1e-5;
  for (int64_t i = 0; i < x.numel(); ++i) {
    const auto at = [&](double step) {
      Tensor moved = x.detach().clone();
      moved.view({-1})[i].add_(step);
      return f(moved);
    };
    out.push_back((at(h) - at(-h)) / (2 * h));
  }
  return out;
}

void check_program(const Program& program, Device device) {
  const Tensor x = numbers({3, 4}, 0.3, device);
  const Tensor w = numbers({4}, 1.1, device);
  const auto slopes = [&](const Tensor& at, bool create_graph) {
    Tensor leaf = at.detach().clone().requires_grad_();
    const Tensor loss = weighted(program(leaf, w));
    return std::pair(leaf, grad({loss}, {leaf}, {.create_graph = create_graph})[0]);
  };
  const auto first = slopes(x, false).second;
  CHECK(near(first.reshape({-1}),
             differences([&](const Tensor& at) { return weighted(program(at, w)).item(); }, x),
             1e-6));
  const auto [leaf, recorded] = slopes(x, true);
  const Tensor again = weighted(recorded * recorded);
  if (!again.requires_grad()) return;
  const Tensor second = grad({again}, {leaf})[0];
  CHECK(near(second.reshape({-1}),
             differences(
                 [&](const Tensor& at) {
                   const Tensor g = slopes(at, false).second;
                   return weighted(g * g).item();
                 },
                 x),
             1e-5));
}

}  // namespace

TEST_CASE("writes through views: gradients") {
  const std::pair<const char*, Program> programs[] = {
      {"columns of zeros",
       [](const Tensor& x, const Tensor&) {
         Tensor out = zeros({3, 4}, {f64, x.device()});
         out.select(1, 0).copy_(x.select(1, 0) * x.select(1, 3));
         out[1].add_(x[0].exp());
         return out;
       }},
      {"a slice and its base",
       [](const Tensor& x, const Tensor& w) {
         Tensor y = x * w;
         Tensor v = y.slice(1, 1);
         v.mul_(x.slice(1, 0, 3));
         return cat({y, v * v}, 1);
       }},
      {"the transposed",
       [](const Tensor& x, const Tensor&) {
         Tensor y = x * x;
         y.t().mul_(3.0).slice(0, 1, 3).sin_();
         return y;
       }},
      {"a view of a view, before and after",
       [](const Tensor& x, const Tensor& w) {
         Tensor y = x.sin();
         Tensor a = y.slice(0, 1);
         Tensor b = a.slice(1, 0, 4, 2);
         const Tensor early = a.clone().square().sum();
         b.mul_(w.slice(0, 0, 2));
         a.exp_();
         return (y * early).add(b.sum());
       }},
      {"the base, after the view was taken",
       [](const Tensor& x, const Tensor& w) {
         Tensor y = x * 1.0;
         const Tensor v = diagonal(y);
         const Tensor wide = unfold(y, 1, 3, 1);
         y.mul_(w);
         return (wide * wide).sum().add(v);
       }},
      {"an index and a mask",
       [](const Tensor& x, const Tensor& w) {
         Tensor y = x * 1.0;
         Tensor turned = y.t();
         index_copy_(turned, 0, tensor({3, 0}, {i64, x.device()}), (x * x).t().slice(0, 1, 3));
         y.slice(0, 1).masked_fill_(x.detach().slice(0, 1) > 0.4, 0.5);
         Tensor top = y.slice(0, 0, 2);
         masked_scatter_(top, x.detach().slice(0, 0, 2) > 0.0, (x * w).reshape({-1}));
         return y;
       }},
      {"a base that is not row-major",
       [](const Tensor& x, const Tensor& w) {
         Tensor b = w.expand({3, 4}).clone().t().detach();
         b.slice(0, 1, 3).mul_(x.t().slice(0, 1, 3));
         Tensor gaps = ones({3, 8}, {f64, x.device()}).slice(1, 0, 8, 2).detach();
         gaps[1].mul_(x[0]);
         return (b * b.sin()).t() + gaps * gaps;
       }},
      {"complex parts",
       [](const Tensor& x, const Tensor& w) {
         Tensor z = complex(x, x * 2.0);
         imag(z).mul_(x);
         z[0].mul_(complex(w, w));
         return cat({real(z), imag(z)}, 0);
       }},
  };
  on_devices([&](Device device) {
    for (const auto& [name, program] : programs) {
      INFO(name);
      check_program(program, device);
    }
  });
}

TEST_CASE("writes through views: what is refused") {
  on_devices([](Device device) {
    const TensorOptions on{f64, device};
    Tensor x = tensor({1.0, 2.0}, on).requires_grad_();
    CHECK_THROWS_WITH_AS(x[0].fill_(1),
                         "fill_: a view of a leaf that requires a gradient cannot be modified in "
                         "place while recording; try it under no_grad (NoGradGuard), or the op "
                         "without the trailing _",
                         AutodiffError);
    CHECK_THROWS_AS(x.view({2, 1}).add_(1), AutodiffError);
    Tensor late = zeros({2}, on);
    Tensor early_view = late[0];
    late.requires_grad_();
    CHECK_THROWS_AS(early_view.add_(x[0]), AutodiffError);

    Tensor y = x * 1.0;
    Tensor unseen = no_grad([&] { return y[0]; });
    CHECK_THROWS_AS(unseen.add_(1), AutodiffError);
    CHECK_THROWS_AS(unseen.add_(x[0]), AutodiffError);
    no_grad([&] { unseen.add_(1); });
    Tensor part = y.split(1)[0];
    Tensor sized = split(y, Shape{1, 1})[1];
    Tensor row = y.unbind()[0];
    CHECK_THROWS_AS(part.mul_(2), AutodiffError);
    CHECK_THROWS_AS(sized.mul_(2), AutodiffError);
    CHECK_THROWS_AS(row.view({1}).mul_(2), AutodiffError);
    CHECK_THROWS_AS(y.chunk(2)[0].zero_(), AutodiffError);
    CHECK(mismatch(y, {2}, {2, 2}) == "");  // nothing was written
    y.mul_(2);
    for (const Tensor& behind : {unseen, part, sized, row}) {
      CHECK_THROWS_AS(behind * 1.0, AutodiffError);
      CHECK(no_grad([&] { return behind * 1.0; }).sum().item() == 4.0);
    }
    // Without anything tracked there is nothing to refuse.
    Tensor plain = zeros({2}, on);
    plain.split(1)[0].add_(1);
    Tensor unseen_plain = no_grad([&] { return plain[1]; });
    unseen_plain.add_(2);
    CHECK(mismatch(plain, {2}, {1, 2}) == "");
  });
}

TEST_CASE("writes through views: a saved value that was written is noticed") {
  on_devices([](Device device) {
    Tensor x = tensor({1.0, 2.0}, {f64, device}).requires_grad_();
    Tensor y = x * 1.0;
    const Tensor z = (y * y).sum();
    y[0].add_(1.0);
    CHECK_THROWS_AS((void)z.backward(), AutodiffError);
  });
}

TEST_CASE("writes through views: detach() shares the memory and not the history") {
  on_devices([](Device device) {
    const TensorOptions on{f64, device};
    Tensor x = tensor({1.0, 2.0}, on).requires_grad_();
    Tensor y = x * 1.0;
    y.detach()[0].mul_(3.0);
    CHECK(mismatch(y, {2}, {3, 2}) == "");
    CHECK(mismatch(*x.grad(y.sum().backward()), {2}, {1, 1}) == "");
    Tensor apart = ones({2}, on);
    Tensor d = apart.detach();
    d[0].mul_(x[1]);
    CHECK(d.requires_grad());
    CHECK_FALSE(apart.requires_grad());
  });
}

TEST_CASE("writes through views: a tensor given other memory is no view any more") {
  on_devices([](Device device) {
    Tensor x = tensor({1.0, 2.0}, {f64, device}).requires_grad_();
    Tensor y = x * 1.0;
    Tensor view = y[0];
    interop::set_data(y, zeros({2}, {f64, device}));
    y.add_(1.0);
    CHECK((view * 2.0).item() == 2.0);
    view.mul_(3.0);
    CHECK(mismatch(y, {2}, {1, 1}) == "");
    CHECK(mismatch(*x.grad((view * 2.0).backward()), {2}, {6, 0}) == "");
  });
}

TEST_CASE("writes through views: nothing keeps a graph alive") {
  on_devices([](Device device) {
    Tensor x = tensor({1.0, 2.0, 3.0}, {f64, device}).requires_grad_();
    const size_t before = memory_stats().bytes_in_use;
    std::weak_ptr<int> witness;
    {
      Tensor y = x * 2.0;
      auto held = std::make_shared<int>(1);
      witness = held;
      y.register_hook([held](const Tensor&) { return Tensor(); });
      held.reset();
      Tensor a = y.slice(0, 0, 2);
      Tensor b = y.slice(0, 1);
      for (int i = 0; i < 5; ++i) {
        a.mul_(x.slice(0, 1));
        b.mul_(a.exp());
      }
      y = Tensor();
      CHECK_FALSE(witness.expired());
      const Tensor kept = grad({b.sum()}, {x}, {.create_graph = true})[0];
      CHECK(kept.requires_grad());
    }
    CHECK(witness.expired());
    CHECK(memory_stats().bytes_in_use == before);
  });
}

TEST_CASE("writes through views: several threads may use a view that is behind") {
  Tensor x = tensor({1.0, 2.0}, {f64}).requires_grad_();
  for (int round = 0; round < 20; ++round) {
    Tensor y = x * 1.0;
    const Tensor view = y[0];
    y.mul_(3.0);
    std::vector<double> slopes(4);
    std::vector<std::thread> threads;
    for (double& slope : slopes) {
      threads.emplace_back(
          [&] { slope = x.grad((view * 2.0).backward({}, true))->to_vector<double>()[0]; });
    }
    for (std::thread& t : threads) t.join();
    CHECK(slopes == std::vector<double>{6, 6, 6, 6});
  }
}
