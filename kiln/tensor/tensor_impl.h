// What a Tensor handle points at, and what every tensor op is written with. Internal to
// kiln/tensor.
#pragma once

#include <atomic>

#include "kiln/autodiff/autodiff.h"
#include "kiln/backend/dispatch/dispatch.h"
#include "kiln/core/complex.h"
#include "kiln/core/portable.h"
#include "kiln/tensor/tensor.h"

namespace kiln {

using AD = Autodiff<Dispatch>;
// A tensor of any kind below the tensor layer; ints, bools and quantized ones have no node.
using Value = autodiff::Tensor<Dispatch>;
using ValueArg = Arg<Value>;

namespace detail {
struct Version;
}

// How a view was made, which says whether a recorded write may go through it.
enum class ViewKind : uint32_t {
  plain,
  unrecorded,   // under no_grad: it has no history, though its root may have one
  one_of_many,  // by an op with several results, as split and unbind
  function,     // by a custom function or a module hook, whose gradient is the user's
};

class TensorImpl final : public RefCounted, public Pooled {
 public:
  explicit TensorImpl(Value v) : value(std::move(v)) {}

  const Shape& shape() const { return complex_shape ? *complex_shape : value.inner->shape(); }
  DType dtype() const {
    return complex_shape ? complex_dtype(value.inner->dtype()) : value.inner->dtype();
  }
  bool is_complex() const { return complex_shape != nullptr; }
  Device device() const { return value.inner->device(); }
  Kind kind() const { return kind_of(dtype()); }
  bool is_leaf() const { return !value.node || value.node->is_leaf(); }

  uint32_t root_writes = 0;  // of a view; see the note on views

  // The members are in this order, and this one may hold the next in its padding, so that what ops
  // read of a tensor is one cache line.
  [[no_unique_address]] Value value;
  union {
    uint32_t recorded_writes = 0;  // of what is no view
    ViewKind view_kind;            // of a view
  };

  // Note [Complex tensors]. Below this class there are no complex numbers: a complex tensor holds
  // the floats of its parts, with a last dim of size 2 (real, imaginary) that its own shape lacks.
  // Memory is interleaved, as that of std::complex. Every op on complex numbers is made of ops on
  // the parts, so that every backend has it and its derivatives follow (of a real result L: dL/dre
  // + i dL/dim, PyTorch's convention). complex_shape is the shape without that dim, and null in
  // every tensor that is not complex. value_of() and arg_of() refuse a complex tensor: an op that
  // knows what to do with one asks for its parts (kiln/tensor/complex/complex_impl.h).
  std::unique_ptr<const Shape> complex_shape;

  // Note [Views and recorded writes]. A view of a tensor remembers that tensor (its root, if that
  // is a view itself) and how many writes into the root's memory had been recorded when the view's
  // history was last known. A write that is recorded through a view becomes the history of the
  // root: a node "copy_slices", whose gradient goes to what was written, where the view lies, and
  // to the root's former history everywhere else. Every view of the root, the written one too, is
  // then behind, and impl_of() gives it a history anew when it is next used: a node "as_strided"
  // over the root's. So a write costs the same however many views there are, nothing leads from a
  // root to its views, and an op on what is no view, or a view of what was not written, tests two
  // numbers.
  Handle<TensorImpl> root;

  // See Note [Exchanged values] in exchange.h. Null but while some thread sees other values here
  // than another; state_of() then says which they are.
  std::atomic<detail::Version*> newest{nullptr};
  void* foreign_object = nullptr;  // see interop::foreign_object; it belongs to no version

  // The leaf of a tensor that requires no gradient now: it keeps the gradient that was found when
  // the tensor did, or one that was set.
  Handle<autodiff::Node<Dispatch>> resting;
};
static_assert(sizeof(TensorImpl) <= 80);

namespace detail {

TensorImpl& seen_version(TensorImpl& tensor, const Version* newest);
// What this thread sees of a tensor. Whatever reads or writes a tensor's members begins here.
inline TensorImpl& state_of(TensorImpl& tensor) {
  const Version* const newest = tensor.newest.load(std::memory_order_acquire);
  if (newest == nullptr) [[likely]]
    return tensor;
  return seen_version(tensor, newest);
}
inline TensorImpl& state_of(const Tensor& x) { return state_of(*x.impl()); }
// Makes `state` what the tensor is from now on, also for threads that compute with it: those in a
// ReadSection go on with what they see. Keeps the tensor's identity and its foreign object.
void exchange(const Handle<TensorImpl>& tensor, Handle<TensorImpl> state);

[[noreturn]] void throw_undefined(const char* op);
[[noreturn]] void throw_device_mismatch(const char* op, Device a, Device b);
// Gives a view the history that recorded writes into its root have left behind. Throws
// AutodiffError while recording when it is not of the plain kind.
void catch_up(const char* op, TensorImpl& view);
[[noreturn]] void throw_wrong_dtype(const char* op, DType got, const char* expected);
[[noreturn]] void throw_complex(const char* op, DType got);

inline TensorImpl& impl_of(const char* op, const Tensor& x) {
  if (!x.defined()) [[unlikely]]
    throw_undefined(op);
  TensorImpl& impl = state_of(x);
  if (!impl.value.inner) [[unlikely]]
    throw_undefined(op);  // it was given away
  if (impl.root) {
    // The history is read after this number says that it is there.
    const uint32_t known = atomic_ref(impl.root_writes).load(std::memory_order_acquire);
    if (state_of(*impl.root).recorded_writes != known) [[unlikely]]
      catch_up(op, impl);
  }
  return impl;
}

// The operand of an op. Throws ValueError when it is undefined, DTypeError when it is complex, and
// what catch_up() throws.
inline const Value& value_of(const char* op, const Tensor& x) {
  const TensorImpl& impl = impl_of(op, x);
  if (impl.is_complex()) [[unlikely]]
    throw_complex(op, impl.dtype());
  return impl.value;
}

// The same for an op that takes complex tensors too: of those, the parts.
inline const Value& parts_or_value(const char* op, const Tensor& x) { return impl_of(op, x).value; }

// value_of() with the way the tensor was handed over: one given as an rvalue is donated when nobody
// else names it.
inline ValueArg arg_of(const char* op, const TensorArg& x) {
  TensorImpl& impl = impl_of(op, x.get());
  if (impl.is_complex()) [[unlikely]]
    throw_complex(op, impl.dtype());
  if (x.is_donated() && x.get().impl().unique() && impl.is_leaf() && !impl.root) {
    return ValueArg(std::move(impl.value));
  }
  return ValueArg(impl.value);
}

inline Tensor wrap(Value value) { return Tensor(make_handle<TensorImpl>(std::move(value))); }
inline Tensor wrap(ErasedTensor inner) { return wrap(Value{std::move(inner)}); }
// A complex tensor of parts [.., 2] in f32 or f64; copies them where they are not interleaved.
Tensor wrap_complex(Value parts);
// One of x's kind: complex when x is, of what are then its parts.
inline Tensor wrap_like(const Tensor& x, Value value) {
  return state_of(x).is_complex() ? wrap_complex(std::move(value)) : wrap(std::move(value));
}

// Wraps a view of x, or of its parts, as a real tensor. The kind of a view that x is goes over to
// its views.
Tensor wrap_view(const Tensor& x, Value value, ViewKind kind = ViewKind::plain);
// Another name for x's memory, with the history of `value`; a view of x.
Tensor wrap_alias(const Tensor& x, Value value, ViewKind kind);
// Whether both are views of one tensor that lie at the same place. For views that have caught up.
bool is_same_view(const TensorImpl& x, const TensorImpl& y);
// `part`, marked as one of several views of x that one op gives.
Tensor one_of_many(const Tensor& x, Tensor part);

inline DType dtype_of_value(const Value& x) { return x.inner->dtype(); }
inline const Shape& shape_of(const Value& x) { return x.inner->shape(); }
inline Kind kind_of_value(const Value& x) { return kind_of(x.inner->dtype()); }

inline void check_same_device(const char* op, const Value& a, const Value& b) {
  if (a.inner->device() != b.inner->device()) [[unlikely]] {
    throw_device_mismatch(op, a.inner->device(), b.inner->device());
  }
}

// Conversion between any two dtypes; x itself (no copy) when it has that dtype.
Value cast(const ValueArg& x, DType dtype);
// `value` rounded to dtype, as a 0-d tensor.
Value scalar_value(Scalar value, DType dtype, Device device);
Value full_value(const Shape& shape, Scalar value, DType dtype, Device device);

// The dtype that x and y are computed in: PyTorch's rule, by which a 0-d tensor or a number changes
// the dtype of a tensor with dims only when it is of a larger kind. Throws DTypeError naming `op`
// for quantized tensors, which have no arithmetic.
DType result_type(const char* op, const Value& x, const Value& y);
DType result_type(const char* op, const Value& x, Scalar y);

// Indices of dtype i64. Throws DTypeError for anything but integers.
ErasedTensor index_value(const char* op, const Tensor& index);
// The same, on x's device: throws DeviceError otherwise.
ErasedTensor index_value(const char* op, const Tensor& index, const Value& x);
// Throws DTypeError unless bool.
const ErasedTensor& bool_value(const char* op, const Tensor& mask);

// Makes `result` the new content of x, which an op was asked to compute in place: it already is
// when the op honoured that, and is assigned otherwise.
void finish_in_place(const char* op, Tensor& x, Value result);
// Gives a tensor that was written to the history of what was written, or its root if it is a view.
// A write that was not recorded (`written` has no node) leaves the tensor's own: under no_grad a
// leaf stays a leaf.
void record_write(TensorImpl& impl, Value written);
// Writes a float source, which broadcasts to x's shape, into x's memory, and records that.
void assign_recorded(TensorImpl& impl, const Value& source);
// Throws where the write would be recorded and must not be: x is a leaf that requires a gradient,
// or a view of one, or a view of another kind than the plain one; and where x is expanded.
// `source_tracked`: whether what is written has a history; `may_repeat`: all elements get one
// value, so that an expanded x does no harm.
void check_writable(const char* op, const Tensor& x, bool source_tracked, bool may_repeat = false);

// The message of an error, from the name of the op that failed on, with the name of the op that it
// is a part of.
std::string renamed(const char* op, std::string_view message);
// f(), where an error E of an op that `op` is made of names `op`.
template <class E, class F>
auto naming(const char* op, F&& f) {
  try {
    return f();
  } catch (const E& error) {
    throw E(renamed(op, error.what()));
  }
}

// Calls the op of x's kind: each(F, I, B) picks by kind; a missing one (nullptr) is a DTypeError.
template <class FloatOp, class IntOp, class BoolOp>
Value by_kind(const char* op, Kind kind, FloatOp&& f, IntOp&& i, BoolOp&& b, DType dtype) {
  switch (kind) {
    case Kind::floating:
      if constexpr (!std::is_same_v<std::remove_cvref_t<FloatOp>, std::nullptr_t>) return f();
      break;
    case Kind::integer:
      if constexpr (!std::is_same_v<std::remove_cvref_t<IntOp>, std::nullptr_t>) return Value{i()};
      break;
    case Kind::boolean:
      if constexpr (!std::is_same_v<std::remove_cvref_t<BoolOp>, std::nullptr_t>) return Value{b()};
      break;
    default:
      break;
  }
  throw_wrong_dtype(op, dtype, "a dtype that this op is defined for");
}

}  // namespace detail
}  // namespace kiln
