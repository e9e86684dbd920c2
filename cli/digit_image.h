// Bringing a user's image into the form that the network was trained on.
#pragma once

#include <string>

#include "kiln/core/tensor_data.h"

namespace kiln::cli {

enum class Invert { automatic, yes, no };

struct DigitImage {
  TensorData pixels;  // u8 [28, 28], white on black
  std::string notes;  // what was done to it: "inverted, scaled from 200x300"; empty: nothing
};

// Reads a PNG, or a raw file of 784 bytes. An image that is dark on light is inverted (`automatic`
// goes by its border). One of another size than 28x28 is cropped to its ink, scaled to 20 pixels
// and centred by its mass, as MNIST's digits were. Throws IoError, and ValueError for an image
// without ink.
DigitImage read_digit_image(const std::string& path, Invert invert);

}  // namespace kiln::cli
