#include "kiln/io/file_format.h"

#include <algorithm>
#include <string_view>

#include "kiln/core/error.h"
#include "kiln/io/zip_reader.h"

namespace kiln::io {

namespace {

// A zip archive is PyTorch's when it has a pickle, and NumPy's otherwise.
FileFormat zip_format(const InputFile& file) {
  const ZipReader zip(InputFile(file.op(), file.path()), ZeroChecksum::is_none);
  const auto& entries = zip.entries();
  const auto any = [&](auto test) { return std::any_of(entries.begin(), entries.end(), test); };
  if (any([](const ZipEntry& e) { return e.name.ends_with("/data.pkl"); })) {
    return FileFormat::torch;
  }
  if (entries.empty() || any([](const ZipEntry& e) { return e.name.ends_with(".npy"); })) {
    return FileFormat::npz;
  }
  throw_error<IoError>(
      file.op(), ": '", file.path(), "' is a zip archive, but of no model; got entry '",
      printable(entries[0].name), "'; expected data.pkl (PyTorch) or NAME.npy (NumPy)");
}

}  // namespace

std::string to_string(FileFormat format) {
  switch (format) {
    case FileFormat::safetensors:
      return "safetensors";
    case FileFormat::sharded:
      return "sharded";
    case FileFormat::torch:
      return "PyTorch";
    case FileFormat::torch_legacy:
      return "PyTorch (legacy)";
    case FileFormat::npz:
      return "NumPy .npz";
    case FileFormat::npy:
      return "NumPy .npy";
  }
  return "unknown";
}

FileFormat recognize(const InputFile& file) {
  unsigned char head[16] = {};
  const auto n = static_cast<size_t>(std::min<uint64_t>(file.size(), sizeof head));
  file.read_at(0, head, n);
  const std::string_view text(reinterpret_cast<const char*>(head), n);
  uint64_t length = 0;
  for (size_t i = 8; i-- > 0;) length = length << 8 | head[i];
  // Before the others: any byte may begin the length of a safetensors header.
  if (n > 8 && head[8] == '{' && length <= file.size() - 8) return FileFormat::safetensors;
  if (text.starts_with("PK\3\4") || text.starts_with("PK\5\6")) return zip_format(file);
  if (text.starts_with("\x93NUMPY")) return FileFormat::npy;
  if (n > 1 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5) return FileFormat::torch_legacy;
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') return FileFormat::sharded;
  if (n > 8 && head[8] == '{') return FileFormat::safetensors;  // truncated: its reader says how
  char magic[5] = {};
  if (file.size() > 512) file.read_at(257, magic, sizeof magic);
  const bool is_tar = std::string_view(magic, sizeof magic) == "ustar";
  throw_error<IoError>(file.op(), ": '", file.path(), "' is no model file that Kiln knows; got ",
                       n == 0   ? "an empty file"
                       : is_tar ? "a tar archive (the form of PyTorch before 0.1.10)"
                       : text.starts_with("\x1f\x8b")
                           ? "a gzip file (try gunzip first)"
                           : concat("'", printable(std::string(text)), "'"),
                       "; expected safetensors, an index of shards, a PyTorch file, .npz or .npy");
}

FileFormat format_for_writing(const std::string& path) {
  const size_t dot = path.find_last_of("./");
  std::string extension = dot == std::string::npos ? "" : path.substr(dot);
  for (char& c : extension) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  if (extension == ".safetensors") return FileFormat::safetensors;
  if (extension == ".npz") return FileFormat::npz;
  if (extension == ".npy") return FileFormat::npy;
  return FileFormat::torch;
}

}  // namespace kiln::io
