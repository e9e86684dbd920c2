// vmap gives what a loop over the elements gives, and so do gradients inside and outside of it.
#include "kiln/tensor/autograd/vmap.h"

#include "kiln/kiln.h"
#include "tests/support/tensor_check.h"
#include "tests/support/throws.h"

namespace kiln::test {
namespace {

Tensor ramp(const Shape& shape, Device device) {
  return linspace(-1.0, 1.0, shape.numel(), {f64, device}).reshape(shape);
}

TEST_CASE("vmap: values, and gradients of inputs and of what the function captured") {
  on_devices([](Device device) {
    const Tensor x = ramp({3, 2}, device);
    Tensor w = ramp({2, 4}, device).requires_grad_();
    const auto f = [&](const Tensor& row) { return row.matmul(w).sin().prod(0); };
    const auto mapped = [&](const Tensor& all) {
      return vmap([&](const TensorList& in) { return TensorList{f(in[0])}; }, {all})[0];
    };
    const auto looped = [&](const Tensor& all) {
      std::vector<Tensor> each;
      for (int64_t i = 0; i < all.size(0); ++i) each.push_back(f(all.select(0, i)));
      return stack(each);
    };
    CHECK(mapped(x).allclose(looped(x)));
    Tensor one = x.clone().requires_grad_(), two = x.clone().requires_grad_();
    const auto a = grad({mapped(one).square().sum()}, {one, w});
    const auto b = grad({looped(two).square().sum()}, {two, w});
    for (size_t i = 0; i < 2; ++i) CHECK(a[i].allclose(b[i]));
  });
}

TEST_CASE("vmap: dims, several results, and gradients of each element") {
  const Tensor x = ramp({2, 3}, {});
  const auto both = [](const TensorList& in) { return TensorList{in[0] + in[1], in[0].sum()}; };
  const TensorList out =
      vmap(both, {x, ramp({2}, {})}, {.in_dims = {1, std::nullopt}, .out_dims = {1, 0}});
  CHECK(out[0].allclose(x + ramp({2}, {}).unsqueeze(1)));
  CHECK(out[1].allclose(x.sum(0)));
  const auto cubes = [](const TensorList& in) {
    Tensor own = in[0].detach().requires_grad_();
    return TensorList{grad({own.pow(3.0).sum()}, {own})[0]};
  };
  CHECK(vmap(cubes, {x})[0].allclose(x.square() * 3.0));
}

TEST_CASE("vmap: what it refuses") {
  const auto same = [](const TensorList& in) { return in; };
  CHECK_THROWS_AS(vmap(same, {}), ValueError);
  CHECK_THROWS_AS(vmap(same, {ones({2})}, {.in_dims = {std::nullopt}}), ValueError);
  CHECK_THROWS_AS(vmap(same, {ones({2}), ones({3})}), ValueError);
  CHECK_THROWS_AS(vmap(same, {ones({2})}, {.out_dims = {0, 0}}), ValueError);
  const auto reads = [](const TensorList& in) { return TensorList{in[0] * in[0].item<double>()}; };
  CHECK_THROWS_AS(vmap(reads, {ones({2})}), RuntimeError);
  const auto draws = [](const TensorList& in) { return TensorList{in[0] + randn({2})}; };
  CHECK_THROWS_AS(vmap(draws, {ones({3, 2})}), RuntimeError);
  const Tensor y = vmap(draws, {zeros({3, 2})}, {.randomness = Randomness::same})[0];
  CHECK(y.select(0, 0).equal(y.select(0, 2)));
}

}  // namespace
}  // namespace kiln::test
