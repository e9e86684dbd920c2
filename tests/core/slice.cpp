#include "kiln/core/slice.h"

#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/core/error.h"

using namespace kiln;

namespace {

std::vector<int64_t> resolved(const Slice& slice, int64_t size) {
  const Range range = resolve_slice("slice", slice, size);
  return {range.start, range.end, range.step, range.length()};
}

using Expected = std::vector<int64_t>;

}  // namespace

TEST_CASE("slices resolve as Python's do") {
  CHECK(resolved({}, 5) == Expected{0, 5, 1, 5});
  CHECK(resolved({1, 3}, 5) == Expected{1, 3, 1, 2});
  CHECK(resolved({-2, {}}, 5) == Expected{3, 5, 1, 2});
  CHECK(resolved({{}, -1}, 5) == Expected{0, 4, 1, 4});
  CHECK(resolved({0, 5, 2}, 5) == Expected{0, 5, 2, 3});
  CHECK(resolved({1, 5, 2}, 5) == Expected{1, 5, 2, 2});
  CHECK(resolved({0, 4, 4}, 5) == Expected{0, 4, 4, 1});
}

TEST_CASE("ends outside the dim are clamped") {
  CHECK(resolved({-100, 100}, 5) == Expected{0, 5, 1, 5});
  CHECK(resolved({7, 9}, 5) == Expected{5, 5, 1, 0});
  CHECK(resolved({3, 1}, 5) == Expected{3, 3, 1, 0});
  CHECK(resolved({0, -9}, 5) == Expected{0, 0, 1, 0});
  CHECK(resolved({}, 0) == Expected{0, 0, 1, 0});
  CHECK(resolved({INT64_MIN, INT64_MAX}, 5) == Expected{0, 5, 1, 5});
  CHECK(resolved({0, 5, INT64_MAX}, 5) == Expected{0, 5, INT64_MAX, 1});
}

TEST_CASE("a step below one throws") {
  CHECK_THROWS_AS(resolve_slice("slice", {0, 1, 0}, 5), ValueError);
  CHECK_THROWS_WITH_AS(resolve_slice("x", {{}, {}, -1}, 5),
                       "x: step must be positive; got -1; try flip() to reverse a dim", ValueError);
}
