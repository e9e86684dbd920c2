#include "kiln/train/event_file.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kiln/core/error.h"
#include "kiln/io/crc32c.h"
#include "kiln/io/image.h"
#include "kiln/tensor/ops.h"
#include "kiln/train/wall_time.h"

namespace kiln::train {

namespace {

using io::ProtobufWriter;

std::string bytes_of(uint64_t value, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += static_cast<char>(value >> (8 * i) & 255u);
  return out;
}

// A checksum of data that holds checksums would be weak: so it is turned and moved.
uint32_t masked(std::string_view bytes) {
  const uint32_t crc = io::crc32c_of(bytes);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

// HistogramProto.
ProtobufWriter histogram_of(const std::vector<double>& values) {
  constexpr size_t kBins = 30;
  double low = 0, high = 0, sum = 0, squares = 0, count = 0;
  for (const double v : values) {
    if (!std::isfinite(v)) continue;
    low = count == 0 ? v : std::min(low, v);
    high = count == 0 ? v : std::max(high, v);
    sum += v;
    squares += v * v;
    ++count;
  }
  // Of one value alone a stretch must have a width, too.
  const double width = high > low ? (high - low) / kBins : 1.0;
  std::vector<double> limits(high > low ? kBins : 1), counts(limits.size());
  for (size_t i = 0; i < limits.size(); ++i) limits[i] = low + width * static_cast<double>(i + 1);
  for (const double v : values) {
    if (!std::isfinite(v)) continue;
    const auto bin = static_cast<size_t>((v - low) / width);
    counts[std::min(bin, counts.size() - 1)] += 1;
  }
  ProtobufWriter out;
  out.number(1, low).number(2, high).number(3, count).number(4, sum).number(5, squares);
  out.packed(6, limits).packed(7, counts);
  return out;
}

}  // namespace

EventFile::EventFile(const std::string& path, int64_t position) : file_(path, position) {
  if (file_.position() == 0) {
    write(ProtobufWriter().number(1, wall_time()).bytes(3, "brain.Event:2"));
  }
}

void EventFile::write(const ProtobufWriter& event) {
  const std::string& data = event.text();
  const std::string length = bytes_of(data.size(), 8);
  file_.append(concat(length, bytes_of(masked(length), 4), data, bytes_of(masked(data), 4)));
}

void EventFile::write_value(const ProtobufWriter& value, int64_t step) {
  write(ProtobufWriter()
            .number(1, wall_time())
            .integer(2, step)
            .message(5, ProtobufWriter().message(1, value)));
}

void EventFile::scalar(std::string_view tag, double value, int64_t step) {
  write_value(ProtobufWriter().bytes(1, tag).single(2, static_cast<float>(value)), step);
}

void EventFile::histogram(std::string_view tag, const Tensor& values, int64_t step) {
  const std::vector<double> numbers = values.detach().to(f64).to_vector<double>();
  write_value(ProtobufWriter().bytes(1, tag).message(5, histogram_of(numbers)), step);
}

void EventFile::image(std::string_view tag, const Tensor& pixels, int64_t step) {
  const Shape& shape = pixels.shape();
  const bool colours = shape.size() == 3 && shape[0] == 3;
  if (shape.size() != 2 && !(shape.size() == 3 && (shape[0] == 1 || colours))) {
    throw_error<ShapeError>("EventFile::image: no image; got shape ", shape,
                            "; expected [H, W], [1, H, W] or [3, H, W]");
  }
  const int64_t height = shape[shape.size() - 2];
  const int64_t width = shape[shape.size() - 1];
  const std::string png =
      colours ? io::encode_png_rgb(pixels.detach().permute({1, 2, 0}).contiguous().to_data())
              : io::encode_png_gray(pixels.detach().reshape({height, width}).to_data());
  const ProtobufWriter image = ProtobufWriter()
                                   .integer(1, height)
                                   .integer(2, width)
                                   .integer(3, colours ? 3 : 1)
                                   .bytes(4, png);
  write_value(ProtobufWriter().bytes(1, tag).message(4, image), step);
}

void EventFile::text(std::string_view tag, std::string_view text, int64_t step) {
  // A tensor of one text (DT_STRING is 7), and which of TensorBoard's pages shows it.
  const ProtobufWriter shape = ProtobufWriter().message(2, ProtobufWriter().integer(1, 1));
  const ProtobufWriter tensor = ProtobufWriter().integer(1, 7).message(2, shape).bytes(8, text);
  const ProtobufWriter metadata = ProtobufWriter().message(1, ProtobufWriter().bytes(1, "text"));
  write_value(ProtobufWriter().bytes(1, tag).message(8, tensor).message(9, metadata), step);
}

}  // namespace kiln::train
