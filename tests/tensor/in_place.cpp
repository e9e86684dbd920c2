// Ops that write into their tensor's memory.
#include <cmath>
#include <functional>

#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("arithmetic, for every dtype and layout") {
  on_devices(kNumberTypes, [](Device device, DType dtype) {
    const TensorOptions on{dtype, device};
    const Tensor start = tensor({{8, 4, 2}, {6, 10, 11}}, on);
    const Tensor other = tensor({{1, 2, 2}, {3, 5, 4}}, on);
    const bool floats = is_floating_point(dtype);
    for (int layout = 0; layout < 3; ++layout) {
      INFO("layout ", layout);
      const auto fresh = [&] { return layout == 1 ? scattered(start) : start.clone(); };
      const Tensor y = layout == 2 ? scattered(other) : other;
      const auto after = [&](const std::function<void(Tensor&)>& f) {
        Tensor x = fresh();
        const Tensor same = x;
        const uint32_t version = x.version();
        f(x);
        CHECK(x.is_same(same));
        CHECK(x.version() > version);
        CHECK(x.dtype() == dtype);
        return x;
      };
      CHECK(mismatch(after([&](Tensor& x) { x.add_(y); }), {2, 3}, {9, 6, 4, 9, 15, 15}) == "");
      CHECK(mismatch(after([&](Tensor& x) { x.add_(y, 2); }), {2, 3}, {10, 8, 6, 12, 20, 19}) ==
            "");
      CHECK(mismatch(after([&](Tensor& x) { x.add_(3); }), {2, 3}, {11, 7, 5, 9, 13, 14}) == "");
      CHECK(mismatch(after([&](Tensor& x) { x.sub_(y); }), {2, 3}, {7, 2, 0, 3, 5, 7}) == "");
      CHECK(mismatch(after([&](Tensor& x) { x.sub_(1); }), {2, 3}, {7, 3, 1, 5, 9, 10}) == "");
      CHECK(mismatch(after([&](Tensor& x) { x.mul_(y); }), {2, 3}, {8, 8, 4, 18, 50, 44}) == "");
      CHECK(mismatch(after([&](Tensor& x) { x.mul_(2); }), {2, 3}, {16, 8, 4, 12, 20, 22}) == "");
      CHECK(mismatch(after([&](Tensor& x) { x += y; }), {2, 3}, {9, 6, 4, 9, 15, 15}) == "");
      CHECK(mismatch(after([&](Tensor& x) { x -= 1; }), {2, 3}, {7, 3, 1, 5, 9, 10}) == "");
      CHECK(mismatch(after([&](Tensor& x) { x *= y[0]; }), {2, 3}, {8, 8, 4, 6, 20, 22}) == "");
      CHECK(mismatch(after([&](Tensor& x) { x.pow_(2); }), {2, 3}, {64, 16, 4, 36, 100, 121}) ==
            "");
      CHECK(mismatch(after([&](Tensor& x) { x.clamp_(4, 8); }), {2, 3}, {8, 4, 4, 6, 8, 8}) == "");
      CHECK(mismatch(after([&](Tensor& x) { x.masked_fill_(y.eq(2), 1); }), {2, 3},
                     {8, 1, 1, 6, 10, 11}) == "");
      CHECK(mismatch(after([&](Tensor& x) { x.copy_(y); }), {2, 3}, {1, 2, 2, 3, 5, 4}) == "");
      CHECK(mismatch(after([&](Tensor& x) { x.copy_(y[1]); }), {2, 3}, {3, 5, 4, 3, 5, 4}) == "");
      CHECK(mismatch(after([&](Tensor& x) { x.fill_(7); }), {2, 3}, {7, 7, 7, 7, 7, 7}) == "");
      CHECK(mismatch(after([&](Tensor& x) { x.zero_(); }), {2, 3}, {0, 0, 0, 0, 0, 0}) == "");
      if (floats) {
        CHECK(mismatch(after([&](Tensor& x) { x.div_(y); }), {2, 3}, {8, 2, 1, 2, 2, 2.75}) == "");
        CHECK(mismatch(after([&](Tensor& x) { x /= 4; }), {2, 3}, {2, 1, 0.5, 1.5, 2.5, 2.75}) ==
              "");
        CHECK(mismatch(after([&](Tensor& x) { x.pow_(0.5); }).slice(0, 0, 1), {1, 3},
                       {std::sqrt(8.0), 2, std::sqrt(2.0)}) == "");
      } else {
        Tensor x = fresh();
        CHECK_THROWS_AS(x.div_(y), DTypeError);
        CHECK_THROWS_AS(x.div_(2), DTypeError);
        CHECK_THROWS_AS(x.add_(0.5), DTypeError);
        CHECK_THROWS_AS(x.mul_(y.to(f32)), DTypeError);
        CHECK_THROWS_AS(x.clamp_(0.5), DTypeError);
        CHECK(mismatch(x, {2, 3}, {8, 4, 2, 6, 10, 11}) == "");  // nothing was written
      }
    }
  });
}

TEST_CASE("bools") {
  on_devices([](Device device) {
    Tensor x = tensor({true, false, false}, {.device = device});
    const Tensor y = tensor({false, true, false}, {.device = device});
    x.add_(y);
    CHECK(mismatch(x, {3}, {1, 1, 0}) == "");
    x.mul_(y);
    CHECK(mismatch(x, {3}, {0, 1, 0}) == "");
    x.masked_fill_(x, false);
    CHECK(mismatch(x, {3}, {0, 0, 0}) == "");
    x.copy_(tensor({2, 0, 0.5}, {.device = device}));
    CHECK(mismatch(x, {3}, {1, 0, 1}) == "");
    CHECK_THROWS_AS(x.add_(1), DTypeError);
    CHECK_THROWS_AS(x.add_(tensor({1, 1, 1}, {.device = device})), DTypeError);
    CHECK_THROWS_AS(x.sub_(y), DTypeError);
    CHECK(mismatch(x, {3}, {1, 0, 1}) == "");
  });
}

TEST_CASE("the result is rounded to the tensor's dtype") {
  on_devices([](Device device) {
    Tensor h = tensor({1.0, 2.0}, {f16, device});
    h.add_(tensor({1e-5, 0.5}, {f64, device}));
    CHECK(h.dtype() == f16);
    CHECK(mismatch(h, {2}, {1, 2.5}, 0) == "");
    Tensor small = tensor({100}, {i8, device});
    small.add_(tensor({100}, {i64, device}));
    CHECK(mismatch(small, {1}, {-56}) == "");
    Tensor f = tensor({1.0}, {f32, device});
    f.mul_(tensor({3}, {i64, device}));
    CHECK(mismatch(f, {1}, {3}) == "");
    f.add_(true);
    CHECK(mismatch(f, {1}, {4}) == "");
    Tensor i = tensor({5, 6}, {i64, device});
    i.copy_(tensor({1.9, -1.9}, {.device = device}));
    CHECK(mismatch(i, {2}, {1, -1}) == "");
    i.fill_(2.9);
    CHECK(mismatch(i, {2}, {2, 2}) == "");
  });
}

TEST_CASE("every view sees the write, for every dtype") {
  on_devices(kAllTypes, [](Device device, DType dtype) {
    Tensor x = zeros({2, 3}, {dtype, device});
    const Tensor flat = x.view({6});
    const Tensor turned = x.t();
    Tensor row = x[1];
    row.fill_(1);
    CHECK(mismatch(flat, {6}, {0, 0, 0, 1, 1, 1}) == "");
    x.select(1, 0).copy_(ones({2}, {dtype, device}));
    CHECK(mismatch(turned, {3, 2}, {1, 1, 0, 1, 0, 1}) == "");
    x.t().slice(0, 1, 2).masked_fill_(ones({2}, {bool_, device}), 1);
    CHECK(mismatch(flat, {6}, {1, 1, 0, 1, 1, 1}) == "");
    x.detach().fill_(0);
    CHECK(mismatch(flat, {6}, {0, 0, 0, 0, 0, 0}) == "");
  });
  on_devices(kNumberTypes, [](Device device, DType dtype) {
    Tensor x = ones({2, 3}, {dtype, device});
    x.slice(1, 0, std::nullopt, 2).add_(1);
    x.t()[1].mul_(5);
    x[0].sub_(x[1]);
    CHECK(mismatch(x, {2, 3}, {0, 0, 0, 2, 5, 2}) == "");
    x.index({1, Slice(1, 3)}).pow_(2);
    x.unsqueeze(0).transpose(0, 2).neg_();
    if (dtype != u8) CHECK(mismatch(x, {2, 3}, {0, 0, 0, -2, -25, -4}) == "");
  });
}

TEST_CASE("operands that overlap the tensor are read before they are written") {
  on_devices(kNumberTypes, [](Device device, DType dtype) {
    const auto square = [&] { return tensor({{1, 2}, {3, 4}}, {dtype, device}); };
    const auto line = [&] { return tensor({1, 2, 3, 4}, {dtype, device}); };
    Tensor x = square();
    x.add_(x.t());
    CHECK(mismatch(x, {2, 2}, {2, 5, 5, 8}) == "");
    x = square();
    x.mul_(x[0]);
    CHECK(mismatch(x, {2, 2}, {1, 4, 3, 8}) == "");
    x = square();
    x.copy_(x.t());
    CHECK(mismatch(x, {2, 2}, {1, 3, 2, 4}) == "");
    x = square();
    x.add_(x);
    CHECK(mismatch(x, {2, 2}, {2, 4, 6, 8}) == "");
    x = square();
    x.copy_(x);
    CHECK(mismatch(x, {2, 2}, {1, 2, 3, 4}) == "");
    x = line();
    x.slice(0, 1).add_(x.slice(0, 0, 3));
    CHECK(mismatch(x, {4}, {1, 3, 5, 7}) == "");
    x = line();
    x.slice(0, 1).copy_(x.slice(0, 0, 3));
    CHECK(mismatch(x, {4}, {1, 1, 2, 3}) == "");
    x = line();
    x.slice(0, 0, 3).copy_(x.slice(0, 1));
    CHECK(mismatch(x, {4}, {2, 3, 4, 4}) == "");
    x = line();
    x.copy_(x[2]);
    CHECK(mismatch(x, {4}, {3, 3, 3, 3}) == "");
    x = line();
    x.slice(0, 1).masked_fill_(x.slice(0, 0, 3) > 1, 9);
    CHECK(mismatch(x, {4}, {1, 2, 9, 9}) == "");
  });
  on_devices([](Device device) {  // large enough for several threads
    const int64_t n = 300;
    Tensor x = arange(n * n, {f32, device}).reshape({n, n});
    const Tensor expected = x.clone() + x.t().clone();
    x.add_(x.t());
    CHECK(x.equal(expected));
    Tensor y = arange(100000, {f32, device});
    y.slice(0, 1).add_(y.slice(0, 0, 99999));
    CHECK(y.equal(arange(100000, {f32, device}) * 2 -
                  (arange(100000, {.device = device}) > 0).to(f32)));
  });
}

TEST_CASE("an expanded tensor cannot be written") {
  on_devices(kAllTypes, [](Device device, DType dtype) {
    Tensor x = ones({1, 3}, {dtype, device});
    Tensor wide = x.expand({2, 3});
    CHECK_THROWS_AS(wide.copy_(zeros({2, 3}, {dtype, device})), ValueError);
    CHECK_THROWS_AS(wide.mul_(wide), ValueError);
    CHECK_THROWS_AS(wide.t().bernoulli_(), ValueError);
    CHECK_THROWS_AS(wide.detach().masked_fill_(ones({2, 3}, {bool_, device}), 0), ValueError);
    CHECK(mismatch(x, {1, 3}, {1, 1, 1}) == "");
    wide.t().fill_(0);  // one value for all: no harm
    CHECK(mismatch(x, {1, 3}, {0, 0, 0}) == "");
    x.expand({1, 3}).copy_(x);  // nothing is repeated
    CHECK(mismatch(x, {1, 3}, {0, 0, 0}) == "");
    x.expand({0, 3}).fill_(1);
    wide.clone().fill_(1);
    CHECK(mismatch(x, {1, 3}, {0, 0, 0}) == "");
  });
}

TEST_CASE("shapes: the operand broadcasts to the tensor, never the other way") {
  on_devices([](Device device) {
    Tensor x = ones({2, 3}, {.device = device});
    x.add_(ones({3}, {.device = device}));
    x.add_(ones({2, 1}, {.device = device}));
    x.add_(ones({}, {.device = device}));
    CHECK(mismatch(x, {2, 3}, {4, 4, 4, 4, 4, 4}) == "");
    Tensor row = ones({3}, {.device = device});
    CHECK_THROWS_AS(row.add_(x), ShapeError);
    CHECK_THROWS_AS(row.copy_(x), ShapeError);
    CHECK_THROWS_AS(row.masked_fill_(x > 0, 1), ShapeError);
    CHECK_THROWS_AS(x.add_(ones({2}, {.device = device})), ShapeError);
    Tensor ints = ones({3}, {i64, device});
    CHECK_THROWS_AS(ints.add_(ones({2, 3}, {i64, device})), ShapeError);
    CHECK(mismatch(row, {3}, {1, 1, 1}) == "");
    Tensor nothing = zeros({0, 3}, {.device = device});
    nothing.add_(row).mul_(2).exp_().copy_(row).fill_(1);
    CHECK(nothing.shape() == Shape{0, 3});
    Tensor scalar = tensor(2.0, {.device = device});
    scalar.add_(1).mul_(scalar).sqrt_();
    CHECK(mismatch(scalar, {}, {3}) == "");
  });
}

TEST_CASE("writes on tracked tensors") {
  on_devices([](Device device) {
    const TensorOptions on{f64, device};
    Tensor x = tensor({1.0, 2.0, 3.0}, on).requires_grad_();
    const auto slope = [&](const std::function<void(Tensor&)>& f) {
      Tensor y = x * 2.0;
      f(y);
      CHECK(y.requires_grad());
      return *x.grad(y.backward(tensor({1.0, 10.0, 100.0}, on)));
    };
    CHECK(mismatch(slope([](Tensor& y) { y.add_(1.0); }), {3}, {2, 20, 200}) == "");
    CHECK(mismatch(slope([&](Tensor& y) { y.add_(x); }), {3}, {3, 30, 300}) == "");
    CHECK(mismatch(slope([&](Tensor& y) { y.add_(x, 3.0); }), {3}, {5, 50, 500}) == "");
    CHECK(mismatch(slope([&](Tensor& y) { y.mul_(x); }), {3}, {4, 80, 1200}) == "");
    CHECK(mismatch(slope([&](Tensor& y) { y.div_(x); }), {3}, {0, 0, 0}) == "");
    CHECK(mismatch(slope([](Tensor& y) { y.pow_(2.0); }), {3}, {8, 160, 2400}) == "");
    CHECK(mismatch(slope([](Tensor& y) { y.clamp_(3.0, 5.0); }), {3}, {0, 20, 0}) == "");
    CHECK(mismatch(slope([&](Tensor& y) { y.sub_(x).div_(2.0); }), {3}, {0.5, 5, 50}) == "");
    CHECK(mismatch(slope([](Tensor& y) { y.exp_(); }), {3},
                   {2 * std::exp(2.0), 20 * std::exp(4.0), 200 * std::exp(6.0)}) == "");
    CHECK(mismatch(slope([](Tensor& y) { y.sqrt_(); }), {3},
                   {1 / std::sqrt(2.0), 10 / 2.0, 100 / std::sqrt(6.0)}) == "");
    CHECK(mismatch(slope([](Tensor& y) { y.log_(); }), {3}, {1, 5, 100.0 / 3}) == "");
    CHECK(mismatch(slope([](Tensor& y) { y.square_().abs_(); }), {3}, {8, 160, 2400}) == "");
    CHECK(mismatch(slope([](Tensor& y) { y.relu_(); }), {3}, {2, 20, 200}) == "");
    CHECK(mismatch(slope([](Tensor& y) { y.masked_fill_(y.detach() > 3.0, 0.0); }), {3},
                   {2, 0, 0}) == "");
    CHECK(mismatch(slope([](Tensor& y) { y.zero_(); }), {3}, {0, 0, 0}) == "");
    CHECK(mismatch(slope([&](Tensor& y) { y.copy_(x * 5.0); }), {3}, {5, 50, 500}) == "");
    CHECK(mismatch(slope([&](Tensor& y) { y.copy_(x[0]); }), {3}, {111, 0, 0}) == "");
    CHECK(mismatch(slope([&](Tensor& y) { no_grad([&] { y.add_(1.0); }); }), {3}, {2, 20, 200}) ==
          "");
    // A tensor without history takes it over.
    Tensor buffer = zeros({3}, on);
    buffer.add_(x);
    CHECK(buffer.requires_grad());
    CHECK_FALSE(buffer.is_leaf());
    CHECK(mismatch(*x.grad(buffer.sum().backward()), {3}, {1, 1, 1}) == "");
    // Another dtype on the way.
    Tensor narrow = zeros({3}, {f32, device});
    narrow.add_(x * 2.0);
    CHECK(narrow.dtype() == f32);
    CHECK(mismatch(*x.grad(narrow.sum().backward()), {3}, {2, 2, 2}) == "");
  });
}

TEST_CASE("what may not be written while recording") {
  on_devices([](Device device) {
    Tensor x = tensor({1.0, 2.0}, {.device = device}).requires_grad_();
    CHECK_THROWS_AS(x.add_(1), AutodiffError);
    CHECK_THROWS_AS(x.fill_(1), AutodiffError);
    CHECK_THROWS_AS(x.copy_(x.detach()), AutodiffError);
    CHECK_THROWS_AS(x.exp_(), AutodiffError);
    CHECK_THROWS_AS(x.masked_fill_(x.detach() > 1, 0), AutodiffError);
    CHECK_THROWS_AS(x[0].fill_(1), AutodiffError);  // a view of a leaf
    CHECK(mismatch(x, {2}, {1, 2}) == "");
    // detach() and no_grad() are the ways round.
    x.detach().add_(1);
    CHECK(mismatch(x, {2}, {2, 3}) == "");
    no_grad([&] {
      x.mul_(2).sub_(1).copy_(x + 0.0).clamp_(0, 100).exp_().log_().masked_fill_(x > 1000, 0);
      x[0].fill_(7);
    });
    CHECK(x.requires_grad());
    CHECK(x.is_leaf());
    CHECK(x[0].item() == 7.0);
    CHECK(mismatch(*x.grad((x * x).sum().backward()), {2}, {14, 10}) == "");
    // A view follows its tensor, whether a write is recorded or not.
    Tensor y = x * 1.0;
    const Tensor view = y[0];
    no_grad([&] { y.add_(1); });
    CHECK((view * 1.0).item() == 8.0);
    y.mul_(2);
    CHECK((view * 1.0).item() == 16.0);
    CHECK(mismatch(*x.grad((view * 1.0).backward()), {2}, {2, 0}) == "");
  });
}

TEST_CASE("a backward pass notices that what it needs was written") {
  on_devices([](Device device) {
    const TensorOptions on{f64, device};
    Tensor x = tensor({1.0, 2.0}, on).requires_grad_();
    const std::function<void(Tensor&)> writes[] = {
        [](Tensor& y) { y.add_(1.0); },
        [](Tensor& y) { y.fill_(0.0); },
        [](Tensor& y) { y.copy_(y * 2.0); },
        [](Tensor& y) { y.detach().mul_(2.0); },
        [](Tensor& y) { no_grad([&] { y[0].zero_(); }); },
        [](Tensor& y) { no_grad([&] { y.uniform_(); }); },
    };
    for (const auto& write : writes) {
      Tensor y = x * 3.0;
      const Tensor z = (y * y).sum();
      write(y);
      CHECK_THROWS_AS((void)z.backward(), AutodiffError);
    }
    // What nobody saved may be written.
    Tensor y = x * 3.0;
    const Tensor z = (y + 1.0).sum();
    y.mul_(2.0);
    CHECK(mismatch(*x.grad(z.backward()), {2}, {3, 3}) == "");
    // An index that was saved.
    Tensor i = tensor({0, 1}, {i64, device});
    const Tensor picked = x.index_select(0, i).sum();
    i.fill_(0);
    CHECK_THROWS_AS((void)picked.backward(), AutodiffError);
  });
}

TEST_CASE("writes through variable_data are not seen by autodiff") {
  on_devices({f32, f64}, [](Device device, DType dtype) {
    const Tensor x = tensor({1, 2, 3}, {.dtype = dtype, .device = device, .requires_grad = true});
    Tensor y = x * 2;
    const Tensor z = y * y;  // keeps y
    Tensor data = y.variable_data();
    CHECK(!data.requires_grad());
    const uint32_t version = y.version();
    data.select(0, 1).fill_(10);
    CHECK(y.version() == version);
    CHECK(data.version() > 0);
    CHECK(mismatch(y.detach(), {3}, {2, 10, 6}) == "");
    // The gradient is that of the new value, as PyTorch gives it: 2 * y * 2.
    CHECK(mismatch(*z.sum().backward().get(x), {3}, {8, 40, 24}) == "");

    // Its own version is looked at.
    Tensor own = y.variable_data();
    const Tensor w = own * x;
    own.add_(1);
    CHECK_THROWS_AS((void)w.sum().backward(), AutodiffError);
    // And the first one's, when that is written.
    const Tensor v = y * y;
    y.detach().add_(1);
    CHECK_THROWS_AS((void)v.sum().backward(), AutodiffError);
  });
}

TEST_CASE("variable_data shares memory: overlapping writes are recognized") {
  on_devices({f32}, [](Device device, DType dtype) {
    Tensor x = arange(6, {.dtype = dtype, .device = device});
    x.slice(0, 1, 6).copy_(x.variable_data().slice(0, 0, 5));
    CHECK(mismatch(x, {6}, {0, 0, 1, 2, 3, 4}) == "");
  });
}
