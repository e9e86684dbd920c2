// Data of images whose pixels have classes: a folder of images, a folder of masks.
#include <algorithm>
#include <filesystem>
#include <set>

#include "cli/train/augment.h"
#include "cli/train/image_files.h"
#include "cli/train/pixel_scale.h"
#include "cli/train/task_data.h"
#include "kiln/core/error.h"
#include "kiln/io/image.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "kiln/vision/transform.h"

namespace kiln::cli {

namespace {

namespace fs = std::filesystem;

struct Pair {
  std::string image, mask;
};

// The mask of an image: of the same name, or a PNG beside a JPEG, whose losses a mask cannot bear.
std::string mask_of(const std::string& image, fs::path mask) {
  if (fs::is_regular_file(mask)) return mask.string();
  const std::string same = mask.string();
  for (const char* ending : {".png", ".webp"}) {
    mask.replace_extension(ending);
    if (fs::is_regular_file(mask)) return mask.string();
  }
  throw_error<IoError>("'", image, "' has no mask; expected '", same, "', or a PNG of that name");
}

// Images and masks of the same names, in `images` and `masks` below the folder.
std::vector<Pair> pairs_in(const std::string& folder) {
  const std::string images = (fs::path(folder) / "images").string();
  const std::string masks = (fs::path(folder) / "masks").string();
  std::vector<Pair> out;
  for (const std::string& path : files_of_kind(images)) {
    out.push_back({path, mask_of(path, fs::path(masks) / fs::relative(path, images))});
  }
  return out;
}

// A mask's gray values are its classes; with two classes any value above 127 may stand for 1.
Tensor read_mask(const std::string& path, const ImageForm& form, int64_t classes) {
  Tensor mask = Tensor(io::read_image(path, {.gray = true})).squeeze(0);
  if (mask.size(0) != form.height || mask.size(1) != form.width) {
    mask = vision::resize(mask.unsqueeze(0), form.height, form.width, "nearest", false).squeeze(0);
  }
  Tensor out = mask.to(i64);
  if (classes == 2 && out.max().item<int64_t>() > 1) out = mask.gt(127).to(i64);
  if (const int64_t most = out.max().item<int64_t>(); most >= classes) {
    throw_error<IoError>("'", path, "' is no mask of ", classes, " classes; got a pixel of value ",
                         most, "; expected 0 to ", classes - 1);
  }
  return out;
}

data::DatasetHandle dataset_of(const std::vector<Pair>& pairs, const ImageForm& form,
                               int64_t classes) {
  return data::FunctionDataset(
      static_cast<int64_t>(pairs.size()), [pairs, form, classes](int64_t i) {
        const Pair& pair = pairs[static_cast<size_t>(i)];
        return data::Example{read_image_as(pair.image, form), read_mask(pair.mask, form, classes)};
      });
}

}  // namespace

TaskData open_segmentation(Fields& fields, const std::string& folder, uint64_t seed) {
  const std::string train = fields.path("train", folder);
  const std::string valid = fields.path("valid", folder, false);
  const std::string test = fields.path("test", folder, false);
  ImageForm form;
  form.gray = fields.flag("gray", false);
  form.upright = fields.flag("upright", true);
  const auto size = fields.sides("size", 1, 8192);
  const std::vector<std::string> names = fields.texts("classes", {"background", "object"});
  const auto classes = static_cast<int64_t>(names.size());
  if (classes < 2 || classes > 256) {
    fields.fail("classes", concat("expected 2 to 256 names, that of 0 first; got ", classes));
  }
  const double share = read_valid_share(fields);
  const AugmentOptions options = read_augment(fields);
  const std::vector<Pair> pairs = pairs_in(train);
  std::tie(form.height, form.width) = size ? *size : image_size(pairs[0].image, form.upright);
  TaskData out;
  out.training = dataset_of(pairs, form, classes);
  if (!valid.empty()) out.validation = dataset_of(pairs_in(valid), form, classes);
  if (!test.empty()) out.test = dataset_of(pairs_in(test), form, classes);
  split_training(out, {}, share, seed);
  out.shape = {.task = Task::segmentation,
               .channels = form.gray ? 1 : 3,
               .height = form.height,
               .width = form.width,
               .classes = classes};
  out.class_names = names;
  if (options.any()) {
    out.transform = [options](data::Example e, data::SampleRandom& random) {
      augment(options, e[0], &e[1], random);
      return e;
    };
  }
  const PixelScale scale = read_pixel_scale(fields, *out.training);
  out.prepare = [scale](const Tensor& x) { return scale(x); };
  out.facts = scale.facts();
  Json classes_named = Json::Array();
  for (const std::string& name : names) classes_named.add(Json(name));
  out.facts.add("classes", std::move(classes_named));
  out.text = concat("images and masks of ", classes, " classes, ", out.shape.channels, "x",
                    form.height, "x", form.width);
  return out;
}

}  // namespace kiln::cli
