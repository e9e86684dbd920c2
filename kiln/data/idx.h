// The IDX format, in which MNIST and its relatives come.
#pragma once

#include <cstdint>
#include <string>

#include "kiln/core/tensor_data.h"
#include "kiln/data/image_set.h"

namespace kiln::data {

// Reads an IDX file, plain or gzipped, of dtype u8, i8, i16, i32, f32 or f64. Throws IoError when
// it is missing, malformed, has more or less data than its dims say, or more than `max_bytes` of
// it.
TensorData read_idx(const std::string& path, uint64_t max_bytes = uint64_t{1} << 32);

// Reads MNIST, or a set of the same form (Fashion-MNIST, KMNIST), from the folder that holds its
// four files, gzipped or not: "train-images-idx3-ubyte.gz", "train-images.idx3-ubyte" and so on.
// `train` chooses the training set. Images u8 [N, 28, 28], labels i64 [N] from 0 to 9. Throws
// IoError naming the file that is missing or wrong.
ImageSet load_mnist(const std::string& dir, bool train);

}  // namespace kiln::data
