// Losses. The expected numbers are PyTorch's, in double precision.
#include "kiln/tensor/nn/losses.h"

#include <cmath>
#include <limits>

#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;
using functional::cross_entropy;
using functional::CrossEntropyLossOptions;
using functional::mse_loss;
using functional::Reduction;

namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor logits(DType dtype, Device device) {
  return tensor({{1.0, 2.0, 0.5}, {-1.0, 0.0, 3.0}, {0.2, 0.1, -0.3}}, {dtype, device});
}

struct Case {
  const char* name;
  bool weighted;
  int64_t ignore_index;
  double smoothing;
  Reduction reduction;
  Doubles targets;
  Doubles loss;
  Doubles gradient;
};

const Case kCases[] = {
    {"plain",
     false,
     -100,
     0,
     Reduction::mean,
     {2, -100, 0},
     {1.4425982198306022},
     {0.11561194881107452, 0.3142658596058812, -0.4298778084169558, 0, 0, 0, -0.300905329477532,
      0.18014830762027004, 0.12075702185726193}},
    {"weight",
     true,
     -100,
     0,
     Reduction::mean,
     {2, -100, 0},
     {1.616521741256383},
     {0.15414926508143267, 0.4190211461411749, -0.5731704112226077, 0, 0, 0, -0.2006035529850213,
      0.12009887174684669, 0.08050468123817461}},
    {"smoothing",
     false,
     -100,
     0.1,
     Reduction::mean,
     {2, -100, 0},
     {1.4192648864972688},
     {0.09894528214440786, 0.29759919293921455, -0.39654447508362245, 0, 0, 0, -0.2675719961441987,
      0.16348164095360337, 0.10409035519059527}},
    {"weight, smoothing",
     true,
     -100,
     0.1,
     Reduction::mean,
     {2, -100, 0},
     {1.622607067993283},
     {0.14560730838834546, 0.3815603874657501, -0.5271676958540956, 0, 0, 0, -0.1606840267163575,
      0.0916676102019818, 0.06901641651437568}},
    {"weight, smoothing, sum",
     true,
     -100,
     0.3,
     Reduction::sum,
     {2, -100, 0},
     {2.4521665822006233},
     {0.19278509250325646, 0.4599583051723505, -0.6527433976756071, 0, 0, 0, -0.12126746126854476,
      0.05220763066837805, 0.06905983060016671}},
    {"weight, smoothing, none",
     true,
     -100,
     0.3,
     Reduction::none,
     {2, -100, 0},
     {1.737587223313342, 0, 0.7145793588872815},
     {0.19278509250325646, 0.4599583051723505, -0.6527433976756071, 0, 0, 0, -0.12126746126854476,
      0.05220763066837805, 0.06905983060016671}},
    {"ignore class 2",
     true,
     2,
     0,
     Reduction::mean,
     {2, 1, 0},
     {2.636872654116595},
     {0, 0, 0, 0.01371826043641631, -0.7627099019376209, 0.7489916415012047, -0.1203621317910128,
      0.07205932304810801, 0.048302808742904775}},
    {"none",
     false,
     -100,
     0,
     Reduction::none,
     {2, -100, 0},
     {1.964368784107945, 0, 0.9208276555532594},
     {0.23122389762214904, 0.6285317192117624, -0.8597556168339116, 0, 0, 0, -0.601810658955064,
      0.3602966152405401, 0.24151404371452387}},
};

CrossEntropyLossOptions options_of(const Case& c, DType dtype, Device device) {
  CrossEntropyLossOptions o;
  if (c.weighted) o.weight = tensor({0.5, 2.0, 1.0}, {dtype, device});
  o.ignore_index = c.ignore_index;
  o.label_smoothing = c.smoothing;
  o.reduction = c.reduction;
  return o;
}

}  // namespace

TEST_CASE("cross_entropy with class indices: every option, dtype and layout") {
  on_devices(kFloatTypes, [](Device device, DType dtype) {
    for (const Case& c : kCases) {
      INFO(c.name);
      const auto options = options_of(c, dtype, device);
      const Shape shape = c.loss.size() == 1 ? Shape{} : Shape{3};
      for (const bool gaps : {false, true}) {
        Tensor x = logits(dtype, device);
        Tensor t = from_vector(c.targets, {3}, {i64, device});
        if (gaps) {
          x = scattered(x);
          t = scattered(t);
        }
        x.requires_grad_();
        const Tensor loss = cross_entropy(x, t, options);
        CHECK(loss.dtype() == dtype);
        CHECK(mismatch(loss, shape, c.loss) == "");
        CHECK(mismatch(*x.grad(loss.sum().backward()), {3, 3}, c.gradient) == "");
      }
    }
  });
  on_devices([](Device device) {  // indices of a smaller dtype
    const Tensor x = logits(f64, device);
    for (const DType dtype : {i32, i16, i8}) {
      CHECK(mismatch(cross_entropy(x, tensor({2, -100, 0}, {dtype, device})), {},
                     {1.4425982198306022}) == "");
    }
  });
}

TEST_CASE("cross_entropy with probabilities") {
  on_devices([](Device device) {
    const TensorOptions on{f64, device};
    const auto p = [&] {
      return tensor({{0.2, 0.3, 0.5}, {1.0, 0.0, 0.0}, {0.1, 0.1, 0.8}}, on).requires_grad_();
    };
    const Tensor w = tensor({0.5, 2.0, 1.0}, on);
    {
      Tensor x = logits(f64, device).requires_grad_();
      Tensor t = p();
      const Tensor loss = cross_entropy(x, t);
      CHECK(mismatch(loss, {}, {2.270360114472878}) == "");
      const Gradients grads = loss.backward();
      CHECK(mismatch(*x.grad(grads), {3, 3},
                     {0.010407965874049676, 0.10951057307058747, -0.11991853894463717,
                      -0.3276173914848265, 0.01553754085932463, 0.3120798506255019,
                      0.09939644701497867, 0.08676553841351335, -0.18616198542849205}) == "");
      CHECK(mismatch(*t.grad(grads), {3, 3},
                     {0.4881229280359816, 0.1547895947026483, 0.6547895947026483,
                      1.3552946345858097, 1.0219613012524764, 0.02196130125247637,
                      0.30694255185108643, 0.34027588518441976, 0.47360921851775306}) == "");
    }
    const Tensor x = logits(f64, device);
    CHECK(mismatch(cross_entropy(x, p(), {.weight = w}), {}, {1.6090178437130571}) == "");
    CHECK(mismatch(cross_entropy(x, p(), {.label_smoothing = 0.2}), {}, {2.137471225583989}) == "");
    CHECK(
        mismatch(cross_entropy(scattered(x), scattered(p()),
                               {.weight = w, .reduction = Reduction::sum, .label_smoothing = 0.2}),
                 {}, {4.9135615717090175}) == "");
    CHECK(mismatch(cross_entropy(x, p(), {.reduction = Reduction::none}), {3},
                   {1.4143687841079449, 4.065883903757429, 1.3308276555532592}) == "");
  });
}

TEST_CASE("cross_entropy of one sample and of images") {
  on_devices([](Device device) {
    const TensorOptions on{f64, device};
    const Tensor x = logits(f64, device);
    CHECK(mismatch(cross_entropy(x[0], tensor(1, {.device = device})), {}, {0.4643687841079449}) ==
          "");
    CHECK(mismatch(cross_entropy(x[0], tensor({0.2, 0.3, 0.5}, on)), {}, {1.4143687841079449}) ==
          "");
    CHECK(mismatch(cross_entropy(x[0], tensor(-100, {.device = device})), {}, {kNan}) == "");
    CHECK(cross_entropy(x[0], tensor(1, {.device = device}), {.reduction = Reduction::none})
              .shape() == Shape{});

    Tensor image = (arange(12, on).reshape({2, 3, 2}) * 0.25 - 1.0).requires_grad_();
    const Tensor t = tensor({{0, 2}, {1, -100}}, {.device = device});
    const Tensor loss = cross_entropy(image, t);
    CHECK(mismatch(loss, {}, {1.1802696706417346}) == "");
    CHECK(mismatch(*image.grad(loss.backward()), {2, 3, 2},
                   {-0.27122542559138413, 0.062107907741949187, 0.10239862857283279,
                    0.10239862857283279, 0.16882679701855133, -0.164506536314782,
                    0.062107907741949187, 0, -0.23093470476050054, 0, 0.16882679701855133, 0}) ==
          "");
    const Tensor w = tensor({0.5, 2.0, 1.0}, on);
    CHECK(mismatch(cross_entropy(image, t, {.weight = w, .label_smoothing = 0.1}), {},
                   {1.1088410992131632}) == "");
    CHECK(mismatch(cross_entropy(image, t, {.reduction = Reduction::none}), {2, 2},
                   {1.6802696706417346, 0.6802696706417346, 1.1802696706417346, 0}) == "");
    const Tensor p = (image.detach() * 0.5).softmax(1);
    CHECK(mismatch(cross_entropy(image, p), {}, {1.0977928011321185}) == "");
    CHECK(mismatch(cross_entropy(image, p, {.weight = w, .label_smoothing = 0.1}), {},
                   {1.2719332177836606}) == "");
    CHECK(mismatch(cross_entropy(image.unsqueeze(3), t.unsqueeze(2)), {}, {1.1802696706417346}) ==
          "");
  });
}

TEST_CASE("cross_entropy at the edges") {
  const double inf = std::numeric_limits<double>::infinity();
  on_devices([&](Device device) {
    const TensorOptions on{f64, device};
    const auto index = [&](std::initializer_list<NestedList> v) {
      return tensor(v, {i64, device});
    };
    const Tensor none = zeros({0, 3}, on);
    const Tensor no_target = zeros({0}, {i64, device});
    CHECK(mismatch(cross_entropy(none, no_target), {}, {kNan}) == "");
    CHECK(mismatch(cross_entropy(none, no_target, {.reduction = Reduction::sum}), {}, {0}) == "");
    CHECK(cross_entropy(none, no_target, {.reduction = Reduction::none}).shape() == Shape{0});
    CHECK(mismatch(cross_entropy(zeros({2, 3}, on), index({-100, -100})), {}, {kNan}) == "");
    const Tensor masked = tensor({{0.0, -inf, 0.0}}, on);
    CHECK(mismatch(cross_entropy(masked, index({0})), {}, {std::log(2.0)}) == "");
    CHECK(mismatch(cross_entropy(masked, index({1})), {}, {inf}) == "");
    CHECK(mismatch(cross_entropy(tensor({{1000.0, 0.0}, {-1000.0, 0.0}}, on), index({1, 1})), {},
                   {500}) == "");
    CHECK(mismatch(cross_entropy(zeros({1, 1}, on), index({0})), {}, {0}) == "");
    // A batch whose count f16 cannot hold.
    CHECK(mismatch(cross_entropy(zeros({70000, 2}, {f16, device}), zeros({70000}, {i64, device})),
                   {}, {std::log(2.0)}) == "");
  });
}

TEST_CASE("cross_entropy refuses what does not fit") {
  const Tensor x = zeros({2, 3});
  const Tensor t = tensor({0, 1});
  CHECK_THROWS_AS(cross_entropy(x, tensor({0, 3})), IndexError);
  CHECK_THROWS_AS(cross_entropy(x, tensor({0, -1})), IndexError);
  CHECK_THROWS_AS(cross_entropy(x, tensor({0, 3}), {.weight = ones({3})}), IndexError);
  CHECK_THROWS_AS(cross_entropy(x, tensor({0})), ShapeError);
  CHECK_THROWS_AS(cross_entropy(x, tensor({{0, 1}})), ShapeError);
  CHECK_THROWS_AS(cross_entropy(x, zeros({2})), ShapeError);  // probabilities: the logits' shape
  CHECK_THROWS_AS(cross_entropy(tensor(1.0), tensor(0)), ShapeError);
  CHECK_THROWS_AS(cross_entropy(x, t, {.weight = ones({2})}), ShapeError);
  CHECK_THROWS_AS(cross_entropy(x, t, {.weight = ones({3}, {f64})}), DTypeError);
  CHECK_THROWS_AS(cross_entropy(x, t, {.label_smoothing = 1.5}), ValueError);
  CHECK_THROWS_AS(cross_entropy(x, t, {.label_smoothing = kNan}), ValueError);
  CHECK_THROWS_AS(cross_entropy(x.to(i64), t), DTypeError);
  CHECK_THROWS_AS(cross_entropy(x, tensor({true, false})), DTypeError);
  CHECK_THROWS_AS(cross_entropy(x, t.to(Device(kReference))), DeviceError);
  CHECK_THROWS_AS(cross_entropy(x, t, {.weight = ones({3}, {.device = kReference})}), DeviceError);
}

TEST_CASE("mse_loss") {
  on_devices(kFloatTypes, [](Device device, DType dtype) {
    const TensorOptions on{dtype, device};
    const Tensor flat = tensor({{1, 2}, {3, 5}}, on);
    for (Tensor x : {flat.clone(), scattered(flat)}) {
      Tensor t = tensor({{1, 0}, {4, 2}}, on).requires_grad_();
      x.requires_grad_();
      const Tensor loss = mse_loss(x, t);
      CHECK(mismatch(loss, {}, {3.5}) == "");
      const Gradients grads = loss.backward();
      CHECK(mismatch(*x.grad(grads), {2, 2}, {0, 1, -0.5, 1.5}) == "");
      CHECK(mismatch(*t.grad(grads), {2, 2}, {0, -1, 0.5, -1.5}) == "");
      CHECK(mismatch(mse_loss(x, t, Reduction::sum), {}, {14}) == "");
      CHECK(mismatch(mse_loss(x, t, Reduction::none), {2, 2}, {0, 4, 1, 9}) == "");
    }
    CHECK(mismatch(mse_loss(zeros({0}, on), zeros({0}, on)), {}, {kNan}) == "");
    CHECK(mismatch(mse_loss(flat[0][0], flat[0][1]), {}, {1}) == "");
  });
  CHECK(mismatch(mse_loss(tensor({1.0, 3.0}), tensor({{1.0}, {2.0}})), {}, {1.5}) == "");
  CHECK_THROWS_AS(mse_loss(zeros({2}), zeros({3, 1, 3})), ShapeError);
  CHECK_THROWS_AS(mse_loss(zeros({2}, {i64}), zeros({2}, {i64})), DTypeError);
}
