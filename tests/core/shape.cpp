#include "kiln/core/shape.h"

#include <cstdint>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/core/error.h"

using namespace kiln;

TEST_CASE("a shape is a short list") {
  Shape s{2, 3, 4};
  CHECK(s.rank() == 3);
  CHECK(s.numel() == 24);
  CHECK(s.back() == 4);
  CHECK(to_string(s) == "[2, 3, 4]");
  s.push_back(5);
  s.insert(0, 7);
  CHECK(s == Shape{7, 2, 3, 4, 5});
  s.insert(5, 9);
  CHECK(s == Shape{7, 2, 3, 4, 5, 9});
  s.erase(5);
  s.erase(1);
  CHECK(s == Shape{7, 3, 4, 5});
  CHECK(s != Shape{7, 3, 4});
  CHECK(s.contains(3));
  CHECK_FALSE(s.contains(2));
  CHECK(s.to_vector() == std::vector<int64_t>{7, 3, 4, 5});
  CHECK(Shape(s.to_vector()) == s);
  CHECK(Shape::filled(3, 1) == Shape{1, 1, 1});
}

TEST_CASE("0-d and empty shapes") {
  const Shape scalar{};
  CHECK(scalar.empty());
  CHECK(scalar.numel() == 1);
  CHECK(to_string(scalar) == "[]");
  CHECK(Shape{3, 0, 2}.numel() == 0);
  CHECK(contiguous_strides(scalar) == Shape{});
  CHECK(is_contiguous(scalar, scalar));
}

TEST_CASE("more than 12 dims throw") {
  CHECK(Shape(std::vector<int64_t>(12, 1)).rank() == 12);
  CHECK_THROWS_AS(Shape(std::vector<int64_t>(13, 1)), ShapeError);
  CHECK_THROWS_AS(Shape::filled(13, 1), ShapeError);
  CHECK_THROWS_AS(Shape::filled(-1, 1), ShapeError);
  Shape full = Shape::filled(12, 1);
  CHECK_THROWS_AS(full.push_back(1), ShapeError);
  CHECK_THROWS_AS(full.insert(0, 1), ShapeError);
  CHECK_THROWS_WITH_AS(Shape::filled(13, 1), "Shape: too many dims; got 13; expected 0 to 12",
                       ShapeError);
}

TEST_CASE("contiguous strides") {
  CHECK(contiguous_strides({2, 3, 4}) == Strides{12, 4, 1});
  CHECK(contiguous_strides({5}) == Strides{1});
  CHECK(contiguous_strides({2, 0, 4}) == Strides{4, 4, 1});  // as PyTorch: 0 counts as 1
  CHECK(is_contiguous({2, 3, 4}, {12, 4, 1}));
  CHECK_FALSE(is_contiguous({2, 3, 4}, {12, 1, 3}));
  CHECK_FALSE(is_contiguous({2, 3}, {6, 2}));
  CHECK_FALSE(is_contiguous({3}, {0}));
  CHECK(is_contiguous({2, 1, 4}, {4, 99, 1}));
  CHECK(is_contiguous({1}, {0}));
  CHECK(is_contiguous({2, 0}, {17, 23}));
}

TEST_CASE("broadcasting by NumPy's rule") {
  CHECK(broadcast_shapes("add", {2, 3}, {3}) == Shape{2, 3});
  CHECK(broadcast_shapes("add", {3}, {2, 3}) == Shape{2, 3});
  CHECK(broadcast_shapes("add", {8, 1, 6, 1}, {7, 1, 5}) == Shape{8, 7, 6, 5});
  CHECK(broadcast_shapes("add", {}, {4, 1}) == Shape{4, 1});
  CHECK(broadcast_shapes("add", {}, {}) == Shape{});
  CHECK(broadcast_shapes("add", {0}, {1}) == Shape{0});
  CHECK(broadcast_shapes("add", {1, 3}, {0, 1}) == Shape{0, 3});
  CHECK_THROWS_AS(broadcast_shapes("add", {0}, {2}), ShapeError);
  CHECK_THROWS_WITH_AS(broadcast_shapes("add", {2, 3}, {4, 3}),
                       doctest::Contains("add: shapes do not broadcast; got [2, 3] and [4, 3]"),
                       ShapeError);
  CHECK(broadcasts_to({3, 1}, {2, 3, 4}));
  CHECK(broadcasts_to({}, {2}));
  CHECK(broadcasts_to({1}, {0}));
  CHECK_FALSE(broadcasts_to({2, 3}, {3}));
  CHECK_FALSE(broadcasts_to({2}, {1}));
  CHECK_FALSE(broadcasts_to({0}, {1}));
}

TEST_CASE("reduced shapes") {
  CHECK(reduced_shape({2, 3, 4}, {1}, false) == Shape{2, 4});
  CHECK(reduced_shape({2, 3, 4}, {2, 0}, true) == Shape{1, 3, 1});
  CHECK(reduced_shape({2, 3, 4}, all_dims(3), false) == Shape{});
  CHECK(reduced_shape({2, 3}, {}, false) == Shape{2, 3});
  CHECK(reduced_shape({}, {0}, true) == Shape{});
  CHECK(all_dims(0) == Dims{});
  CHECK(all_dims(3) == Dims{0, 1, 2});
}

TEST_CASE("dims are normalized and checked") {
  CHECK(normalize_dim("sum", -1, 3) == 2);
  CHECK(normalize_dim("sum", 0, 3) == 0);
  CHECK(normalize_dim("sum", -3, 3) == 0);
  CHECK(normalize_dim("sum", -1, 0) == 0);
  CHECK(normalize_dim("sum", 0, 0) == 0);
  CHECK_THROWS_AS(normalize_dim("sum", 1, 0), IndexError);
  CHECK_THROWS_AS(normalize_dim("sum", INT64_MIN, 3), IndexError);
  CHECK_THROWS_WITH_AS(normalize_dim("sum", 3, 3),
                       "sum: dim out of range; got dim 3 for a tensor of rank 3; expected -3 to 2",
                       IndexError);
  CHECK(normalize_dims("sum", {-1, 0}, 3) == Dims{2, 0});
  CHECK_THROWS_AS(normalize_dims("sum", {0, -3}, 3), ValueError);
  CHECK_THROWS_AS(normalize_dims("sum", {0, 4}, 3), IndexError);
}

TEST_CASE("checked_numel refuses negative sizes and overflow") {
  CHECK(checked_numel("zeros", {2, 3}) == 6);
  CHECK(checked_numel("zeros", {}) == 1);
  CHECK(checked_numel("zeros", {5, 0}) == 0);
  CHECK(checked_numel("zeros", {INT64_MAX}) == INT64_MAX);
  CHECK_THROWS_AS(checked_numel("zeros", {2, -1}), ShapeError);
  CHECK_THROWS_AS(checked_numel("zeros", {0, -1}), ShapeError);
  CHECK_THROWS_AS(checked_numel("zeros", {INT64_MAX, 2}), ShapeError);
  CHECK_THROWS_AS(checked_numel("zeros", {0, int64_t{1} << 40, int64_t{1} << 40}), ShapeError);
}

TEST_CASE("Shape: a negative index counts from the end") {
  Shape shape{2, 3, 5};
  CHECK(shape[-1] == 5);
  CHECK(std::as_const(shape)[-3] == 2);
  shape[-2] = 7;
  CHECK(shape == Shape{2, 7, 5});
  CHECK_THROWS_AS(static_cast<void>(shape[-4]), IndexError);
  CHECK_THROWS_AS(static_cast<void>(Shape{}[-1]), IndexError);
}

TEST_CASE("Shape: an index behind the last dim throws") {
  Shape shape{2, 3};
  CHECK(shape[1] == 3);
  CHECK_THROWS_AS(static_cast<void>(shape[2]), IndexError);
  CHECK_THROWS_AS(static_cast<void>(std::as_const(shape)[7]), IndexError);
  CHECK_THROWS_AS(shape[2] = 5, IndexError);
  CHECK_THROWS_AS(static_cast<void>(Shape{}[0]), IndexError);
  CHECK_THROWS_AS(static_cast<void>(Shape{}.back()), IndexError);
  CHECK(shape == Shape{2, 3});
  CHECK_THROWS_WITH_AS(static_cast<void>(shape[7]),
                       "Shape: there is no such dim; got index 7 of 2 dims", IndexError);
}
