// What a row of the op table takes beside tensors: its attributes, as values that can be printed
// and compared.
#pragma once

#include <string>
#include <variant>

#include "kiln/backend/attention_options.h"
#include "kiln/backend/functions.h"
#include "kiln/backend/line_map.h"
#include "kiln/backend/optimizer_step.h"
#include "kiln/backend/options.h"
#include "kiln/backend/recurrence_options.h"
#include "kiln/core/device.h"
#include "kiln/core/dtype.h"
#include "kiln/core/random.h"
#include "kiln/core/scalar.h"
#include "kiln/core/shape.h"
#include "kiln/core/slice.h"
#include "kiln/core/tensor_data.h"

namespace kiln::graph {

// Every type that stands in ops.def and is no tensor.
using Attribute =
    std::variant<bool, int, int64_t, double, Scalar, DType, Device, Shape, Range, TensorData,
                 Distribution, RandomStream, UnaryFunction, BinaryFunction, TernaryFunction,
                 ComplexFunction, IntFunction, Activation, ScatterReduction, EdgeMode, ConvOptions,
                 Conv3dOptions, PoolOptions, GridOptions, DimMaps, CrossEntropyOptions,
                 AttentionOptions, RecurrenceOptions, OptimizerStep, AdamW8bitStep, QuantScheme>;

// "true", "[2, 3]", "float32", "erf(1, 0)": for people to read.
std::string to_string(const Attribute& attribute);

// Whether a row computes the same with either. Of values in memory (TensorData, DimMaps) only what
// shares it is equal.
bool are_equal(const Attribute& a, const Attribute& b);

}  // namespace kiln::graph
