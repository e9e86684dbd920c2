// Data of images with classes: folders, MNIST's and CIFAR's files, digits that the program draws.
#include <algorithm>
#include <cmath>
#include <memory>

#include "cli/train/augment.h"
#include "cli/train/image_files.h"
#include "cli/train/pixel_scale.h"
#include "cli/train/task_data.h"
#include "kiln/core/error.h"
#include "kiln/data/digits.h"
#include "kiln/data/idx.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "kiln/vision/transform.h"

namespace kiln::cli {

namespace {

struct ImageData {
  data::DatasetHandle training;
  std::vector<int64_t> labels;
  std::optional<data::DatasetHandle> validation, test;
  std::vector<std::string> classes;
  std::function<int64_t()> skipped;
};

// Images that are in memory, at the size that is asked for.
struct Held {
  Tensor images;  // u8 [N, C, H, W]
  Tensor labels;  // i64 [N]
};

data::DatasetHandle dataset_of(const Held& held, std::optional<std::pair<int64_t, int64_t>> size) {
  Tensor images = held.images;
  if (size && (images.size(2) != size->first || images.size(3) != size->second)) {
    images = vision::resize(images, size->first, size->second);
  }
  return data::TensorDataset(images, held.labels);
}

Held held(const data::ImageSet& set) {
  return {Tensor(set.images).unsqueeze(1), Tensor(set.labels)};
}

std::vector<std::string> numbered(int64_t count) {
  std::vector<std::string> out;
  for (int64_t c = 0; c < count; ++c) out.push_back(concat(c));
  return out;
}

// Of the first image that can be read.
std::pair<int64_t, int64_t> first_size(const ClassFolder& files, bool upright, bool skip) {
  for (size_t i = 0;; ++i) {
    try {
      return image_size(files.paths.at(i), upright);
    } catch (const IoError&) {
      if (!skip || i + 1 >= files.paths.size()) throw;
    }
  }
}

ImageData open_folder(Fields& fields, const std::string& folder) {
  const std::string train = fields.path("train", folder);
  const std::string valid = fields.path("valid", folder, false);
  const std::string test = fields.path("test", folder, false);
  ImageForm form;
  form.gray = fields.flag("gray", false);
  form.upright = fields.flag("upright", true);
  const bool skip = fields.word("bad_images", "raise", {"raise", "skip"}) == "skip";
  const auto size = fields.sides("size", 1, 8192);
  const ClassFolder files = read_class_folder(train);
  std::tie(form.height, form.width) = size ? *size : first_size(files, form.upright, skip);
  std::vector<std::shared_ptr<ImageFiles>> all;
  const auto open = [&](const ClassFolder& found) {
    all.push_back(std::make_shared<ImageFiles>(found, form, skip));
    return data::DatasetHandle(all.back());
  };
  ImageData out{open(files), files.labels, {}, {}, files.classes, {}};
  if (!valid.empty()) out.validation = open(read_class_folder(valid, files.classes));
  if (!test.empty()) out.test = open(read_class_folder(test, files.classes));
  out.skipped = [all] {
    int64_t sum = 0;
    for (const auto& part : all) sum += part->skipped();
    return sum;
  };
  return out;
}

ImageData in_memory(const Held& train, const Held& test, std::vector<std::string> classes,
                    std::optional<std::pair<int64_t, int64_t>> size) {
  ImageData out{dataset_of(train, size), train.labels.to_vector<int64_t>(), {}, {}, {}, {}};
  out.test = dataset_of(test, size);
  const int64_t most =
      std::max(train.labels.max().item<int64_t>(), test.labels.max().item<int64_t>()) + 1;
  out.classes = classes.empty() ? numbered(most) : std::move(classes);
  return out;
}

ImageData open_kind(const std::string& kind, Fields& fields, const std::string& folder) {
  if (kind == "image_folder") return open_folder(fields, folder);
  if (kind == "digits") {
    const int64_t samples = fields.whole("samples", 12000, 10, 10'000'000);
    const int64_t test = fields.whole("test_samples", 2000, 1, 10'000'000);
    const auto size = fields.sides("size", 1, 8192);
    return in_memory(held(data::make_digits(samples, 1)), held(data::make_digits(test, 3)),
                     numbered(10), size);
  }
  const std::string path = fields.path("path", folder);
  const auto size = fields.sides("size", 1, 8192);
  if (kind == "mnist") {
    return in_memory(held(data::load_mnist(path, true)), held(data::load_mnist(path, false)), {},
                     size);
  }
  const bool hundred = kind == "cifar100";
  const Cifar train = read_cifar(path, hundred, true), test = read_cifar(path, hundred, false);
  return in_memory({train.images, train.labels}, {test.images, test.labels},
                   train.names.empty() ? numbered(hundred ? 100 : 10) : train.names, size);
}

}  // namespace

TaskData open_images(const std::string& kind, Fields& fields, const std::string& folder,
                     uint64_t seed) {
  ImageData images = open_kind(kind, fields, folder);
  const bool codes = fields.word("task", "classes", {"classes", "codes"}) == "codes";
  const double share = read_valid_share(fields);
  TaskData out;
  const AugmentOptions options = read_augment(fields, codes ? nullptr : &out.mix);
  out.training = images.training;
  out.validation = images.validation;
  out.test = images.test;
  out.skipped = images.skipped;
  split_training(out, images.labels, share, seed);
  const Shape shape = (*out.training)->get(0).input().shape();
  out.shape = {.task = codes ? Task::image_codes : Task::image_classes,
               .channels = shape[0],
               .height = shape[1],
               .width = shape[2],
               .classes = static_cast<int64_t>(images.classes.size())};
  if (!codes && out.shape.classes < 2) {
    fields.fail("kind", "there is one class alone; expected two or more");
  }
  out.class_names = images.classes;
  if (options.any()) {
    out.transform = [options](data::Example e, data::SampleRandom& random) {
      augment(options, e[0], nullptr, random);
      return e;
    };
  }
  // A code is compared with the image itself, from 0 to 1.
  const PixelScale scale = codes ? PixelScale{} : read_pixel_scale(fields, *out.training);
  out.prepare = [scale](const Tensor& x) { return scale(x); };
  out.facts = scale.facts();
  Json names = Json::Array();
  for (const std::string& name : images.classes) names.add(Json(name));
  out.facts.add("classes", std::move(names));
  out.text = concat(codes ? "" : concat(out.shape.classes, " classes of "), "images, ", shape[0],
                    "x", shape[1], "x", shape[2]);
  return out;
}

}  // namespace kiln::cli
