#include "kiln/tensor/fft/fft.h"

#include <algorithm>
#include <cmath>

#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/ops.h"

namespace kiln::fft {

using namespace kiln::detail;

namespace {

// ---- The rows of the op table, over complex tensors

// Along dim d.
Tensor complex_along(const Tensor& x, int d, bool inverse, double scale) {
  return wrap_complex(AD::float_fft(parts_or_value("fft", x), d, inverse, scale));
}

// Over `dims`, the last dim among them.
Tensor spectrum_of_real(const Tensor& x, const Dims& dims, bool inverse, double scale) {
  return wrap_complex(AD::float_fft_real(value_of("fft", x), dims, inverse, scale));
}

// [.., n] -> [.., n / 2 + 1], and back.
Tensor real_last(const Tensor& x, double scale) {
  return wrap_complex(AD::float_rfft(value_of("rfft", x), scale, 1.0));
}
Tensor hermitian_last(const Tensor& x, int64_t n, double scale) {
  return wrap(AD::float_irfft(parts_or_value("irfft", x), n, scale, 1.0));
}

// ---- Arguments

// Of a transform whose unscaled sum has `n` terms in all.
double scale_of(const char* op, const Norm& norm, int64_t n, bool inverse) {
  const auto count = static_cast<double>(n);
  if (norm == "ortho") return 1.0 / std::sqrt(count);
  if (norm == "backward") return inverse ? 1.0 / count : 1.0;
  if (norm == "forward") return inverse ? 1.0 : 1.0 / count;
  throw_error<ValueError>(op, ": unknown norm; got '", norm,
                          "'; expected 'backward', 'ortho' or 'forward'");
}

// Floating or complex.
Tensor as_number(const char* op, const Tensor& x) {
  impl_of(op, x);
  const DType t = x.dtype();
  if (kiln::is_complex(t)) return x;
  if (t == f16 || t == bf16 || kind_of(t) == Kind::quantized) {
    throw_wrong_dtype(op, t, "float32, float64, a complex dtype or integers");
  }
  return kiln::is_floating_point(t) ? x : x.to(default_dtype());
}

Tensor as_complex(const char* op, const Tensor& x) {
  const Tensor z = as_number(op, x);
  return kiln::is_complex(z.dtype()) ? z : z.to(complex_dtype(z.dtype()));
}

Tensor as_real(const char* op, const Tensor& x) {
  impl_of(op, x);
  const DType t = x.dtype();
  if (kiln::is_complex(t) || t == f16 || t == bf16 || kind_of(t) == Kind::quantized) {
    throw_wrong_dtype(op, t, "a real input: float32, float64 or integers");
  }
  return kiln::is_floating_point(t) ? x : x.to(default_dtype());
}

int checked_dim(const char* op, const Tensor& x, int64_t dim) {
  if (x.dim() == 0) throw_error<ShapeError>(op, ": expected at least 1 dim; got a 0-d tensor");
  return normalize_dim(op, dim, x.dim());
}

void check_length(const char* op, int64_t n) {
  if (n < 1) throw_error<ShapeError>(op, ": invalid number of data points; got ", n);
}

// Dim d cut or padded with zeros at its end.
Tensor resized(const Tensor& x, int d, int64_t n) {
  const int64_t have = x.shape()[d];
  if (have == n) return x;
  if (have > n) return x.narrow(d, 0, n);
  Shape rest = x.shape();
  rest[d] = n - have;
  return cat({x, zeros(rest, {x.dtype(), x.device()})}, d);
}

// f over dim d as the last one.
template <class F>
Tensor along(const Tensor& x, int d, F f) {
  if (d == x.dim() - 1) return f(x);
  return f(x.transpose(d, -1)).transpose(d, -1);
}

struct Several {
  std::vector<int> dims;
  std::vector<std::optional<int64_t>> lengths;
};

Tensor transformed_several(const char* op, Tensor x, const Several& over, size_t count,
                           const Norm& norm, bool inverse) {
  Dims dims;
  double scale = 1.0;
  for (size_t k = 0; k < count; ++k) {
    const int d = over.dims[k];
    const int64_t length = over.lengths[k].value_or(x.shape()[d]);
    check_length(op, length);
    scale *= scale_of(op, norm, length, inverse);
    x = resized(x, d, length);
    dims.push_back(d);
  }
  if (!kiln::is_complex(x.dtype()) && dims.contains(x.dim() - 1))
    return spectrum_of_real(x, dims, inverse, scale);
  x = as_complex(op, x);
  for (const int64_t d : dims) {
    x = complex_along(x, static_cast<int>(d), inverse, scale);
    scale = 1.0;
  }
  return x;
}

Tensor transformed(const char* op, const Tensor& x, std::optional<int64_t> n, int64_t dim,
                   const Norm& norm, bool inverse) {
  const Tensor z = as_number(op, x);
  return transformed_several(op, z, {{checked_dim(op, z, dim)}, {n}}, 1, norm, inverse);
}

// rfft, or with `inverse` ihfft.
Tensor from_real(const char* op, const Tensor& x, std::optional<int64_t> n, int64_t dim,
                 const Norm& norm, bool inverse) {
  const Tensor z = as_real(op, x);
  const int d = checked_dim(op, z, dim);
  const int64_t length = n.value_or(z.shape()[d]);
  check_length(op, length);
  const double scale = scale_of(op, norm, length, inverse);
  const Tensor out =
      along(resized(z, d, length), d, [&](const Tensor& y) { return real_last(y, scale); });
  return inverse ? conj(out) : out;
}

// irfft, or without `inverse` hfft.
Tensor to_real(const char* op, const Tensor& x, std::optional<int64_t> n, int64_t dim,
               const Norm& norm, bool inverse) {
  const Tensor z = as_complex(op, x);
  const int d = checked_dim(op, z, dim);
  const int64_t length = n.value_or(2 * (z.shape()[d] - 1));
  check_length(op, length);
  const double scale = scale_of(op, norm, length, inverse);
  const Tensor half = resized(z, d, length / 2 + 1);
  return along(inverse ? half : conj(half), d,
               [&](const Tensor& y) { return hermitian_last(y, length, scale); });
}

Several checked_dims(const char* op, const Tensor& x, const Sizes& s, const OptionalDims& dim) {
  impl_of(op, x);
  Several out;
  if (dim) {
    if (x.dim() == 0 && !dim->empty()) {
      throw_error<IndexError>(op, ": a 0-d tensor has no dims; got dim ", *dim);
    }
    for (const int64_t d : normalize_dims(op, *dim, x.dim()))
      out.dims.push_back(static_cast<int>(d));
    if (s && s->rank() != dim->rank()) {
      throw_error<ValueError>(op, ": expected one size for each dim; got s ", *s, " and dim ",
                              *dim);
    }
  } else {
    const int count = s ? s->rank() : x.dim();
    if (count > x.dim()) {
      throw_error<ShapeError>(op, ": more sizes than dims; got s ", *s, " for shape ", x.shape());
    }
    for (int d = x.dim() - count; d < x.dim(); ++d) out.dims.push_back(d);
  }
  for (size_t k = 0; k < out.dims.size(); ++k) {
    const int64_t length = s ? (*s)[static_cast<int>(k)] : -1;
    out.lengths.push_back(length == -1 ? std::nullopt : std::optional(length));
  }
  return out;
}

void check_some(const char* op, const Several& over) {
  if (over.dims.empty()) throw_error<ValueError>(op, ": expected at least one dim");
}

}  // namespace

Tensor fft(const Tensor& x, std::optional<int64_t> n, int64_t dim, const Norm& norm) {
  KILN_AUTOCAST(f32, fft, x, n, dim, norm);
  return transformed("fft", x, n, dim, norm, false);
}
Tensor ifft(const Tensor& x, std::optional<int64_t> n, int64_t dim, const Norm& norm) {
  KILN_AUTOCAST(f32, ifft, x, n, dim, norm);
  return transformed("ifft", x, n, dim, norm, true);
}
Tensor rfft(const Tensor& x, std::optional<int64_t> n, int64_t dim, const Norm& norm) {
  KILN_AUTOCAST(f32, rfft, x, n, dim, norm);
  return from_real("rfft", x, n, dim, norm, false);
}
Tensor irfft(const Tensor& x, std::optional<int64_t> n, int64_t dim, const Norm& norm) {
  KILN_AUTOCAST(f32, irfft, x, n, dim, norm);
  return to_real("irfft", x, n, dim, norm, true);
}
Tensor hfft(const Tensor& x, std::optional<int64_t> n, int64_t dim, const Norm& norm) {
  KILN_AUTOCAST(f32, hfft, x, n, dim, norm);
  return to_real("hfft", x, n, dim, norm, false);
}
Tensor ihfft(const Tensor& x, std::optional<int64_t> n, int64_t dim, const Norm& norm) {
  KILN_AUTOCAST(f32, ihfft, x, n, dim, norm);
  return from_real("ihfft", x, n, dim, norm, true);
}

Tensor fftn(const Tensor& x, const Sizes& s, const OptionalDims& dim, const Norm& norm) {
  KILN_AUTOCAST(f32, fftn, x, s, dim, norm);
  const Several over = checked_dims("fftn", x, s, dim);
  return transformed_several("fftn", as_number("fftn", x), over, over.dims.size(), norm, false);
}
Tensor ifftn(const Tensor& x, const Sizes& s, const OptionalDims& dim, const Norm& norm) {
  KILN_AUTOCAST(f32, ifftn, x, s, dim, norm);
  const Several over = checked_dims("ifftn", x, s, dim);
  return transformed_several("ifftn", as_number("ifftn", x), over, over.dims.size(), norm, true);
}
Tensor rfftn(const Tensor& x, const Sizes& s, const OptionalDims& dim, const Norm& norm) {
  KILN_AUTOCAST(f32, rfftn, x, s, dim, norm);
  const Several over = checked_dims("rfftn", x, s, dim);
  check_some("rfftn", over);
  const Tensor half = from_real("rfftn", x, over.lengths.back(), over.dims.back(), norm, false);
  return transformed_several("rfftn", half, over, over.dims.size() - 1, norm, false);
}
Tensor irfftn(const Tensor& x, const Sizes& s, const OptionalDims& dim, const Norm& norm) {
  KILN_AUTOCAST(f32, irfftn, x, s, dim, norm);
  const Several over = checked_dims("irfftn", x, s, dim);
  check_some("irfftn", over);
  const Tensor half = transformed_several("irfftn", as_complex("irfftn", x), over,
                                          over.dims.size() - 1, norm, true);
  return to_real("irfftn", half, over.lengths.back(), over.dims.back(), norm, true);
}
Tensor hfftn(const Tensor& x, const Sizes& s, const OptionalDims& dim, const Norm& norm) {
  const Several over = checked_dims("hfftn", x, s, dim);
  check_some("hfftn", over);
  const Tensor half =
      transformed_several("hfftn", as_complex("hfftn", x), over, over.dims.size() - 1, norm, false);
  return to_real("hfftn", half, over.lengths.back(), over.dims.back(), norm, false);
}
Tensor ihfftn(const Tensor& x, const Sizes& s, const OptionalDims& dim, const Norm& norm) {
  const Several over = checked_dims("ihfftn", x, s, dim);
  check_some("ihfftn", over);
  const Tensor half = from_real("ihfftn", x, over.lengths.back(), over.dims.back(), norm, true);
  return transformed_several("ihfftn", half, over, over.dims.size() - 1, norm, true);
}

Tensor fft2(const Tensor& x, const Sizes& s, const Dims& dim, const Norm& norm) {
  KILN_AUTOCAST(f32, fft2, x, s, dim, norm);
  return fftn(x, s, dim, norm);
}
Tensor ifft2(const Tensor& x, const Sizes& s, const Dims& dim, const Norm& norm) {
  KILN_AUTOCAST(f32, ifft2, x, s, dim, norm);
  return ifftn(x, s, dim, norm);
}
Tensor rfft2(const Tensor& x, const Sizes& s, const Dims& dim, const Norm& norm) {
  KILN_AUTOCAST(f32, rfft2, x, s, dim, norm);
  return rfftn(x, s, dim, norm);
}
Tensor irfft2(const Tensor& x, const Sizes& s, const Dims& dim, const Norm& norm) {
  KILN_AUTOCAST(f32, irfft2, x, s, dim, norm);
  return irfftn(x, s, dim, norm);
}
Tensor hfft2(const Tensor& x, const Sizes& s, const Dims& dim, const Norm& norm) {
  return hfftn(x, s, dim, norm);
}
Tensor ihfft2(const Tensor& x, const Sizes& s, const Dims& dim, const Norm& norm) {
  return ihfftn(x, s, dim, norm);
}

namespace {

Tensor frequencies(const char* op, int64_t n, bool half, double d, const TensorOptions& options) {
  if (n < 1) throw_error<ValueError>(op, ": expected n >= 1; got ", n);
  const TensorOptions wide{f64, options.device};
  const Tensor turns = half ? arange(0, n / 2 + 1, 1, wide)
                            : cat({arange(0, n - n / 2, 1, wide), arange(-(n / 2), 0, 1, wide)});
  Tensor out = turns.div(static_cast<double>(n) * d).to(options.dtype.value_or(default_dtype()));
  if (options.requires_grad) out.requires_grad_();
  return out;
}

Tensor rolled(const char* op, const Tensor& given, const OptionalDims& dim, bool back) {
  impl_of(op, given);
  Tensor x = given;
  const Dims dims = dim ? normalize_dims(op, *dim, x.dim()) : all_dims(x.dim());
  if (dims.empty() || x.dim() == 0) {
    throw_error<IndexError>(op, ": expected at least one dim; got a tensor of ", x.shape());
  }
  for (const int64_t d : dims) {
    const int64_t n = x.shape()[static_cast<int>(d)];
    const int64_t first = back ? n / 2 : (n + 1) / 2;  // what the result begins with
    if (first == 0 || first == n) continue;
    x = cat({x.narrow(d, first, n - first), x.narrow(d, 0, first)}, d);
  }
  return x.is_same(given) ? x.clone() : x;
}

}  // namespace

Tensor fftfreq(int64_t n, double d, TensorOptions options) {
  return frequencies("fftfreq", n, false, d, options);
}
Tensor rfftfreq(int64_t n, double d, TensorOptions options) {
  return frequencies("rfftfreq", n, true, d, options);
}
Tensor fftshift(const Tensor& x, const OptionalDims& dim) {
  return rolled("fftshift", x, dim, false);
}
Tensor ifftshift(const Tensor& x, const OptionalDims& dim) {
  return rolled("ifftshift", x, dim, true);
}

}  // namespace kiln::fft
