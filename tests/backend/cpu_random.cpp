// Cpu's random numbers are those of host::fill_random, bit by bit, at every instruction set, size
// and number of threads.
#include "kiln/backend/random_fill.h"
#include "tests/backend/neural_check.h"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("Cpu: random numbers equal the host's, bit by bit") {
  const Distribution floats[] = {Distribution::uniform(),      Distribution::uniform(-3.0, 5.5),
                                 Distribution::normal(),       Distribution::normal(2.0, 0.25),
                                 Distribution::bernoulli(0.3), Distribution::bernoulli(0.0),
                                 Distribution::bernoulli(1.0), Distribution::exponential(1.5)};
  // The second stream carries into the upper half of the counter.
  const RandomStream streams[] = {{42, 0}, {0x123456789abcdef0, 0xfffffff0}, {7, ~uint64_t{0} - 2}};
  at_every_target([&] {
    for (const int64_t n : {0, 1, 3, 4, 5, 63, 64, 65, 66, 67, 1001, 40003}) {
      CAPTURE(n);
      for (const RandomStream& stream : streams) {
        for (const Distribution& distribution : floats) {
          CAPTURE(static_cast<int>(distribution.type));
          for (const DType dtype : {f32, f64, f16, bf16}) {
            if (n > 1001 && size_of(dtype) < 4) continue;
            TensorData want(Shape{n}, dtype);
            host::fill_random(want, distribution, stream);
            const HostHandle got = CpuOps::float_random({n}, distribution, stream, dtype, Device());
            CHECK(same_bits(got, host::from_data(want, Device())));
          }
        }
        for (const DType dtype : {i64, i32, u8}) {
          if (n > 1001 && dtype != i64) continue;
          // The last two have a range above 32 bits.
          for (const Distribution& integers :
               {Distribution::integers(3, 90), Distribution::integers(-7, (int64_t{5} << 33) + 3),
                Distribution::integers(-(int64_t{1} << 53), int64_t{1} << 53)}) {
            if (dtype != i64 && integers.b > 90) continue;
            TensorData want(Shape{n}, dtype);
            host::fill_random(want, integers, stream);
            const HostHandle got = CpuOps::int_random({n}, integers, stream, dtype, Device());
            CHECK(same_bits(got, host::from_data(want, Device())));
          }
        }
      }
    }
  });
}

TEST_CASE("Cpu: random numbers do not depend on the number of threads") {
  check_deterministic([] {
    const RandomStream stream{5, 9};
    return std::vector<HostHandle>{
        CpuOps::float_random({200001}, Distribution::normal(), stream, f32, Device()),
        CpuOps::float_random({70001}, Distribution::uniform(), stream, f64, Device()),
        CpuOps::float_random({100003}, Distribution::normal(), stream, bf16, Device()),
        CpuOps::int_random({70001}, Distribution::integers(0, 1000), stream, i32, Device()),
    };
  });
}
