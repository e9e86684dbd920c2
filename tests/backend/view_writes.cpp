// Writes through views and their gradients, on backends that tell where views lie and on one that
// does not.
#include <functional>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/shape/views.h"
#include "kiln/tensor/tensor.h"
#include "tests/backend/toy_backend.h"

using namespace kiln;
using test::toy::kStridedToy;
using test::toy::kToy;

namespace {

using Values = std::vector<double>;

Tensor tracked(Device device, const Shape& shape = {2, 2}) {
  return arange(shape.numel(), {f32, device}).reshape(shape).add(1).detach().requires_grad_();
}

// The gradient of the sum of y = x * 1 after `write(y)`.
Values gradient_after(Device device, const std::function<void(Tensor&)>& write) {
  const Tensor x = tracked(device);
  Tensor y = x * 1;
  write(y);
  return y.sum().backward().get(x)->to_vector<double>();
}

void scale_row(Tensor& y) {
  Tensor v = y.select(0, 0);
  v.mul_(10);
}

}  // namespace

TEST_CASE("a write through a view has its gradient where the backend tells where views lie") {
  for (const Device device : {Device(kCpu), Device(kReference), Device(kStridedToy)}) {
    CAPTURE(to_string(device));
    CHECK(gradient_after(device, scale_row) == Values{10, 10, 1, 1});
    CHECK(gradient_after(device, [](Tensor& y) {
            Tensor v = y.t().select(0, 1).slice(0, 1, 2);
            v.mul_(3);
            CHECK(y.to_vector<double>() == Values{1, 2, 3, 12});
            v.add_(v);
            CHECK(y.to_vector<double>() == Values{1, 2, 3, 24});
          }) == Values{1, 1, 1, 6});
    CHECK(gradient_after(device, [](Tensor& y) {
            Tensor v = diagonal(y);
            v.mul_(10);
          }) == Values{10, 1, 1, 10});
    CHECK(gradient_after(device, [](Tensor& y) {
            Tensor v = as_strided(y, {2}, {2}, 1);
            v.fill_(5);
          }) == Values{1, 0, 1, 0});
    // The other way round: the tensor was written, and a view of it is read.
    const Tensor x = tracked(device);
    Tensor y = x * 1;
    const Tensor v = y.select(0, 0);
    y.mul_(3);
    CHECK(v.sum().backward().get(x)->to_vector<double>() == Values{3, 3, 0, 0});
  }
}

TEST_CASE("views of a backend that tells where they lie have strides") {
  const Tensor x = tracked(kStridedToy, {3, 4}).detach();
  CHECK(x.stride() == Strides{4, 1});
  CHECK(x.t().stride() == Strides{1, 4});
  CHECK(!x.t().is_contiguous());
  CHECK(x.t().contiguous().stride() == Strides{3, 1});
  CHECK(unfold(x, 1, 2, 2).stride() == Strides{4, 2, 1});
  CHECK(as_strided(x, {2, 2}, {4, 2}, 1).to_vector<double>() == Values{2, 4, 6, 8});
  CHECK_THROWS_AS(as_strided(x, {2, 2}, {4, 12}, 1), ValueError);
  Tensor wide = x.slice(0, 0, 1).expand({3, 4});
  CHECK_THROWS_AS(wide.mul_(2), ValueError);
  CHECK(diag_embed(x.select(0, 0)).sum(0).to_vector<double>() == Values{1, 2, 3, 4});
}

TEST_CASE("a backend that does not tell where views lie gets an error for a wrong gradient") {
  const auto fails = [](const std::function<void()>& f) {
    try {
      f();
    } catch (const AutodiffError& error) {
      CAPTURE(std::string(error.what()));
      CHECK(std::string(error.what()).find("where views lie in memory") != std::string::npos);
      return true;
    }
    return false;
  };
  CHECK(fails([] { gradient_after(kToy, scale_row); }));
  {
    const Tensor x = tracked(kToy);
    Tensor y = x * 1;
    Tensor v = y.select(0, 0);
    CHECK(fails([&] { v.mul_(10); }));
    CHECK(y.to_vector<double>() == Values{1, 2, 3, 4});  // nothing was written
    y.mul_(3);
    CHECK(fails([&] { v.sum(); }));
    CHECK(y.sum().backward().get(x)->to_vector<double>() == Values(4, 3));
    {
      const NoGradGuard no_grad;
      CHECK(v.sum().item<double>() == 9);
      v.fill_(7);
    }
    CHECK(y.to_vector<double>() == Values{7, 7, 9, 12});
  }
  // What needs no gradient is written through views as ever, and views are read with theirs.
  Tensor plain = tracked(kToy).detach();
  scale_row(plain);
  CHECK(plain.to_vector<double>() == Values{10, 20, 3, 4});
  const Tensor x = tracked(kToy);
  CHECK((x * 2).select(0, 1).sum().backward().get(x)->to_vector<double>() == Values{0, 0, 2, 2});
  CHECK(diagonal(x * 2).sum().backward().get(x)->to_vector<double>() == Values{2, 0, 0, 2});
  CHECK_THROWS_AS(diag_embed(x.detach().select(0, 0)), NotImplementedError);
  CHECK_THROWS_AS(x.stride(), DeviceError);
}
