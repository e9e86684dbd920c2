// How ops take their operands: row-major, and in float where they are 16-bit
// floats. Internal.
#pragma once

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"

namespace kiln::cpu {

inline bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

inline HostHandle widened(const HostHandle& x) { return CpuOps::float_cast(x, DType::f32); }
inline HostHandle narrowed(HostHandle x, DType dtype) {
  return CpuOps::float_cast(Arg<HostHandle>(std::move(x)), dtype);
}

// An operand that may be absent, widened or made row-major; get() is what a function that takes one
// wants.
class OptionalOperand {
 public:
  template <class F>
  OptionalOperand(const HostHandle* x, F&& prepare) {
    if (x != nullptr) value_ = prepare(*x);
  }
  const HostHandle* get() const { return value_ ? &value_ : nullptr; }
  template <class T>
  const T* data() const {
    return value_ ? value_->data_as<const T>() : nullptr;
  }

 private:
  HostHandle value_;
};

// A row-major operand whose memory the result may take over.
class ReusableOperand {
 public:
  explicit ReusableOperand(const Arg<HostHandle>& x)
      : reuse_(host::can_donate(x, x.get()->shape(), x.get()->dtype())),
        tensor_(reuse_ ? x.take() : contiguous(x.get())) {}

  const HostTensor& tensor() const { return *tensor_; }
  // A row-major result of the operand's shape and dtype: the operand itself, or fresh.
  HostHandle result() const {
    return reuse_ ? tensor_ : host::empty(tensor_->shape(), tensor_->dtype(), tensor_->device());
  }

 private:
  bool reuse_;
  HostHandle tensor_;
};

}  // namespace kiln::cpu
