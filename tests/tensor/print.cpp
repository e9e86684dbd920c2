// How tensors print: PyTorch's text, but for `dtype=kiln.x` and `grad_fn=<op>`.
#include <limits>
#include <sstream>

#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

// Print options for one scope.
class Options {
 public:
  explicit Options(const PrintOptions& options) : before_(print_options()) {
    set_print_options(options);
  }
  ~Options() { set_print_options(before_); }

 private:
  PrintOptions before_;
};

}  // namespace

TEST_CASE("numbers") {
  CHECK(to_string(tensor(1.5)) == "tensor(1.5000)");
  CHECK(to_string(tensor(3)) == "tensor(3)");
  CHECK(to_string(tensor(true)) == "tensor(True)");
  CHECK(to_string(tensor(-7.0)) == "tensor(-7.)");
  CHECK(to_string(tensor(kNan)) == "tensor(nan)");
  CHECK(to_string(tensor({1, 2, 3})) == "tensor([1, 2, 3])");
  CHECK(to_string(tensor({1.0, 2.0, 3.0})) == "tensor([1., 2., 3.])");
  CHECK(to_string(tensor({1.5, -2.25, 1000.0})) == "tensor([   1.5000,   -2.2500, 1000.0000])");
  CHECK(to_string(tensor({true, false})) == "tensor([ True, False])");
  CHECK(to_string(tensor({-1.0, -10.5})) == "tensor([ -1.0000, -10.5000])");
  CHECK(to_string(zeros({3})) == "tensor([0., 0., 0.])");
  CHECK(to_string(tensor({-0.0, 1.0})) == "tensor([-0., 1.])");
  CHECK(to_string(tensor({int64_t{1} << 60, 1})) ==
        "tensor([1152921504606846976,                   1])");
}

TEST_CASE("which numbers print with an exponent") {
  CHECK(to_string(tensor({1e-5, 1.0})) == "tensor([1.0000e-05, 1.0000e+00])");
  CHECK(to_string(tensor({1e10, 1.0})) == "tensor([1.0000e+10, 1.0000e+00])");
  CHECK(to_string(tensor({100000.0, 1.0})) == "tensor([1.0000e+05, 1.0000e+00])");
  CHECK(to_string(tensor({1e9})) == "tensor([1.0000e+09])");
  CHECK(to_string(tensor({0.001, 1.0})) == "tensor([0.0010, 1.0000])");
  CHECK(to_string(tensor({0.0009, 1.0})) == "tensor([9.0000e-04, 1.0000e+00])");
  CHECK(to_string(tensor({0.0, 1e-6})) == "tensor([0.0000e+00, 1.0000e-06])");
  CHECK(to_string(tensor({0.0001, 0.5})) == "tensor([1.0000e-04, 5.0000e-01])");
  CHECK(to_string(tensor({1e8, 2.0})) == "tensor([1.0000e+08, 2.0000e+00])");
  CHECK(to_string(tensor({0.5, 500.0})) == "tensor([  0.5000, 500.0000])");
  CHECK(to_string(tensor({0.5, 501.0})) == "tensor([5.0000e-01, 5.0100e+02])");
  CHECK(to_string(tensor({-1e-10, 2.5})) == "tensor([-1.0000e-10,  2.5000e+00])");
  CHECK(to_string(tensor({1e-300, 1.0}, {f64})) ==
        "tensor([1.0000e-300,  1.0000e+00], dtype=kiln.float64)");
  CHECK(to_string(tensor({1e-40, 1.0})) == "tensor([9.9999e-41, 1.0000e+00])");
}

TEST_CASE("NaN and infinities do not choose the form") {
  CHECK(to_string(tensor({kNan, kInf, -kInf, 1.0})) == "tensor([nan, inf, -inf, 1.])");
  CHECK(to_string(tensor({kNan, kInf, -kInf, 1.5})) == "tensor([   nan,    inf,   -inf, 1.5000])");
  CHECK(to_string(tensor({kNan, kNan})) == "tensor([nan, nan])");
  CHECK(to_string(tensor({-0.5, kNan})) == "tensor([-0.5000,     nan])");
}

TEST_CASE("rows") {
  CHECK(to_string(tensor({{1.0, -2.0}, {3.0, 4.0}})) ==
        "tensor([[ 1., -2.],\n"
        "        [ 3.,  4.]])");
  CHECK(to_string(tensor({{1, 100}, {-1000, 5}})) ==
        "tensor([[    1,   100],\n"
        "        [-1000,     5]])");
  CHECK(to_string(arange(12.0).reshape({2, 3, 2})) ==
        "tensor([[[ 0.,  1.],\n"
        "         [ 2.,  3.],\n"
        "         [ 4.,  5.]],\n"
        "\n"
        "        [[ 6.,  7.],\n"
        "         [ 8.,  9.],\n"
        "         [10., 11.]]])");
  CHECK(to_string(arange(8).reshape({2, 1, 2, 2})) ==
        "tensor([[[[0, 1],\n"
        "          [2, 3]]],\n"
        "\n"
        "\n"
        "        [[[4, 5],\n"
        "          [6, 7]]]])");
  CHECK(to_string(arange(6).reshape({2, 3}).t()) ==
        "tensor([[0, 3],\n"
        "        [1, 4],\n"
        "        [2, 5]])");
}

TEST_CASE("long rows break") {
  CHECK(to_string(arange(30)) ==
        "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
        "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])");
  CHECK(to_string(arange(30.0) / 4) ==
        "tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000, 1.2500, 1.5000, 1.7500, 2.0000,\n"
        "        2.2500, 2.5000, 2.7500, 3.0000, 3.2500, 3.5000, 3.7500, 4.0000, 4.2500,\n"
        "        4.5000, 4.7500, 5.0000, 5.2500, 5.5000, 5.7500, 6.0000, 6.2500, 6.5000,\n"
        "        6.7500, 7.0000, 7.2500])");
  const Options narrow({.line_width = 30});
  CHECK(to_string(arange(12)) ==
        "tensor([ 0,  1,  2,  3,  4,\n"
        "         5,  6,  7,  8,  9,\n"
        "        10, 11])");
  CHECK(to_string(ones({3}, {.requires_grad = true}) * 2) ==
        "tensor([2., 2., 2.],\n"
        "       grad_fn=<mul>)");
}

TEST_CASE("large tensors show their edges") {
  CHECK(to_string(arange(1001)) == "tensor([   0,    1,    2,  ...,  998,  999, 1000])");
  CHECK(to_string(arange(1001.0) / 2) ==
        "tensor([  0.0000,   0.5000,   1.0000,  ..., 499.0000, 499.5000, 500.0000])");
  CHECK(to_string(arange(10000.0).reshape({100, 100})) ==
        "tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 9.7000e+01, 9.8000e+01,\n"
        "         9.9000e+01],\n"
        "        [1.0000e+02, 1.0100e+02, 1.0200e+02,  ..., 1.9700e+02, 1.9800e+02,\n"
        "         1.9900e+02],\n"
        "        [2.0000e+02, 2.0100e+02, 2.0200e+02,  ..., 2.9700e+02, 2.9800e+02,\n"
        "         2.9900e+02],\n"
        "        ...,\n"
        "        [9.7000e+03, 9.7010e+03, 9.7020e+03,  ..., 9.7970e+03, 9.7980e+03,\n"
        "         9.7990e+03],\n"
        "        [9.8000e+03, 9.8010e+03, 9.8020e+03,  ..., 9.8970e+03, 9.8980e+03,\n"
        "         9.8990e+03],\n"
        "        [9.9000e+03, 9.9010e+03, 9.9020e+03,  ..., 9.9970e+03, 9.9980e+03,\n"
        "         9.9990e+03]])");
  const Options one_edge({.threshold = 5, .edge_items = 1});
  CHECK(to_string(arange(5)) == "tensor([0, 1, 2, 3, 4])");
  CHECK(to_string(arange(6)) == "tensor([0,  ..., 5])");
  CHECK(to_string(arange(12.0).reshape({3, 4})) ==
        "tensor([[ 0.,  ...,  3.],\n"
        "        ...,\n"
        "        [ 8.,  ..., 11.]])");
  const Options two_edges({.threshold = 5, .edge_items = 2});
  CHECK(to_string(arange(36).reshape({6, 6})) ==
        "tensor([[ 0,  1,  ...,  4,  5],\n"
        "        [ 6,  7,  ..., 10, 11],\n"
        "        ...,\n"
        "        [24, 25,  ..., 28, 29],\n"
        "        [30, 31,  ..., 34, 35]])");
}

TEST_CASE("nothing to print") {
  CHECK(to_string(zeros({0})) == "tensor([])");
  CHECK(to_string(zeros({0, 3})) == "tensor([], size=(0, 3))");
  CHECK(to_string(zeros({1, 0})) == "tensor([], size=(1, 0))");
  CHECK(to_string(zeros({0}, {i64})) == "tensor([], dtype=kiln.int64)");
  CHECK(to_string(zeros({2, 0}, {i64})) == "tensor([], size=(2, 0), dtype=kiln.int64)");
  CHECK(to_string(zeros({3, 0, 2}, {bool_})) == "tensor([], size=(3, 0, 2), dtype=kiln.bool)");
  CHECK(to_string(Tensor()) == "tensor(undefined)");
}

TEST_CASE("what stands after the values") {
  CHECK(to_string(tensor({1.0, 2.0}, {f64})) == "tensor([1., 2.], dtype=kiln.float64)");
  CHECK(to_string(tensor({1.0, 2.5}, {f16})) == "tensor([1.0000, 2.5000], dtype=kiln.float16)");
  CHECK(to_string(tensor({60000.0, 0.5}, {f16})) ==
        "tensor([6.0000e+04, 5.0000e-01], dtype=kiln.float16)");
  CHECK(to_string(tensor(1.5, {bf16})) == "tensor(1.5000, dtype=kiln.bfloat16)");
  CHECK(to_string(tensor({1, -20}, {i32})) == "tensor([  1, -20], dtype=kiln.int32)");
  CHECK(to_string(tensor(5, {i8})) == "tensor(5, dtype=kiln.int8)");
  CHECK(to_string(tensor({{200}}, {u8})) == "tensor([[200]], dtype=kiln.uint8)");
  CHECK(to_string(tensor({1}, {.device = kReference})) == "tensor([1], device='reference')");
  Tensor x = ones({2}, {.requires_grad = true});
  CHECK(to_string(x) == "tensor([1., 1.], requires_grad=True)");
  CHECK(to_string(x * 2) == "tensor([2., 2.], grad_fn=<mul>)");
  CHECK(to_string(x.detach()) == "tensor([1., 1.])");
  CHECK(to_string(ones({2}, {.dtype = f64, .requires_grad = true})) ==
        "tensor([1., 1.], dtype=kiln.float64, requires_grad=True)");
  CHECK(to_string(arange(9.0, {.requires_grad = true}) / 3) ==
        "tensor([0.0000, 0.3333, 0.6667, 1.0000, 1.3333, 1.6667, 2.0000, 2.3333, 2.6667],\n"
        "       grad_fn=<div>)");
  CHECK(to_string(arange(8.0, {.dtype = f64, .requires_grad = true}) / 3) ==
        "tensor([0.0000, 0.3333, 0.6667, 1.0000, 1.3333, 1.6667, 2.0000, 2.3333],\n"
        "       dtype=kiln.float64, grad_fn=<div>)");
}

TEST_CASE("print: floats with exponents, without, or as their range says") {
  const Tensor wide = tensor({1e-9, 2.5e9});
  CHECK(to_string(wide) == "tensor([1.0000e-09, 2.5000e+09])");
  const Options never({.scientific = false});
  CHECK(to_string(wide) == "tensor([         0.0000, 2500000000.0000])");
  const Options always({.scientific = true});
  CHECK(to_string(tensor({1.0, 2.5})) == "tensor([1.0000e+00, 2.5000e+00])");
}

TEST_CASE("options") {
  {
    const Options two_digits({.precision = 2});
    CHECK(to_string(tensor({1.23456, 2.5})) == "tensor([1.23, 2.50])");
  }
  CHECK(to_string(tensor({1.23456, 2.5})) == "tensor([1.2346, 2.5000])");
  CHECK_THROWS_AS(set_print_options({.precision = -1}), ValueError);
  CHECK_THROWS_AS(set_print_options({.line_width = 0}), ValueError);
  std::ostringstream out;
  out << tensor({1, 2});
  CHECK(out.str() == "tensor([1, 2])");
}
