// Runs cases on a backend through its table. Internal.
#pragma once

#include <string>
#include <vector>

#include "kiln/backend/conformance/case.h"
#include "kiln/backend/dispatch/dispatch.h"
#include "kiln/backend/dispatch/views.h"

namespace kiln::conformance {

enum class Layout { contiguous, permuted, sliced, expanded };
enum class Handing { borrowed, donated, in_place };
std::string to_string(Layout layout);
std::string to_string(Handing handing);

// An argument as a live thing on a device: the tensors that the op sees, and those whose memory
// they view.
struct Live {
  const Argument* argument = nullptr;
  std::vector<ErasedTensor> views;
  std::vector<ErasedTensor> bases;
};

struct Outcome {
  std::vector<TensorData> outputs;
  // The memory behind every tensor operand, before and after the op.
  std::vector<TensorData> before;
  std::vector<TensorData> after;
  // Of operand 0, after the op; only for in-place runs.
  TensorData view_after;
  bool version_rose = false;
  std::string error;  // the kind of error that was thrown; there are no outputs then
};

class Runner {
 public:
  Runner(const BackendTable& table, const ViewTable& views, Device device)
      : table_(&table), views_(&views), device_(device) {}

  Outcome run(const Case& c, Layout layout, Handing handing) const;

  // A runner that reads no values: outputs (and what is beside them in Outcome) are portraits, i64
  // {dtype, rank, sizes, strides}, where the stride of a dim of size 1 is 0.
  Runner without_values() const {
    Runner out = *this;
    out.values_ = false;
    return out;
  }

  // Tensors of whatever kind the dtype says.
  ErasedTensor from_data(const TensorData& data) const;
  TensorData into_data(const ErasedTensor& x) const;
  ErasedTensor permute(const ErasedTensor& x, const Dims& dims) const;
  ErasedTensor slice(const ErasedTensor& x, int dim, Range range) const;
  ErasedTensor expand(const ErasedTensor& x, const Shape& shape) const;
  ErasedTensor reshape(const ErasedTensor& x, const Shape& shape) const;
  void assign(const ErasedTensor& x, const ErasedTensor& value) const;

  const BackendTable& table() const { return *table_; }
  const ViewTable& views() const { return *views_; }
  Device device() const { return device_; }

 private:
  std::vector<Live> materialize(const Case& c, Layout layout, Handing handing,
                                Outcome* outcome) const;
  void add(const Operand& operand, Layout layout, Live* live) const;

  const BackendTable* table_;
  const ViewTable* views_;
  Device device_;
  bool values_ = true;
};

// The data of `data` with another layout's base: what from_data gets before the view is taken of
// it.
Dims reversed_dims(int rank);
TensorData transposed(const TensorData& data);
TensorData first_row(const TensorData& data);
// `data` surrounded by and interleaved with filler, and the ranges (one for each dim) that pick it
// out again.
TensorData embedded(const TensorData& data, std::vector<Range>* ranges);

// Null where the two agree, else what is wrong. `identical` compares bits (any NaN equals any
// other).
std::string compare(const TensorData& want, const TensorData& got, const Tolerance& tolerance);
std::string compare_identical(const TensorData& want, const TensorData& got);

}  // namespace kiln::conformance
