// Windows, and the short-time Fourier transform.
#include "kiln/tensor/fft/stft.h"

#include "binding.h"
#include "default_device.h"
#include "kiln/tensor/fft/windows.h"

namespace kiln::python {

namespace {

TensorOptions options_of(std::optional<DType> dtype, std::optional<Device> device,
                         bool requires_grad) {
  return {dtype, device_or_default(device), requires_grad};
}

#define KILN_PY_STFT_OPTIONS \
  nb::kw_only(), "dtype"_a = nb::none(), "device"_a = nb::none(), "requires_grad"_a = false

void bind_windows(nb::module_& m) {
  const auto plain = [&m](const char* name, Tensor (*f)(int64_t, bool, TensorOptions)) {
    m.def(
        name,
        [f](int64_t length, bool periodic, std::optional<DType> dtype, std::optional<Device> device,
            bool requires_grad) {
          return f(length, periodic, options_of(dtype, device, requires_grad));
        },
        "window_length"_a, "periodic"_a = true, KILN_PY_STFT_OPTIONS);
  };
  plain("bartlett_window", &bartlett_window);
  plain("hann_window", &hann_window);
  plain("blackman_window", &blackman_window);
  m.def(
      "hamming_window",
      [](int64_t length, bool periodic, double alpha, double beta, std::optional<DType> dtype,
         std::optional<Device> device, bool requires_grad) {
        return hamming_window(length, periodic, alpha, beta,
                              options_of(dtype, device, requires_grad));
      },
      "window_length"_a, "periodic"_a = true, "alpha"_a = 0.54, "beta"_a = 0.46,
      KILN_PY_STFT_OPTIONS);
  m.def(
      "kaiser_window",
      [](int64_t length, bool periodic, double beta, std::optional<DType> dtype,
         std::optional<Device> device, bool requires_grad) {
        return kaiser_window(length, periodic, beta, options_of(dtype, device, requires_grad));
      },
      "window_length"_a, "periodic"_a = true, "beta"_a = 12.0, KILN_PY_STFT_OPTIONS);
}

}  // namespace

void bind_stft(nb::module_& m, TensorClass& c) {
  bind_windows(m);
  def_both(
      m, c, "stft",
      [](const Tensor& x, int64_t n_fft, std::optional<int64_t> hop_length,
         std::optional<int64_t> win_length, const OptionalTensor& window, bool center,
         const std::string& pad_mode, bool normalized, std::optional<bool> onesided,
         std::optional<bool> return_complex) {
        Unlocked lock(x);
        return stft(x, {n_fft, hop_length, win_length, window.value, center, pad_mode, normalized,
                        onesided, return_complex});
      },
      "n_fft"_a, "hop_length"_a = nb::none(), "win_length"_a = nb::none(),
      nb::arg("window").none() = nb::none(), "center"_a = true, "pad_mode"_a = "reflect",
      "normalized"_a = false, "onesided"_a = nb::none(), "return_complex"_a = nb::none(),
      "The spectra of overlapping pieces of a signal.");
  def_both(
      m, c, "istft",
      [](const Tensor& x, int64_t n_fft, std::optional<int64_t> hop_length,
         std::optional<int64_t> win_length, const OptionalTensor& window, bool center,
         bool normalized, std::optional<bool> onesided, std::optional<int64_t> length,
         bool return_complex) {
        Unlocked lock(x);
        return istft(x, {n_fft, hop_length, win_length, window.value, center, normalized, onesided,
                         length, return_complex});
      },
      "n_fft"_a, "hop_length"_a = nb::none(), "win_length"_a = nb::none(),
      nb::arg("window").none() = nb::none(), "center"_a = true, "normalized"_a = false,
      "onesided"_a = nb::none(), "length"_a = nb::none(), "return_complex"_a = false,
      "The signal of which these are the spectra.");
}

}  // namespace kiln::python
