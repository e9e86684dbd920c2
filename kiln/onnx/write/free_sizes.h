// Models with free sizes (Note [Free sizes] in kiln/graph/file/free_sizes.h). Internal to
// kiln/onnx.
#pragma once

#include "kiln/compile/graph_model.h"
#include "kiln/onnx/wire.h"

namespace kiln::onnx {

// The model as it is written at several sizes, as one: constants that differ are computed from the
// shapes of the inputs. Throws NotImplementedError, which names the node, for a difference that no
// nodes make.
wire::Model with_free_sizes(const GraphModel& model);

}  // namespace kiln::onnx
