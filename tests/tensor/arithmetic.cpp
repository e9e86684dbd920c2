// Arithmetic of two tensors and of a tensor and a number: values for every dtype, broadcasting,
// integer semantics, gradients of both operands, and lent or given operands. Expected values are
// PyTorch's.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("values for every dtype, in any memory layout") {
  on_devices(kNumberTypes, [](Device device, DType dtype) {
    const TensorOptions on{dtype, device};
    const Tensor a = tensor({{7, 3, 5}, {4, 9, 1}}, on);
    const Tensor b = tensor({{2, 3, 2}, {1, 2, 2}}, on);
    const Shape s{2, 3};
    for (int layout = 0; layout < 3; ++layout) {
      INFO("layout ", layout);
      const Tensor x = layout == 0 ? a : scattered(a);
      const Tensor y = layout == 1 ? b : scattered(b);
      CHECK(mismatch(x + y, s, {9, 6, 7, 5, 11, 3}) == "");
      CHECK(mismatch(x - y, s,
                     is_floating_point(dtype) || dtype != u8 ? Doubles{5, 0, 3, 3, 7, -1}
                                                             : Doubles{5, 0, 3, 3, 7, 255}) == "");
      CHECK(mismatch(x * y, s, {14, 9, 10, 4, 18, 2}) == "");
      CHECK(mismatch(x / y, s, {3.5, 1, 2.5, 4, 4.5, 0.5}) == "");
      CHECK(mismatch(x.floor_divide(y), s, {3, 1, 2, 4, 4, 0}) == "");
      CHECK(mismatch(x % y, s, {1, 0, 1, 0, 1, 1}) == "");
      CHECK(mismatch(x.pow(y), s, {49, 27, 25, 4, 81, 1}) == "");
      CHECK(mismatch(x.maximum(y), s, {7, 3, 5, 4, 9, 2}) == "");
      CHECK(mismatch(x.minimum(y), s, {2, 3, 2, 1, 2, 1}) == "");
      CHECK(mismatch(atan2(x, y), s,
                     {std::atan2(7, 2), std::atan2(3, 3), std::atan2(5, 2), std::atan2(4, 1),
                      std::atan2(9, 2), std::atan2(1, 2)}) == "");
    }
    CHECK((a + b).dtype() == dtype);
    CHECK((a + b).device() == device);
  });
}

TEST_CASE("a tensor and a number") {
  on_devices(kNumberTypes, [](Device device, DType dtype) {
    const Tensor flat = tensor({1, 2, 4}, {dtype, device});
    for (const Tensor& x : {flat, scattered(flat)}) {
      CHECK(mismatch(x + 3, {3}, {4, 5, 7}) == "");
      CHECK(mismatch(3 + x, {3}, {4, 5, 7}) == "");
      CHECK(mismatch(x - 1, {3}, {0, 1, 3}) == "");
      CHECK(mismatch(8 - x, {3}, {7, 6, 4}) == "");
      CHECK(mismatch(x * 5, {3}, {5, 10, 20}) == "");
      CHECK(mismatch(x / 2, {3}, {0.5, 1, 2}) == "");
      CHECK(mismatch(8 / x, {3}, {8, 4, 2}) == "");
      CHECK(mismatch(x % 3, {3}, {1, 2, 1}) == "");
      CHECK(mismatch(x.floor_divide(3), {3}, {0, 0, 1}) == "");
      CHECK(mismatch(x.pow(2), {3}, {1, 4, 16}) == "");
      CHECK(mismatch(x.pow(0), {3}, {1, 1, 1}) == "");
      CHECK(mismatch(x.pow(0.5), {3}, {1, std::sqrt(2.0), 2}) == "");
      CHECK(mismatch(pow(2, x), {3}, {2, 4, 16}) == "");
      CHECK(mismatch(x.clamp(2), {3}, {2, 2, 4}) == "");
      CHECK(mismatch(x.clamp({}, 2), {3}, {1, 2, 2}) == "");
      CHECK(mismatch(x.clamp(2, 3), {3}, {2, 2, 3}) == "");
      CHECK(mismatch(x.clamp(3, 2), {3}, {2, 2, 2}) == "");  // the upper bound wins
      CHECK(mismatch(x.add(x, 3), {3}, {4, 8, 16}) == "");
    }
  });
}

TEST_CASE("broadcasting") {
  on_devices(kNumberTypes, [](Device device, DType dtype) {
    const TensorOptions on{dtype, device};
    const Tensor m = tensor({{1, 2, 3}, {4, 5, 6}}, on);
    const Tensor row = tensor({10, 20, 30}, on);
    const Tensor column = tensor({{1}, {2}}, on);
    CHECK(mismatch(m + row, {2, 3}, {11, 22, 33, 14, 25, 36}) == "");
    CHECK(mismatch(row + m, {2, 3}, {11, 22, 33, 14, 25, 36}) == "");
    CHECK(mismatch(m * column, {2, 3}, {1, 2, 3, 8, 10, 12}) == "");
    CHECK(mismatch(column + row, {2, 3}, {11, 21, 31, 12, 22, 32}) == "");
    CHECK(mismatch(m + tensor(1, on), {2, 3}, {2, 3, 4, 5, 6, 7}) == "");
    CHECK(mismatch(tensor(20, on) - m, {2, 3}, {19, 18, 17, 16, 15, 14}) == "");
    CHECK(mismatch(tensor(2, on) + tensor(3, on), {}, {5}) == "");
    CHECK(mismatch(m.t() + column.t(), {3, 2}, {2, 6, 3, 7, 4, 8}) == "");
    CHECK((zeros({0, 3}, on) + row).shape() == Shape{0, 3});
    CHECK((zeros({0}, on) + zeros({1}, on)).shape() == Shape{0});
    CHECK((zeros({2, 1, 4}, on) + zeros({3, 1}, on)).shape() == Shape{2, 3, 4});
    CHECK((zeros({1, 1, 1}, on) * m).shape() == Shape{1, 2, 3});
  });
  CHECK_THROWS_AS(zeros({2, 3}) + zeros({2}), ShapeError);
  CHECK_THROWS_AS(zeros({0}) + zeros({2}), ShapeError);
}

TEST_CASE("large tensors in every combination of layouts") {
  // Longer than a vector and a chunk; compared with a plain loop.
  on_devices([](Device device) {
    const int64_t n = 137;
    const int64_t m = 301;
    const Tensor a = arange(n * m, {f32, device}).reshape({n, m}) * 0.001 - 7.0;
    const Tensor row = arange(m, {f32, device}) * 0.5 + 1.0;
    const Tensor column = (arange(n, {f32, device}) - 60.0).unsqueeze(1);
    const Tensor outs[] = {a + row, a * column, a.t().contiguous().t() - row,
                           row / (column * column + 1)};
    const std::vector<float> rounded = a.to_vector<float>();
    double worst = 0;
    for (int k = 0; k < 4; ++k) {
      const std::vector<float> out = outs[k].to_vector<float>();
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < m; ++j) {
          const auto x = static_cast<double>(rounded[static_cast<size_t>(i * m + j)]);
          const double r = static_cast<double>(j) * 0.5 + 1.0;
          const double c = static_cast<double>(i) - 60.0;
          const double expected = k == 0   ? x + r
                                  : k == 1 ? x * c
                                  : k == 2 ? x - r
                                           : r / (c * c + 1);
          const double got = static_cast<double>(out[static_cast<size_t>(i * m + j)]);
          worst = std::max(worst, std::abs(got - expected) / std::max(1.0, std::abs(expected)));
        }
      }
    }
    CHECK(worst < 1e-5);
  });
}

TEST_CASE("division and remainder of signed integers round down") {
  on_devices([](Device device) {
    for (const DType dtype : {i64, i32, i16, i8}) {
      const Tensor x = tensor({7, -7, 7, -7, 6, -6}, {dtype, device});
      const Tensor y = tensor({2, 2, -2, -2, -3, 3}, {dtype, device});
      CHECK(mismatch(x.floor_divide(y), {6}, {3, -4, -4, 3, -2, -2}) == "");
      CHECK(mismatch(x % y, {6}, {1, 1, -1, -1, 0, 0}) == "");
      CHECK(mismatch(x % -2, {6}, {-1, -1, -1, -1, 0, 0}) == "");
      CHECK(mismatch(x.floor_divide(-2), {6}, {-4, 3, -4, 3, -3, 3}) == "");
      CHECK_THROWS_AS(x.floor_divide(0), ValueError);
      CHECK_THROWS_AS(x % 0, ValueError);
      CHECK_THROWS_AS(x % (y - y), ValueError);
    }
    const double inf = std::numeric_limits<double>::infinity();
    for (const DType dtype : kFloatTypes) {
      const Tensor x = tensor({7.5, -7.5, 7.5, -7.5}, {dtype, device});
      const Tensor y = tensor({2, 2, -2, -2}, {dtype, device});
      CHECK(mismatch(x.floor_divide(y), {4}, {3, -4, -4, 3}) == "");
      CHECK(mismatch(x % y, {4}, {1.5, 0.5, -0.5, -1.5}) == "");
      CHECK(mismatch(x.floor_divide(0), {4}, {inf, -inf, inf, -inf}) == "");
      CHECK(mismatch((x % 0).isnan(), {4}, {1, 1, 1, 1}) == "");
    }
    // 1 / 0.1 rounds to 10, but 9 tenths are the most that fit.
    CHECK(tensor(1.0, {f64, device}).floor_divide(0.1).item() == 9.0);
    CHECK(tensor(0.0, {f64, device}).floor_divide(tensor(0.0, {f64, device})).isnan().item<bool>());
  });
}

TEST_CASE("integers wrap") {
  on_devices([](Device device) {
    CHECK(mismatch(tensor({250}, {u8, device}) + 10, {1}, {4}) == "");
    CHECK(mismatch(tensor({100}, {i8, device}) * tensor({2}, {i8, device}), {1}, {-56}) == "");
    CHECK(mismatch(tensor({1}, {u8, device}) - 2, {1}, {255}) == "");
    const int64_t most = std::numeric_limits<int64_t>::max();
    const int64_t least = std::numeric_limits<int64_t>::min();
    CHECK((tensor({most}, {.device = device}) + 1).item<int64_t>() == least);
    CHECK((tensor({least}, {.device = device}) - 1).item<int64_t>() == most);
    CHECK((tensor({least}, {.device = device}) * -1).item<int64_t>() == least);
    CHECK(tensor({least}, {.device = device}).floor_divide(-1).item<int64_t>() == least);
    CHECK((tensor({least}, {.device = device}) % -1).item<int64_t>() == 0);
    CHECK(mismatch(tensor({-128}, {i8, device}).floor_divide(-1), {1}, {-128}) == "");
    CHECK((tensor({least}, {.device = device}).neg()).item<int64_t>() == least);
  });
}

TEST_CASE("powers of integers are exact") {
  on_devices([](Device device) {
    const Tensor three = tensor({3}, {.device = device});
    CHECK(three.pow(39).item<int64_t>() == 4052555153018976267);  // beyond 2^53
    CHECK(three.pow(41).item<int64_t>() == -420491770248316829);  // wrapped
    CHECK(tensor({2}, {i8, device}).pow(7).item<int64_t>() == -128);
    CHECK(mismatch(
              tensor({{0, 1, -2}}, {.device = device}).pow(tensor({{0}, {3}}, {.device = device})),
              {2, 3}, {1, 1, 1, 0, 1, -8}) == "");
    CHECK(tensor({7}, {u8, device}).pow(tensor({255}, {u8, device})).item<int64_t>() == 183);
    CHECK_THROWS_AS(three.pow(-1), ValueError);
    // As in PyTorch: what 1 / x^n truncates to.
    CHECK(mismatch(tensor({3, 1, -1, -1}, {.device = device})
                       .pow(tensor({-1, -2, -2, -3}, {.device = device})),
                   {4}, {0, 1, 1, -1}) == "");
    CHECK(mismatch(three.pow(-1.0), {1}, {1.0 / 3}) == "");
    CHECK(zeros({0}, {i64, device}).pow(2).shape() == Shape{0});
    CHECK(mismatch(pow(2.0, tensor({1, 2}, {.device = device})), {2}, {2, 4}) == "");
    CHECK(mismatch(pow(2, tensor({1.5, 2}, {.device = device})), {2}, {std::pow(2, 1.5), 4}) == "");
  });
}

TEST_CASE("bools") {
  on_devices([](Device device) {
    const Tensor a = tensor({true, true, false, false}, {.device = device});
    const Tensor b = tensor({true, false, true, false}, {.device = device});
    CHECK((a + b).dtype() == bool_);
    CHECK(mismatch(a + b, {4}, {1, 1, 1, 0}) == "");
    CHECK(mismatch(a * b, {4}, {1, 0, 0, 0}) == "");
    CHECK(mismatch(a.maximum(b), {4}, {1, 1, 1, 0}) == "");
    CHECK(mismatch(a.minimum(b), {4}, {1, 0, 0, 0}) == "");
    CHECK(mismatch(a / tensor({2.0}, {.device = device}), {4}, {0.5, 0.5, 0, 0}) == "");
    CHECK(mismatch(a + true, {4}, {1, 1, 1, 1}) == "");
    CHECK(mismatch(a * false, {4}, {0, 0, 0, 0}) == "");
    CHECK_THROWS_AS(a - b, DTypeError);
    CHECK_THROWS_AS(a % b, DTypeError);
    CHECK_THROWS_AS(a.floor_divide(b), DTypeError);
    CHECK_THROWS_AS(a - true, DTypeError);
    CHECK_THROWS_AS(true - a, DTypeError);
  });
}

TEST_CASE("infinities and NaN") {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  on_devices(kFloatTypes, [&](Device device, DType dtype) {
    const TensorOptions on{dtype, device};
    const Tensor x = tensor({1.0, nan, inf, -inf}, on);
    const Tensor y = tensor({nan, 1.0, 1.0, 1.0}, on);
    CHECK(mismatch(x.maximum(y), {4}, {nan, nan, inf, 1}) == "");
    CHECK(mismatch(x.minimum(y), {4}, {nan, nan, 1, -inf}) == "");
    CHECK(mismatch(x - x, {4}, {0, nan, nan, nan}) == "");
    CHECK(mismatch(x.clamp(-2, 2), {4}, {1, nan, 2, -2}) == "");
    CHECK(mismatch(x.clamp(nan), {4}, {nan, nan, nan, nan}) == "");
    CHECK(mismatch(x.clamp(0, nan), {4}, {nan, nan, nan, nan}) == "");
    CHECK(mismatch(tensor({1.0, -1.0, 0.0}, on) / 0.0, {3}, {inf, -inf, nan}) == "");
    CHECK(mismatch(tensor({0.0, 2.0, -1.0}, on).pow(tensor({0.0, inf, 0.5}, on)), {3},
                   {1, inf, nan}) == "");
  });
}

namespace {

struct Binary {
  const char* name;
  Tensor (*op)(const Tensor&, const Tensor&);
  double (*value)(double, double);
  double (*da)(double, double);
  double (*db)(double, double);
};

const Binary kBinaries[] = {
    {"add", [](const Tensor& a, const Tensor& b) { return a + b; },
     [](double a, double b) { return a + b; }, [](double, double) { return 1.0; },
     [](double, double) { return 1.0; }},
    {"sub", [](const Tensor& a, const Tensor& b) { return a - b; },
     [](double a, double b) { return a - b; }, [](double, double) { return 1.0; },
     [](double, double) { return -1.0; }},
    {"mul", [](const Tensor& a, const Tensor& b) { return a * b; },
     [](double a, double b) { return a * b; }, [](double, double b) { return b; },
     [](double a, double) { return a; }},
    {"div", [](const Tensor& a, const Tensor& b) { return a / b; },
     [](double a, double b) { return a / b; }, [](double, double b) { return 1 / b; },
     [](double a, double b) { return -a / (b * b); }},
    {"pow", [](const Tensor& a, const Tensor& b) { return a.pow(b); },
     [](double a, double b) { return std::pow(a, b); },
     [](double a, double b) { return b * std::pow(a, b - 1); },
     [](double a, double b) { return std::pow(a, b) * std::log(a); }},
    {"atan2", [](const Tensor& a, const Tensor& b) { return atan2(a, b); },
     [](double a, double b) { return std::atan2(a, b); },
     [](double a, double b) { return b / (a * a + b * b); },
     [](double a, double b) { return -a / (a * a + b * b); }},
    {"maximum", [](const Tensor& a, const Tensor& b) { return a.maximum(b); },
     [](double a, double b) { return std::max(a, b); },
     [](double a, double b) { return a > b    ? 1.0
                                     : a == b ? 0.5
                                              : 0.0; },
     [](double a, double b) { return a < b    ? 1.0
                                     : a == b ? 0.5
                                              : 0.0; }},
    {"minimum", [](const Tensor& a, const Tensor& b) { return a.minimum(b); },
     [](double a, double b) { return std::min(a, b); },
     [](double a, double b) { return a < b    ? 1.0
                                     : a == b ? 0.5
                                              : 0.0; },
     [](double a, double b) { return a > b    ? 1.0
                                     : a == b ? 0.5
                                              : 0.0; }},
    {"remainder", [](const Tensor& a, const Tensor& b) { return a % b; },
     [](double a, double b) { return a - b * std::floor(a / b); },
     [](double, double) { return 1.0; }, [](double a, double b) { return -std::floor(a / b); }},
    {"alpha", [](const Tensor& a, const Tensor& b) { return a.sub(b, 2.5); },
     [](double a, double b) { return a - 2.5 * b; }, [](double, double) { return 1.0; },
     [](double, double) { return -2.5; }},
};

}  // namespace

TEST_CASE("gradients of both operands, broadcast or not") {
  const std::pair<Shape, Shape> shapes[] = {{{2, 3}, {2, 3}}, {{2, 3}, {3}}, {{3}, {2, 3}},
                                            {{2, 1}, {1, 3}}, {{}, {2, 3}},  {{2, 3}, {}},
                                            {{2, 3}, {2, 1}}, {{}, {}}};
  on_devices([&](Device device) {
    for (const Binary& binary : kBinaries) {
      for (const auto& [as, bs] : shapes) {
        for (int layout = 0; layout < 2; ++layout) {
          INFO(binary.name, " ", to_string(as), " ", to_string(bs), " layout ", layout);
          const TensorOptions on{f64, device};
          // 0.7, 1.2, ...; the other 2.1, 1.7, ...: no ties, all positive.
          Tensor a = arange(as.numel(), on).reshape(as) * 0.5 + 0.7;
          Tensor b = 2.1 - arange(bs.numel(), on).reshape(bs) * 0.3;
          if (layout == 1) {
            a = scattered(a);
            b = scattered(b);
          }
          a.requires_grad_();
          b.requires_grad_();
          const Tensor out = binary.op(a, b);
          const Shape os = broadcast_shapes("test", as, bs);
          const Tensor seed = arange(os.numel(), on).reshape(os) + 1.0;
          const Gradients grads = out.backward(seed);

          Doubles values;
          Doubles ga(static_cast<size_t>(as.numel()), 0.0);
          Doubles gb(static_cast<size_t>(bs.numel()), 0.0);
          // Where element (i, j) of the result comes from in an operand.
          const auto place = [](const Shape& s, int64_t i, int64_t j) {
            const int64_t rows = s.rank() == 2 ? s[0] : 1;
            const int64_t columns = s.rank() >= 1 ? s.back() : 1;
            return static_cast<size_t>((rows == 1 ? 0 : i) * columns + (columns == 1 ? 0 : j));
          };
          const int64_t rows = os.rank() == 2 ? os[0] : 1;
          const int64_t columns = os.rank() >= 1 ? os.back() : 1;
          for (int64_t i = 0; i < rows; ++i) {
            for (int64_t j = 0; j < columns; ++j) {
              const double x = static_cast<double>(place(as, i, j)) * 0.5 + 0.7;
              const double y = 2.1 - static_cast<double>(place(bs, i, j)) * 0.3;
              const double g = static_cast<double>(i * columns + j) + 1.0;
              values.push_back(binary.value(x, y));
              ga[place(as, i, j)] += g * binary.da(x, y);
              gb[place(bs, i, j)] += g * binary.db(x, y);
            }
          }
          CHECK(mismatch(out, os, values) == "");
          CHECK(mismatch(*a.grad(grads), as, ga) == "");
          CHECK(mismatch(*b.grad(grads), bs, gb) == "");
        }
      }
    }
  });
}

TEST_CASE("only one operand tracked") {
  on_devices([](Device device) {
    for (const Binary& binary : kBinaries) {
      INFO(binary.name);
      const TensorOptions on{f64, device};
      Tensor a = tensor({3.0}, on).requires_grad_();
      const Tensor b = tensor({2.0}, on);
      CHECK(mismatch(*a.grad(binary.op(a, b).backward()), {1}, {binary.da(3, 2)}) == "");
      CHECK(mismatch(*a.grad(binary.op(b, a).backward()), {1}, {binary.db(2, 3)}) == "");
      CHECK(mismatch(*a.grad(binary.op(a, a).backward()), {1},
                     {binary.da(3, 3) + binary.db(3, 3)}) == "");
    }
  });
}

TEST_CASE("gradients of a tensor with a number") {
  on_devices([](Device device) {
    const auto slope = [&](const std::function<Tensor(const Tensor&)>& f, double at) {
      Tensor x = tensor({at}, {f64, device}).requires_grad_();
      return x.grad(f(x).backward())->item();
    };
    CHECK(slope([](const Tensor& x) { return x + 2; }, 3) == 1);
    CHECK(slope([](const Tensor& x) { return 2 - x; }, 3) == -1);
    CHECK(slope([](const Tensor& x) { return x - 2; }, 3) == 1);
    CHECK(slope([](const Tensor& x) { return x * 4; }, 3) == 4);
    CHECK(slope([](const Tensor& x) { return x / 4; }, 3) == 0.25);
    CHECK(slope([](const Tensor& x) { return 8 / x; }, 2) == -2);
    CHECK(slope([](const Tensor& x) { return x % 2; }, 3.5) == 1);
    CHECK(slope([](const Tensor& x) { return x.pow(3); }, 2) == 12);
    CHECK(slope([](const Tensor& x) { return x.pow(0); }, 0) == 0);
    CHECK(slope([](const Tensor& x) { return x.pow(2); }, 0) == 0);
    CHECK(slope([](const Tensor& x) { return x.pow(1); }, 0) == 1);
    CHECK(slope([](const Tensor& x) { return pow(2, x); }, 3) ==
          doctest::Approx(8 * std::log(2.0)));
    CHECK(slope([](const Tensor& x) { return pow(0.0, x); }, 2) == 0);
    CHECK(slope([](const Tensor& x) { return x.clamp(0, 1); }, 0.5) == 1);
    CHECK(slope([](const Tensor& x) { return x.clamp(0, 1); }, 2) == 0);
    CHECK(slope([](const Tensor& x) { return x.clamp(0, 1); }, 1) ==
          1);  // the edge counts as inside
    CHECK(slope([](const Tensor& x) { return x.floor_divide(2); }, 3.5) == 0);
  });
}

TEST_CASE("an operand given away is used only when nobody else holds it") {
  on_devices(kNumberTypes, [](Device device, DType dtype) {
    const TensorOptions on{dtype, device};
    const auto fresh = [&] { return tensor({{1, 2}, {3, 4}}, on); };
    const Doubles original{1, 2, 3, 4};
    const Doubles plus{2, 3, 4, 5};
    {  // another handle
      Tensor x = fresh();
      const Tensor held = x;
      CHECK(mismatch(std::move(x) + 1, {2, 2}, plus) == "");
      CHECK(mismatch(held, {2, 2}, original) == "");
    }
    {  // a view
      Tensor x = fresh();
      const Tensor row = x[1];
      CHECK(mismatch(std::move(x) * 2, {2, 2}, {2, 4, 6, 8}) == "");
      CHECK(mismatch(row, {2}, {3, 4}) == "");
    }
    {  // a detached name of the same memory
      Tensor x = fresh();
      const Tensor held = x.detach();
      CHECK(mismatch(add(std::move(x), fresh()), {2, 2}, {2, 4, 6, 8}) == "");
      CHECK(mismatch(held, {2, 2}, original) == "");
    }
    {  // a view given away: its base lives on
      const Tensor base = fresh();
      CHECK(mismatch(base[0] + 1, {2}, {2, 3}) == "");
      CHECK(mismatch(base.t() + 1, {2, 2}, {2, 4, 3, 5}) == "");
      CHECK(mismatch(base.reshape({4}) + 1, {4}, plus) == "");
      CHECK(mismatch(base, {2, 2}, original) == "");
    }
    {  // the same tensor as both operands
      Tensor x = fresh();
      const Tensor& same = x;
      CHECK(mismatch(add(std::move(x), same), {2, 2}, {2, 4, 6, 8}) == "");
    }
    {  // held as an element of a container
      std::vector<Tensor> list{fresh()};
      CHECK(mismatch(neg(list[0] + 0), {2, 2},
                     mismatch(neg(fresh()), {2, 2}, {255, 254, 253, 252}) == ""
                         ? Doubles{255, 254, 253, 252}
                         : Doubles{-1, -2, -3, -4}) == "");
      CHECK(mismatch(list[0], {2, 2}, original) == "");
    }
    {  // temporaries of a chain, with a broadcast between
      const Tensor x = fresh();
      CHECK(mismatch(((x + 1) * (x + 0) + tensor({10, 20}, on)), {2, 2}, {12, 26, 22, 40}) == "");
      CHECK(mismatch(tensor({10, 20}, on) + fresh(), {2, 2}, {11, 22, 13, 24}) == "");
      CHECK(mismatch(x, {2, 2}, original) == "");
    }
  });
}

TEST_CASE("a given operand that a backward pass still needs survives") {
  on_devices([](Device device) {
    const TensorOptions on{f64, device};
    Tensor x = tensor({1.0, 2.0}, on).requires_grad_();
    Tensor y = x * x;  // y is needed by exp' and by the product
    Tensor z = y.exp();
    Tensor w = std::move(y) * std::move(z);  // x^2 exp(x^2)
    const Gradients grads = w.backward(ones({2}, on));
    const auto expected = [](double v) { return 2 * v * std::exp(v * v) * (1 + v * v); };
    CHECK(mismatch(*x.grad(grads), {2}, {expected(1), expected(2)}) == "");
    // A leaf given away keeps its values for the graph.
    Tensor leaf = tensor({3.0}, on).requires_grad_();
    const Tensor keep = leaf;
    const Tensor out = std::move(leaf) * 2.0 * keep;
    CHECK(mismatch(*keep.grad(out.backward()), {1}, {12}) == "");
    CHECK(mismatch(keep, {1}, {3}) == "");
  });
}

TEST_CASE("memory of a temporary is used again on the cpu") {
  Tensor x = ones({1000});
  const void* memory = x.data_ptr<float>();
  const Tensor y = std::move(x) + 1.0;
  CHECK(y.data_ptr<float>() == memory);
  CHECK(y.sum().item() == 2000.0);
}
