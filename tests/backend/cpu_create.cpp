// Cpu's regular numbers: the same at every instruction set, however a parallel loop cuts them.
#include "tests/backend/neural_check.h"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("Cpu: arange at every length") {
  at_every_target([] {
    for (const int64_t n : {0, 1, 7, 8, 15, 16, 31, 33, 64, 100, 70001}) {
      CAPTURE(n);
      const HostHandle doubles = CpuOps::float_arange(-1.7, 0.3, n, f64, Device());
      const HostHandle floats = CpuOps::float_arange(-1.7, 0.3, n, f32, Device());
      const HostHandle longs = CpuOps::int_arange(5, -3, n, i64, Device());
      const HostHandle ints = CpuOps::int_arange(5, -3, n, i32, Device());
      bool same = true;
      for (int64_t i = 0; i < n; ++i) {
        const double value = -1.7 + static_cast<double>(i) * 0.3;
        same = same && doubles->data_as<double>()[i] == value &&
               floats->data_as<float>()[i] == static_cast<float>(value) &&
               longs->data_as<int64_t>()[i] == 5 - 3 * i &&
               ints->data_as<int32_t>()[i] == 5 - 3 * i;
      }
      CHECK(same);
    }
    // What passes the end of the dtype wraps.
    const HostHandle wrapped = CpuOps::int_arange(2147483647, 1, 40, i32, Device());
    CHECK(wrapped->data_as<int32_t>()[1] == -2147483647 - 1);
    CHECK(wrapped->data_as<int32_t>()[39] == -2147483647 + 37);
  });
}
