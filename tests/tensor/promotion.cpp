// The dtype of a result, for every pair of dtypes: PyTorch's rule, and the tables are what
// PyTorch 2.13 answers.
#include <string>

#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

// One letter for each of kAllTypes, in its order.
constexpr std::string_view kLetters = "dfhbliscuo";

DType dtype_at(size_t i) { return kAllTypes[i]; }
char letter_of(DType dtype) {
  for (size_t i = 0; i < kLetters.size(); ++i) {
    if (kAllTypes[i] == dtype) return kLetters[i];
  }
  return '?';
}

// Row: dtype of the first operand; column: of the second. Both with dims, or both 0-d.
constexpr const char* kAlike[] = {"dddddddddd", "dfffffffff", "dfhfhhhhhh", "dffbbbbbbb",
                                  "dfhbllllll", "dfhbliiiii", "dfhblissss", "dfhbliscsc",
                                  "dfhblissuu", "dfhbliscuo"};
// The first with dims, the second 0-d.
constexpr const char* kWithZeroDim[] = {"dddddddddd", "ffffffffff", "hhhhhhhhhh", "bbbbbbbbbb",
                                        "dfhbllllll", "dfhbiiiiii", "dfhbssssss", "dfhbcccccc",
                                        "dfhbuuuuuu", "dfhbliscuo"};
// With a bool, an integer, a floating point number.
constexpr const char* kWithNumber[] = {"ddd", "fff", "hhh", "bbb", "llf",
                                       "iif", "ssf", "ccf", "uuf", "olf"};

std::string row(size_t i, const Shape& x_shape, const Shape& y_shape, Device device,
                Tensor (*op)(const Tensor&, const Tensor&)) {
  std::string out;
  for (size_t j = 0; j < 10; ++j) {
    const Tensor x = ones(x_shape, {dtype_at(i), device});
    const Tensor y = ones(y_shape, {dtype_at(j), device});
    out += letter_of(op(x, y).dtype());
  }
  return out;
}

Tensor sum_of(const Tensor& x, const Tensor& y) { return x + y; }
Tensor product_of(const Tensor& x, const Tensor& y) { return x * y; }
Tensor larger_of(const Tensor& x, const Tensor& y) { return x.maximum(y); }
Tensor either_of(const Tensor& x, const Tensor& y) { return where(x.eq(y), x, y); }
Tensor joined(const Tensor& x, const Tensor& y) { return cat({x, y}); }

}  // namespace

TEST_CASE("two tensors with dims, two 0-d tensors") {
  on_devices([](Device device) {
    for (size_t i = 0; i < 10; ++i) {
      INFO("row ", i);
      for (auto* op : {sum_of, product_of, larger_of, either_of}) {
        CHECK(row(i, {2}, {2}, device, op) == kAlike[i]);
        CHECK(row(i, {}, {}, device, op) == kAlike[i]);
        CHECK(row(i, {1, 2}, {0, 1}, device, op) == kAlike[i]);
      }
      CHECK(row(i, {2}, {1}, device, joined) == kAlike[i]);
      for (size_t j = 0; j < 10; ++j) {
        CHECK(letter_of(promote_types(dtype_at(i), dtype_at(j))) == kAlike[i][j]);
      }
    }
  });
}

TEST_CASE("a 0-d tensor changes the dtype only when it is of a larger kind") {
  on_devices([](Device device) {
    for (size_t i = 0; i < 10; ++i) {
      INFO("row ", i);
      for (auto* op : {sum_of, product_of, larger_of, either_of}) {
        CHECK(row(i, {2}, {}, device, op) == kWithZeroDim[i]);
      }
      for (size_t j = 0; j < 10; ++j) {  // the other way round
        const Tensor x = ones({}, {dtype_at(j), device});
        const Tensor y = ones({3}, {dtype_at(i), device});
        CHECK(letter_of((x + y).dtype()) == kWithZeroDim[i][j]);
      }
    }
  });
}

TEST_CASE("a number changes the dtype only when it is of a larger kind") {
  on_devices([](Device device) {
    for (size_t i = 0; i < 10; ++i) {
      INFO("row ", i);
      for (const Shape& shape : {Shape{2}, Shape{}, Shape{0}}) {
        const Tensor x = ones(shape, {dtype_at(i), device});
        const Scalar numbers[] = {true, 2, 2.5};
        for (int k = 0; k < 3; ++k) {
          CHECK(letter_of((x + numbers[k]).dtype()) == kWithNumber[i][k]);
          CHECK(letter_of((numbers[k] * x).dtype()) == kWithNumber[i][k]);
          CHECK(letter_of(where(x.eq(1), x, numbers[k]).dtype()) == kWithNumber[i][k]);
          if (dtype_at(i) == bool_ && k == 0) continue;
          CHECK(letter_of((x - numbers[k]).dtype()) == kWithNumber[i][k]);
          CHECK(letter_of((numbers[k] - x).dtype()) == kWithNumber[i][k]);
          CHECK(letter_of((x % numbers[k]).dtype()) == kWithNumber[i][k]);
          CHECK(letter_of(x.clamp(numbers[k]).dtype()) == kWithNumber[i][k]);
        }
      }
    }
  });
}

TEST_CASE("true division and functions of floats give the default dtype for integers") {
  on_devices(kAllTypes, [](Device device, DType dtype) {
    const Tensor x = ones({2}, {dtype, device});
    const DType expected = is_floating_point(dtype) ? dtype : f32;
    CHECK((x / x).dtype() == expected);
    CHECK((x / 2).dtype() == expected);
    CHECK((2 / x).dtype() == expected);
    CHECK(atan2(x, x).dtype() == expected);
    CHECK(x.exp().dtype() == expected);
    CHECK(x.eq(x).dtype() == bool_);
    CHECK(x.sum().dtype() == (is_floating_point(dtype) ? dtype : i64));
    CHECK(x.cumsum(0).dtype() == (is_floating_point(dtype) ? dtype : i64));
  });
}

TEST_CASE("values survive promotion") {
  on_devices([](Device device) {
    const Tensor small = tensor({200}, {u8, device});
    const Tensor sign = tensor({-3}, {i8, device});
    CHECK(mismatch(small + sign, {1}, {197}) == "");  // i16 holds it
    CHECK(mismatch(tensor({1}, {i64, device}) + tensor({0.5}, {f16, device}), {1}, {1.5}) == "");
    CHECK(mismatch(tensor({true}, {.device = device}) + 2, {1}, {3}) == "");
    CHECK(mismatch(tensor({true}, {.device = device}) * 2.5, {1}, {2.5}) == "");
    // Computed in f16: 2049 does not exist there.
    CHECK(mismatch(tensor({2048.0}, {f16, device}) + tensor(1.0, {f64, device}), {1}, {2048}, 0) ==
          "");
  });
}
