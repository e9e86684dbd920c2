#include "kiln/io/gguf_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "kiln/core/error.h"
#include "kiln/core/utf8.h"
#include "kiln/io/gguf_blocks.h"
#include "kiln/io/input_file.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::io {

static_assert(std::endian::native == std::endian::little,
              "values are read as they lie in the file");

namespace {

constexpr const char* kLoadGguf = "load_gguf";
constexpr int kMaxNesting = 4;    // of lists in lists
constexpr uint32_t kMaxDims = 8;  // GGUF itself has four

// Reads a file from its begin on.
class Cursor {
 public:
  explicit Cursor(const InputFile& file) : file_(file) {}

  uint64_t at() const { return at_; }
  const InputFile& file() const { return file_; }

  [[noreturn]] void fail(const std::string& what) const {
    throw_error<IoError>(kLoadGguf, ": '", file_.path(), "': ", what);
  }
  void read(void* out, uint64_t bytes) {
    if (bytes > file_.size() - at_) {
      fail(concat("it ends within its header; got ", file_.size(), " bytes"));
    }
    auto* to = static_cast<char*>(out);
    while (bytes > 0) {
      if (at_ < begin_ || at_ >= begin_ + buffer_.size()) fill();
      const uint64_t n = std::min<uint64_t>(bytes, begin_ + buffer_.size() - at_);
      std::memcpy(to, buffer_.data() + (at_ - begin_), n);
      to += n;
      at_ += n;
      bytes -= n;
    }
  }
  template <class T>
  T number() {
    T value;
    read(&value, sizeof value);
    return value;
  }
  // A count of things that take `least` bytes each, so that the file has room for them.
  uint64_t count(const char* what, uint64_t least) {
    const auto n = number<uint64_t>();
    if (n > (file_.size() - at_) / least) {
      fail(concat("it claims ", n, " ", what, ", more than it has room for"));
    }
    return n;
  }
  std::string text(const char* what) {
    const uint64_t n = count(what, 1);
    file_.budget().charge(n + sizeof(std::string), "its header");
    std::string out(n, '\0');
    read(out.data(), n);
    return out;
  }

 private:
  void fill() {
    begin_ = at_;
    buffer_.resize(size_t(std::min<uint64_t>(1 << 16, file_.size() - at_)));
    file_.read_at(begin_, buffer_.data(), buffer_.size());
  }

  const InputFile& file_;
  std::vector<char> buffer_;
  uint64_t begin_ = 0;
  uint64_t at_ = 0;
};

enum GgufKind : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kText,
  kList,
  kU64,
  kI64,
  kF64
};

// The fewest bytes of a value of a kind.
uint64_t least_bytes(uint32_t kind) {
  constexpr uint64_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};
  return kind < std::size(kBytes) ? kBytes[kind] : 1;
}

Json read_value(Cursor& in, uint32_t kind, int nesting);

Json read_list(Cursor& in, int nesting) {
  if (nesting >= kMaxNesting) in.fail(concat("lists nested more than ", kMaxNesting, " deep"));
  const auto kind = in.number<uint32_t>();
  const uint64_t n = in.count("values", least_bytes(kind));
  in.file().budget().charge(n * sizeof(Json) + sizeof(Json::Array), "its header");
  Json::Array items;
  items.reserve(size_t(n));
  for (uint64_t i = 0; i < n; ++i) items.push_back(read_value(in, kind, nesting + 1));
  return Json(std::move(items));
}

Json read_value(Cursor& in, uint32_t kind, int nesting) {
  switch (kind) {
    case kU8:
      return Json(int64_t(in.number<uint8_t>()));
    case kI8:
      return Json(int64_t(in.number<int8_t>()));
    case kU16:
      return Json(int64_t(in.number<uint16_t>()));
    case kI16:
      return Json(int64_t(in.number<int16_t>()));
    case kU32:
      return Json(int64_t(in.number<uint32_t>()));
    case kI32:
      return Json(int64_t(in.number<int32_t>()));
    case kF32:
      return Json(double(in.number<float>()));
    case kI64:
      return Json(in.number<int64_t>());
    case kF64:
      return Json(in.number<double>());
    case kList:
      return read_list(in, nesting);
    case kText: {
      std::string text = in.text("bytes of text");
      // Tokens may be parts of characters: what is no UTF-8 stays bytes.
      if (is_utf8(text)) return Json(std::move(text));
      const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
      in.file().budget().charge(text.size(), "its header");
      return Json(Json::Bytes(bytes, bytes + text.size()));
    }
    case kBool: {
      const auto value = in.number<uint8_t>();
      if (value > 1) in.fail(concat("a boolean is neither 0 nor 1; got ", int(value)));
      return Json(value == 1);
    }
    case kU64: {
      const auto value = in.number<uint64_t>();
      if (value > uint64_t(std::numeric_limits<int64_t>::max())) {
        in.fail(concat("an integer is above 2^63 - 1; got ", value));
      }
      return Json(int64_t(value));
    }
    default:
      in.fail(concat("a value has the unknown type ", kind));
  }
}

struct Entry {
  std::string name;
  Shape shape;
  uint32_t type;
  uint64_t offset;
  uint64_t blocks;
};

Entry read_entry(Cursor& in) {
  Entry out;
  out.name = in.text("bytes of a name");
  if (out.name.empty() || !is_utf8(out.name)) in.fail("a tensor's name is empty or no UTF-8");
  const std::string shown = printable(out.name);
  const auto dims = in.number<uint32_t>();
  if (dims > kMaxDims) {
    in.fail(concat("tensor '", shown, "' has too many dims; got ", dims));
  }
  std::vector<int64_t> sizes(dims);
  uint64_t numel = 1;
  for (uint32_t i = 0; i < dims; ++i) {
    const auto size = in.number<uint64_t>();
    if (size < 1 || size > (uint64_t{1} << 48) || numel > (uint64_t{1} << 48) / size) {
      in.fail(concat("tensor '", shown, "' has an impossible size; got ", size));
    }
    numel *= size;
    sizes[dims - 1 - i] = int64_t(size);  // the file has the last dim first
  }
  out.type = in.number<uint32_t>();
  const detail::GgufType type = detail::gguf_type(out.type);
  if (type.name == nullptr) {
    in.fail(concat("tensor '", shown, "' has a type that is not read; got number ", out.type,
                   "; expected F64, F32, F16, BF16, I8, I16, I32, I64, Q8_0, Q4_0 or Q4_K"));
  }
  if ((dims == 0 ? 1 : uint64_t(sizes[dims - 1])) % type.values != 0) {
    in.fail(concat("tensor '", shown, "' has rows that are no whole number of blocks of ",
                   type.name, "; got ", dims == 0 ? 1 : sizes[dims - 1]));
  }
  out.shape = Shape(sizes);
  out.blocks = numel / type.values;
  out.offset = in.number<uint64_t>();
  return out;
}

Tensor float_tensor(const Entry& entry, const std::vector<std::byte>& blocks) {
  TensorData out(entry.shape, DType::f32);
  detail::gguf_floats(entry.type, blocks.data(), entry.blocks, out.as_mutable<float>().data());
  return from_data(out);
}

// Reads a tensor whose bytes begin at `begin`; they lie within the file.
Tensor read_tensor(const InputFile& file, const Entry& entry, uint64_t begin) {
  const detail::GgufType type = detail::gguf_type(entry.type);
  const uint64_t bytes = entry.blocks * type.bytes;
  if (type.plain) {
    file.budget().charge(bytes, "its tensors");
    TensorData out(entry.shape, type.dtype);
    file.read_at(begin, out.mutable_data(), size_t(bytes));
    return from_data(out);
  }
  // The blocks, and at most four bytes for each of their values.
  file.budget().charge(bytes + 4 * entry.blocks * type.values, "its tensors");
  std::vector<std::byte> blocks(size_t(bytes), std::byte{0});
  file.read_at(begin, blocks.data(), size_t(bytes));
  Tensor out;
  if (entry.type == detail::kGgufQ4_K || entry.type == detail::kGgufQ6_K) {
    out = float_tensor(entry, blocks);
  } else {
    const QuantScheme scheme{.bits = 8, .level = QuantLevel::block, .block = 32};
    const int64_t columns = entry.shape[entry.shape.rank() - 1];
    TensorData values(entry.shape, DType::i8);
    TensorData scales(Shape{entry.shape.numel() / columns, columns / 32}, DType::f32);
    const bool fits = detail::gguf_integers(entry.type, blocks.data(), entry.blocks,
                                            values.as_mutable<int8_t>().data(),
                                            scales.as_mutable<float>().data());
    if (fits && entry.shape.rank() >= 2) {
      out = make_quantized(from_data(values), from_data(scales), scheme, entry.shape);
    } else {
      out = float_tensor(entry, blocks);
    }
  }
  file.budget().release(bytes);
  return out;
}

}  // namespace

GgufFile load_gguf(const std::string& path, uint64_t max_ratio) {
  const InputFile file(kLoadGguf, path, max_ratio);
  Cursor in(file);
  char magic[4];
  in.read(magic, sizeof magic);
  if (std::memcmp(magic, "GGUF", 4) != 0) in.fail("it is no GGUF file");
  const auto version = in.number<uint32_t>();
  if (version != 2 && version != 3) {
    in.fail(concat("its version is not read; got ", version, "; expected 2 or 3"));
  }
  const uint64_t tensors = in.count("tensors", 24);
  const uint64_t values = in.count("values", 13);
  GgufFile out;
  Json::Object metadata;
  std::set<std::string, std::less<>> names;
  for (uint64_t i = 0; i < values; ++i) {
    std::string key = in.text("bytes of a key");
    if (key.empty() || !is_utf8(key)) in.fail("a key is empty or no UTF-8");
    file.budget().charge(sizeof(Json) + 128 + 2 * key.size(), "its header");
    if (!names.insert(key).second) in.fail(concat("the key '", printable(key), "' occurs twice"));
    const auto kind = in.number<uint32_t>();
    metadata.emplace_back(std::move(key), read_value(in, kind, 0));
  }
  uint64_t alignment = 32;
  for (const auto& [key, value] : metadata) {
    if (key != "general.alignment") continue;
    const auto* number = value.as<int64_t>();
    if (number == nullptr || *number < 1 || *number > (1 << 20) ||
        !std::has_single_bit(uint64_t(*number))) {
      in.fail(concat("its alignment must be a power of two; got ", value.describe()));
    }
    alignment = uint64_t(*number);
  }
  std::vector<Entry> entries;
  names.clear();
  for (uint64_t i = 0; i < tensors; ++i) {
    file.budget().charge(sizeof(Entry) + 256, "its header");
    entries.push_back(read_entry(in));
    if (!names.insert(entries.back().name).second) {
      in.fail(concat("the tensor '", printable(entries.back().name), "' occurs twice"));
    }
  }
  const uint64_t data = (in.at() + alignment - 1) / alignment * alignment;
  for (const Entry& entry : entries) {
    const uint64_t bytes = entry.blocks * detail::gguf_type(entry.type).bytes;
    const uint64_t room = file.size() > data ? file.size() - data : 0;
    if (entry.offset % alignment != 0 || entry.offset > room || bytes > room - entry.offset) {
      in.fail(concat("tensor '", printable(entry.name), "' does not lie within the file; got ",
                     bytes, " bytes at ", entry.offset, " of ", room));
    }
    out.tensors.set(entry.name, read_tensor(file, entry, data + entry.offset));
  }
  out.metadata = Json(std::move(metadata));
  return out;
}

bool is_gguf(const std::string& path) {
  const InputFile file("load", path);
  char magic[4] = {};
  if (file.size() < sizeof magic) return false;
  file.read_at(0, magic, sizeof magic);
  return std::memcmp(magic, "GGUF", 4) == 0;
}

}  // namespace kiln::io
