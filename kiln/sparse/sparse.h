// Sparse tensors and their functions.
#pragma once

#include "kiln/sparse/sparse_ops.h"
#include "kiln/sparse/sparse_tensor.h"
