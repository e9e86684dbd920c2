#include "kiln/io/image_part.h"

#include <vector>

#include "kiln/core/error.h"
#include "kiln/io/image.h"
#include "kiln/io/image_formats.h"
#include "kiln/io/image_resample.h"
#include "kiln/io/input_file.h"

namespace kiln::io {

namespace {

constexpr const char* kReadPart = "read_image";
constexpr uint64_t kMostPhotoBytes = uint64_t{256} << 20;

void check_part(const ImagePart& p, const ImageSize& size) {
  const auto inside = [](int64_t begin, int64_t count, int64_t all) {
    return begin >= 0 && count >= 1 && count <= all && begin <= all - count;
  };
  if (!inside(p.top, p.rows, size.height) || !inside(p.left, p.columns, size.width)) {
    throw_error<ValueError>("PhotoFile: the part lies outside the image; got ", p.rows, " x ",
                            p.columns, " at (", p.top, ", ", p.left, ") of ", size.height, " x ",
                            size.width);
  }
  if (p.height < 1 || p.width < 1 || p.height > kMaxImagePixels / p.width ||
      !inside(p.window_top, p.window_rows, p.height) ||
      !inside(p.window_left, p.window_columns, p.width)) {
    throw_error<ValueError>("PhotoFile: bad size; got ", p.height, " x ", p.width, ", of it ",
                            p.window_rows, " x ", p.window_columns, " at (", p.window_top, ", ",
                            p.window_left, "); expected a window inside, and at most ",
                            kMaxImagePixels, " pixels");
  }
}

}  // namespace

PhotoFile::PhotoFile(const std::string& path) : path_(path) {
  const InputFile file(kReadPart, path);
  bytes_ = file.read_whole(kMostPhotoBytes);
  if (is_jpeg(bytes_)) {
    size_ = jpeg_size({kReadPart, path_, bytes_, false, file.budget()});
    return;
  }
  decoded_ = decode_any_image({kReadPart, path_, bytes_, false, file.budget()});
  bytes_ = {};
  size_ = {decoded_.shape()[1], decoded_.shape()[2]};
}

void PhotoFile::read_part(const ImagePart& part, const PixelScale* scale, uint8_t* bytes,
                          float* floats) const {
  check_part(part, size_);
  ImageResampler resampler(part);
  const NeededPixels& needed = resampler.needed();
  if (!bytes_.empty()) {
    Budget budget(concat(kReadPart, ": '", path_, "'"), bytes_.size());
    decode_jpeg_part({kReadPart, path_, bytes_, false, budget}, resampler);
  } else {
    const uint8_t* const pixels = decoded_.as<uint8_t>().data();
    const int64_t plane = size_.height * size_.width;
    std::vector<uint8_t> line(static_cast<size_t>(needed.columns * 4));
    for (int64_t y = 0; y < needed.rows; ++y) {
      const uint8_t* from = pixels + (needed.top + y) * size_.width + needed.left;
      for (int64_t x = 0; x < needed.columns; ++x) {
        for (int64_t c = 0; c < 3; ++c) line[static_cast<size_t>(x * 4 + c)] = from[c * plane + x];
      }
      resampler.take_row(line.data());
    }
  }
  resampler.write(scale, bytes, floats);
}

}  // namespace kiln::io
