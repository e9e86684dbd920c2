#include "kiln/pt2/archive.h"

#include "kiln/core/utf8.h"
#include "kiln/io/byte_order.h"
#include "kiln/pt2/fields.h"
#include "kiln/tensor/host_memory.h"

namespace kiln::pt2 {

namespace {

constexpr uint64_t kMostJson = uint64_t{1} << 30;
constexpr uint64_t kMostText = 64;  // of the small entries

io::ZipReader open(const std::string& path) { return io::ZipReader(io::InputFile("pt2", path)); }

int64_t fixed_size(const Json& size) {
  const auto& [kind, value] = only_member(size, "a size");
  if (kind != "as_int") throw_error<ValueError>("a size is no number");
  return integer_of(value, "a size");
}
Shape fixed_sizes(const Json& sizes, const char* what) {
  const Json::Array& all = list_of(sizes, what);
  if (all.size() > static_cast<size_t>(kMaxRank)) {
    throw_error<ValueError>("a tensor of ", all.size(), " dims; expected at most ", kMaxRank);
  }
  Shape out;
  for (const Json& one : all) {
    out.push_back(fixed_size(one));
    if (out.back() < 0) throw_error<ValueError>("a negative number in ", what);
  }
  return out;
}

}  // namespace

DType dtype_of_number(int64_t number) {
  switch (number) {
    case 1:
      return DType::u8;
    case 2:
      return DType::i8;
    case 3:
      return DType::i16;
    case 4:
      return DType::i32;
    case 5:
      return DType::i64;
    case 6:
      return DType::f16;
    case 7:
      return DType::f32;
    case 8:
      return DType::f64;
    case 10:
      return DType::c64;
    case 11:
      return DType::c128;
    case 12:
      return DType::boolean;
    case 13:
      return DType::bf16;
    default:
      throw_error<NotImplementedError>(
          "Kiln has no dtype for PyTorch's ScalarType ", number,
          "; expected float, double, float16, bfloat16, complex64, complex128, int8 to int64, "
          "uint8 or bool");
  }
}

Archive::Archive(const std::string& path) : zip_(open(path)) {
  constexpr std::string_view kFormat = "/archive_format";
  for (const io::ZipEntry& entry : zip_.entries()) {
    if (!entry.name.ends_with(kFormat)) continue;
    root_ = entry.name.substr(0, entry.name.size() - kFormat.size() + 1);
    break;
  }
  if (root_.empty()) {
    throw_error<IoError>(
        "the archive has no entry 'archive_format'; expected a file that "
        "torch.export.save of PyTorch 2.8 or newer wrote");
  }
  const std::string format = read("archive_format", kMostText);
  if (format != "pt2") {
    throw_error<IoError>("archive_format is '", printable(format, 40), "'; expected 'pt2'");
  }
  const std::string version = read("archive_version", kMostText);
  if (version != "0") {
    throw_error<NotImplementedError>("archive_version '", printable(version, 40),
                                     "'; expected '0'");
  }
  if (find("byteorder") != nullptr) {
    const std::string order = read("byteorder", kMostText);
    if (order != "little" && order != "big") {
      throw_error<IoError>("byteorder is '", printable(order, 40), "'; expected 'little' or 'big'");
    }
    swapped_ = order == "big";
  }
}

std::string Archive::read(const std::string& name, uint64_t most) const {
  const io::ZipEntry* entry = find(name);
  if (entry == nullptr) {
    throw_error<IoError>("the archive has no entry '", printable(root_ + name, 80), "'");
  }
  return zip_.read(*entry, most);
}

Json Archive::read_json(const std::string& name) {
  const std::string text = read(name, kMostJson);
  try {
    return decode_json(text, JsonFormat::text, &zip_.file().budget());
  } catch (const ValueError& error) {
    throw_error<ValueError>("'", printable(name, 80), "': ", error.what());
  }
}

Json Archive::program(const std::string& name) {
  const std::string folder = root_ + "models/", end = ".json";
  std::vector<std::string> names;
  for (const io::ZipEntry& entry : zip_.entries()) {
    if (!entry.name.starts_with(folder) || !entry.name.ends_with(end)) continue;
    names.push_back(
        entry.name.substr(folder.size(), entry.name.size() - folder.size() - end.size()));
  }
  if (names.empty()) throw_error<IoError>("the archive has no program in 'models'");
  name_ = name;
  if (name.empty()) name_ = names.size() == 1 ? names[0] : "model";
  if (find("models/" + name_ + ".json") == nullptr) {
    std::string all;
    for (const std::string& one : names) all += (all.empty() ? "'" : ", '") + one + "'";
    throw_error<ValueError>("the archive has no program '", printable(name_, 60), "'; it has ",
                            printable(all, 200));
  }
  return read_json("models/" + name_ + ".json");
}

Tensor Archive::tensor(const std::string& entry_name, const Json& meta) {
  const DType dtype = dtype_of_number(integer_of(member(meta, "dtype"), "dtype"));
  if (integer_of(member(meta, "layout"), "layout") != 7) {
    throw_error<NotImplementedError>("its layout is sparse; expected a dense tensor");
  }
  const Shape shape = fixed_sizes(member(meta, "sizes"), "sizes");
  const Shape strides = fixed_sizes(member(meta, "strides"), "strides");
  const int64_t offset = fixed_size(member(meta, "storage_offset"));
  if (strides.rank() != shape.rank()) throw_error<ValueError>("sizes and strides of other ranks");
  const io::ZipEntry* entry = find(entry_name);
  if (entry == nullptr) {
    throw_error<ValueError>("the archive has no entry '", printable(entry_name, 80), "'");
  }
  Handle<Storage>& storage = storages_[{entry_name, dtype}];
  const size_t element = size_of(dtype);
  if (!storage) {
    zip_.file().budget().charge(entry->size, "its tensors");
    const auto count = static_cast<int64_t>(entry->size / element);
    TensorData data(Shape{count}, dtype);
    if (data.bytes() != entry->size) throw_error<ValueError>("values that are cut off");
    if (count != 0) zip_.read_into(*entry, data.mutable_data());
    const bool complex = dtype == DType::c64 || dtype == DType::c128;
    if (swapped_) {
      io::swap_byte_order(data.mutable_data(),
                          complex ? data.bytes() / (element / 2) : data.numel(),
                          complex ? element / 2 : element);
    }
    if (dtype == DType::boolean) {  // any byte may stand there
      for (int64_t i = 0; i < count; ++i) {
        std::byte& one = data.mutable_data()[i];
        one = static_cast<std::byte>(one != std::byte{0});
      }
    }
    storage = data.storage();
  }
  // What an op makes of a view is as large as its shape says, which may be more than the file has.
  int64_t count = 1;
  for (const int64_t d : shape) {
    if (d != 0 && count > (int64_t{1} << 40) / d) throw_error<ValueError>("a shape of ", shape);
    count *= d;
  }
  if (static_cast<uint64_t>(count) * element > entry->size) {
    zip_.file().budget().charge(static_cast<uint64_t>(count) * element, "its tensors");
  }
  Strides stride;
  for (const int64_t s : strides) stride.push_back(s);
  return tensor_over(storage, dtype, shape, stride, offset);
}

std::map<std::string, Tensor> Archive::tensors(const char* folder) {
  const std::string data = concat("data/", folder, "/");
  const std::string name = concat(data, name_, "_", folder, "_config.json");
  std::map<std::string, Tensor> out;
  if (find(name) == nullptr) return out;
  const Json config = read_json(name);
  for (const auto& [key, payload] : object_of(member(config, "config"), "config")) {
    try {
      if (bool_of(member(payload, "use_pickle"), "use_pickle") ||
          pt2::find(payload, "tensor_meta") == nullptr) {
        throw_error<NotImplementedError>(
            "it is a pickled object; expected a tensor (no code of a file is ever run)");
      }
      const std::string& path = text_of(member(payload, "path_name"), "path_name");
      const Json& meta = member(payload, "tensor_meta");
      const auto [made, is_new] =
          made_.try_emplace(data + path + "\n" + encode_json(meta, JsonFormat::text));
      if (is_new) made->second = tensor(data + path, meta);
      out.emplace(key, made->second);
    } catch (const NotImplementedError& error) {
      throw_error<NotImplementedError>("tensor '", printable(key, 80), "': ", error.what());
    } catch (const IoError& error) {
      throw_error<IoError>("tensor '", printable(key, 80), "': ", error.what());
    } catch (const Error& error) {
      throw_error<ValueError>("tensor '", printable(key, 80), "': ", error.what());
    }
  }
  return out;
}

}  // namespace kiln::pt2
