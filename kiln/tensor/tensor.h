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
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
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

// One entry of Tensor::index: an integer, a Slice, None (a new dim of size 1) or Ellipsis (as many
// full slices as fit).
struct NoneType {};
struct EllipsisType {};
inline constexpr NoneType None{};
inline constexpr EllipsisType Ellipsis{};

struct IndexItem {
  enum class Type : uint8_t { integer, slice, none, ellipsis } type;
  int64_t integer = 0;
  Slice slice;

  template <std::integral T>
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

  bool defined() const { return static_cast<bool>(impl_); }
  // Whether both names stand for the same tensor object (not: equal values).
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }

  // ---- Description

  const Shape& shape() const;
  int64_t size(int64_t dim) const;
  int dim() const;
  int64_t numel() const;
  DType dtype() const;
  Device device() const;
  // In elements. Only for tensors in host memory (DeviceError otherwise).
  Strides stride() const;
  bool is_contiguous() const;
  bool is_floating_point() const { return kiln::is_floating_point(dtype()); }
  bool is_complex() const;
  // The first element in host memory; T must match the dtype, the device must be a host backend.
  template <class T>
  T* data_ptr() const {
    return static_cast<T*>(data_ptr(dtype_of<T>));
  }
  // How often something wrote into this tensor's memory in place.
  uint32_t version() const;

  // ---- Values out

  // The only element. Throws ValueError unless numel() == 1.
  template <class T = double>
  T item() const {
    if constexpr (std::is_same_v<T, bool>) {
      return item_scalar().to_bool();
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(item_scalar().to_int());
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

  // ---- Shape

  Tensor reshape(const Shape& shape) const;  // one size may be -1
  Tensor view(
      const Shape& shape) const;  // like reshape, but never copies: throws ShapeError instead
  Tensor transpose(int64_t dim0, int64_t dim1) const;
  Tensor t() const;  // a matrix transposed
  Tensor permute(const Dims& dims) const;
  Tensor expand(const Shape& shape) const;  // -1 keeps a size
  Tensor broadcast_to(const Shape& shape) const { return expand(shape); }
  Tensor squeeze() const;
  Tensor squeeze(int64_t dim) const;
  Tensor unsqueeze(int64_t dim) const;
  Tensor flatten(int64_t start_dim = 0, int64_t end_dim = -1) const;
  Tensor flip(const Dims& dims) const;

  // ---- Indexing

  Tensor operator[](int64_t i) const { return select(0, i); }
  Tensor select(int64_t dim, int64_t index) const;
  Tensor slice(int64_t dim, std::optional<int64_t> start = {}, std::optional<int64_t> end = {},
               int64_t step = 1) const;
  Tensor narrow(int64_t dim, int64_t start, int64_t length) const;
  Tensor index(std::initializer_list<IndexItem> items) const;  // a view
  Tensor index(std::span<const IndexItem> items) const;
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

  // For code inside Kiln.
  const Handle<TensorImpl>& impl() const { return impl_; }

 private:
  void* data_ptr(DType expected) const;

  Handle<TensorImpl> impl_;
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
  size_t size() const;
  Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// Text like PyTorch's: tensor([[1., 2.], [3., 4.]]).
std::string to_string(const Tensor& x);
std::ostream& operator<<(std::ostream& out, const Tensor& x);

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
