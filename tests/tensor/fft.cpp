// Fourier transforms: errors, edge cases, and long ones against the sum that defines them.
#include "kiln/tensor/fft/fft.h"

#include <cmath>
#include <numbers>

#include "kiln/tensor/complex/complex.h"
#include "tests/support/tensor_check.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::test;

namespace {

using Complex = std::complex<double>;

// The defining sum, for a few of the numbers.
Complex number_of_spectrum(const std::vector<Complex>& x, int64_t k) {
  const auto n = static_cast<int64_t>(x.size());
  Complex sum = 0;
  for (int64_t j = 0; j < n; ++j) {
    const auto turn =
        static_cast<double>(static_cast<__int128>(j) * k % n) / static_cast<double>(n);
    sum += x[static_cast<size_t>(j)] * std::polar(1.0, -2 * std::numbers::pi * turn);
  }
  return sum;
}

}  // namespace

TEST_CASE("fft: lengths of every kind equal the defining sum") {
  manual_seed(1);
  for (const int64_t n : {1, 2, 6, 31, 37, 961, 1000, 2310, 4096, 16384, 18000, 32768, 65536, 74088,
                          100003, 131072, 262144}) {
    CAPTURE(n);
    const Tensor z = randn({n}, {c128});
    const auto values = z.to_vector<Complex>();
    const Tensor spectrum = fft::fft(z);
    const auto numbers = spectrum.to_vector<Complex>();
    const double scale = std::sqrt(static_cast<double>(n));
    for (const int64_t k : {int64_t{0}, n / 3, n / 2, n - 1}) {
      CHECK(std::abs(numbers[static_cast<size_t>(k)] - number_of_spectrum(values, k)) <
            1e-12 * scale);
    }
    CHECK(fft::ifft(spectrum).allclose(z, 0, 1e-13));
    CHECK(fft::fft(z.to(c64)).allclose(spectrum, 0, 1e-6 * scale));
    const Tensor x = real(z);
    const Tensor half = fft::rfft(x);
    CHECK(half.shape() == Shape{n / 2 + 1});
    CHECK(half.allclose(fft::fft(x).narrow(0, 0, n / 2 + 1), 0, 1e-13 * scale));
    CHECK(fft::irfft(half, n).allclose(x, 0, 1e-13));
  }
}

TEST_CASE("fft: the sum of squares is kept by the ortho norm, and dims commute") {
  const Tensor z = randn({3, 20, 14}, {c128});
  CHECK(fft::fftn(z, {}, {}, "ortho").norm().item() == doctest::Approx(z.norm().item()));
  CHECK(fft::fftn(z, {}, Dims{0, 2}).allclose(fft::fft(fft::fft(z, {}, 0), {}, 2), 0, 1e-12));
  CHECK(fft::fftn(z, {}, Dims{}).is_same(z));
  CHECK(fft::fft(zeros({0, 4})).shape() == Shape{0, 4});
  CHECK(fft::rfft(ones({2, 3}, {i64})).dtype() == c64);
}

TEST_CASE("fft: what cannot be transformed is said") {
  const auto lacks = [](auto f, std::vector<std::string> words) {
    return error_lacks<Error>(f, words);
  };
  CHECK(lacks([] { fft::fft(tensor(1.0)); }, {"fft: ", "0-d"}) == "");
  CHECK(lacks([] { fft::fft(ones({3}), 0); }, {"fft: ", "data points", "0"}) == "");
  CHECK(lacks([] { fft::fft(ones({2, 0})); }, {"fft: ", "data points"}) == "");
  CHECK(lacks([] { fft::irfft(ones({1}, {c64})); }, {"irfft: ", "data points"}) == "");
  CHECK(lacks([] { fft::rfft(ones({3}, {c64})); }, {"rfft: ", "complex64", "real"}) == "");
  CHECK(lacks([] { fft::fft(ones({3}, {f16})); }, {"fft: ", "float16"}) == "");
  CHECK(lacks([] { fft::fft(ones({3}), {}, 1); }, {"fft: ", "1"}) == "");
  CHECK(lacks([] { fft::fft(ones({3}), {}, -1, "none"); }, {"fft: ", "'none'", "ortho"}) == "");
  CHECK(lacks([] { fft::fftn(ones({3}), Shape{1, 2}); }, {"fftn: ", "[1, 2]"}) == "");
  CHECK(lacks([] { fft::fftn(ones({3, 2}), {}, Dims{0, 0}); }, {"fftn: "}) == "");
  CHECK(lacks([] { fft::fftfreq(0); }, {"fftfreq: ", "0"}) == "");
}
