// Cpu's transforms of many rows, which run in the lanes of vectors where they are short, against
// the reference's sums, at every instruction set.
#include "tests/backend/neural_check.h"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("Cpu: Fourier transforms of any number of rows of any length") {
  at_every_target([] {
    for (const int64_t n : {1, 2, 3, 4, 5, 7, 8, 12, 15, 17, 32, 37, 62, 64, 93, 120, 244}) {
      CAPTURE(n);
      for (const int64_t rows : {3, 4, 16, 21}) {
        if (n > 64 && rows == 16) continue;
        CAPTURE(rows);
        for (const DType dtype : {f32, f64}) {
          const double bound =
              (dtype == f32 ? 0x1p-21 : 0x1p-49) * std::sqrt(static_cast<double>(n));
          const HostHandle x = random_tensor({rows, n}, dtype, 1);
          const HostHandle z = random_tensor({rows, n, 2}, dtype, 2);
          const HostHandle half = random_tensor({rows, n / 2 + 1, 2}, dtype, 3);
          for (const bool inverse : {false, true}) {
            check_close(Cpu::float_fft(z, 1, inverse, 0.5),
                        Reference::float_fft(z, 1, inverse, 0.5), bound);
            check_close(Cpu::float_fft_real(x, {1}, inverse, 0.5),
                        Reference::float_fft_real(x, {1}, inverse, 0.5), bound);
          }
          for (const double ends : {1.0, 2.0}) {
            check_close(Cpu::float_rfft(x, 0.5, ends), Reference::float_rfft(x, 0.5, ends), bound);
            check_close(Cpu::float_irfft(half, n, 0.5, ends),
                        Reference::float_irfft(half, n, 0.5, ends), bound);
          }
        }
      }
    }
  });
}

TEST_CASE("Cpu: a batch of Fourier transforms is the same at any number of threads") {
  for (const int64_t n : {31, 100, 400, 512}) {
    CAPTURE(n);
    const HostHandle x = random_tensor({333, n}, f32, 1);
    const HostHandle z = random_tensor({333, n, 2}, f32, 1);
    check_deterministic([&] {
      return std::vector<HostHandle>{Cpu::float_rfft(x, 1.0, 1.0), Cpu::float_fft(z, 1, true, 1.0)};
    });
  }
}
