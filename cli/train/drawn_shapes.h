// Pictures of shapes: what the examples of images and segmentation show.
#pragma once

#include <cstdint>

#include "kiln/core/tensor_data.h"

namespace kiln::cli {

inline constexpr const char* kShapeNames[] = {"circle", "square", "triangle", "cross", "star"};

struct DrawnScene {
  TensorData image;    // u8 [side, side, 3]
  TensorData classes;  // u8 [side, side]: 0 for the background, else the shape's number from 1
};

// One bright shape on a dark ground, with noise; a function of shape and number.
DrawnScene draw_shape(int shape, bool outline, int64_t side, int64_t number);
// One to three of the first `shapes` shapes.
DrawnScene draw_scene(int shapes, int64_t side, int64_t number);

}  // namespace kiln::cli
