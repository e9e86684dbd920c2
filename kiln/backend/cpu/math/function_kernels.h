// Kernels of the functions of functions.h.
#pragma once

#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/functions.h"

namespace kiln::cpu {

// For f32 (the 16-bit types use that one) and f64. The parameters are the function itself.
Kernel function_kernel(UnaryFunction::Type type, bool is_double);
// nextafter apart, which has a kernel for each dtype.
Kernel function_kernel(BinaryFunction::Type type, DType dtype);
Kernel function_kernel(TernaryFunction::Type type, bool is_double);
Kernel function_kernel(IntFunction type, DType dtype);

// Whether these kernels honour KernelArgs::stream.
bool streams(UnaryFunction::Type type);
bool streams(BinaryFunction::Type type);
bool streams(TernaryFunction::Type type, bool is_double);

}  // namespace kiln::cpu
