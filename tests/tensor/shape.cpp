// Ops that change the shape and, where they can, share their operand's memory.
#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

// 0, 1, 2, ... in every dtype but bool, where each other element is true.
Tensor counted(const Shape& shape, DType dtype, Device device) {
  const Tensor x = arange(shape.numel(), {i64, device}).reshape(shape);
  return dtype == bool_ ? (x % 2).to(bool_) : x.to(dtype);
}

Doubles as(DType dtype, Doubles values) {
  if (dtype == bool_) {
    for (double& v : values) v = static_cast<int>(v) % 2;
  }
  return values;
}

// Whether a write into the view is seen in the base.
bool aliases(Tensor view, const Tensor& base) {
  const Doubles before = base.to_data().to_doubles();
  const Tensor old = view.clone();
  view.fill_(base.dtype() == bool_ ? Scalar(!old.flatten()[0].item<bool>()) : Scalar(99));
  const bool seen = base.to_data().to_doubles() != before;
  view.copy_(old);
  return seen;
}

}  // namespace

TEST_CASE("reshape, for every dtype") {
  on_devices(kAllTypes, [](Device device, DType dtype) {
    const Tensor x = counted({2, 3, 4}, dtype, device);
    const Doubles all = x.to_data().to_doubles();
    for (const Shape& to :
         {Shape{24}, Shape{6, 4}, Shape{2, 12}, Shape{1, 2, 3, 4}, Shape{4, 3, 2}}) {
      CHECK(mismatch(x.reshape(to), to, all) == "");
      CHECK(aliases(x.reshape(to), x));
      CHECK(mismatch(scattered(x).reshape(to), to, all) == "");
    }
    CHECK(x.reshape({-1, 4}).shape() == Shape{6, 4});
    CHECK(x.reshape({2, -1}).shape() == Shape{2, 12});
    CHECK(x.reshape({-1}).shape() == Shape{24});
    // A transposed tensor must be copied, in the order that it shows.
    CHECK(mismatch(x[0].t().reshape({12}), {12},
                   as(dtype, {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11})) == "");
    CHECK_FALSE(aliases(x[0].t().reshape({12}), x));
    CHECK(aliases(x.transpose(0, 1).reshape({3, 2, 2, 2}), x));  // splits the last dim only
    CHECK(mismatch(tensor(true, {dtype, device}).reshape({1, 1}), {1, 1}, {1}) == "");
    CHECK(mismatch(counted({1}, dtype, device).reshape({}), {}, {0}) == "");
    const Tensor none = zeros({0, 3}, {dtype, device});
    CHECK(none.reshape({3, 0}).shape() == Shape{3, 0});
    CHECK(none.reshape({-1, 5}).shape() == Shape{0, 5});
    CHECK(none.t().reshape({0}).shape() == Shape{0});
  });
  CHECK_THROWS_AS(zeros({6}).reshape({4}), ShapeError);
  CHECK_THROWS_AS(zeros({6}).reshape({-1, 4}), ShapeError);
  CHECK_THROWS_AS(zeros({6}).reshape({-1, -1}), ShapeError);
  CHECK_THROWS_AS(zeros({6}).reshape({-2, 3}), ShapeError);
  CHECK_THROWS_AS(zeros({0}).reshape({0, -1}), ShapeError);  // anything would do
  CHECK_THROWS_AS(zeros({0}).reshape({0, int64_t{1} << 61, 8}), ShapeError);
}

TEST_CASE("view never copies") {
  on_devices([](Device device) {
    const Tensor x = counted({2, 6}, f32, device);
    CHECK(aliases(x.view({3, 4}), x));
    CHECK(aliases(x.view({-1}), x));
    CHECK(aliases(x.slice(1, 0, 3).view({2, 3, 1}), x));
    CHECK_THROWS_AS(x.t().view({12}), ShapeError);
    CHECK_THROWS_AS(x.slice(1, 0, 3).view({6}), ShapeError);
    CHECK_THROWS_AS(x.view({5}), ShapeError);
    CHECK(x.slice(0, 0, 0).t().view({0, 7}).shape() == Shape{0, 7});
    CHECK(aliases(x.slice(1, 0, std::nullopt, 2).view({6}), x));  // one even stride
    CHECK(x.expand({3, 2, 6}).view({3, 12}).shape() == Shape{3, 12});
  });
}

TEST_CASE("permute, transpose, t") {
  on_devices(kAllTypes, [](Device device, DType dtype) {
    const Tensor x = counted({2, 3, 2}, dtype, device);
    CHECK(mismatch(x.permute({2, 0, 1}), {2, 2, 3},
                   as(dtype, {0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11})) == "");
    CHECK(mismatch(x.permute({-1, -3, -2}), {2, 2, 3},
                   as(dtype, {0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11})) == "");
    CHECK(mismatch(x.transpose(0, 1), {3, 2, 2},
                   as(dtype, {0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11})) == "");
    CHECK(mismatch(x.transpose(-1, 1)[0], {2, 3}, as(dtype, {0, 2, 4, 1, 3, 5})) == "");
    CHECK(mismatch(x[0].t(), {2, 3}, as(dtype, {0, 2, 4, 1, 3, 5})) == "");
    CHECK(mismatch(scattered(x).permute({2, 0, 1})[1], {2, 3}, as(dtype, {1, 3, 5, 7, 9, 11})) ==
          "");
    CHECK(aliases(x.permute({2, 1, 0}), x));
    CHECK(aliases(x.transpose(0, 2), x));
    CHECK(x.permute({2, 0, 1}).stride() == Strides{1, 6, 2});
    CHECK(x.transpose(1, 1).shape() == x.shape());
    CHECK(x[0][0].t().shape() == Shape{2});
    CHECK(x[0][0][0].transpose(0, -1).shape() == Shape{});
    CHECK(x[0][0][0].permute(Dims{}).shape() == Shape{});
    CHECK(zeros({0, 2}, {dtype, device}).t().shape() == Shape{2, 0});
  });
  CHECK_THROWS_AS(zeros({2, 3}).permute({0}), ShapeError);
  CHECK_THROWS_AS(zeros({2, 3}).permute({0, 0}), ValueError);
  CHECK_THROWS_AS(zeros({2, 3}).permute({0, 2}), IndexError);
  CHECK_THROWS_AS(zeros({2, 3}).transpose(0, 2), IndexError);
  CHECK_THROWS_AS(zeros({2, 3, 4}).t(), ShapeError);
}

TEST_CASE("expand") {
  on_devices(kAllTypes, [](Device device, DType dtype) {
    const Tensor x = counted({2, 1}, dtype, device);
    CHECK(mismatch(x.expand({2, 3}), {2, 3}, {0, 0, 0, 1, 1, 1}) == "");
    CHECK(mismatch(x.expand({2, 2, 2}), {2, 2, 2}, {0, 0, 1, 1, 0, 0, 1, 1}) == "");
    CHECK(mismatch(x.expand({-1, 3}), {2, 3}, {0, 0, 0, 1, 1, 1}) == "");
    CHECK(mismatch(x.broadcast_to({2, 3}), {2, 3}, {0, 0, 0, 1, 1, 1}) == "");
    CHECK(mismatch(x[1].expand({3}), {3}, {1, 1, 1}) == "");
    CHECK(mismatch(x[1][0].expand({2, 2}), {2, 2}, {1, 1, 1, 1}) == "");
    CHECK(x.expand({2, 3}).stride() == Strides{1, 0});
    CHECK(x.expand({2, 0}).shape() == Shape{2, 0});
    CHECK(zeros({0, 1}, {dtype, device}).expand({0, 4}).shape() == Shape{0, 4});
    CHECK(mismatch(x.expand({2, 3}).t(), {3, 2}, {0, 1, 0, 1, 0, 1}) == "");
    CHECK(mismatch(x.expand({3, 2, 2}).sum(0).to(f64), {2, 2}, {0, 0, 3, 3}) == "");
  });
  CHECK_THROWS_AS(zeros({2, 3}).expand({3}), ShapeError);
  CHECK_THROWS_AS(zeros({2, 3}).expand({3, 3}), ShapeError);
  CHECK_THROWS_AS(zeros({2}).expand({-1, 2}), ShapeError);  // no size to keep there
  CHECK_THROWS_AS(zeros({2}).expand({1}), ShapeError);
}

TEST_CASE("squeeze, unsqueeze, flatten") {
  on_devices(kAllTypes, [](Device device, DType dtype) {
    const Tensor x = counted({1, 2, 1, 3}, dtype, device);
    CHECK(x.squeeze().shape() == Shape{2, 3});
    CHECK(x.squeeze(0).shape() == Shape{2, 1, 3});
    CHECK(x.squeeze(-2).shape() == Shape{1, 2, 3});
    CHECK(x.squeeze(1).shape() == x.shape());  // not of size 1: stays
    CHECK(x.unsqueeze(0).shape() == Shape{1, 1, 2, 1, 3});
    CHECK(x.unsqueeze(-1).shape() == Shape{1, 2, 1, 3, 1});
    CHECK(x.unsqueeze(4).shape() == Shape{1, 2, 1, 3, 1});
    CHECK(x.flatten().shape() == Shape{6});
    CHECK(x.flatten(1).shape() == Shape{1, 6});
    CHECK(x.flatten(0, 1).shape() == Shape{2, 1, 3});
    CHECK(x.flatten(-2, -1).shape() == Shape{1, 2, 3});
    CHECK(x.flatten(2, 2).shape() == x.shape());
    CHECK(mismatch(x.permute({3, 2, 1, 0}).squeeze(), {3, 2}, as(dtype, {0, 3, 1, 4, 2, 5})) == "");
    CHECK(mismatch(x.squeeze().t().flatten(), {6}, as(dtype, {0, 3, 1, 4, 2, 5})) == "");
    CHECK(aliases(x.squeeze(), x));
    CHECK(aliases(x.unsqueeze(2), x));
    CHECK(aliases(x.flatten(), x));
    CHECK(aliases(x.squeeze().t().unsqueeze(1), x));
    const Tensor scalar = x[0][1][0][1];
    CHECK(scalar.squeeze().shape() == Shape{});
    CHECK(scalar.squeeze(0).shape() == Shape{});
    CHECK(scalar.unsqueeze(0).shape() == Shape{1});
    CHECK(scalar.unsqueeze(-1).shape() == Shape{1});
    CHECK(scalar.flatten().shape() == Shape{1});
    CHECK(zeros({2, 0, 3}, {dtype, device}).flatten(1).shape() == Shape{2, 0});
    CHECK(zeros({1, 0}, {dtype, device}).squeeze().shape() == Shape{0});
  });
  CHECK_THROWS_AS(zeros({2, 3}).squeeze(2), IndexError);
  CHECK_THROWS_AS(zeros({2, 3}).unsqueeze(3), IndexError);
  CHECK_THROWS_AS(zeros({2, 3}).unsqueeze(-4), IndexError);
  CHECK_THROWS_AS(zeros({2, 3}).flatten(1, 0), IndexError);
  CHECK_THROWS_AS(zeros(Shape::filled(12, 1)).unsqueeze(0), ShapeError);
}

TEST_CASE("flip") {
  on_devices(kAllTypes, [](Device device, DType dtype) {
    const Tensor x = counted({2, 3}, dtype, device);
    CHECK(mismatch(x.flip({0}), {2, 3}, as(dtype, {3, 4, 5, 0, 1, 2})) == "");
    CHECK(mismatch(x.flip({-1}), {2, 3}, as(dtype, {2, 1, 0, 5, 4, 3})) == "");
    CHECK(mismatch(x.flip({0, 1}), {2, 3}, as(dtype, {5, 4, 3, 2, 1, 0})) == "");
    CHECK(mismatch(scattered(x).flip({1}), {2, 3}, as(dtype, {2, 1, 0, 5, 4, 3})) == "");
    CHECK_FALSE(aliases(x.flip({0}), x));
    CHECK(mismatch(x[0][1].flip({0}), {}, {1}) == "");
    CHECK(zeros({0, 2}, {dtype, device}).flip({0}).shape() == Shape{0, 2});
  });
  CHECK_THROWS_AS(zeros({2}).flip({1}), IndexError);
  CHECK_THROWS_AS(zeros({2}).flip({0, 0}), ValueError);
}

TEST_CASE("gradients") {
  on_devices([](Device device) {
    const TensorOptions on{f64, device};
    const auto slope = [&](auto f) {
      Tensor x = arange(6, on).reshape({2, 3}).requires_grad_();
      const Tensor out = f(x);
      const Tensor seed = arange(out.numel(), on).reshape(out.shape());
      return *x.grad(out.backward(seed));
    };
    CHECK(mismatch(slope([](auto& x) {
                     return x.reshape({3, 2});
                   }),
                   {2, 3}, {0, 1, 2, 3, 4, 5}) == "");
    CHECK(mismatch(slope([](auto& x) { return x.t(); }), {2, 3}, {0, 2, 4, 1, 3, 5}) == "");
    CHECK(mismatch(slope([](auto& x) { return x.t().reshape({6}); }), {2, 3}, {0, 2, 4, 1, 3, 5}) ==
          "");
    CHECK(mismatch(slope([](auto& x) {
                     return x.expand({2, 2, 3});
                   }),
                   {2, 3}, {6, 8, 10, 12, 14, 16}) == "");
    CHECK(mismatch(slope([](auto& x) {
                     return x.unsqueeze(1).expand({2, 2, 3});
                   }),
                   {2, 3}, {3, 5, 7, 15, 17, 19}) == "");
    CHECK(mismatch(slope([](auto& x) { return x.flip({1}); }), {2, 3}, {2, 1, 0, 5, 4, 3}) == "");
    CHECK(mismatch(slope([](auto& x) {
                     return x.unsqueeze(0).permute({2, 0, 1}).squeeze();
                   }),
                   {2, 3}, {0, 2, 4, 1, 3, 5}) == "");
    CHECK(mismatch(slope([](auto& x) { return x.t().contiguous().flatten(); }), {2, 3},
                   {0, 2, 4, 1, 3, 5}) == "");
    CHECK(mismatch(slope([](auto& x) { return x.clone(); }), {2, 3}, {0, 1, 2, 3, 4, 5}) == "");
    CHECK(mismatch(slope([](auto& x) { return x.to(f32); }), {2, 3}, {0, 1, 2, 3, 4, 5}) == "");
  });
}
