#include "kiln/data/idx.h"

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>

#include "kiln/io/gzip.h"

namespace kiln::data {

namespace {

[[noreturn]] void malformed(const std::string& path, const std::string& what,
                            const std::string& got, const std::string& expected) {
  throw_error<IoError>("read_idx: '", path, "' is malformed: ", what, "; got ", got, "; expected ",
                       expected);
}

DType dtype_of_code(const std::string& path, unsigned code) {
  switch (code) {
    case 0x08:
      return DType::u8;
    case 0x09:
      return DType::i8;
    case 0x0b:
      return DType::i16;
    case 0x0c:
      return DType::i32;
    case 0x0d:
      return DType::f32;
    case 0x0e:
      return DType::f64;
    default:
      malformed(path, "unknown element type", concat(code), "8, 9, 11, 12, 13 or 14");
  }
}

// The dims that follow the magic number. Their product, in bytes, is no more than the file can
// hold.
Shape read_dims(io::GzipFile& file, const std::string& path, int rank, DType dtype,
                uint64_t max_bytes) {
  std::array<uint8_t, 4 * kMaxRank> raw{};
  const size_t wanted = 4 * static_cast<size_t>(rank);
  if (file.read(raw.data(), wanted) != wanted) {
    malformed(path, "the dims are incomplete", "the end of the file", concat(rank, " dims"));
  }
  const uint64_t limit = std::min(file.size_bound(), max_bytes);
  Shape shape;
  int64_t bytes = static_cast<int64_t>(size_of(dtype));
  bool empty = false;
  bool overflow = false;
  for (int i = 0; i < rank; ++i) {
    const uint8_t* p = &raw[static_cast<size_t>(4 * i)];
    const uint32_t dim = static_cast<uint32_t>(p[0]) << 24 | static_cast<uint32_t>(p[1]) << 16 |
                         static_cast<uint32_t>(p[2]) << 8 | p[3];
    shape.push_back(dim);
    empty = empty || dim == 0;
    // A dim of 0 does not excuse the others: strides multiply those too.
    overflow = overflow || __builtin_mul_overflow(bytes, std::max<int64_t>(dim, 1), &bytes);
  }
  if (overflow || (!empty && static_cast<uint64_t>(bytes) > limit)) {
    malformed(path, concat("its dims ", shape, " of ", dtype, " exceed what it can hold"),
              overflow ? "a size that overflows" : concat(bytes, " bytes"),
              concat("at most ", limit, " bytes"));
  }
  return shape;
}

// IDX is big-endian.
void swap_bytes(TensorData& data) {
  const size_t width = size_of(data.dtype());
  if (width == 1) return;
  std::byte* at = data.mutable_data();
  for (int64_t i = 0; i < data.numel(); ++i, at += width) std::reverse(at, at + width);
}

std::string find_mnist_file(const std::string& dir, bool train, const char* part, int rank) {
  const std::string stem = std::string(train ? "train-" : "t10k-") + part;
  const std::string type = concat("idx", rank, "-ubyte");
  const std::string dashed = stem + "-" + type;
  for (const std::string& name :
       {dashed + ".gz", dashed, stem + "." + type + ".gz", stem + "." + type}) {
    const std::string path = (std::filesystem::path(dir) / name).string();
    std::error_code error;
    if (std::filesystem::is_regular_file(path, error)) return path;
  }
  throw_error<IoError>("load_mnist: a file is missing; got no '", dashed, "' in '", dir,
                       "'; expected '", dashed, "' or '", stem, ".", type,
                       "', each with or without .gz");
}

}  // namespace

TensorData read_idx(const std::string& path, uint64_t max_bytes) {
  static_assert(std::endian::native == std::endian::little);
  io::GzipFile file("read_idx", path);
  std::array<uint8_t, 4> magic{};
  if (file.read(magic.data(), magic.size()) != magic.size() || magic[0] != 0 || magic[1] != 0) {
    malformed(path, "it is no IDX file", "another beginning", "two zero bytes, a type and a rank");
  }
  const DType dtype = dtype_of_code(path, magic[2]);
  const int rank = magic[3];
  if (rank < 1 || rank > kMaxRank) {
    malformed(path, "bad number of dims", concat(rank), concat("1 to ", kMaxRank));
  }
  const Shape shape = read_dims(file, path, rank, dtype, max_bytes);
  file.budget().charge(static_cast<uint64_t>(shape.numel()) * size_of(dtype), "its data");
  TensorData data(shape, dtype);
  const size_t got = file.read(data.mutable_data(), data.bytes());
  if (got != data.bytes()) {
    malformed(path, concat("there is too little data for dims ", shape, " of ", dtype),
              concat(got, " bytes"), concat(data.bytes(), " bytes"));
  }
  if (!file.at_end()) {
    malformed(path, concat("there is more data than dims ", shape, " of ", dtype, " need"),
              "bytes at the end", "none");
  }
  swap_bytes(data);
  return data;
}

ImageSet load_mnist(const std::string& dir, bool train) {
  const std::string image_path = find_mnist_file(dir, train, "images", 3);
  const std::string label_path = find_mnist_file(dir, train, "labels", 1);
  ImageSet set;
  set.images = read_idx(image_path);
  const TensorData labels = read_idx(label_path);

  const Shape& shape = set.images.shape();
  if (set.images.dtype() != DType::u8 || shape.rank() != 3 || shape[1] != 28 || shape[2] != 28) {
    throw_error<IoError>("load_mnist: '", image_path, "' holds no MNIST images; got ", shape,
                         " of ", set.images.dtype(), "; expected [N, 28, 28] of uint8");
  }
  if (labels.dtype() != DType::u8 || labels.shape() != Shape{shape[0]}) {
    throw_error<IoError>("load_mnist: '", label_path, "' does not fit its images; got ",
                         labels.shape(), " of ", labels.dtype(), "; expected [", shape[0],
                         "] of uint8");
  }
  set.labels = TensorData(labels.shape(), DType::i64);
  const auto from = labels.as<uint8_t>();
  const auto to = set.labels.as_mutable<int64_t>();
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] > 9) {
      throw_error<IoError>("load_mnist: '", label_path, "' has a bad label; got ",
                           static_cast<int>(from[i]), "; expected 0 to 9");
    }
    to[i] = from[i];
  }
  return set;
}

}  // namespace kiln::data
