// Functions as methods, and short forms of functions that make tensors.
#include <array>
#include <cstdlib>
#include <list>
#include <span>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/kiln.h"
#include "tests/support/near.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::test::near;

TEST_CASE("creation in short") {
  CHECK(zeros({2, 3}, i64).dtype() == i64);
  CHECK(ones(3).shape() == Shape{3});
  CHECK(rand(5, f64).dtype() == f64);
  CHECK(empty(0).numel() == 0);
  CHECK(full({2}, 1, f32).dtype() == f32);
  CHECK(tensor({1, 2}, f32).dtype() == f32);
  CHECK(tensor(1, f64).dtype() == f64);
  CHECK(arange(4, f32).dtype() == f32);
  CHECK(zeros({2}, {}).dtype() == default_dtype());
  const Tensor x = ones({2}, f64);
  CHECK(zeros({3}, x.options()).dtype() == f64);
  CHECK(near(x.new_full({2}, 7), {7, 7}));
  CHECK(x.new_zeros({1, 2}).dtype() == f64);
  CHECK(x.new_ones({1}).sum().item() == 1);
  CHECK(x.new_empty({4}).shape() == Shape{4});
}

TEST_CASE("tensor: from ranges of numbers, and of ranges") {
  const std::array<float, 3> three = {1, 2, 3};
  CHECK(near(tensor(three), {1, 2, 3}));
  CHECK(tensor(three).dtype() == f32);
  CHECK(tensor(std::span<const float>(three)).equal(tensor(three)));
  const double plain[2] = {0.5, 1.5};
  CHECK(tensor(plain).dtype() == f64);
  CHECK(near(tensor(plain), {0.5, 1.5}));
  const std::vector<std::vector<int32_t>> rows = {{1, 2}, {3, 4}, {5, 6}};
  CHECK(tensor(rows).dtype() == i32);
  CHECK(tensor(rows).shape() == Shape{3, 2});
  CHECK(near(tensor(rows), {1, 2, 3, 4, 5, 6}));
  CHECK(tensor(rows, f64).dtype() == f64);
  CHECK(tensor(rows, {f32}).dtype() == f32);
  const std::vector<std::array<std::array<int64_t, 2>, 2>> cubes = {{{{1, 2}, {3, 4}}}};
  CHECK(tensor(cubes).shape() == Shape{1, 2, 2});
  const std::vector<bool> bools = {true, false, true};
  CHECK(tensor(bools).dtype() == bool_);
  CHECK(near(tensor(bools), {1, 0, 1}));
  CHECK(tensor(std::vector<std::vector<bool>>{{true}, {false}}).shape() == Shape{2, 1});
  CHECK(tensor(std::list<float>{1, 2}).shape() == Shape{2});
  CHECK(tensor(std::vector<float>{}).shape() == Shape{0});
  CHECK(tensor(std::vector<std::vector<float>>{{}, {}}).shape() == Shape{2, 0});
  CHECK(test::message_of<ShapeError>([] {
          tensor(std::vector<std::vector<float>>{{1, 2}, {3}});
        }) == "tensor: rows differ in length; got 1 and 2");
}

// Against the methods, whose values the tests of each have.
TEST_CASE("functions are the methods of their names") {
  const Tensor x = tensor({{3.0, 1.0, 2.0}, {6.0, 5.0, 4.0}});
  const auto same = [](const Tensor& a, const Tensor& b) {
    return a.shape() == b.shape() && a.equal(b);
  };
  const auto both = [&](const std::pair<Tensor, Tensor>& a, const std::pair<Tensor, Tensor>& b) {
    return same(a.first, b.first) && same(a.second, b.second);
  };
  CHECK(same(sum(x), x.sum()));
  CHECK(same(sum(x, 0), x.sum(0)));
  CHECK(same(sum(x, {0, 1}, true), x.sum({0, 1}, true)));
  CHECK(same(mean(x), x.mean()));
  CHECK(same(mean(x, -1), x.mean(-1)));
  CHECK(same(mean(x, {0}, true), x.mean({0}, true)));
  CHECK(same(prod(x), x.prod()));
  CHECK(same(prod(x, 1), x.prod(1)));
  CHECK(same(var(x), x.var()));
  CHECK(same(var(x, 1, 0), x.var(1, 0)));
  CHECK(same(kiln::std(x), x.std()));
  CHECK(same(kiln::std(x, {0}, 0, true), x.std({0}, 0, true)));
  CHECK(same(logsumexp(x, 1), x.logsumexp(1)));
  CHECK(same(logsumexp(x, {0, 1}), x.logsumexp({0, 1})));
  CHECK(same(amax(x), x.amax()));
  CHECK(same(amax(x, 1, true), x.amax(1, true)));
  CHECK(same(amin(x, {0}), x.amin({0})));
  CHECK(same(amin(x, 0), x.amin(0)));
  CHECK(same(max(x), x.max()));
  CHECK(both(max(x, 1), x.max(1)));
  CHECK(same(min(x), x.min()));
  CHECK(both(min(x, 0, true), x.min(0, true)));
  CHECK(same(median(x), x.median()));
  CHECK(both(median(x, 1), x.median(1)));
  CHECK(same(nanmedian(x), x.nanmedian()));
  CHECK(both(nanmedian(x, 1), x.nanmedian(1)));
  CHECK(same(argmax(x), x.argmax()));
  CHECK(same(argmax(x, 1), x.argmax(1)));
  CHECK(same(argmin(x), x.argmin()));
  CHECK(same(argmin(x, 0, true), x.argmin(0, true)));
  CHECK(same(cumsum(x, 1), x.cumsum(1)));
  CHECK(same(reshape(x, {3, -1}), x.reshape({3, 2})));
  CHECK(same(transpose(x, 0, 1), x.transpose(0, 1)));
  CHECK(same(t(x), x.t()));
  CHECK(same(permute(x, {1, 0}), x.permute({1, 0})));
  CHECK(same(broadcast_to(x, {2, 2, 3}), x.expand({2, 2, 3})));
  CHECK(same(unsqueeze(x, 1), x.unsqueeze(1)));
  CHECK(same(squeeze(x.unsqueeze(1)), x));
  CHECK(same(squeeze(x.unsqueeze(0), 0), x));
  CHECK(same(flatten(x), x.flatten()));
  CHECK(same(flip(x, {1}), x.flip({1})));
  CHECK(same(split(x, 2, 1)[1], x.split(2, 1)[1]));
  CHECK(same(chunk(x, 2)[1], x.chunk(2)[1]));
  CHECK(same(unbind(x, 1)[2], x.unbind(1)[2]));
  CHECK(same(clone(x), x));
  CHECK(same(select(x, 1, 2), x.select(1, 2)));
  CHECK(same(narrow(x, 1, 1, 2), x.narrow(1, 1, 2)));
  const Tensor places = tensor({0, 0});
  CHECK(same(index_select(x, 0, places), x.index_select(0, places)));
  CHECK(same(index_add(x, 0, places, x), x.index_add(0, places, x)));
  const Tensor index = tensor({{0, 1, 1}});
  CHECK(same(gather(x, 0, index), x.gather(0, index)));
  CHECK(same(scatter_add(x, 0, index, ones({1, 3})), x.scatter_add(0, index, ones({1, 3}))));
}

TEST_CASE("short forms") {
  const Tensor x = tensor({{3.0, 1.0}, {2.0, 4.0}}), y = full({2, 2}, 2.5);
  CHECK(near(max(x, y), {3, 2.5, 2.5, 4}));
  CHECK(near(min(x, y), {2.5, 1, 2, 2.5}));
  CHECK(near(norm(x, 1, 1), {4, 6}));
  CHECK(norm(x, 2, -1, true).shape() == Shape{2, 1});
  CHECK(arange(0, 3, f32).equal(tensor({0.0, 1.0, 2.0})));
  CHECK(arange(0, 6, 2, f64).dtype() == f64);
  CHECK(linspace(0, 1, 3, f64).equal(tensor({0.0, 0.5, 1.0}, f64)));
  CHECK(eye(2, f64).dtype() == f64);
  CHECK(randperm(4, i32).dtype() == i32);
  CHECK(randint(0, 3, {2}, i32).dtype() == i32);
  CHECK(randint(1, {3}).equal(zeros({3}, i64)));
  CHECK(zeros_like(x, i64).equal(zeros({2, 2}, i64)));
  CHECK(ones_like(x, bool_).dtype() == bool_);
  CHECK(full_like(x, 7, i32).equal(full({2, 2}, 7, i32)));
  CHECK(rand_like(x, f64).dtype() == f64);
  CHECK(randn_like(x, bf16).dtype() == bf16);
  CHECK(meshgrid({arange(2), arange(3)})[1].shape() == Shape{2, 3});
  CHECK(cartesian_prod({arange(2), arange(3)}).shape() == Shape{6, 2});
  CHECK(near(linalg::multi_dot({x, y, eye(2)}), matmul(x, y).to_vector<double>()));
  CHECK(nn::pad_sequence({ones({2}), ones({3})}, true).shape() == Shape{2, 3});
  CHECK(nn::pack_sequence({ones({3}), ones({2})}).data.shape() == Shape{5});
  CHECK(nn::parameters_to_vector({x, y}).shape() == Shape{8});
  Tensor w = ones({1}).requires_grad_();
  w.set_grad(full({1}, 10.0));
  CHECK(optim::clip_grad_norm_({w}, 1.0).item() == 10.0);
  optim::clip_grad_value_({w}, 0.5);
  CHECK(near(w.grad(), {0.5}));
  CHECK(functional::softmax(x, 1).equal(softmax(x, 1)));
  CHECK(functional::log_softmax(x, 1).equal(log_softmax(x, 1)));
  CHECK(functional::relu(-x).equal(zeros({2, 2})));
  CHECK(functional::tanh(x).equal(x.tanh()));
  CHECK(functional::sigmoid(x).equal(x.sigmoid()));
  CHECK(functional::gelu(x).equal(x.gelu()));
  CHECK(functional::one_hot(tensor({1}), 2).equal(tensor({{0, 1}})));
}

TEST_CASE("from_blob: memory of the caller's") {
  std::vector<float> values{1, 2, 3, 4};
  Tensor x = from_blob(values.data(), {2, 2});
  x[1][0] = 30;
  CHECK(values[2] == 30);
  // A result takes the memory of no caller, though the tensor is a temporary.
  const Tensor doubled = from_blob(values.data(), {4}) * 2;
  CHECK(near(doubled, {2, 4, 60, 8}));
  CHECK(values[0] == 1);
  CHECK(near(relu(from_blob(values.data(), {2}, {2})), {1, 30}));
  int64_t whole[] = {5, 6};
  CHECK(near(from_blob(whole, {2}, i64), {5, 6}));
  int freed = 0;
  {
    const Tensor owned = from_blob(std::calloc(3, sizeof(float)), {3}, [&](void* data) {
      std::free(data);
      ++freed;
    });
    const Tensor view = owned[1];
    CHECK(near(view, {0}));
    CHECK(freed == 0);
  }
  CHECK(freed == 1);
  CHECK_THROWS_AS(from_blob(nullptr, {3}), ValueError);
  CHECK_THROWS_AS(from_blob(values.data(), {2, 2}, Strides{1}), ShapeError);
  CHECK_THROWS_AS(from_blob(values.data(), {2}, {.device = "meta"}), DeviceError);
  CHECK(from_blob(nullptr, {0}).numel() == 0);
}

TEST_CASE("methods are the functions of their names") {
  const Tensor x = arange(6.0).reshape({2, 3});
  CHECK(near(x.repeat({1, 2})[0], {0, 1, 2, 0, 1, 2}));
  CHECK(x.tile({2, 1}).shape() == Shape{4, 3});
  CHECK(near(x.triu(), {0, 1, 2, 0, 4, 5}));
  CHECK(near(x.tril(), {0, 0, 0, 3, 4, 0}));
  CHECK(near(x.diagonal(), {0, 4}));
  CHECK(near(x.roll({1}, {1})[0], {2, 0, 1}));
  CHECK(x.movedim({0}, {1}).shape() == Shape{3, 2});
  CHECK(x.view(-1).unflatten(0, {3, 2}).shape() == Shape{3, 2});
  CHECK(x.reshape(6).view_as(x).equal(x));
  CHECK(near(x.masked_select(x.gt(3)), {4, 5}));
  CHECK(x.nonzero().shape() == Shape{5, 2});
  CHECK(near(x.take(tensor({5, 0})), {5, 0}));
  CHECK(near(x.clip(1, 4), {1, 1, 2, 3, 4, 4}));
  CHECK(near(x.lerp(x + 2, 0.5), {1, 2, 3, 4, 5, 6}));
  CHECK(near(x.mv(ones({3})), {3, 12}));
  CHECK(near(ones({2}).outer(tensor({1.0, 2.0})), {1, 2, 1, 2}));
  CHECK(near(x.diff(), {1, 1, 1, 1}));
  CHECK(near(x.cumprod(1), {0, 0, 0, 3, 12, 60}));
  CHECK(x.isclose(x).all().item<bool>());
  CHECK(near(tensor({NAN, 1.0}).nan_to_num(7), {7, 1}));
  CHECK(near(topk(x, 1).first, {2, 5}));
  CHECK(near(sort(x, 1, true).first[0], {2, 1, 0}));
  CHECK(x.nbytes() == 24);
  CHECK(x.strides() == Strides{3, 1});
  Tensor y = zeros({2, 3});
  y.scatter_(1, tensor({{0}, {2}}), 5).addcmul_(x, x, 0.0);
  CHECK(near(y, {5, 0, 0, 0, 0, 5}));
  y.index_fill_(1, tensor({-1}), 9);
  CHECK(near(y, {5, 0, 9, 0, 0, 9}));
  y.t_().unsqueeze_(0);
  CHECK(y.shape() == Shape{1, 3, 2});
  CHECK(y.squeeze_().detach_().shape() == Shape{3, 2});
  CHECK(x.type_as(zeros({1}, i64)).dtype() == i64);
  CHECK(x.cpu().is_same(x));
}

TEST_CASE("Gradients: [] and at() name what is missing") {
  const Tensor used = ones({2}, {.requires_grad = true});
  const Tensor unused = ones({3}, {.requires_grad = true});
  const Gradients g = (used * 3).sum().backward();
  CHECK(near(g[used], {3, 3}));
  CHECK(near(g.at(used), {3, 3}));
  CHECK(test::message_of<AutodiffError>([&] { g[unused]; }).find("does not depend on") !=
        std::string::npos);
  CHECK(test::message_of<AutodiffError>([&] { g.at(ones({1})); }).find("requires no gradient") !=
        std::string::npos);
}

TEST_CASE("grad() stays when a tensor stops requiring a gradient") {
  Tensor w = ones({2}, {.requires_grad = true});
  (w * 3).sum().backward_accumulate();
  w.requires_grad_(false);
  CHECK(near(w.grad(), {3, 3}));
  Tensor same = w;  // another name: its state is exchanged, not changed
  w.requires_grad_(true);
  CHECK(near(same.grad(), {3, 3}));
  (w * 2).sum().backward_accumulate();
  CHECK(near(w.grad(), {5, 5}));
  w.requires_grad_(false);
  w.zero_grad();
  CHECK_FALSE(w.grad().defined());
  // And one may be set where none is wanted.
  Tensor plain = zeros({2});
  plain.set_grad({});
  plain.set_grad(ones({2}));
  CHECK(near(plain.grad(), {1, 1}));
  optim::SGD optimizer({plain}, {.lr = 0.5});
  optimizer.step();
  CHECK(near(plain, {-0.5, -0.5}));
  plain.zero_grad(false);
  CHECK(near(plain.grad(), {0, 0}));
  CHECK_THROWS_AS(zeros({2}, i64).set_grad(zeros({2}, i64)), Error);
  CHECK_THROWS_AS((w.requires_grad_() * 2).set_grad(ones({2})), AutodiffError);
}

TEST_CASE("register_hook: a hook may return nothing") {
  const Tensor x = ones({2}, {.requires_grad = true});
  const Tensor y = x * 2;
  double seen = 0;
  y.register_hook([&](const Tensor& grad) { seen = grad.sum().item(); });
  CHECK(near((y * 3).sum().backward()[x], {6, 6}));
  CHECK(seen == 6);
}
