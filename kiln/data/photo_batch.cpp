#include "kiln/data/photo_batch.h"

#include <cstring>
#include <optional>
#include <utility>

#include "kiln/core/error.h"
#include "kiln/core/parallel.h"
#include "kiln/core/tensor_data.h"
#include "kiln/tensor/creation.h"

namespace kiln::data {

struct PhotoBatch::Item {
  std::string path;
  std::optional<io::PhotoFile> file = {};
  std::string error = {};
};

namespace {

void read_into(const io::PhotoFile& file, const io::ImagePart& part,
               const PhotoBatchOptions& options, Tensor& images, int64_t i) {
  const int64_t each = 3 * part.window_rows * part.window_columns;
  if (options.dtype == DType::u8) {
    file.read(part, images.data_ptr<uint8_t>() + i * each);
  } else {
    file.read(part, options.scale, images.data_ptr<float>() + i * each);
  }
}

Tensor room(const Shape& shape, const PhotoBatchOptions& options) {
  if (!options.shared) return empty(shape, {.dtype = options.dtype});
  const auto bytes = static_cast<size_t>(shape.numel()) * size_of(options.dtype);
  return from_data(TensorData(shape, options.dtype, Storage::allocate_shared(bytes)));
}

}  // namespace

PhotoBatch::PhotoBatch(std::vector<std::string> paths) {
  for (std::string& path : paths) items_.push_back({std::move(path)});
  parallel_for(count(), 1, [this](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Item& item = items_[static_cast<size_t>(i)];
      try {
        item.file.emplace(item.path);
      } catch (const IoError& e) {
        item.error = e.what();
      }
    }
  });
}

PhotoBatch::~PhotoBatch() = default;
PhotoBatch::PhotoBatch(PhotoBatch&&) noexcept = default;
PhotoBatch& PhotoBatch::operator=(PhotoBatch&&) noexcept = default;

int64_t PhotoBatch::count() const { return static_cast<int64_t>(items_.size()); }

io::ImageSize PhotoBatch::size(int64_t i) const {
  const Item& item = items_.at(static_cast<size_t>(i));
  return item.file ? item.file->size() : io::ImageSize{};
}

const std::string& PhotoBatch::error(int64_t i) const {
  return items_.at(static_cast<size_t>(i)).error;
}

Tensor PhotoBatch::read(const std::vector<io::ImagePart>& parts, const PhotoBatchOptions& options) {
  if (parts.size() != items_.size() || parts.empty()) {
    throw_error<ValueError>("PhotoBatch: expected a part for each of ", items_.size(),
                            " images; got ", parts.size());
  }
  if (options.dtype != DType::u8 && options.dtype != DType::f32) {
    throw_error<DTypeError>("PhotoBatch: images are uint8 or float32; got ", options.dtype);
  }
  const int64_t rows = parts[0].window_rows, columns = parts[0].window_columns;
  for (const io::ImagePart& part : parts) {
    if (part.window_rows != rows || part.window_columns != columns || rows < 1 || columns < 1) {
      throw_error<ValueError>("PhotoBatch: images of a batch have one size; got ", rows, " x ",
                              columns, " and ", part.window_rows, " x ", part.window_columns);
    }
  }
  Tensor images = room({count(), 3, rows, columns}, options);
  const auto each = static_cast<size_t>(3 * rows * columns) * size_of(options.dtype);
  parallel_for(count(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Item& item = items_[static_cast<size_t>(i)];
      if (item.file) {
        try {
          read_into(*item.file, parts[static_cast<size_t>(i)], options, images, i);
        } catch (const IoError& e) {
          item.error = e.what();
        }
        item.file.reset();
      }
      if (item.error.empty()) continue;
      auto* const first = options.dtype == DType::u8
                              ? static_cast<void*>(images.data_ptr<uint8_t>())
                              : static_cast<void*>(images.data_ptr<float>());
      std::memset(static_cast<char*>(first) + static_cast<size_t>(i) * each, 0, each);
    }
  });
  return images;
}

}  // namespace kiln::data
