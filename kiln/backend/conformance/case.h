// One case of the conformance suite: an op and its arguments, apart from any backend. Internal.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "kiln/backend/backend.h"

namespace kiln::conformance {

// A tensor operand. Its dtype tells whether it is a float, int, bool or quantized one.
struct Operand {
  TensorData data;
  // Quantized only: the data are the values, whatever their scheme, with dtype q8.
  TensorData scales = {};
  QuantScheme scheme = {};
  Shape shape = {};
};
using OperandList = std::vector<Operand>;

struct HostData {  // a parameter that is TensorData itself
  TensorData data;
};
struct Absent {};  // an optional tensor that is not there
struct Here {};    // the device under test

using Argument =
    std::variant<Operand, OperandList, HostData, Absent, Here, Shape, Scalar, DType, Range,
                 Distribution, RandomStream, ConvOptions, Conv3dOptions, PoolOptions,
                 CrossEntropyOptions, AttentionOptions, RecurrenceOptions, OptimizerStep,
                 AdamW8bitStep, QuantScheme, UnaryFunction, BinaryFunction, TernaryFunction,
                 IntFunction, ComplexFunction, GridOptions, DimMaps, EdgeMode, ScatterReduction,
                 Activation, bool, int, int64_t, double>;

// Both in units of the result's rounding error (2^-23 for f32): |got - want| <= absolute + relative
// |want|.
struct Tolerance {
  double relative = 0.0;
  double absolute = 0.0;
};

struct Case {
  std::string op;
  std::vector<Argument> arguments;
  Tolerance tolerance = {};
  // Whether each element of the result is computed by itself, so that strided operands give the
  // same bits.
  bool elementwise = true;
  // Whether operands may be replaced by ones whose first dim is expanded (all rows alike).
  bool expandable = false;
  // Only shape and dtype of the result are defined.
  bool values_undefined = false;
};

// Every case, for the dtypes asked for, family by family: all at once would hold half a gigabyte of
// operands.
void for_each_case(const std::vector<DType>& float_dtypes, const std::vector<DType>& int_dtypes,
                   const std::function<void(const Case&)>& fn);

// Products and convolutions large enough to be cut into pieces in every way that a backend may cut
// them.
std::vector<Case> large_cases();

// "float_add(float32 [2, 3], float32 [3])"
std::string describe(const Case& c);

}  // namespace kiln::conformance
