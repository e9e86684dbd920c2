// Resizing at sizes below, at and above those of vectors, with every instruction set: values and
// gradients, beside those of the reference backend, which composes them from other ops.
#include "kiln/tensor/nn/resampling.h"

#include "kiln/tensor/nn/interpolate.h"
#include "tests/backend/neural_check.h"
#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;
using functional::interpolate;
using functional::InterpolateOptions;

namespace {

struct Resize {
  Shape from, to;
  std::string mode;
  bool antialias = false;
};

const Resize kResizes[] = {
    {{2, 3, 5}, {11}, "nearest"},
    {{2, 3, 70}, {133}, "linear"},
    {{1, 2, 300}, {7}, "linear"},
    {{2, 2, 9, 7}, {19, 40}, "bilinear"},
    {{2, 2, 9, 7}, {19, 40}, "nearest"},
    {{1, 3, 40, 33}, {40, 70}, "bilinear"},
    {{1, 3, 40, 33}, {90, 33}, "bilinear"},
    {{1, 3, 33, 1}, {70, 1}, "bilinear"},
    {{1, 2, 1, 1}, {37, 66}, "bilinear"},
    {{1, 2, 64, 100}, {31, 17}, "bilinear"},
    {{1, 2, 130, 90}, {3, 5}, "bilinear", true},
    {{1, 2, 50, 90}, {70, 21}, "bicubic", true},
    {{1, 2, 50, 90}, {33, 130}, "bicubic"},
    {{1, 2, 20, 40}, {45, 19}, "nearest-exact"},
    {{1, 2, 6, 20, 9}, {9, 33, 30}, "trilinear"},
    {{1, 2, 6, 20, 9}, {4, 33, 5}, "trilinear"},
    {{1, 2, 6, 20, 9}, {12, 20, 9}, "nearest"},
};

}  // namespace

TEST_CASE("resizing: every instruction set and the reference backend agree") {
  at_every_target([] {
    for (const DType dtype : {f32, f64}) {
      for (const Resize& r : kResizes) {
        INFO(to_string(dtype), " ", to_string(r.from), " to ", to_string(r.to), " ", r.mode);
        manual_seed(5);
        const Tensor x = randn(r.from, {dtype}).requires_grad_();
        const Tensor oracle = x.detach().to(Device(kReference)).requires_grad_();
        const InterpolateOptions options{.size = r.to, .mode = r.mode, .antialias = r.antialias};
        const Tensor y = interpolate(x, options), expected = interpolate(oracle, options);
        const double tolerance = dtype == f32 ? 2e-6 : 1e-14;
        CHECK(y.detach().allclose(expected.detach().to(Device(kCpu)), tolerance, tolerance));
        const Tensor g = randn(y.shape(), {dtype});
        const auto found = grad({y}, {x}, {.grad_outputs = {g}});
        const auto wanted = grad({expected}, {oracle}, {.grad_outputs = {g.to(oracle.device())}});
        CHECK(found[0].allclose(wanted[0].to(Device(kCpu)), 8 * tolerance, 8 * tolerance));
      }
    }
  });
}

TEST_CASE("resizing: what is picked is moved bit by bit, in every dtype") {
  at_every_target([] {
    const InterpolateOptions twice{.size = Shape{6, 50}};
    const Tensor x = arange(2 * 3 * 25, {i64}).reshape({1, 2, 3, 25}) - 70;
    const Tensor expected =
        x.unsqueeze(4).unsqueeze(3).expand({1, 2, 3, 2, 25, 2}).reshape({1, 2, 6, 50});
    for (const DType dtype : {i8, i16, i32, i64, f16, bf16, f32, f64}) {
      INFO(to_string(dtype));
      CHECK(interpolate(x.to(dtype), twice).equal(expected.to(dtype)));
    }
  });
}

TEST_CASE("resizing: the same bits at any number of threads") {
  manual_seed(6);
  const Tensor x = randn({3, 5, 60, 70});
  const InterpolateOptions options{.size = Shape{100, 150}, .mode = "bicubic"};
  const int threads = num_threads();
  set_num_threads(1);
  const Tensor one = interpolate(x, options);
  set_num_threads(max_num_threads());
  CHECK(interpolate(x, options).equal(one));
  set_num_threads(threads);
}

TEST_CASE("resizing: no element of other lines is read") {
  // Infinities beside what is read would become NaN.
  Tensor x = zeros({1, 1, 4, 50});
  const double inf = std::numeric_limits<double>::infinity();
  x.select(3, 49).fill_(inf);
  const Tensor y = interpolate(x, {.size = Shape{4, 20}, .mode = "bilinear", .antialias = true});
  CHECK(y.narrow(3, 0, 18).equal(zeros({1, 1, 4, 18})));
}
