// Elements of an operand that do not lie side by side, to a buffer and back. Internal to
// elementwise.cpp.
#pragma once

#include "kiln/backend/cpu/elementwise/plan.h"

namespace kiln::cpu {

// Whether gather() takes whole rows of an operand at once: they lie together or are one element.
bool has_whole_rows(const Plan& plan, const Operand& o);
// buffer[i] = the element i places behind `at`, for i < n. Up to 64 bytes after them are
// overwritten.
void gather(const Plan& plan, const Operand& o, Position at, int64_t n, char* buffer);
// And back.
void scatter(const Plan& plan, const Operand& o, Position at, int64_t n, const char* buffer);

}  // namespace kiln::cpu
