// Images in files: folders of PNG, JPEG and WebP, CIFAR's binary files.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kiln/data/dataset.h"

namespace kiln::cli {

// u8 [C, height, width].
struct ImageForm {
  bool gray = false;
  bool upright = true;  // turned as EXIF says
  int64_t height = 0;
  int64_t width = 0;
};
// A file of an image in this form. Throws IoError.
Tensor read_image_as(const std::string& path, const ImageForm& form);
// Height and width of a file's image. Throws IoError.
std::pair<int64_t, int64_t> image_size(const std::string& path, bool upright = true);

// What a folder's files are known by.
struct FileKind {
  std::vector<std::string> endings;
  const char* names;  // "PNG, JPEG or WebP images"
  const char* what;   // "images"
};
const FileKind& image_kind();

// Files of a kind below a folder, by path; hidden ones are left out. Throws IoError where there is
// none.
std::vector<std::string> files_of_kind(const std::string& folder,
                                       const FileKind& kind = image_kind());

// A folder with a folder of files for each class.
struct ClassFolder {
  std::vector<std::string> classes;  // by name
  std::vector<std::string> paths;
  std::vector<int64_t> labels;
};
// `classes`: what the folder must have; empty: what it has. Throws IoError.
ClassFolder read_class_folder(const std::string& folder,
                              const std::vector<std::string>& classes = {},
                              const FileKind& kind = image_kind());

// Images that are read when they are asked for. What cannot be read is an error, or, with `skip`,
// the next one that can be read takes its place.
class ImageFiles final : public data::Dataset {
 public:
  // A file as an image; throws IoError.
  using Read = std::function<Tensor(const std::string& path)>;
  ImageFiles(ClassFolder files, Read read, bool skip);
  ImageFiles(ClassFolder files, ImageForm form, bool skip)
      : ImageFiles(
            std::move(files), [form](const std::string& path) { return read_image_as(path, form); },
            skip) {}
  ~ImageFiles() override;
  int64_t size() const override { return static_cast<int64_t>(files_.paths.size()); }
  data::Example get(int64_t index) const override;
  int64_t skipped() const;

 private:
  struct Skipped;
  ClassFolder files_;
  Read read_;
  bool skip_;
  std::unique_ptr<Skipped> skipped_;
};

// Images u8 [N, 3, 32, 32] and classes of CIFAR-10's binary files, or CIFAR-100's with its fine
// classes, and the classes' names where the folder has them (batches.meta.txt,
// fine_label_names.txt). Throws IoError.
struct Cifar {
  Tensor images, labels;
  std::vector<std::string> names;
};
Cifar read_cifar(const std::string& folder, bool hundred, bool train);

}  // namespace kiln::cli
