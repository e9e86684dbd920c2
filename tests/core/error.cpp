#include "kiln/core/error.h"

#include <string>
#include <type_traits>

#include <doctest/doctest.h>

#include "kiln/core/device.h"
#include "kiln/core/dtype.h"
#include "kiln/core/shape.h"

using namespace kiln;

TEST_CASE("concat joins text, numbers and whatever has a to_string") {
  CHECK(concat("a", 'b', std::string("c"), std::string_view("d")) == "abcd");
  CHECK(concat(1, ' ', -2L, ' ', 3ULL, ' ', true) == "1 -2 3 true");
  CHECK(concat(int8_t{-5}, ' ', uint8_t{200}) == "-5 200");
  CHECK(concat(INT64_MIN, ' ', UINT64_MAX) == "-9223372036854775808 18446744073709551615");
  CHECK(concat(Shape{2, 3}, " of ", f32, " on ", Device("cpu")) == "[2, 3] of float32 on cpu");
  CHECK(concat().empty());
}

TEST_CASE("concat writes doubles in their short form") {
  CHECK(concat(0.5) == "0.5");
  CHECK(concat(1e300) == "1e+300");
  CHECK(concat(2.0f) == "2");
  CHECK(concat(-1e-5) == "-1e-05");
}

TEST_CASE("throw_error throws the class that was named, and every class is an Error") {
  CHECK_THROWS_WITH_AS(throw_error<ShapeError>("add: got ", Shape{1}), "add: got [1]", ShapeError);
  CHECK_THROWS_AS(throw_error<DTypeError>("x"), Error);
  CHECK_THROWS_AS(throw_error<IoError>("x"), std::runtime_error);
  CHECK(std::is_base_of_v<Error, DeviceError>);
  CHECK(std::is_base_of_v<Error, IndexError>);
  CHECK(std::is_base_of_v<Error, ValueError>);
  CHECK(std::is_base_of_v<Error, AutodiffError>);
  CHECK(std::is_base_of_v<Error, NotImplementedError>);
}
