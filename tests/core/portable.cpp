// What stands in for parts of a standard library that lacks them.
#include "kiln/core/portable.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/core/from_chars.h"
#include "kiln/core/special_math.h"
#include "kiln/core/tensor_data.h"
#include "kiln/io/crc32.h"
#include "kiln/tensor/creation.h"

using namespace kiln;

TEST_CASE("portable: sizes that no memory has stay large") {
  CHECK(detail::memory_size(0) == 0);
  CHECK(detail::memory_size(12345) == 12345);
  CHECK(detail::memory_size(uint64_t{1} << 40) >= std::numeric_limits<uint32_t>::max());
  // 2^32 + 4 bytes look like 4 where sizes have 32 bits; nothing may allocate those. Where they
  // have 64, the tensor is three orders larger than any memory.
  const int64_t wide = sizeof(size_t) == 4 ? (int64_t{1} << 32) + 4 : int64_t{1} << 60;
  CHECK_THROWS_AS(TensorData(Shape{wide}, DType::u8), ValueError);
  CHECK_THROWS_AS(zeros({1}).expand({wide}).contiguous(), ValueError);
}

TEST_CASE("portable: atomic_ref") {
  int64_t number = 5;
  CHECK(detail::atomic_ref(number).fetch_add(3, std::memory_order_relaxed) == 5);
  CHECK(detail::atomic_ref(number).load(std::memory_order_acquire) == 8);
  detail::atomic_ref(number).store(-1, std::memory_order_release);
  CHECK(number == -1);
}

TEST_CASE("portable: numbers in texts are read as std::from_chars reads them") {
  struct Case {
    const char* text;
    double value;
    int taken;  // characters; 0: no number
  };
  const double inf = std::numeric_limits<double>::infinity();
  for (const Case& c : {Case{"1", 1, 1},
                        {"-2.5e3x", -2500, 6},
                        {".5", 0.5, 2},
                        {"0.1", 0.1, 3},
                        {"4.9406564584124654e-324", 5e-324, 23},
                        {"1.7976931348623157e308", 1.7976931348623157e308, 22},
                        {"inf", inf, 3},
                        {"-Infinity", -inf, 9},
                        {"0x10", 0, 1},
                        {"-0", -0.0, 2},
                        {"1e", 1, 1},
                        {"+1", 0, 0},
                        {" 1", 0, 0},
                        {"-+1", 0, 0},
                        {"- 1", 0, 0},
                        {"-", 0, 0},
                        {"", 0, 0},
                        {"e5", 0, 0}}) {
    CAPTURE(c.text);
    const char* const end = c.text + std::strlen(c.text);
    const auto check = [&](auto read) {
      double out = 77;
      const auto [stop, error] = read(c.text, end, out);
      CHECK(stop - c.text == c.taken);
      CHECK((error == std::errc()) == (c.taken > 0));
      CHECK(out == (c.taken > 0 ? c.value : 77));
      if (c.taken > 0) CHECK(std::signbit(out) == std::signbit(c.value));
    };
    check(detail::from_chars_by_strtod);
    check([](const char* a, const char* b, double& out) { return detail::from_chars(a, b, out); });
  }
  for (const std::string text : {"1e999", "-1e999", "1e-999"}) {
    double out = 77;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = detail::from_chars_by_strtod(text.data(), end, out);
    CHECK(error == std::errc::result_out_of_range);
    CHECK(stop == end);
    CHECK(out == 77);
  }
}

TEST_CASE("portable: Bessel functions and Airy's, against SciPy") {
  for (const auto& [x, i0] : {std::pair{0.0, 1.0},
                              {0.5, 1.0634833707413234},
                              {8.6, 750.4611595631659},
                              {14.0, 129418.56270064856}}) {
    CHECK(detail::bessel_i0_by_series(x) == doctest::Approx(i0).epsilon(1e-14));
    CHECK(detail::bessel_i0(x) == doctest::Approx(i0).epsilon(1e-14));
  }
  for (const auto& [x, ai] : {std::pair{-0.5, 0.4757280916105395},
                              {-1.0, 0.5355608832923522},
                              {-2.5, -0.11232506769296623},
                              {-5.0, 0.3507610090241142},
                              {-9.5, 0.3191032477191283}}) {
    CHECK(std::abs(detail::airy_ai_by_steps(x) - ai) < 2e-15);
  }
}

TEST_CASE("portable: checksums, with zlib and without") {
  const std::string digits = "123456789";  // the check value that descriptions of CRC-32 give
  CHECK(io::crc32_of(digits.data(), digits.size()) == 0xcbf43926);
  CHECK(io::crc32_of(nullptr, 0) == 0);
  for (const size_t cut : {0, 1, 4, 9}) {
    CHECK(io::crc32_joined(io::crc32_of(digits.data(), cut),
                           io::crc32_of(digits.data() + cut, digits.size() - cut),
                           digits.size() - cut) == 0xcbf43926);
  }
}
