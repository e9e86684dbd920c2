// Tensor: an n-dimensional array of one dtype on one device, that remembers how it was computed
// when asked to.
//
// A Tensor is a handle: copying it is cheap and gives another name for the same tensor. Ops make
// new tensors; names that end in _ write into their tensor's memory, which every view of it sees.
// Every op throws a kiln::Error whose message names the op and the shapes, dtypes or devices that
// do not fit.
#pragma once

#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "kiln/backend/arg.h"
#include "kiln/core/device.h"
#include "kiln/core/dtype.h"
#include "kiln/core/error.h"
#include "kiln/core/handle.h"
#include "kiln/core/random.h"
#include "kiln/core/scalar.h"
#include "kiln/core/shape.h"
#include "kiln/core/slice.h"
#include "kiln/core/tensor_data.h"

namespace kiln {

class Tensor;
class TensorImpl;
class Gradients;
class IndexEntry;
template <class T, int N>
class Accessor;

// A tensor handed to an op: lent (from an lvalue) or given away (from an rvalue; the result may
// then take its memory).
using TensorArg = Arg<Tensor>;

// How creation functions make their tensor: zeros({2, 3}, {.dtype = f64, .device = "cpu",
// .requires_grad = true}), or in short zeros({2, 3}, {f64}).
struct TensorOptions {
  std::optional<DType> dtype = {};  // default: default_dtype(), or what the values are
  Device device = {};
  bool requires_grad = false;
};

// One entry of an index that gives a view: an integer, a Slice, None (a new dim of size 1) or
// Ellipsis (as many full slices as fit). None is also an end that a Slice leaves open: Slice(1,
// None).
struct NoneType {
  operator std::optional<int64_t>() const { return {}; }
};
struct EllipsisType {};
inline constexpr NoneType None{};
inline constexpr EllipsisType Ellipsis{};

struct IndexItem {
  enum class Type : uint8_t { integer, slice, none, ellipsis } type;
  int64_t integer = 0;
  Slice slice;

  template <std::integral T>
    requires(!std::same_as<T, bool>)
  IndexItem(T i) : type(Type::integer), integer(static_cast<int64_t>(i)) {}
  IndexItem(Slice s) : type(Type::slice), slice(s) {}
  IndexItem(NoneType) : type(Type::none) {}
  IndexItem(EllipsisType) : type(Type::ellipsis) {}
};

// A dim given as a number where a list is also legal: x.sum(-1) is x.sum({-1}).
template <class T>
concept DimNumber = std::integral<T> && !std::same_as<T, bool>;

// Removes a hook when told to. Does nothing when dropped: the hook then stays.
class HookHandle {
 public:
  HookHandle() = default;
  explicit HookHandle(std::function<void()> remove) : remove_(std::move(remove)) {}
  // Removing twice, or through a copy, does nothing more.
  void remove() {
    if (remove_) std::exchange(remove_, nullptr)();
  }

 private:
  std::function<void()> remove_;
};
using RemovableHandle = HookHandle;  // PyTorch's name for it

// Removes a hook at the end of a scope: ScopedHook hook(layer.register_forward_hook(...));
class ScopedHook {
 public:
  explicit ScopedHook(HookHandle handle) : handle_(std::move(handle)) {}
  ~ScopedHook() { handle_.remove(); }
  ScopedHook(const ScopedHook&) = delete;
  ScopedHook& operator=(const ScopedHook&) = delete;

 private:
  HookHandle handle_;
};

class Tensor {
 public:
  // The undefined tensor: no shape, no values. Every op on it throws ValueError.
  Tensor() = default;
  explicit Tensor(Handle<TensorImpl> impl) : impl_(std::move(impl)) {}
  // A copy of host values.
  explicit Tensor(const TensorData& data, Device device = {});
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  ~Tensor() = default;

  // A name gets another tensor.
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  // What has no name is written into: x[0] = y, x[0][1] = 5, x.index({Slice(), 2}) = y are
  // x[0].copy_(y) and so on. Throws ValueError where no other tensor would see it: see
  // index_put_().
  Tensor& operator=(const Tensor& values) &&;
  Tensor& operator=(Scalar value) &&;

  bool defined() const { return static_cast<bool>(impl_); }
  // Whether both names stand for the same tensor object (not: equal values).
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }

  // ---- Description

  const Shape& shape() const;
  const Shape& sizes() const { return shape(); }
  int64_t size(int64_t dim) const;
  int dim() const;
  int64_t numel() const;
  DType dtype() const;
  Device device() const;
  // For a tensor like this one: zeros({2, 3}, x.options()). Without requires_grad.
  TensorOptions options() const { return {.dtype = dtype(), .device = device()}; }
  // In elements. Only for tensors in host memory (DeviceError otherwise).
  Strides stride() const;
  Strides strides() const { return stride(); }
  bool is_contiguous() const;
  // Bytes of one element, and of all.
  int64_t element_size() const { return static_cast<int64_t>(size_of(dtype())); }
  int64_t nbytes() const { return numel() * element_size(); }
  bool is_floating_point() const { return kiln::is_floating_point(dtype()); }
  bool is_complex() const;
  // The first element in host memory; T must match the dtype, the device must be a host backend.
  template <class T>
  T* data_ptr() const {
    return static_cast<T*>(data_ptr(dtype_of<T>));
  }
  // x.accessor<float, 2>()[i][j]: see kiln/tensor/accessor.h.
  template <class T, int N>
  Accessor<T, N> accessor() const;
  // How often something wrote into this tensor's memory in place.
  uint32_t version() const;

  // ---- Values out

  // The only element. Throws ValueError unless numel() == 1, and for a number that an integer T
  // cannot hold.
  template <class T = double>
  T item() const {
    if constexpr (std::is_same_v<T, bool>) {
      return item_scalar().to_bool();
    } else if constexpr (std::is_integral_v<T>) {
      constexpr bool kWide = std::is_unsigned_v<T> && sizeof(T) == 8;
      return static_cast<T>(
          item_integer(static_cast<int64_t>(std::numeric_limits<T>::min()),
                       kWide ? std::numeric_limits<int64_t>::max()
                             : static_cast<int64_t>(std::numeric_limits<T>::max())));
    } else {
      return static_cast<T>(item_scalar().to_double());
    }
  }
  Scalar item_scalar() const;
  TensorData to_data() const;
  // Row-major values as T, converted from the dtype.
  template <class T>
  std::vector<T> to_vector() const {
    const TensorData data = to_data().cast(dtype_of<T>);
    const auto values = data.as<T>();
    return std::vector<T>(values.begin(), values.end());
  }

  // ---- Dtype, device, copies

  Tensor to(DType dtype) const;
  Tensor to(Device device) const;
  Tensor to(Device device, DType dtype) const;
  Tensor type_as(const Tensor& other) const { return to(other.device(), other.dtype()); }
  Tensor cpu() const { return to(Device()); }
  Tensor cuda(int index = 0) const { return to(Device("cuda:" + std::to_string(index))); }
  // Of this dtype, on this device.
  Tensor new_empty(const Shape& shape) const;
  Tensor new_zeros(const Shape& shape) const;
  Tensor new_ones(const Shape& shape) const;
  Tensor new_full(const Shape& shape, Scalar value) const;
  Tensor contiguous() const;
  Tensor clone() const;  // a copy in memory of its own; differentiable
  // Moves the values into POSIX shared memory: processes forked afterwards see each other's writes
  // (not each other's version counts). Views taken before keep the old memory. Throws DeviceError
  // for a device that is not the host, IoError when the system has no such memory left.
  Tensor& share_memory_();
  bool is_shared() const;

  // ---- Autodiff

  bool requires_grad() const;
  // Marks a leaf as wanting a gradient (or not). Throws AutodiffError on a result of recorded ops
  // when set to false, DTypeError unless floating point.
  Tensor& requires_grad_(bool value = true);
  bool is_leaf() const;
  // The same values without history; shares memory.
  Tensor detach() const;
  // As detach(), but what is written through the result is not seen by autodiff: it does not count
  // in version(). For writes that gradients are to ignore. Python's `x.data`.
  Tensor variable_data() const;
  // Name of the op that made this tensor ("mul", ...); empty for a leaf.
  std::string grad_fn() const;

  // Differentiates this scalar with respect to every leaf that requires a gradient, and returns the
  // gradients without touching anything else. `gradient` is required when the tensor is no scalar.
  // Throws AutodiffError when nothing is tracked, or when the graph was freed by an earlier pass.
  [[nodiscard]] Gradients backward(const Tensor& gradient = {}, bool retain_graph = false,
                                   bool create_graph = false) const;
  // PyTorch's form: adds the gradients into each leaf's grad().
  void backward_accumulate(const Tensor& gradient = {}, bool retain_graph = false,
                           bool create_graph = false) const;

  // This tensor's gradient in `grads`, if there is one.
  std::optional<Tensor> grad(const Gradients& grads) const;
  std::optional<Tensor> grad_remove(Gradients& grads) const;
  // Puts `grad` in the place of this tensor's gradient, or adds it. Throws AutodiffError when this
  // tensor requires no gradient, ShapeError, DTypeError or DeviceError when `grad` is not like it.
  void grad_replace(Gradients& grads, const Tensor& grad) const;

  // The accumulated gradient; undefined when there is none.
  Tensor grad() const;
  void set_grad(const Tensor& grad);
  void zero_grad(bool set_to_none = true);
  // Keeps the gradient of a tensor that is no leaf in grad() after backward_accumulate, and in
  // Gradients.
  Tensor& retain_grad();
  // Calls hook(grad) when the gradient of this tensor is computed; a defined result replaces it.
  HookHandle register_hook(std::function<Tensor(const Tensor&)> hook) const;
  template <class F>
    requires std::is_void_v<std::invoke_result_t<F&, const Tensor&>>
  HookHandle register_hook(F hook) const {
    return register_hook([hook = std::move(hook)](const Tensor& grad) mutable {
      hook(grad);
      return Tensor();
    });
  }

  // ---- Shape

  Tensor reshape(const Shape& shape) const;  // one size may be -1
  Tensor reshape(DimNumber auto size) const { return reshape(Shape{size}); }
  Tensor reshape_as(const Tensor& other) const { return reshape(other.shape()); }
  // Like reshape, but never copies: throws ShapeError instead.
  Tensor view(const Shape& shape) const;
  Tensor view(DimNumber auto size) const { return view(Shape{size}); }
  Tensor view_as(const Tensor& other) const { return view(other.shape()); }
  Tensor transpose(int64_t dim0, int64_t dim1) const;
  Tensor t() const;  // a matrix transposed
  Tensor permute(const Dims& dims) const;
  Tensor expand(const Shape& shape) const;  // -1 keeps a size
  Tensor broadcast_to(const Shape& shape) const { return expand(shape); }
  Tensor expand_as(const Tensor& other) const { return expand(other.shape()); }
  Tensor squeeze() const;
  Tensor squeeze(int64_t dim) const;
  Tensor unsqueeze(int64_t dim) const;
  Tensor flatten(int64_t start_dim = 0, int64_t end_dim = -1) const;
  Tensor flip(const Dims& dims) const;

  // ---- Indexing

  // x[0], x[Slice(1, None)], x[mask], x[rows]: index() by one entry.
  Tensor operator[](int64_t i) const { return select(0, i); }
  Tensor operator[](const IndexEntry& entry) const;
  Tensor operator[](std::same_as<bool> auto) const = delete;
  Tensor select(int64_t dim, int64_t index) const;
  Tensor slice(int64_t dim, std::optional<int64_t> start = {}, std::optional<int64_t> end = {},
               int64_t step = 1) const;
  Tensor narrow(int64_t dim, int64_t start, int64_t length) const;
  // x.index({0, Slice(1, 3), None, Ellipsis}) is a view. With tensors of integers or masks among
  // the entries, x.index({mask}), it is a copy: see kiln/tensor/index/advanced_index.h.
  Tensor index(std::initializer_list<IndexEntry> entries) const;
  Tensor index(std::span<const IndexEntry> entries) const;
  Tensor index(std::span<const IndexItem> items) const;
  // Writes what such an index names: x.index_put_({mask}, 0). The value broadcasts and is converted
  // to this dtype. With `accumulate` it is added, as often as an element is named.
  Tensor& index_put_(std::initializer_list<IndexEntry> entries, const Tensor& value,
                     bool accumulate = false);
  Tensor& index_put_(std::initializer_list<IndexEntry> entries, Scalar value,
                     bool accumulate = false);
  std::vector<Tensor> split(int64_t size, int64_t dim = 0) const;
  std::vector<Tensor> chunk(int64_t chunks, int64_t dim = 0) const;
  std::vector<Tensor> unbind(int64_t dim = 0) const;
  Tensor index_select(int64_t dim, const Tensor& index) const;
  Tensor index_add(int64_t dim, const Tensor& index, const Tensor& source) const;
  Tensor gather(int64_t dim, const Tensor& index) const;
  Tensor scatter(int64_t dim, const Tensor& index, const Tensor& src) const;
  Tensor scatter_add(int64_t dim, const Tensor& index, const Tensor& src) const;
  Tensor masked_fill(const Tensor& mask, Scalar value) const;

  // ---- Arithmetic

  Tensor add(const Tensor& other, Scalar alpha = 1) const;  // x + alpha * other
  Tensor add(Scalar other) const;
  Tensor sub(const Tensor& other, Scalar alpha = 1) const;
  Tensor sub(Scalar other) const;
  Tensor mul(const Tensor& other) const;
  Tensor mul(Scalar other) const;
  Tensor div(const Tensor& other) const;  // true division: integers give floats
  Tensor div(Scalar other) const;
  Tensor floor_divide(const Tensor& other) const;
  Tensor floor_divide(Scalar other) const;
  Tensor remainder(const Tensor& other) const;  // the sign of the divisor
  Tensor remainder(Scalar other) const;
  Tensor pow(const Tensor& exponent) const;
  Tensor pow(Scalar exponent) const;
  Tensor maximum(const Tensor& other) const;
  Tensor minimum(const Tensor& other) const;
  Tensor clamp(std::optional<Scalar> min, std::optional<Scalar> max = {}) const;
  Tensor matmul(const Tensor& other) const;  // every rank, as NumPy's @
  Tensor mm(const Tensor& other) const;      // matrices only
  Tensor bmm(const Tensor& other) const;     // batches of matrices
  Tensor dot(const Tensor& other) const;     // vectors

#define KILN_UNARY(name, promotes, doc) \
  Tensor name() const;                  \
  Tensor& name##_();
#include "kiln/backend/functions.def"
  Tensor gelu(const std::string& approximate = "none") const;  // or "tanh"

  Tensor eq(const Tensor& other) const;
  Tensor eq(Scalar other) const;
  Tensor ne(const Tensor& other) const;
  Tensor ne(Scalar other) const;
  Tensor gt(const Tensor& other) const;
  Tensor gt(Scalar other) const;
  Tensor ge(const Tensor& other) const;
  Tensor ge(Scalar other) const;
  Tensor lt(const Tensor& other) const;
  Tensor lt(Scalar other) const;
  Tensor le(const Tensor& other) const;
  Tensor le(Scalar other) const;
  Tensor logical_and(const Tensor& other) const;
  Tensor logical_or(const Tensor& other) const;
  Tensor logical_xor(const Tensor& other) const;
  Tensor logical_not() const;
  Tensor bitwise_and(const Tensor& other) const;
  Tensor bitwise_or(const Tensor& other) const;
  Tensor bitwise_xor(const Tensor& other) const;
  Tensor bitwise_not() const;
  Tensor isnan() const;
  Tensor isinf() const;
  Tensor isfinite() const;
  // Same shape and the same values / values within atol + rtol |other|.
  bool equal(const Tensor& other) const;
  bool allclose(const Tensor& other, double rtol = 1e-5, double atol = 1e-8,
                bool equal_nan = false) const;

  // ---- Reductions

  // Without dims (or with an empty list of them) over everything, to a 0-d tensor. Sums
  // of integers and bools are i64. var and std divide by n - correction.
  Tensor sum() const;
  Tensor sum(const Dims& dims, bool keepdim = false) const;
  Tensor sum(DimNumber auto dim, bool keepdim = false) const { return sum(Dims{dim}, keepdim); }
  Tensor mean() const;
  Tensor mean(const Dims& dims, bool keepdim = false) const;
  Tensor mean(DimNumber auto dim, bool keepdim = false) const { return mean(Dims{dim}, keepdim); }
  Tensor prod() const;
  Tensor prod(int64_t dim, bool keepdim = false) const;
  Tensor var() const;
  Tensor var(const Dims& dims, double correction = 1, bool keepdim = false) const;
  Tensor var(DimNumber auto dim, double correction = 1, bool keepdim = false) const {
    return var(Dims{dim}, correction, keepdim);
  }
  Tensor std() const;
  Tensor std(const Dims& dims, double correction = 1, bool keepdim = false) const;
  Tensor std(DimNumber auto dim, double correction = 1, bool keepdim = false) const {
    return std(Dims{dim}, correction, keepdim);
  }
  Tensor max() const;
  Tensor min() const;
  std::pair<Tensor, Tensor> max(int64_t dim, bool keepdim = false) const;  // values, indices
  std::pair<Tensor, Tensor> min(int64_t dim, bool keepdim = false) const;
  Tensor amax(const Dims& dims = {}, bool keepdim = false) const;
  Tensor amax(DimNumber auto dim, bool keepdim = false) const { return amax(Dims{dim}, keepdim); }
  Tensor amin(const Dims& dims = {}, bool keepdim = false) const;
  Tensor amin(DimNumber auto dim, bool keepdim = false) const { return amin(Dims{dim}, keepdim); }
  Tensor argmax() const;
  Tensor argmax(int64_t dim, bool keepdim = false) const;
  Tensor argmin() const;
  Tensor argmin(int64_t dim, bool keepdim = false) const;
  Tensor any() const;
  Tensor any(int64_t dim, bool keepdim = false) const;
  Tensor all() const;
  Tensor all(int64_t dim, bool keepdim = false) const;
  Tensor cumsum(int64_t dim) const;
  // Values and where they stood along dim. Stable; NaN is larger than everything.
  std::pair<Tensor, Tensor> sort(int64_t dim = -1, bool descending = false) const;
  Tensor argsort(int64_t dim = -1, bool descending = false) const;
  // The k largest (or smallest) along dim, in order.
  std::pair<Tensor, Tensor> topk(int64_t k, int64_t dim = -1, bool largest = true) const;
  // The k-th smallest along dim, k from 1.
  std::pair<Tensor, Tensor> kthvalue(int64_t k, int64_t dim = -1, bool keepdim = false) const;
  // The lower of the two middle values; NaN where there is one. nanmedian leaves NaN out.
  Tensor median() const;
  std::pair<Tensor, Tensor> median(int64_t dim, bool keepdim = false) const;
  Tensor nanmedian() const;
  std::pair<Tensor, Tensor> nanmedian(int64_t dim, bool keepdim = false) const;
  Tensor logsumexp(const Dims& dims, bool keepdim = false) const;
  Tensor logsumexp(DimNumber auto dim, bool keepdim = false) const {
    return logsumexp(Dims{dim}, keepdim);
  }
  Tensor norm() const;  // Euclidean, over everything
  Tensor softmax(int64_t dim) const;
  Tensor log_softmax(int64_t dim) const;

  // ---- In place

  // Results are rounded to this tensor's dtype; a result of a "larger" kind (float into
  // int) is a DTypeError. On a tensor that is tracked, the write is recorded, also through a view;
  // on a leaf that requires a gradient, or a view of one, it is an AutodiffError while recording.
  Tensor& add_(const Tensor& other, Scalar alpha = 1);
  Tensor& add_(Scalar other);
  Tensor& sub_(const Tensor& other, Scalar alpha = 1);
  Tensor& sub_(Scalar other);
  Tensor& mul_(const Tensor& other);
  Tensor& mul_(Scalar other);
  Tensor& div_(const Tensor& other);
  Tensor& div_(Scalar other);
  Tensor& pow_(Scalar exponent);
  Tensor& clamp_(std::optional<Scalar> min, std::optional<Scalar> max = {});
  Tensor& masked_fill_(const Tensor& mask, Scalar value);
  Tensor& copy_(const Tensor& src);  // broadcasts, converts
  Tensor& fill_(Scalar value);
  Tensor& zero_() { return fill_(0); }
  Tensor& uniform_(double low = 0.0, double high = 1.0);
  Tensor& normal_(double mean = 0.0, double std = 1.0);
  Tensor& bernoulli_(double p = 0.5);
  Tensor& operator+=(const Tensor& other) { return add_(other); }
  Tensor& operator+=(Scalar other) { return add_(other); }
  Tensor& operator-=(const Tensor& other) { return sub_(other); }
  Tensor& operator-=(Scalar other) { return sub_(other); }
  Tensor& operator*=(const Tensor& other) { return mul_(other); }
  Tensor& operator*=(Scalar other) { return mul_(other); }
  Tensor& operator/=(const Tensor& other) { return div_(other); }
  Tensor& operator/=(Scalar other) { return div_(other); }

  // ---- Functions as methods: x.repeat({2, 1}) is repeat(x, {2, 1}), beside which it is explained

  // Shape
  Tensor repeat(const Shape& times) const;
  Tensor tile(const Shape& times) const;
  Tensor repeat_interleave(int64_t repeats, std::optional<int64_t> dim = {}) const;
  Tensor roll(const Shape& shifts, const Dims& dims = {}) const;
  Tensor movedim(const Dims& source, const Dims& destination) const;
  Tensor swapaxes(int64_t dim0, int64_t dim1) const;
  Tensor rot90(int64_t k = 1, const Dims& dims = {0, 1}) const;
  Tensor unflatten(int64_t dim, const Shape& sizes) const;
  Tensor unfold(int64_t dim, int64_t size, int64_t step) const;
  Tensor diag(int64_t diagonal = 0) const;
  Tensor diagonal(int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1) const;
  Tensor tril(int64_t diagonal = 0) const;
  Tensor triu(int64_t diagonal = 0) const;
  Tensor& squeeze_();
  Tensor& unsqueeze_(int64_t dim);
  Tensor& transpose_(int64_t dim0, int64_t dim1);
  Tensor& t_();
  Tensor& detach_();
  // Indexing
  Tensor nonzero() const;
  Tensor take(const Tensor& index) const;
  Tensor masked_select(const Tensor& mask) const;
  Tensor masked_scatter(const Tensor& mask, const Tensor& source) const;
  Tensor& masked_scatter_(const Tensor& mask, const Tensor& source);
  Tensor& scatter_(int64_t dim, const Tensor& index, const Tensor& src,
                   const std::string& reduce = "");
  Tensor& scatter_(int64_t dim, const Tensor& index, Scalar value, const std::string& reduce = "");
  Tensor& scatter_add_(int64_t dim, const Tensor& index, const Tensor& src);
  Tensor scatter_reduce(int64_t dim, const Tensor& index, const Tensor& src,
                        const std::string& reduce, bool include_self = true) const;
  Tensor& scatter_reduce_(int64_t dim, const Tensor& index, const Tensor& src,
                          const std::string& reduce, bool include_self = true);
  Tensor index_fill(int64_t dim, const Tensor& index, Scalar value) const;
  Tensor& index_fill_(int64_t dim, const Tensor& index, Scalar value);
  Tensor index_copy(int64_t dim, const Tensor& index, const Tensor& source) const;
  Tensor& index_copy_(int64_t dim, const Tensor& index, const Tensor& source);
  Tensor& index_add_(int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha = 1);
  Tensor& put_(const Tensor& index, const Tensor& source, bool accumulate = false);
  // Arithmetic
  Tensor addcmul(const Tensor& a, const Tensor& b, Scalar value = 1) const;
  Tensor& addcmul_(const Tensor& a, const Tensor& b, Scalar value = 1);
  Tensor addcdiv(const Tensor& a, const Tensor& b, Scalar value = 1) const;
  Tensor& addcdiv_(const Tensor& a, const Tensor& b, Scalar value = 1);
  Tensor lerp(const Tensor& end, const Tensor& weight) const;
  Tensor lerp(const Tensor& end, Scalar weight) const;
  Tensor& lerp_(const Tensor& end, const Tensor& weight);
  Tensor& lerp_(const Tensor& end, Scalar weight);
  Tensor fmod(const Tensor& other) const;
  Tensor fmod(Scalar other) const;
  Tensor atan2(const Tensor& other) const;
  Tensor clip(std::optional<Scalar> min, std::optional<Scalar> max = {}) const;
  Tensor nan_to_num(double nan = 0.0, std::optional<double> posinf = {},
                    std::optional<double> neginf = {}) const;
  Tensor isclose(const Tensor& other, double rtol = 1e-5, double atol = 1e-8,
                 bool equal_nan = false) const;
  Tensor dist(const Tensor& other, double p = 2.0) const;
  Tensor mv(const Tensor& other) const;
  Tensor outer(const Tensor& other) const;
  Tensor addmm(const Tensor& x, const Tensor& y, Scalar beta = 1, Scalar alpha = 1) const;
  Tensor addmv(const Tensor& x, const Tensor& y, Scalar beta = 1, Scalar alpha = 1) const;
  Tensor baddbmm(const Tensor& x, const Tensor& y, Scalar beta = 1, Scalar alpha = 1) const;
  Tensor trace() const;
  // Reductions
  Tensor cumprod(int64_t dim) const;
  std::pair<Tensor, Tensor> cummax(int64_t dim) const;
  std::pair<Tensor, Tensor> cummin(int64_t dim) const;
  Tensor diff(int64_t n = 1, int64_t dim = -1) const;
  Tensor quantile(const Tensor& q, std::optional<int64_t> dim = {}, bool keepdim = false) const;
  Tensor bernoulli() const;

  // For code inside Kiln.
  const Handle<TensorImpl>& impl() const { return impl_; }

 private:
  void* data_ptr(DType expected) const;
  int64_t item_integer(int64_t least, int64_t most) const;

  Handle<TensorImpl> impl_;
};

// One entry of an index: an integer, Slice, None or Ellipsis, or a tensor: of integers (negative
// ones count from the end) for one dim, or a bool mask for as many dims as it has. A bool is a mask
// without dims.
class IndexEntry : public std::variant<IndexItem, Tensor> {
 public:
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  IndexEntry(T i) : variant(IndexItem(i)) {}
  IndexEntry(std::same_as<bool> auto truth) : variant(mask_of(truth)) {}
  IndexEntry(Slice slice) : variant(IndexItem(slice)) {}
  IndexEntry(NoneType none) : variant(IndexItem(none)) {}
  IndexEntry(EllipsisType ellipsis) : variant(IndexItem(ellipsis)) {}
  IndexEntry(IndexItem item) : variant(item) {}
  IndexEntry(Tensor index) : variant(std::move(index)) {}

 private:
  static Tensor mask_of(bool truth);
};

// What backward() found: a gradient for each leaf that requires one. Move-only; independent of the
// graph.
class Gradients {
 public:
  struct Impl;
  Gradients();
  explicit Gradients(std::unique_ptr<Impl> impl);
  Gradients(Gradients&&) noexcept;
  Gradients& operator=(Gradients&&) noexcept;
  ~Gradients();

  std::optional<Tensor> get(const Tensor& x) const { return x.grad(*this); }
  // The same where there must be one. Throws AutodiffError when nothing led to x.
  Tensor at(const Tensor& x) const;
  Tensor operator[](const Tensor& x) const { return at(x); }
  size_t size() const;
  // Throws AutodiffError for Gradients that were moved away.
  Impl& impl() const {
    if (impl_ == nullptr) [[unlikely]]
      throw_moved();
    return *impl_;
  }

 private:
  [[noreturn]] static void throw_moved();

  std::unique_ptr<Impl> impl_;
};

// Text like PyTorch's: tensor([[1., 2.], [3., 4.]]).
std::string to_string(const Tensor& x);
std::ostream& operator<<(std::ostream& out, const Tensor& x);
namespace detail {
std::ostream& write(std::ostream& out, const std::string& text);
}
// [2, 3]; float32; cuda:0. A template, so that nothing turns into one of these on its way here.
template <class T>
  requires(std::same_as<T, Shape> || std::same_as<T, DType> || std::same_as<T, Device>)
std::ostream& operator<<(std::ostream& out, const T& x) {
  return detail::write(out, to_string(x));
}

// How tensors print: digits after the point, how many elements before the middle is elided, how
// many at each edge then, characters per line.
struct PrintOptions {
  int precision = 4;
  int64_t threshold = 1000;
  int64_t edge_items = 3;
  int line_width = 80;
  // Whether floats print as 1.2300e+00; without a value their range decides.
  std::optional<bool> scientific = {};
};
PrintOptions print_options();
void set_print_options(const PrintOptions& options);

}  // namespace kiln
