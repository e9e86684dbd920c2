// PhotoBatch: the images of a batch, read from their files side by side.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kiln/io/image_part.h"
#include "kiln/tensor/tensor.h"

namespace kiln::data {

struct PhotoBatchOptions {
  // f32, scaled, or u8.
  DType dtype = DType::f32;
  io::PixelScale scale = {};
  // In memory that other processes can map.
  bool shared = false;
};

// Files are opened and their sizes read first, so that whoever knows the sizes chooses the parts.
// What is wrong with a file stands in its error and stops no other.
class PhotoBatch {
 public:
  explicit PhotoBatch(std::vector<std::string> paths);
  ~PhotoBatch();
  PhotoBatch(PhotoBatch&&) noexcept;
  PhotoBatch& operator=(PhotoBatch&&) noexcept;

  int64_t count() const;
  // Zeros for a file that cannot be read.
  io::ImageSize size(int64_t i) const;
  // What is wrong with file i, as an IoError says it; empty where nothing is.
  const std::string& error(int64_t i) const;

  // Images [N, 3, window_rows, window_columns], in Kiln's parallel loop. A file that cannot be read
  // leaves zeros and its error. Throws ValueError for windows of several sizes, and as PhotoFile
  // does for a part that lies outside of an image.
  Tensor read(const std::vector<io::ImagePart>& parts, const PhotoBatchOptions& options = {});

 private:
  struct Item;
  std::vector<Item> items_;
};

}  // namespace kiln::data
