// What the case files share: the list that they fill, and generated operands. Internal.
#pragma once

#include <limits>

#include "kiln/backend/conformance/case.h"

namespace kiln::conformance {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Correctly rounded in f32 and f64: the half-unit that double rounding may cost.
inline constexpr Tolerance kRounded = {1.0, 0.0};

class CaseList {
 public:
  CaseList(const std::vector<DType>& float_dtypes, const std::vector<DType>& int_dtypes)
      : floats(float_dtypes), ints(int_dtypes) {}

  // Starts a case; the reference is valid until the next one.
  Case& add(std::string op, std::vector<Argument> arguments, Tolerance tolerance = {}) {
    cases.push_back({std::move(op), std::move(arguments), tolerance});
    return cases.back();
  }

  // Uniform in [low, high); whole numbers in [low, high] for int dtypes; true or false for bool.
  Operand uniform(const Shape& shape, DType dtype, double low = -2.0, double high = 2.0);
  Operand integers(const Shape& shape, DType dtype, int64_t low, int64_t high);
  Operand booleans(const Shape& shape);
  // A permutation of [0, n) for i in every row along `dim`: indices without repetition.
  Operand distinct_indices(const Shape& shape, int dim, int64_t size);

  std::vector<Case> cases;
  std::vector<DType> floats;
  std::vector<DType> ints;

 private:
  uint64_t draws_ = 0;
};

// The given numbers, rounded to `dtype`.
Operand values(const std::vector<double>& numbers, const Shape& shape, DType dtype);
Operand values(const std::vector<double>& numbers, DType dtype);
Operand int_values(const std::vector<int64_t>& numbers, const Shape& shape, DType dtype = i64);
Operand int_values(const std::vector<int64_t>& numbers, DType dtype = i64);
Operand bool_values(const std::vector<int>& numbers, const Shape& shape);

// The lowest and the highest value of an int dtype.
int64_t lowest_of(DType dtype);
int64_t highest_of(DType dtype);

// One function for each family of ops; each adds its cases.
void add_data_cases(CaseList& list);
void add_shape_cases(CaseList& list);
void add_index_cases(CaseList& list);
void add_float_cases(CaseList& list);
void add_compare_cases(CaseList& list);
void add_function_cases(CaseList& list);
void add_int_cases(CaseList& list);
void add_bool_cases(CaseList& list);
void add_reduce_cases(CaseList& list);
void add_scan_cases(CaseList& list);
void add_sort_cases(CaseList& list);
void add_product_cases(CaseList& list);
void add_transform_cases(CaseList& list);
void add_complex_cases(CaseList& list);
void add_image_cases(CaseList& list);
void add_activation_cases(CaseList& list);
void add_window_cases(CaseList& list);
void add_norm_cases(CaseList& list);
void add_attention_cases(CaseList& list);
void add_recurrence_cases(CaseList& list);
void add_sparse_cases(CaseList& list);
void add_training_cases(CaseList& list);
void add_coded_cases(CaseList& list);
void add_quantized_cases(CaseList& list);
void add_block_cases(CaseList& list);
void add_pad_cases(CaseList& list);
void add_recurrent_cell_cases(CaseList& list);

}  // namespace kiln::conformance
