// Numbers that do not fit the dtype they are written into are errors, as in PyTorch.
#include <cmath>

#include "tests/support/tensor_check.h"

namespace kiln::test {
namespace {

TEST_CASE("fill_, full and masked_fill refuse numbers that the dtype cannot hold") {
  on_devices([](Device device) {
    Tensor bytes = zeros({2}, {i8, device});
    for (const Scalar value : {Scalar(300), Scalar(-129), Scalar(127.5), Scalar(NAN)}) {
      CHECK(error_lacks<ValueError>([&] { bytes.fill_(value); }, {"fill_", "int8"}) == "");
    }
    CHECK(error_lacks<ValueError>([&] { full({2}, 300, {i8, device}); }, {"full", "300"}) == "");
    CHECK(error_lacks<ValueError>([&] { bytes.masked_fill(bytes.eq(0), 300); },
                                  {"masked_fill", "int8", "300"}) == "");
    CHECK(mismatch(bytes.fill_(-2.75), {2}, {-2, -2}) == "");

    Tensor unsigned_bytes = zeros({1}, {u8, device});
    CHECK(mismatch(unsigned_bytes.fill_(-1), {1}, {255}) == "");
    CHECK(error_lacks<ValueError>([&] { unsigned_bytes.fill_(-2.75); }, {"uint8", "-2.75"}) == "");

    Tensor half = zeros({1}, {f16, device});
    CHECK(error_lacks<ValueError>([&] { half.fill_(-1e9); }, {"float16"}) == "");
    CHECK(mismatch(half.fill_(-INFINITY), {1}, {-INFINITY}) == "");
    CHECK(error_lacks<ValueError>(
              [&] {
                zeros({1}, {f32, device}).fill_(1e40);
              },
              {"float32"}) == "");
  });
}

}  // namespace
}  // namespace kiln::test
