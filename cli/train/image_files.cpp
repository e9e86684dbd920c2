#include "cli/train/image_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>

#include "kiln/core/error.h"
#include "kiln/core/utf8.h"
#include "kiln/io/image.h"
#include "kiln/io/input_file.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "kiln/vision/transform.h"

namespace kiln::cli {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kCifarSide = 32;
constexpr int64_t kCifarPixels = 3 * kCifarSide * kCifarSide;

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with("."); }

bool is_of_kind(const fs::path& path, const FileKind& kind) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(kind.endings.begin(), kind.endings.end(), ending) != kind.endings.end();
}

void need_folder(const std::string& folder) {
  if (!fs::is_directory(folder)) throw_error<IoError>("there is no folder '", folder, "'");
}

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> out;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) out.push_back(printable(line, 60));
  }
  return out;
}

}  // namespace

Tensor read_image_as(const std::string& path, const ImageForm& form) {
  Tensor image(io::read_image(path, {form.gray, form.upright}));
  if (image.size(1) != form.height || image.size(2) != form.width) {
    image = vision::resize(image, form.height, form.width);
  }
  return image;
}

std::pair<int64_t, int64_t> image_size(const std::string& path, bool upright) {
  const TensorData image = io::read_image(path, {true, upright});
  return {image.shape()[1], image.shape()[2]};
}

const FileKind& image_kind() {
  static const FileKind kind{io::image_extensions(), "PNG, JPEG or WebP images", "images"};
  return kind;
}

std::vector<std::string> files_of_kind(const std::string& folder, const FileKind& kind) {
  need_folder(folder);
  std::vector<std::string> out;
  for (const auto& entry :
       fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied)) {
    if (entry.is_regular_file() && is_of_kind(entry.path(), kind) && !is_hidden(entry.path())) {
      out.push_back(entry.path().string());
    }
  }
  std::sort(out.begin(), out.end());
  if (out.empty()) throw_error<IoError>("'", folder, "' holds no ", kind.names);
  return out;
}

ClassFolder read_class_folder(const std::string& folder, const std::vector<std::string>& classes,
                              const FileKind& kind) {
  need_folder(folder);
  ClassFolder out;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && !is_hidden(entry.path())) {
      out.classes.push_back(entry.path().filename().string());
    }
  }
  std::sort(out.classes.begin(), out.classes.end());
  if (out.classes.empty()) {
    throw_error<IoError>("'", folder, "' holds no folders; expected one for each class, ",
                         "with its ", kind.what, " in it");
  }
  if (!classes.empty() && out.classes != classes) {
    for (const std::string& name : out.classes) {
      if (std::find(classes.begin(), classes.end(), name) == classes.end()) {
        throw_error<IoError>("'", folder, "' has a class '", printable(name),
                             "' that the training ", kind.what, " do not have");
      }
    }
    out.classes = classes;
  }
  for (size_t c = 0; c < out.classes.size(); ++c) {
    const std::string path = (fs::path(folder) / out.classes[c]).string();
    if (!fs::is_directory(path)) continue;  // a class without images to be measured on
    for (std::string& file : files_of_kind(path, kind)) {
      out.paths.push_back(std::move(file));
      out.labels.push_back(static_cast<int64_t>(c));
    }
  }
  return out;
}

struct ImageFiles::Skipped {
  std::mutex mutex;
  std::set<int64_t> indices;
};

ImageFiles::ImageFiles(ClassFolder files, Read read, bool skip)
    : files_(std::move(files)),
      read_(std::move(read)),
      skip_(skip),
      skipped_(std::make_unique<Skipped>()) {}

ImageFiles::~ImageFiles() = default;

data::Example ImageFiles::get(int64_t index) const {
  for (int64_t tried = 0;; ++tried) {
    const auto at = static_cast<size_t>((index + tried) % size());
    try {
      return {read_(files_.paths[at]), tensor(Scalar(files_.labels[at]), {i64})};
    } catch (const IoError&) {
      if (!skip_ || tried + 1 >= size()) throw;
      const std::lock_guard lock(skipped_->mutex);
      skipped_->indices.insert(static_cast<int64_t>(at));
    }
  }
}

int64_t ImageFiles::skipped() const {
  const std::lock_guard lock(skipped_->mutex);
  return static_cast<int64_t>(skipped_->indices.size());
}

Cifar read_cifar(const std::string& folder, bool hundred, bool train) {
  std::vector<std::string> files;
  if (hundred) {
    files = {train ? "train.bin" : "test.bin"};
  } else if (train) {
    for (int i = 1; i <= 5; ++i) files.push_back(concat("data_batch_", i, ".bin"));
  } else {
    files = {"test_batch.bin"};
  }
  const int64_t head = hundred ? 2 : 1;  // CIFAR-100 has a coarse class before the fine one
  const int64_t classes = hundred ? 100 : 10;
  std::string bytes;
  for (const std::string& name : files) {
    const std::string path = (fs::path(folder) / name).string();
    const io::InputFile file("read_cifar", path);
    const std::string part = file.read_whole(uint64_t{1} << 30);
    if (part.empty() || static_cast<int64_t>(part.size()) % (head + kCifarPixels) != 0) {
      throw_error<IoError>("read_cifar: '", path, "' is no file of CIFAR's binary version; got ",
                           part.size(), " bytes; expected a multiple of ", head + kCifarPixels);
    }
    bytes += part;
  }
  const int64_t count = static_cast<int64_t>(bytes.size()) / (head + kCifarPixels);
  TensorData images(Shape{count, 3, kCifarSide, kCifarSide}, DType::u8);
  std::vector<int64_t> labels;
  const auto pixels = images.as_mutable<uint8_t>();
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i * (head + kCifarPixels));
    const auto label = static_cast<uint8_t>(bytes[at + static_cast<size_t>(head) - 1]);
    if (label >= classes) {
      throw_error<IoError>("read_cifar: '", folder, "', image ", i, ": no class; got ",
                           static_cast<int>(label), "; expected 0 to ", classes - 1);
    }
    labels.push_back(label);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at) + head, kCifarPixels,
                pixels.begin() + i * kCifarPixels);
  }
  Cifar out{Tensor(images), tensor(labels, {i64}), {}};
  out.names = lines_of(
      (fs::path(folder) / (hundred ? "fine_label_names.txt" : "batches.meta.txt")).string());
  out.names.resize(out.names.size() == static_cast<size_t>(classes) ? out.names.size() : 0);
  return out;
}

}  // namespace kiln::cli
