// What a camera says about how it was held.
#pragma once

#include <string_view>

#include "kiln/core/tensor_data.h"

namespace kiln::io {

// EXIF's orientation in the bytes of a JPEG, a PNG or a WebP: 1 to 8. 1, upright, where the file
// says nothing of it, or nothing that can be understood: it is no reason to refuse the pixels.
int exif_orientation(std::string_view bytes);

// `image`, u8 [C, H, W], turned and mirrored so that what is stored in this orientation stands
// upright. Those of 5 and more change height and width.
TensorData turn_upright(const TensorData& image, int orientation);

}  // namespace kiln::io
