// EventFile: TensorBoard's event files, which TensorBoard itself reads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kiln/io/protobuf_writer.h"
#include "kiln/tensor/tensor.h"
#include "kiln/train/append_file.h"

namespace kiln::train {

// A file is a sequence of records: the length (8 bytes), its checksum, a message `Event` of
// Protocol Buffers, its checksum. The checksums are masked CRC-32C.
class EventFile {
 public:
  // Begins with a record of the format's version unless `position` keeps bytes of what is there.
  // TensorBoard takes files with ".tfevents." in their names. Throws IoError, as all below do.
  explicit EventFile(const std::string& path, int64_t position = 0);

  void scalar(std::string_view tag, double value, int64_t step);
  // How often values lie in each of 30 stretches of equal width; numbers that are not finite are
  // left out.
  void histogram(std::string_view tag, const Tensor& values, int64_t step);
  // u8, gray [H, W] or [1, H, W], or colours [3, H, W]. Throws ShapeError, DTypeError.
  void image(std::string_view tag, const Tensor& pixels, int64_t step);
  // Markdown.
  void text(std::string_view tag, std::string_view text, int64_t step);

  int64_t position() const { return file_.position(); }
  const std::string& path() const { return file_.path(); }

 private:
  void write(const io::ProtobufWriter& event);
  void write_value(const io::ProtobufWriter& value, int64_t step);

  AppendFile file_;
};

}  // namespace kiln::train
