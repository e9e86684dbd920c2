// Sorting (kernels/sort.k) as plain C++, on rows of few lengths: its rows of the op table take
// minutes when every access is checked.
#include <doctest/doctest.h>

#include "kiln/backend/dispatch/dispatch.h"
#include "kiln/core/error.h"
#include "tests/gpu/device_under_test.h"

using namespace kiln;

namespace {

// Values that repeat, in no order.
std::vector<double> numbers(int64_t n) {
  std::vector<double> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(static_cast<double>(i * 7919 % 23 - 11));
  return out;
}

bool same(const TensorData& a, const TensorData& b) { return a.to_doubles() == b.to_doubles(); }

}  // namespace

TEST_CASE("kernels of sorting as C++") {
  for (const Shape& shape : {Shape{1}, Shape{5}, Shape{3, 17}, Shape{130}, Shape{2, 129, 3}}) {
    const TensorData data = TensorData(numbers(shape.numel()), shape);
    for (const bool descending : {false, true}) {
      for (int dim = 0; dim < shape.rank(); ++dim) {
        INFO(shape, " ", dim, " ", descending);
        const auto floats = [&](Device device) {
          const auto [values, index] = Dispatch::float_sort(
              Dispatch::float_from_data(data.cast(f32), device), dim, descending);
          return std::pair(Dispatch::float_into_data(values), Dispatch::int_into_data(index));
        };
        const auto got = floats(test::gpu_device()), want = floats(Device(kReference));
        CHECK(same(got.first, want.first));
        CHECK(same(got.second, want.second));
        const auto integers = [&](Device device) {
          return Dispatch::int_into_data(Dispatch::int_argsort(
              Dispatch::int_from_data(data.cast(i64), device), dim, descending));
        };
        CHECK(same(integers(test::gpu_device()), integers(Device(kReference))));
      }
    }
  }
}

TEST_CASE("kernels of rows that are added in their order, as C++") {
  // From 1024 rows on they are sorted first.
  constexpr int64_t kRows = 1024;
  std::vector<double> places;
  for (int64_t i = 0; i < kRows; ++i) places.push_back(static_cast<double>(i * 7919 % 5));
  const auto value = [&](Device device) {
    const auto floats = [&](const Shape& shape) {
      return Dispatch::float_from_data(TensorData(numbers(shape.numel()), shape).cast(f32), device);
    };
    const ErasedTensor index =
        Dispatch::int_from_data(TensorData(places, Shape{kRows}).cast(i64), device);
    return Dispatch::float_into_data(
        Dispatch::float_index_add(floats({6, 2}), 0, index, floats({kRows, 2})));
  };
  CHECK(same(value(test::gpu_device()), value(Device(kReference))));
}
