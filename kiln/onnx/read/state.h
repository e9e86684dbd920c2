// What a model holds. Internal to kiln/onnx.
#pragma once

#include "kiln/onnx/model.h"
#include "kiln/onnx/read/program.h"

namespace kiln::onnx {

struct Model::State {
  Program program;
};

}  // namespace kiln::onnx
