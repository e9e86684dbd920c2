// ONNX files. A library of its own: link kiln::onnx.
//
//   kiln::onnx::save(kiln::capture(net, x), "net.onnx");
//
// docs/onnx.md lists what is written.
#pragma once

#include <string>

#include "kiln/compile/graph_model.h"

namespace kiln::onnx {

// What files are written as: the ONNX operator set.
inline constexpr int kWrittenOpset = 20;

// Writes the graph with its constants as initializers. Free dims keep their names, and sizes that
// depend on them are computed by nodes. Throws NotImplementedError for a row without
// a translation, which names the row and shows its line of the graph; ValueError for a model of 2
// GiB or more; IoError when the file cannot be written, and an older one is then as it was.
void save(const GraphModel& model, const std::string& path);

}  // namespace kiln::onnx
