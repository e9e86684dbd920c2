// Windows, and the short-time Fourier transform both ways.
#include "tests/ops/case.h"

namespace kiln::ops {

KILN_OP_CASES(windows) {
#define KILN_CASE(name)                                                                 \
  for (const int64_t n : {0, 1, 2, 7, 16}) {                                            \
    op(#name, "torch." #name "(" + std::to_string(n) + ")",                             \
       [=](const Tensors& x) { return name(n).to(x[0].device()); }, {constant({1})})    \
        .dtypes({f32})                                                                  \
        .loose(2);                                                                      \
    op(#name, "torch." #name "(" + std::to_string(n) + ", False, dtype=torch.float64)", \
       [=](const Tensors& x) { return name(n, false, f64_on(x[0])); }, {constant({1})}) \
        .dtypes({f64});                                                                 \
  }
  const auto f64_on = [](const Tensor& x) { return TensorOptions{f64, x.device()}; };
  KILN_CASE(bartlett_window)
  KILN_CASE(hann_window)
  KILN_CASE(blackman_window)
#undef KILN_CASE
  op("hamming_window", "torch.hamming_window(9, True, 0.6, 0.4)",
     [](const Tensors& x) { return hamming_window(9, true, 0.6, 0.4).to(x[0].device()); },
     {constant({1})})
      .dtypes({f32});
  op("kaiser_window", "torch.kaiser_window(9, True, beta=8.0)",
     [](const Tensors& x) { return kaiser_window(9, true, 8.0).to(x[0].device()); },
     {constant({1})})
      .dtypes({f32})
      .loose(4);
}

KILN_OP_CASES(stft) {
  op("stft", "torch.stft(a, 8, return_complex=True)",
     [](const Tensors& x) { return stft(x[0], {.n_fft = 8, .return_complex = true}); },
     {real({20})})
      .dtypes(kDoubles)
      .loose(8);
  op("stft",
     "torch.stft(a, 10, hop_length=3, win_length=7, window=b, pad_mode='constant', "
     "normalized=True, return_complex=True)",
     [](const Tensors& x) {
       return stft(x[0], {.n_fft = 10,
                          .hop_length = 3,
                          .win_length = 7,
                          .window = x[1],
                          .pad_mode = "constant",
                          .normalized = true,
                          .return_complex = true});
     },
     {real({2, 23}), real({7}, 0.1, 1)})
      .dtypes(kDoubles)
      .loose(8);
  op("stft", "torch.stft(a, 8, center=False, onesided=False, return_complex=False)",
     [](const Tensors& x) {
       return stft(x[0], {.n_fft = 8, .center = false, .onesided = false, .return_complex = false});
     },
     {real({2, 20})})
      .dtypes(kDoubles)
      .loose(8);
  op("stft", "torch.stft(a, 8)", [](const Tensors& x) { return stft(x[0], {.n_fft = 8}); },
     {complex_({20})})
      .dtypes(kComplex)
      .loose(8);
  op("istft", "torch.istft(a, 8, hop_length=2, window=b)",
     [](const Tensors& x) { return istft(x[0], {.n_fft = 8, .hop_length = 2, .window = x[1]}); },
     {complex_({2, 5, 6}), real({8}, 0.5, 1)})
      .dtypes(kComplex)
      .loose(8);
  op("istft", "torch.istft(a, 8, onesided=False, return_complex=True, normalized=True, length=9)",
     [](const Tensors& x) {
       return istft(x[0], {.n_fft = 8,
                           .normalized = true,
                           .onesided = false,
                           .length = 9,
                           .return_complex = true});
     },
     {complex_({8, 6})})
      .dtypes(kComplex)
      .loose(8);
}

}  // namespace kiln::ops
