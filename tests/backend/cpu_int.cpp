// Cpu's division of integers, and its order of numbers, beside plain C++.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "kiln/core/error.h"
#include "tests/backend/neural_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

// Of a dtype's range, and where quotients come close to the next integer.
template <class T>
std::vector<T> dividends() {
  constexpr T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  std::vector<T> out = {low, T(low + 1), high, T(high - 1), 0, 1, 2, 7, 99, 100, 101};
  if constexpr (std::is_signed_v<T>) out.insert(out.end(), {T(-1), T(-2), T(-7), T(-99), T(-100)});
  if constexpr (sizeof(T) == 8) {
    for (const int64_t edge : {int64_t{1} << 51, int64_t{1} << 52, int64_t{1} << 53}) {
      out.insert(out.end(), {edge - 1, edge, edge + 1, -edge - 1, -edge, -edge + 1});
    }
  }
  return out;
}

// The quotient rounded down, and the rest that is left then; in 128 bits, where nothing overflows.
template <class T>
T floor_of(T a, T b) {
  const __int128 x = a, y = b;
  const __int128 q = x / y;
  return static_cast<T>(x % y != 0 && (x < 0) != (y < 0) ? q - 1 : q);
}
template <class T>
T rest_of(T a, T b) {
  const __int128 x = a, y = b;
  return static_cast<T>(x - static_cast<__int128>(floor_of<__int128>(x, y)) * y);
}

template <class T>
HostHandle tensor_of(const std::vector<T>& values) {
  return host::from_data(TensorData(values, Shape{static_cast<int64_t>(values.size())}), Device());
}

template <class T>
void check_division() {
  // Blocks that hold nothing large, and such that do.
  std::vector<T> a, b;
  for (int i = 0; i < 300; ++i) {
    a.push_back(static_cast<T>(i * 37 - 5000));
    b.push_back(static_cast<T>(i % 11 - 5 == 0 ? 6 : i % 11 - 5));
  }
  const std::vector<T> edges = dividends<T>();
  for (const T x : edges) {
    for (const T y : edges) {
      if (y == 0) continue;
      a.push_back(x);
      b.push_back(y);
    }
  }
  const HostHandle x = tensor_of(a), y = tensor_of(b);
  const HostHandle down = CpuOps::int_binary(x, y, IntFunction::floor_divide);
  const HostHandle rest = CpuOps::int_remainder(x, y);
  const HostHandle to_zero = CpuOps::int_div(x, y);
  const HostHandle fmod = CpuOps::int_binary(x, y, IntFunction::fmod);
  for (size_t i = 0; i < a.size(); ++i) {
    CAPTURE(static_cast<int64_t>(a[i]));
    CAPTURE(static_cast<int64_t>(b[i]));
    const __int128 p = a[i], q = b[i];
    CHECK(down->data_as<T>()[i] == floor_of(a[i], b[i]));
    CHECK(rest->data_as<T>()[i] == rest_of(a[i], b[i]));
    CHECK(to_zero->data_as<T>()[i] == static_cast<T>(p / q));
    CHECK(fmod->data_as<T>()[i] == static_cast<T>(p % q));
  }
  // One divisor, and one dividend.
  for (const T one : edges) {
    const HostHandle scalar =
        Cpu::int_full(Shape{}, Scalar(static_cast<int64_t>(one)), x->dtype(), Device());
    if (one != 0) {
      const HostHandle by = CpuOps::int_binary(x, scalar, IntFunction::floor_divide);
      for (size_t i = 0; i < a.size(); ++i) CHECK(by->data_as<T>()[i] == floor_of(a[i], one));
    }
    const HostHandle of = CpuOps::int_remainder(scalar, y);
    for (size_t i = 0; i < a.size(); ++i) CHECK(of->data_as<T>()[i] == rest_of(one, b[i]));
  }
}

}  // namespace

TEST_CASE("Cpu: integers are divided as in 128 bits") {
  at_every_target([] {
    check_division<int64_t>();
    check_division<int32_t>();
    check_division<int16_t>();
    check_division<int8_t>();
    check_division<uint8_t>();
  });
}

TEST_CASE("Cpu: rows of every length are sorted, equal numbers stay in order") {
  Values random(4);
  for (const int64_t n : {1, 2, 3, 16, 17, 31, 64, 65, 100, 255, 300, 1000, 1024, 1025, 3000}) {
    for (const int64_t range : {2, 50, 70000}) {
      CAPTURE(n);
      CAPTURE(range);
      std::vector<int64_t> values;
      for (int64_t i = 0; i < 3 * n; ++i) {
        const int64_t sign = random.next_int(2) == 0 ? 1 : -1;
        values.push_back(sign * (random.next_int(range) << (range == 50 ? 40 : 0)));
      }
      const TensorData data(values, Shape{3, n});
      for (const DType dtype : {i64, i32, u8, f32, f64}) {
        CAPTURE(to_string(dtype));
        const HostHandle x = host::from_data(data.cast(dtype), Device());
        const std::vector<double> numbers = values_of(x);
        for (const bool descending : {false, true}) {
          const HostHandle order = is_floating_point(dtype)
                                       ? CpuOps::float_sort(x, 1, descending).second
                                       : CpuOps::int_argsort(x, 1, descending);
          bool right = true;
          for (int64_t r = 0; r < 3; ++r) {
            std::vector<int64_t> want(static_cast<size_t>(n));
            std::iota(want.begin(), want.end(), 0);
            std::stable_sort(want.begin(), want.end(), [&](int64_t i, int64_t j) {
              const double a = numbers[static_cast<size_t>(r * n + i)];
              const double b = numbers[static_cast<size_t>(r * n + j)];
              return descending ? a > b : a < b;
            });
            right = right &&
                    std::equal(want.begin(), want.end(), order->data_as<const int64_t>() + r * n);
          }
          CHECK(right);
        }
      }
    }
  }
}
