// What a binding to another language needs of a tensor: its memory, and a place to remember which
// object of that language stands for it.
#pragma once

#include <memory>

#include "kiln/core/storage.h"
#include "kiln/tensor/tensor.h"

namespace kiln::interop {

// A tensor over memory that belongs to somebody else; `release(context)` is called when the last
// tensor that looks at it goes, on whatever thread that is. Strides are in elements and not
// negative (ValueError).
Tensor from_blob(void* data, const Shape& shape, const Strides& strides, DType dtype,
                 void (*release)(void*), void* context);

// The first element, whatever the dtype. Throws DeviceError when the tensor is not in host memory.
// The pointer is good as long as the tensor keeps its values: set_data(), Module::to and
// share_memory_ may end that. Whoever lends the memory to others takes memory().
void* data(const Tensor& x);

// A tensor's memory with all that is needed to read it, and what keeps it alive.
struct Memory {
  void* data;  // the first element
  Shape shape;
  Strides strides;  // in elements
  DType dtype;
  Handle<Storage> owner;
};
// Throws DeviceError, naming `op`, when the tensor is not in host memory.
Memory memory(const char* op, const Tensor& x);
// The address of the first element of a tensor in a GPU's memory, when all that writes to it is
// done; it is valid while the tensor (or a detached one) is. Throws DeviceError, naming `op`, for
// another device, and for one whose memory has no addresses (OpenCL).
void* device_address(const char* op, const Tensor& x);
// Where that is in the tensor's storage, in elements.
int64_t storage_offset(const Tensor& x);

// Makes x show what `source` shows: its shape, dtype and memory. x stays the tensor that it is: a
// leaf keeps its place in graphs and its gradient requirement. What threads in a ReadSection
// (kiln/tensor/exchange.h) read goes on with the former memory. Throws DTypeError when a leaf that
// requires a gradient would no longer be floating point.
void set_data(Tensor& x, const Tensor& source);

// A hook, or the derivative of a function, that is written in another language: what it owns there,
// and how that is called. register_hook(), register_post_accumulate_grad_hook() and call_function()
// know these types in the std::function that they are given, and show the object to
// visit_foreign().
template <class Signature>
struct ForeignCall;
template <class Result, class... Args>
struct ForeignCall<Result(Args...)> {
  std::shared_ptr<void> object;
  Result (*call)(void* object, Args...);
  Result operator()(Args... args) const { return call(object.get(), args...); }
};

// Calls visit(object, context) for what x's place in a graph owns of another language: x's hooks,
// and the derivative of the function that made x. Only what x alone leads to is shown, so that a
// collector of cycles that finds nothing else leading to x may drop it. The caller holds the
// language's lock.
void visit_foreign(const Tensor& x, void (*visit)(void* object, void* context), void* context);
// Drops the same: x's hooks are not called any more, and its graph cannot be differentiated.
void drop_foreign(const Tensor& x);

// The object that stands for this tensor, or null. Not owned; whoever sets it clears it before the
// object dies, and guards it by the language's own lock.
void*& foreign_object(const Tensor& x);

}  // namespace kiln::interop
