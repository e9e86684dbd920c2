// Promises of Backend that no single case shows. Internal.
#pragma once

#include <vector>

#include "kiln/backend/conformance/conformance.h"
#include "kiln/backend/conformance/runner.h"

namespace kiln::conformance {

// Data that enters and leaves is a copy; reshape, permute, expand and slice are views that *_assign
// writes through; operands that overlap the result do no harm; a donated tensor whose memory
// another one views keeps its values.
std::vector<ConformanceFailure> check_memory(const Runner& runner, DType dtype);

// Of a backend that declares layouts: elements lie where the layout of a tensor says, views share
// their storage exactly when it says so, and as_strided gives what was asked for. A backend that
// declares none passes.
std::vector<ConformanceFailure> check_layouts(const Runner& runner, DType dtype);

}  // namespace kiln::conformance
