// Discrete Fourier transforms: kiln::fft, with the names and conventions of torch.fft.
//
// Complex inputs keep their precision; floats (not half precision) and integers become complex
// first. `n` (or `s`, one for each dim) is the length that a dim is cut or padded with zeros to.
// `norm` says where the factor 1 / n stands: "backward" (in the inverse), "forward" (in the
// transform), "ortho" (its root in both). Any length takes O(n log n). Differentiable to any order.
// Errors: ShapeError for a length below 1 or a 0-d input, IndexError for a dim, DTypeError,
// ValueError for an unknown norm.
#pragma once

#include <optional>
#include <string>

#include "kiln/tensor/tensor.h"

namespace kiln::fft {

using Norm = std::string;

// X[k] = sum_j x[j] e^(-2 pi i j k / n), and its inverse.
Tensor fft(const Tensor& x, std::optional<int64_t> n = {}, int64_t dim = -1,
           const Norm& norm = "backward");
Tensor ifft(const Tensor& x, std::optional<int64_t> n = {}, int64_t dim = -1,
            const Norm& norm = "backward");
// Of real x: the first n / 2 + 1 numbers, which determine the others; and back to n real ones (the
// imaginary part of the first, and for even n of the last, is ignored).
Tensor rfft(const Tensor& x, std::optional<int64_t> n = {}, int64_t dim = -1,
            const Norm& norm = "backward");
Tensor irfft(const Tensor& x, std::optional<int64_t> n = {}, int64_t dim = -1,
             const Norm& norm = "backward");
// Of x that is half of a Hermitian-symmetric signal: a real spectrum of n numbers; and its inverse.
Tensor hfft(const Tensor& x, std::optional<int64_t> n = {}, int64_t dim = -1,
            const Norm& norm = "backward");
Tensor ihfft(const Tensor& x, std::optional<int64_t> n = {}, int64_t dim = -1,
             const Norm& norm = "backward");

// Over several dims: those given, else the last ones that `s` names, else all. -1 in `s` keeps a
// size. The real ones halve the last of the dims.
using Sizes = std::optional<Shape>;
using OptionalDims = std::optional<Dims>;
Tensor fftn(const Tensor& x, const Sizes& s = {}, const OptionalDims& dim = {},
            const Norm& norm = "backward");
Tensor ifftn(const Tensor& x, const Sizes& s = {}, const OptionalDims& dim = {},
             const Norm& norm = "backward");
Tensor rfftn(const Tensor& x, const Sizes& s = {}, const OptionalDims& dim = {},
             const Norm& norm = "backward");
Tensor irfftn(const Tensor& x, const Sizes& s = {}, const OptionalDims& dim = {},
              const Norm& norm = "backward");
Tensor hfftn(const Tensor& x, const Sizes& s = {}, const OptionalDims& dim = {},
             const Norm& norm = "backward");
Tensor ihfftn(const Tensor& x, const Sizes& s = {}, const OptionalDims& dim = {},
              const Norm& norm = "backward");
// Over the last two dims.
Tensor fft2(const Tensor& x, const Sizes& s = {}, const Dims& dim = {-2, -1},
            const Norm& norm = "backward");
Tensor ifft2(const Tensor& x, const Sizes& s = {}, const Dims& dim = {-2, -1},
             const Norm& norm = "backward");
Tensor rfft2(const Tensor& x, const Sizes& s = {}, const Dims& dim = {-2, -1},
             const Norm& norm = "backward");
Tensor irfft2(const Tensor& x, const Sizes& s = {}, const Dims& dim = {-2, -1},
              const Norm& norm = "backward");
Tensor hfft2(const Tensor& x, const Sizes& s = {}, const Dims& dim = {-2, -1},
             const Norm& norm = "backward");
Tensor ihfft2(const Tensor& x, const Sizes& s = {}, const Dims& dim = {-2, -1},
              const Norm& norm = "backward");

// The frequencies of fft's numbers (0, 1, .., -1 cycles over n d) and of rfft's. n >= 1.
Tensor fftfreq(int64_t n, double d = 1.0, TensorOptions options = {});
Tensor rfftfreq(int64_t n, double d = 1.0, TensorOptions options = {});
// Frequency 0 to the middle of the dims (all, when none are given), and back.
Tensor fftshift(const Tensor& x, const OptionalDims& dim = {});
Tensor ifftshift(const Tensor& x, const OptionalDims& dim = {});

}  // namespace kiln::fft
