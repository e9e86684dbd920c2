// How streams of bits become numbers.
#include "kiln/backend/random_fill.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include <doctest/doctest.h>

#include "kiln/backend/random_math.h"

using namespace kiln;

namespace {

const RandomStream kStream{99, 5};

TensorData filled(const Shape& shape, DType dtype, Distribution distribution) {
  TensorData data(shape, dtype);
  host::fill_random(data, distribution, kStream);
  return data;
}

struct Moments {
  double mean = 0.0;
  double deviation = 0.0;
  double least = 0.0;
  double most = 0.0;
};

Moments moments(DType dtype, Distribution distribution) {
  const std::vector<double> values = filled({200000}, dtype, distribution).to_doubles();
  Moments m{.least = values[0], .most = values[0]};
  for (double x : values) {
    m.mean += x / static_cast<double>(values.size());
    m.least = std::min(m.least, x);
    m.most = std::max(m.most, x);
  }
  for (double x : values) m.deviation += (x - m.mean) * (x - m.mean);
  m.deviation = std::sqrt(m.deviation / static_cast<double>(values.size()));
  return m;
}

}  // namespace

TEST_CASE("element i draws word i % 4 of block i / 4") {
  const TensorData floats = filled({2, 5}, f32, Distribution::uniform());
  for (size_t i = 0; i < 10; ++i) {
    CHECK(floats.as<float>()[i] == uniform_f32(kStream.block(i / 4)[i % 4]));
  }
  const TensorData doubles = filled({5}, f64, Distribution::uniform());
  for (size_t i = 0; i < 5; ++i) {
    const auto block = kStream.block(i / 2);
    CHECK(doubles.as<double>()[i] == uniform_f64(block[i % 2 * 2], block[i % 2 * 2 + 1]));
  }
  CHECK(host::random_words(10, f32) == 10);
  CHECK(host::random_words(10, f16) == 10);
  CHECK(host::random_words(10, f64) == 20);
  CHECK(host::random_words(10, i64) == 20);
}

TEST_CASE("half precision holds the rounded f32 draws") {
  for (const Distribution& d :
       {Distribution::uniform(-1, 2), Distribution::normal(), Distribution::exponential(3)}) {
    const TensorData wide = filled({41}, f32, d);
    for (DType dtype : {f16, bf16}) {
      CHECK(filled({41}, dtype, d).to_doubles() == wide.cast(dtype).to_doubles());
    }
  }
}

// Rounded to 8 bits, one draw in 512 would be 1.
TEST_CASE("uniform draws stay below the end of their interval in every dtype") {
  const auto largest = [](double low, double high, DType dtype) {
    return host::largest_uniform(Distribution::uniform(low, high), dtype);
  };
  CHECK(largest(0, 1, bf16) == 1.0 - 0x1p-8);
  CHECK(largest(0, 1, f16) == 1.0 - 0x1p-11);
  CHECK(largest(0, 1, f32) == 1.0 - 0x1p-24);
  CHECK(largest(0, 1, f64) == 1.0 - 0x1p-53);
  CHECK(largest(-1, 0, bf16) == -0x1p-133);
  CHECK(largest(-1, 0, f16) == -0x1p-24);
  CHECK(largest(-2, -1, bf16) == -1.0 - 0x1p-7);
  CHECK(largest(0, 1e6, f16) == 65504.0);
  CHECK(largest(0, 1.001, bf16) == 1.0);  // 1.001 is no bfloat16
  CHECK(largest(1, 1, f16) == 1.0);
  for (DType dtype : {f16, bf16, f32}) {
    const Moments m = moments(dtype, Distribution::uniform());
    CHECK(m.least >= 0.0);
    CHECK(m.most < 1.0);
    if (dtype != f32) CHECK(m.most == largest(0, 1, dtype));
  }
}

TEST_CASE("pieces that start at multiples of four give the same numbers") {
  for (DType dtype : {f64, f32, f16, i64, i8}) {
    const Distribution d =
        is_floating_point(dtype) ? Distribution::normal() : Distribution::integers(0, 100);
    const TensorData whole = filled({101}, dtype, d);
    TensorData pieces({101}, dtype);
    for (const auto& [begin, end] : {std::pair{0, 8}, {8, 60}, {60, 100}, {100, 101}}) {
      host::fill_random(pieces.mutable_data(), dtype, begin, end, d, kStream);
    }
    CHECK(std::memcmp(whole.data(), pieces.data(), whole.bytes()) == 0);
  }
}

TEST_CASE("normals are Box-Muller on pairs of draws") {
  const TensorData draws = filled({40}, f32, Distribution::uniform());
  const TensorData normals = filled({40}, f32, Distribution::normal(1.0, 2.0));
  for (size_t i = 0; i < 40; i += 2) {
    const double r = std::sqrt(-2.0 * std::log(1.0 - draws.as<float>()[i]));
    const double angle = 2.0 * std::numbers::pi * draws.as<float>()[i + 1];
    CHECK(normals.as<float>()[i] == doctest::Approx(1.0 + 2.0 * r * std::cos(angle)).epsilon(1e-6));
    CHECK(normals.as<float>()[i + 1] ==
          doctest::Approx(1.0 + 2.0 * r * std::sin(angle)).epsilon(1e-6));
  }
}

TEST_CASE("moments and ranges") {
  for (DType dtype : {f64, f32, f16, bf16}) {
    CAPTURE(to_string(dtype));
    const Moments uniform = moments(dtype, Distribution::uniform(-1, 3));
    CHECK(uniform.mean == doctest::Approx(1.0).epsilon(0.01));
    CHECK(uniform.deviation == doctest::Approx(4 / std::sqrt(12.0)).epsilon(0.01));
    CHECK(uniform.least >= -1.0);
    if (size_of(dtype) > 2) CHECK(uniform.most < 3.0);
    const Moments normal = moments(dtype, Distribution::normal(2, 0.5));
    CHECK(normal.mean == doctest::Approx(2.0).epsilon(0.01));
    CHECK(normal.deviation == doctest::Approx(0.5).epsilon(0.01));
    const Moments coin = moments(dtype, Distribution::bernoulli(0.25));
    CHECK(coin.mean == doctest::Approx(0.25).epsilon(0.02));
    CHECK(coin.most == 1.0);
    const Moments wait = moments(dtype, Distribution::exponential(4));
    CHECK(wait.mean == doctest::Approx(0.25).epsilon(0.02));
    CHECK(wait.deviation == doctest::Approx(0.25).epsilon(0.02));
    CHECK(wait.least >= 0.0);
  }
  for (DType dtype : {i64, i32, i16, i8, u8}) {
    const Moments die = moments(dtype, Distribution::integers(1, 7));
    CHECK(die.least == 1.0);
    CHECK(die.most == 6.0);
    CHECK(die.mean == doctest::Approx(3.5).epsilon(0.01));
  }
  // A range that 32 bits do not cover.
  const int64_t wide = int64_t{1} << 52;
  const Moments large = moments(i64, Distribution::integers(-wide, wide));
  CHECK(std::abs(large.mean) < 0.01 * static_cast<double>(wide));
  CHECK(large.most > 0.99 * static_cast<double>(wide));
}

TEST_CASE("extreme draws stay finite") {
  CHECK(host::random_log(1.0f) == 0.0f);
  CHECK(host::random_log(0x1p-24f) == doctest::Approx(-24.0 * std::numbers::ln2));
  for (int i = 0; i <= 64; ++i) {
    const float turns = static_cast<float>(i == 64 ? 1.0 - 0x1p-24 : i / 64.0);
    float sin = 0.0f;
    float cos = 0.0f;
    host::random_sincos(turns, &sin, &cos);
    const double angle = 2.0 * std::numbers::pi * static_cast<double>(turns);
    CHECK(std::abs(sin - std::sin(angle)) < 2e-7);
    CHECK(std::abs(cos - std::cos(angle)) < 2e-7);
  }
}
