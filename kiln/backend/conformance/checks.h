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

}  // namespace kiln::conformance
