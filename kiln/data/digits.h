// The built-in digit set: handwriting made by the program, so that training needs no download.
#pragma once

#include <cstdint>

#include "kiln/data/image_set.h"

namespace kiln::data {

// `count` images u8 [count, 28, 28], white on black, and their labels i64 [count]. Each digit is
// drawn from pen strokes in one of several handwriting styles, with random proportions, rotation,
// shear, size, position, elastic distortion, pen width, blur and noise. Every ten consecutive
// samples hold each digit once, in random order. Sample i depends on `seed` and i alone: a longer
// set of the same seed begins with the shorter one, and different seeds give unrelated sets. Throws
// ValueError for a negative count.
ImageSet make_digits(int64_t count, uint64_t seed);

}  // namespace kiln::data
