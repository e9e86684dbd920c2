#include "kiln/core/tensor_data.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/core/convert.h"

using namespace kiln;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
std::vector<T> values_of(const TensorData& data) {
  const auto span = data.as<T>();
  return {span.begin(), span.end()};
}

}  // namespace

TEST_CASE("values go in and come out") {
  const TensorData data(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  CHECK(data.shape() == Shape{2, 3});
  CHECK(data.dtype() == f32);
  CHECK(data.bytes() == 24);
  CHECK(data.item(4) == 5.0);
  CHECK(data.to_doubles() == std::vector<double>{1, 2, 3, 4, 5, 6});
  CHECK_THROWS_AS(data.item(6), IndexError);
  CHECK_THROWS_AS(data.item(-1), IndexError);
  CHECK_THROWS_WITH_AS(data.as<double>(), doctest::Contains("expected float32"), DTypeError);
  CHECK_THROWS_AS(TensorData(std::vector<float>{1}, {2}), ShapeError);
  CHECK_THROWS_AS(TensorData(std::vector<float>{1}, Shape{0}), ShapeError);
}

TEST_CASE("0-d and empty data") {
  const TensorData scalar(std::vector<int64_t>{7}, Shape{});
  CHECK(scalar.numel() == 1);
  CHECK(scalar.item(0) == 7.0);
  const TensorData empty;
  CHECK(empty.numel() == 0);
  CHECK(empty.to_doubles().empty());
  CHECK(empty.cast(i32).dtype() == i32);
  CHECK(TensorData(Shape{3, 0}, f64).bytes() == 0);
}

TEST_CASE("sizes that cannot be held throw") {
  CHECK_THROWS_AS(TensorData(Shape{-1}, f32), ShapeError);
  CHECK_THROWS_AS(TensorData(Shape{INT64_MAX, 2}, f32), ShapeError);
  CHECK_THROWS_AS(TensorData(Shape{INT64_MAX}, f64), ValueError);
  CHECK_THROWS_AS(TensorData(Shape{int64_t{1} << 61}, f64), ValueError);
}

TEST_CASE("data over a storage") {
  const Handle<Storage> storage = Storage::allocate(32);
  std::memset(storage->data(), 0, 32);
  const TensorData tail(Shape{4}, f32, storage, 16);
  CHECK(tail.data() == static_cast<std::byte*>(storage->data()) + 16);
  CHECK(tail.to_doubles() == std::vector<double>(4, 0.0));
  CHECK_THROWS_AS(TensorData(Shape{5}, f32, storage, 16), ValueError);
  CHECK_THROWS_AS(TensorData(Shape{1}, f32, storage, 33), ValueError);
  CHECK_THROWS_AS(TensorData(Shape{1}, f32, storage, SIZE_MAX), ValueError);
  CHECK_THROWS_AS(TensorData(Shape{INT64_MAX}, f64, storage, 0), ValueError);
  CHECK_THROWS_AS(TensorData(Shape{1}, f32, storage, 2), ValueError);  // not aligned
  CHECK_THROWS_AS(TensorData(Shape{1}, f32, Handle<Storage>()), ValueError);
  CHECK(TensorData(Shape{0}, f32, storage, 32).numel() == 0);
}

TEST_CASE("a copy shares, and casting to the same dtype is a copy") {
  const TensorData a(std::vector<float>{1, 2}, {2});
  const TensorData b = a;
  CHECK(a.data() == b.data());
  CHECK(a.cast(f32).data() == a.data());
  CHECK(a.cast(f64).data() != a.data());
}

TEST_CASE("floating point to integer truncates and saturates") {
  const TensorData data(
      std::vector<double>{1.9, -1.9, 300, -300, 1e30, -1e30, kInfinity, -kInfinity, std::nan("")},
      {9});
  CHECK(values_of<int8_t>(data.cast(i8)) ==
        std::vector<int8_t>{1, -1, 127, -128, 127, -128, 127, -128, 0});
  CHECK(values_of<uint8_t>(data.cast(u8)) == std::vector<uint8_t>{1, 0, 255, 0, 255, 0, 255, 0, 0});
  CHECK(values_of<int32_t>(data.cast(i32)) ==
        std::vector<int32_t>{1, -1, 300, -300, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, 0});
  CHECK(values_of<int64_t>(data.cast(f32).cast(i64)) ==
        std::vector<int64_t>{1, -1, 300, -300, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, 0});
  CHECK(values_of<int16_t>(data.cast(f16).cast(i16)) ==
        std::vector<int16_t>{1, -1, 300, -300, INT16_MAX, INT16_MIN, INT16_MAX, INT16_MIN, 0});
}

TEST_CASE("the edges of saturation") {
  CHECK(convert_element<int32_t>(2147483647.0) == INT32_MAX);
  CHECK(convert_element<int32_t>(2147483646.9) == INT32_MAX - 1);
  CHECK(convert_element<int32_t>(2147483648.0f) == INT32_MAX);
  CHECK(convert_element<int32_t>(-2147483648.9) == INT32_MIN);
  CHECK(convert_element<int32_t>(-2147483647.9) == INT32_MIN + 1);
  CHECK(convert_element<int64_t>(0x1p63f) == INT64_MAX);
  CHECK(convert_element<int64_t>(0x1.fffffep62f) == 0x7fffff8000000000);
  CHECK(convert_element<uint8_t>(255.9) == 255);
  CHECK(convert_element<uint8_t>(-0.9) == 0);
}

TEST_CASE("to bool means nonzero, from bool one or zero") {
  const TensorData data(std::vector<float>{0, -0.0f, 0.25f, NAN, -3}, {5});
  CHECK(data.cast(bool_).to_doubles() == std::vector<double>{0, 0, 1, 1, 1});
  const TensorData ints(std::vector<int32_t>{0, 256, -1}, {3});
  CHECK(ints.cast(bool_).to_doubles() == std::vector<double>{0, 1, 1});
  CHECK(ints.cast(bool_).cast(f16).to_doubles() == std::vector<double>{0, 1, 1});
}

TEST_CASE("a bool byte that is neither 0 nor 1 counts as true") {
  TensorData data(Shape{2}, bool_);
  data.mutable_data()[0] = std::byte{7};
  data.mutable_data()[1] = std::byte{0};
  CHECK(data.to_doubles() == std::vector<double>{1, 0});
  CHECK(values_of<int32_t>(data.cast(i32)) == std::vector<int32_t>{1, 0});
}

TEST_CASE("integers wrap, 16-bit floats round") {
  const TensorData data(std::vector<int32_t>{300, -1, 65536}, {3});
  CHECK(values_of<uint8_t>(data.cast(u8)) == std::vector<uint8_t>{44, 255, 0});
  CHECK(data.cast(f16).to_doubles() == std::vector<double>{300, -1, kInfinity});
  CHECK(data.cast(bf16).to_doubles() == std::vector<double>{300, -1, 65536});
  const TensorData thirds(std::vector<double>{1.0 / 3.0}, {1});
  CHECK(thirds.cast(f16).item(0) == 0.333251953125);
  CHECK(thirds.cast(bf16).item(0) == 0.333984375);
  CHECK(thirds.cast(f16).cast(bf16).item(0) == 0.333984375);
}

TEST_CASE("every pair of dtypes casts small numbers exactly") {
  const std::array all = {f64, f32, f16, bf16, i64, i32, i16, i8, u8};
  const TensorData source(std::vector<double>{0, 1, 5, 100}, {2, 2});
  for (DType from : all) {
    for (DType to : all) {
      CAPTURE(to_string(from));
      CAPTURE(to_string(to));
      const TensorData result = source.cast(from).cast(to);
      CHECK(result.dtype() == to);
      CHECK(result.shape() == Shape{2, 2});
      CHECK(result.to_doubles() == std::vector<double>{0, 1, 5, 100});
    }
  }
}

TEST_CASE("quantized data does not cast") {
  TensorData quantized(Shape{1}, DType::q8);
  quantized.mutable_data()[0] = std::byte{0xff};
  CHECK(quantized.item(0) == -1.0);
  CHECK_THROWS_AS(quantized.cast(f32), DTypeError);
}
