#include "kiln/nn/param.h"

#include <doctest/doctest.h>

#include "kiln/core/allocator.h"
#include "kiln/nn/init.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "tests/support/near.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::nn::Param;
using kiln::nn::ParamId;
using kiln::test::message_of;
using kiln::test::near;

namespace {

// Counts how often it runs.
Param<Tensor> counted(int& runs) {
  return Param<Tensor>::uninitialized(
      ParamId(7),
      [&runs](Device device, bool require_grad) {
        ++runs;
        return full({2, 3}, runs, {.dtype = f32, .device = device, .requires_grad = require_grad});
      },
      Device(), true, {2, 3}, f32);
}

// A parameter that is no tensor: what the concept asks for, and nothing else.
struct Meters {
  double value = 0.0;
  bool grad = false;

  std::string device() const { return "here"; }
  Shape shape() const { return {}; }
  bool is_require_grad() const { return grad; }
  Meters set_require_grad(bool wanted) && { return {value, wanted}; }
  Meters to_device(const std::string&) && { return *this; }
};

struct NoParameter {};

static_assert(nn::Parameter<Tensor>);
static_assert(nn::Parameter<Meters>);
static_assert(!nn::Parameter<NoParameter>);
static_assert(!nn::Parameter<int>);
static_assert(std::is_nothrow_move_constructible_v<Param<Tensor>>);

}  // namespace

TEST_CASE("Param: initialized") {
  const Tensor x = tensor({1.0, 2.0}, {.dtype = f32, .requires_grad = true});
  const auto param = Param<Tensor>::initialized(ParamId(3), x);
  CHECK(param.is_initialized());
  CHECK(param.defined());
  CHECK(param.id() == ParamId(3));
  CHECK(param.val().is_same(x));
  CHECK(param->shape() == Shape{2});
  CHECK((*param).requires_grad());
  CHECK(param.lazy_shape() == Shape{2});
  CHECK(param.lazy_device() == Device());
  CHECK(param.lazy_is_require_grad());
  CHECK(param.lazy_dtype() == f32);
}

TEST_CASE("Param: uninitialized runs its function at the first access, once") {
  int runs = 0;
  const Param<Tensor> param = counted(runs);
  CHECK(param.defined());
  CHECK(!param.is_initialized());
  CHECK(param.lazy_shape() == Shape{2, 3});
  CHECK(param.lazy_device() == Device());
  CHECK(param.lazy_is_require_grad());
  CHECK(param.lazy_dtype() == f32);
  CHECK(runs == 0);
  CHECK(near(param.val(), {1, 1, 1, 1, 1, 1}));
  CHECK(param->requires_grad());
  CHECK(param.is_initialized());
  CHECK(param.val().is_same(*param));
  CHECK(param.lazy_shape() == Shape{2, 3});
  CHECK(runs == 1);
}

TEST_CASE("Param: a function that throws is tried again") {
  int runs = 0;
  const auto param = Param<Tensor>::uninitialized(ParamId(),
                                                  [&runs](Device, bool) {
                                                    if (++runs < 3) throw ValueError("not yet");
                                                    return ones({1});
                                                  },
                                                  Device(), false, {1});
  CHECK_THROWS_AS(param.val(), ValueError);
  CHECK(!param.is_initialized());
  CHECK_THROWS_AS(param.val(), ValueError);
  CHECK(param.lazy_shape() == Shape{1});
  CHECK(near(param.val(), {1.0}));
  CHECK(runs == 3);
}

TEST_CASE("Param: a function that reads its own parameter is an error, not a deadlock") {
  const Param<Tensor>* self = nullptr;
  const auto param = Param<Tensor>::uninitialized(
      ParamId(), [&self](Device, bool) { return self->val() + 1.0; }, Device(), false, {1});
  self = &param;
  CHECK(message_of<ValueError>([&] { param.val(); }).find("reads the parameter") !=
        std::string::npos);
  CHECK(!param.is_initialized());
}

TEST_CASE("Param: from_tensor shares memory and is a leaf of its own") {
  Tensor x = tensor({1.0, 2.0});
  Param<Tensor> param = Param<Tensor>::from_tensor(x);
  CHECK(param->requires_grad());
  CHECK(!x.requires_grad());
  x.fill_(5.0);
  CHECK(near(*param, {5.0, 5.0}));
  // The result of recorded ops becomes a leaf; integers get no gradient.
  CHECK(Param<Tensor>::from_tensor(*param * 2.0)->is_leaf());
  CHECK(!Param<Tensor>::from_tensor(tensor({1, 2}))->requires_grad());
  const TensorData data(std::vector<float>{1.0f, 2.0f, 3.0f}, {3});
  const auto from_data = Param<Tensor>::from_data(data);
  CHECK(near(*from_data, {1.0, 2.0, 3.0}));
  CHECK(from_data->requires_grad());
  CHECK(from_data.id() != param.id());
}

TEST_CASE("Param: copies are independent") {
  int runs = 0;
  Param<Tensor> lazy = counted(runs);
  Param<Tensor> copy = lazy;
  Param<Tensor> third = copy;
  CHECK(!copy.is_initialized());
  CHECK(!lazy.is_initialized());
  CHECK(copy.id() == lazy.id());
  third.set_require_grad(false);
  CHECK(near(copy.val(), {1, 1, 1, 1, 1, 1}));
  CHECK(!lazy.is_initialized());
  CHECK(near(lazy.val(), {1, 1, 1, 1, 1, 1}));
  CHECK(near(third.val(), {1, 1, 1, 1, 1, 1}));
  CHECK(lazy->requires_grad());
  CHECK(lazy->is_leaf());
  CHECK(!third->requires_grad());
  CHECK(copy->data_ptr<float>() != lazy->data_ptr<float>());
  CHECK(copy->data_ptr<float>() != third->data_ptr<float>());

  Param<Tensor> clone = lazy;
  CHECK(clone.is_initialized());
  CHECK(clone->requires_grad());
  CHECK(clone->is_leaf());
  {
    NoGradGuard no_grad;
    clone->fill_(9.0);
  }
  CHECK(near(*lazy, {1, 1, 1, 1, 1, 1}));
  CHECK(runs == 1);

  const auto frozen = Param<Tensor>::from_tensor(ones({2})).set_require_grad(false);
  CHECK(!Param<Tensor>(frozen)->requires_grad());
  copy = frozen;
  CHECK(near(*copy, {1.0, 1.0}));
}

TEST_CASE("Param: a copy whose mapper throws is tried again, and gets the shared values") {
  int runs = 0;
  const auto param = Param<Tensor>::uninitialized(
      ParamId(), [&runs](Device, bool) { return full({2}, static_cast<double>(++runs)); }, Device(),
      false, {2}, f32);
  Param<Tensor> copy = param;
  bool ready = false;
  copy.init_mapper([&ready](Tensor x) {
    if (!ready) throw ValueError("not yet");
    return x * 10;
  });
  CHECK(test::near(*param, {1, 1}));
  CHECK_THROWS_AS(copy.val(), ValueError);
  ready = true;
  CHECK(test::near(*copy, {10, 10}));
  CHECK(test::near(*param, {1, 1}));
  CHECK(runs == 1);
}

TEST_CASE("Param: moving") {
  int runs = 0;
  Param<Tensor> lazy = counted(runs);
  Param<Tensor> moved = std::move(lazy);
  CHECK(!lazy.defined());
  CHECK(!lazy->defined());  // reads as the undefined tensor
  CHECK(!moved.is_initialized());
  const Tensor value = moved.val();
  Param<Tensor> again;
  CHECK(!again.defined());
  again = std::move(moved);
  CHECK(again.val().is_same(value));
  CHECK(!moved.defined());
  CHECK(runs == 1);
  *again = Tensor();
  CHECK(again.is_initialized());
  CHECK(!again.defined());
}

TEST_CASE("Param: consume, into_value, map") {
  const Tensor x = tensor({1.0, 2.0});
  auto [id, value, mapper] = Param<Tensor>::initialized(ParamId(5), x).consume();
  CHECK(id == ParamId(5));
  CHECK(value.is_same(x));
  CHECK(!mapper.has_load());
  CHECK(Param<Tensor>::initialized(ParamId(5), x).into_value().is_same(x));

  Param<Tensor> param = Param<Tensor>::initialized(ParamId(5), x);
  param.map([](const Tensor& t) { return t * 3.0; });
  CHECK(near(*param, {3.0, 6.0}));
  CHECK(param.id() == ParamId(5));
  const auto mapped = Param<Tensor>::initialized(ParamId(6), x)
                          .load_mapper([](Tensor t) { return t; })
                          .map([](const Tensor& t) { return t + 1.0; });
  CHECK(near(*mapped, {2.0, 3.0}));
  CHECK(mapped.mapper().has_load());
  int runs = 0;
  CHECK(near(counted(runs).map([](const Tensor& t) { return t.detach() * 4.0; }).val(),
             {4, 4, 4, 4, 4, 4}));
  CHECK(runs == 1);
}

TEST_CASE("Param: init_mapper waits for a lazy value") {
  int runs = 0;
  Param<Tensor> param = counted(runs);
  param.init_mapper([](const Tensor& t) { return t.detach() * 10.0; });
  param.init_mapper([](const Tensor& t) { return t + 1.0; });
  CHECK(runs == 0);
  CHECK(near(*param, {11, 11, 11, 11, 11, 11}));
  CHECK(runs == 1);
  param.init_mapper([](const Tensor& t) { return t * 2.0; });
  CHECK(near(*param, {22, 22, 22, 22, 22, 22}));
}

TEST_CASE("Param: set_require_grad") {
  int runs = 0;
  Param<Tensor> lazy = counted(runs);
  lazy.set_require_grad(false);
  CHECK(!lazy.is_initialized());
  CHECK(!lazy.lazy_is_require_grad());
  CHECK(!lazy->requires_grad());
  const Tensor value = lazy.val();
  lazy.set_require_grad(true);
  CHECK(lazy.val().is_same(value));
  CHECK(value.requires_grad());
}

TEST_CASE("Param: records go through the mappers") {
  int runs = 0;
  Param<Tensor> param = counted(runs)
                            .save_mapper([](const Tensor& t) { return t.detach().to(f16); })
                            .load_mapper([](const Tensor& t) { return t.to(f32) * 2.0; });
  const Param<Tensor> loaded =
      param.transform_for_load(full({2, 3}, 3.0, {.dtype = f16}), ParamId(11));
  CHECK(runs == 0);
  CHECK(!param.is_initialized());
  CHECK(loaded.id() == ParamId(11));
  CHECK(near(*loaded, {6, 6, 6, 6, 6, 6}));
  CHECK(loaded->requires_grad());
  CHECK(loaded.mapper().has_save());
  const Param<Tensor> saved = param.transform_for_save();
  CHECK(saved->dtype() == f16);
  CHECK(saved.id() == param.id());
  CHECK(near(*saved, {1, 1, 1, 1, 1, 1}));
  CHECK(param->dtype() == f32);

  const auto mapped = Param<Tensor>::from_mapped_value(ParamId(1), ones({1}), param.mapper());
  CHECK(mapped.mapper().has_load());
}

TEST_CASE("Param: is used as a tensor") {
  const Param<Tensor> w = Param<Tensor>::from_tensor(tensor({{1.0, 2.0}, {3.0, 4.0}}));
  const Tensor x = tensor({{1.0, 1.0}});
  CHECK(near(x.matmul(w), {4.0, 6.0}));
  CHECK(near(matmul(x, w), {4.0, 6.0}));
  CHECK(near(x + w, {2.0, 3.0, 4.0, 5.0}));
  CHECK(near(w * w, {1.0, 4.0, 9.0, 16.0}));
  CHECK(near(2.0 * w - 1.0, {1.0, 3.0, 5.0, 7.0}));
  CHECK(near(-w, {-1.0, -2.0, -3.0, -4.0}));
  CHECK(near(functional::linear(x, w), {3.0, 7.0}));
  const Tensor same = w;
  CHECK(same.is_same(*w));
  auto grads = functional::linear(x, w).sum().backward();
  CHECK(near(*grads.get(w), {1.0, 1.0, 1.0, 1.0}));
}

TEST_CASE("Param: text") {
  int runs = 0;
  Param<Tensor> param = counted(runs);
  CHECK(to_string(param) == "Uninitialized parameter of shape [2, 3] on cpu");
  CHECK(display(param) == "Param: 0s00000000000");
  CHECK(debug_string(param) == "Param: 0s00000000000 - ParamMapper { load: false, save: false }");
  param.load_mapper([](Tensor t) { return t; });
  CHECK(debug_string(param) == "Param: 0s00000000000 - ParamMapper { load: true, save: false }");
  CHECK(runs == 0);
  param.val();
  CHECK(to_string(param) ==
        "Parameter containing:\ntensor([[1., 1., 1.],\n        [1., 1., 1.]], requires_grad=True)");
  CHECK(to_string(Param<Tensor>()) == "None");
}

TEST_CASE("Param: holds any type that satisfies the concept") {
  auto param = Param<Meters>::uninitialized(ParamId(),
                                            [](const std::string&, bool grad) {
                                              return Meters{2.5, grad};
                                            },
                                            "there", true, {});
  CHECK(param.lazy_device() == "there");
  CHECK(param.lazy_is_require_grad());
  CHECK(!param.is_initialized());
  CHECK(param->value == 2.5);
  CHECK(param->grad);
  CHECK(param.lazy_device() == "here");
  param.set_require_grad(false);
  CHECK(!param->grad);
  CHECK(Param<Meters>::from_tensor({1.0})->grad);
  CHECK(param.transform_for_load({7.0, true}, ParamId(1))->grad == false);
  CHECK_THROWS_AS(Param<Meters>().val(), ValueError);
}

TEST_CASE("parameter: a lazy tensor from a fill") {
  nn::Param<Tensor> scale = nn::parameter({2}, nn::init::ones_);
  CHECK(!scale.is_initialized());
  CHECK(scale.lazy_dtype() == f32);
  CHECK(near(*scale, {1.0, 1.0}));
  CHECK(scale->requires_grad());
  CHECK(scale->is_leaf());
  const auto half = nn::parameter({2}, nn::init::zeros_, {.dtype = f16, .requires_grad = false});
  CHECK(half->dtype() == f16);
  CHECK(!half->requires_grad());
  CHECK_THROWS_AS(nn::parameter({-1}, nn::init::ones_), ShapeError);
}

TEST_CASE("Param: a lazy parameter holds no memory for its values") {
  const size_t before = memory_stats().bytes_in_use;
  const auto param = nn::parameter({1024, 1024}, [](Tensor& x) { nn::init::normal_(x); });
  CHECK(memory_stats().bytes_in_use - before < 64 * 1024);
  param.val();
  CHECK(memory_stats().bytes_in_use - before >= 4 * 1024 * 1024);
}
