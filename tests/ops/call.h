// KILN_CALL(expression of the inputs x[0], x[1], ...): what a case calls, in short.
#pragma once

#include "tests/ops/case.h"

#define KILN_CALL(...) [](const Tensors& x) { return __VA_ARGS__; }
