// Methods of Tensor as functions, for who writes sum(x) where others write x.sum(), and short forms
// of other functions. Arguments, results and errors are those of what they call.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/tensor/creation.h"
#include "kiln/tensor/linalg/linalg.h"
#include "kiln/tensor/memory_order.h"
#include "kiln/tensor/nn/activations.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/reduce/reductions.h"
#include "kiln/tensor/sequences.h"
#include "kiln/tensor/tensor.h"

namespace kiln {

// ---- Reductions: over all elements, or over dims

inline Tensor sum(const Tensor& x) { return x.sum(); }
inline Tensor sum(const Tensor& x, const Dims& dims, bool keepdim = false) {
  return x.sum(dims, keepdim);
}
inline Tensor sum(const Tensor& x, DimNumber auto dim, bool keepdim = false) {
  return x.sum(dim, keepdim);
}
inline Tensor mean(const Tensor& x) { return x.mean(); }
inline Tensor mean(const Tensor& x, const Dims& dims, bool keepdim = false) {
  return x.mean(dims, keepdim);
}
inline Tensor mean(const Tensor& x, DimNumber auto dim, bool keepdim = false) {
  return x.mean(dim, keepdim);
}
inline Tensor prod(const Tensor& x) { return x.prod(); }
inline Tensor prod(const Tensor& x, int64_t dim, bool keepdim = false) {
  return x.prod(dim, keepdim);
}
inline Tensor var(const Tensor& x) { return x.var(); }
inline Tensor var(const Tensor& x, const Dims& dims, double correction = 1, bool keepdim = false) {
  return x.var(dims, correction, keepdim);
}
inline Tensor var(const Tensor& x, DimNumber auto dim, double correction = 1,
                  bool keepdim = false) {
  return x.var(dim, correction, keepdim);
}
inline Tensor std(const Tensor& x) { return x.std(); }
inline Tensor std(const Tensor& x, const Dims& dims, double correction = 1, bool keepdim = false) {
  return x.std(dims, correction, keepdim);
}
inline Tensor std(const Tensor& x, DimNumber auto dim, double correction = 1,
                  bool keepdim = false) {
  return x.std(dim, correction, keepdim);
}
inline Tensor logsumexp(const Tensor& x, const Dims& dims, bool keepdim = false) {
  return x.logsumexp(dims, keepdim);
}
inline Tensor logsumexp(const Tensor& x, DimNumber auto dim, bool keepdim = false) {
  return x.logsumexp(dim, keepdim);
}
inline Tensor amax(const Tensor& x, const Dims& dims = {}, bool keepdim = false) {
  return x.amax(dims, keepdim);
}
inline Tensor amax(const Tensor& x, DimNumber auto dim, bool keepdim = false) {
  return x.amax(dim, keepdim);
}
inline Tensor amin(const Tensor& x, const Dims& dims = {}, bool keepdim = false) {
  return x.amin(dims, keepdim);
}
inline Tensor amin(const Tensor& x, DimNumber auto dim, bool keepdim = false) {
  return x.amin(dim, keepdim);
}

// The pairs are values and indices.
inline Tensor max(const Tensor& x) { return x.max(); }
inline std::pair<Tensor, Tensor> max(const Tensor& x, int64_t dim, bool keepdim = false) {
  return x.max(dim, keepdim);
}
inline Tensor min(const Tensor& x) { return x.min(); }
inline std::pair<Tensor, Tensor> min(const Tensor& x, int64_t dim, bool keepdim = false) {
  return x.min(dim, keepdim);
}
// Of two tensors, element by element.
inline Tensor max(const Tensor& x, const Tensor& y) { return maximum(x, y); }
inline Tensor min(const Tensor& x, const Tensor& y) { return minimum(x, y); }
inline Tensor norm(const Tensor& x, double p, DimNumber auto dim, bool keepdim = false) {
  return norm(x, p, Dims{dim}, keepdim);
}
inline Tensor median(const Tensor& x) { return x.median(); }
inline std::pair<Tensor, Tensor> median(const Tensor& x, int64_t dim, bool keepdim = false) {
  return x.median(dim, keepdim);
}
inline Tensor nanmedian(const Tensor& x) { return x.nanmedian(); }
inline std::pair<Tensor, Tensor> nanmedian(const Tensor& x, int64_t dim, bool keepdim = false) {
  return x.nanmedian(dim, keepdim);
}
inline Tensor argmax(const Tensor& x) { return x.argmax(); }
inline Tensor argmax(const Tensor& x, int64_t dim, bool keepdim = false) {
  return x.argmax(dim, keepdim);
}
inline Tensor argmin(const Tensor& x) { return x.argmin(); }
inline Tensor argmin(const Tensor& x, int64_t dim, bool keepdim = false) {
  return x.argmin(dim, keepdim);
}

inline Tensor cumsum(const Tensor& x, int64_t dim) { return x.cumsum(dim); }

// ---- Shapes

inline Tensor reshape(const Tensor& x, const Shape& shape) { return x.reshape(shape); }
inline Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1) {
  return x.transpose(dim0, dim1);
}
inline Tensor t(const Tensor& x) { return x.t(); }
inline Tensor permute(const Tensor& x, const Dims& dims) { return x.permute(dims); }
inline Tensor broadcast_to(const Tensor& x, const Shape& shape) { return x.broadcast_to(shape); }
inline Tensor squeeze(const Tensor& x) { return x.squeeze(); }
inline Tensor squeeze(const Tensor& x, int64_t dim) { return x.squeeze(dim); }
inline Tensor unsqueeze(const Tensor& x, int64_t dim) { return x.unsqueeze(dim); }
inline Tensor flatten(const Tensor& x, int64_t start_dim = 0, int64_t end_dim = -1) {
  return x.flatten(start_dim, end_dim);
}
inline Tensor flip(const Tensor& x, const Dims& dims) { return x.flip(dims); }
inline std::vector<Tensor> split(const Tensor& x, int64_t size, int64_t dim = 0) {
  return x.split(size, dim);
}
inline std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int64_t dim = 0) {
  return x.chunk(chunks, dim);
}
inline std::vector<Tensor> unbind(const Tensor& x, int64_t dim = 0) { return x.unbind(dim); }

// ---- Parts

inline Tensor clone(const Tensor& x) { return x.clone(); }
inline Tensor select(const Tensor& x, int64_t dim, int64_t index) { return x.select(dim, index); }
inline Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  return x.narrow(dim, start, length);
}
inline Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index) {
  return x.index_select(dim, index);
}
inline Tensor index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  return x.index_add(dim, index, source);
}
inline Tensor gather(const Tensor& x, int64_t dim, const Tensor& index) {
  return x.gather(dim, index);
}
inline Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
  return x.scatter_add(dim, index, src);
}

// ---- Tensors from a dtype and nothing else

inline Tensor arange(Scalar start, Scalar end, std::same_as<DType> auto dtype) {
  return arange(start, end, 1, TensorOptions{.dtype = dtype});
}
inline Tensor arange(Scalar start, Scalar end, Scalar step, std::same_as<DType> auto dtype) {
  return arange(start, end, step, TensorOptions{.dtype = dtype});
}
inline Tensor linspace(double start, double end, int64_t steps, std::same_as<DType> auto dtype) {
  return linspace(start, end, steps, TensorOptions{.dtype = dtype});
}
inline Tensor eye(int64_t n, std::same_as<DType> auto dtype) {
  return eye(n, TensorOptions{.dtype = dtype});
}
inline Tensor randperm(int64_t n, std::same_as<DType> auto dtype) {
  return randperm(n, TensorOptions{.dtype = dtype});
}
inline Tensor randint(int64_t low, int64_t high, const Shape& shape,
                      std::same_as<DType> auto dtype) {
  return randint(low, high, shape, TensorOptions{.dtype = dtype});
}
inline Tensor randint(int64_t high, const Shape& shape, TensorOptions options = {}) {
  return randint(0, high, shape, options);
}
// Of the shape and on the device of x; they lie in memory as x does.
inline Tensor zeros_like(const Tensor& x, std::same_as<DType> auto dtype) {
  return detail::made_like(
      x, [&](const Shape& s) { return zeros(s, {.dtype = dtype, .device = x.device()}); });
}
inline Tensor ones_like(const Tensor& x, std::same_as<DType> auto dtype) {
  return detail::made_like(
      x, [&](const Shape& s) { return ones(s, {.dtype = dtype, .device = x.device()}); });
}
inline Tensor full_like(const Tensor& x, Scalar value, std::same_as<DType> auto dtype) {
  return detail::made_like(
      x, [&](const Shape& s) { return full(s, value, {.dtype = dtype, .device = x.device()}); });
}
inline Tensor rand_like(const Tensor& x, std::same_as<DType> auto dtype) {
  return detail::made_like(
      x, [&](const Shape& s) { return rand(s, {.dtype = dtype, .device = x.device()}); });
}
inline Tensor randn_like(const Tensor& x, std::same_as<DType> auto dtype) {
  return detail::made_like(
      x, [&](const Shape& s) { return randn(s, {.dtype = dtype, .device = x.device()}); });
}

// ---- Tensors in braces

inline std::vector<Tensor> meshgrid(std::initializer_list<Tensor> tensors,
                                    std::string_view indexing = "ij") {
  return meshgrid(std::span(tensors.begin(), tensors.size()), indexing);
}
inline Tensor cartesian_prod(std::initializer_list<Tensor> tensors) {
  return cartesian_prod(std::span(tensors.begin(), tensors.size()));
}

namespace linalg {
inline Tensor multi_dot(std::initializer_list<Tensor> tensors) {
  return multi_dot(std::span(tensors.begin(), tensors.size()));
}
}  // namespace linalg

// ---- Where PyTorch has them, too

namespace functional {
using kiln::gelu;
using kiln::log_softmax;
using kiln::one_hot;
using kiln::relu;
using kiln::sigmoid;
using kiln::softmax;
using kiln::tanh;
}  // namespace functional

}  // namespace kiln
