// How the values of several processes become one.
#pragma once

#include <span>

#include "kiln/distributed/message.h"
#include "kiln/tensor/tensor.h"

namespace kiln::distributed {

class Reduction {
 public:
  // Throws DTypeError, naming `op`, where values of that dtype cannot be joined so.
  Reduction(const char* op, ReduceOp reduce, DType dtype);

  // What values are computed as: bytes for bools, the parts of complex numbers.
  DType dtype() const { return dtype_; }
  int64_t parts() const { return parts_; }  // of an element

  // rows[own] becomes what the rows are together, taken in their order: the same bits whoever does
  // it. The others' values are lost. All are contiguous, of dtype() and of one size.
  void join(std::span<Tensor> rows, size_t own) const;

 private:
  ReduceOp op_;
  DType dtype_;
  int64_t parts_ = 1;
};

}  // namespace kiln::distributed
