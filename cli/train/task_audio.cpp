// Data of sounds with classes: folders of WAV and FLAC files, which image models learn by their
// spectra.
#include <algorithm>
#include <cmath>
#include <memory>

#include "cli/train/augment.h"
#include "cli/train/pixel_scale.h"
#include "cli/train/sound_files.h"
#include "cli/train/task_data.h"
#include "kiln/core/error.h"

namespace kiln::cli {

namespace {

// Of the first sound that can be read.
int64_t first_rate(const ClassFolder& files, bool skip) {
  for (size_t i = 0;; ++i) {
    try {
      return sound_rate(files.paths.at(i));
    } catch (const IoError&) {
      if (!skip || i + 1 >= files.paths.size()) throw;
    }
  }
}

SoundForm read_form(Fields& fields, int64_t rate) {
  SoundForm form;
  form.rate = rate;
  const double seconds = fields.real("seconds", 1.0, 0.0, 3600.0, /*open=*/true);
  form.mels = fields.whole("mels", 64, 1, 1024);
  form.n_fft = fields.whole("n_fft", 512, 2, 65536);
  form.hop = fields.whole("hop", form.n_fft / 2, 1, 65536);
  form.frames = std::llround(seconds * static_cast<double>(rate));
  if (form.frames < form.hop) {
    fields.fail("seconds",
                concat("too short for a hop of ", form.hop, " samples at ", rate, " Hz"));
  }
  return form;
}

}  // namespace

TaskData open_sounds(Fields& fields, const std::string& folder, uint64_t seed) {
  const std::string train = fields.path("train", folder);
  const std::string valid = fields.path("valid", folder, false);
  const std::string test = fields.path("test", folder, false);
  const bool skip = fields.word("bad_sounds", "raise", {"raise", "skip"}) == "skip";
  const ClassFolder files = read_class_folder(train, {}, sound_kind());
  const auto given = fields.maybe_whole("rate", 1, 1'000'000);
  const int64_t rate = given ? *given : first_rate(files, skip);
  const SoundForm form = read_form(fields, rate);
  const double share = read_valid_share(fields);

  std::vector<std::shared_ptr<ImageFiles>> all;
  const auto open = [&](const ClassFolder& found) {
    const auto read = [form](const std::string& path) { return read_sound_as(path, form); };
    all.push_back(std::make_shared<ImageFiles>(found, read, skip));
    return data::DatasetHandle(all.back());
  };
  TaskData out;
  const AugmentOptions options = read_augment(fields, &out.mix);
  out.training = open(files);
  if (!valid.empty()) out.validation = open(read_class_folder(valid, files.classes, sound_kind()));
  if (!test.empty()) out.test = open(read_class_folder(test, files.classes, sound_kind()));
  out.skipped = [all] {
    int64_t sum = 0;
    for (const auto& part : all) sum += part->skipped();
    return sum;
  };
  split_training(out, files.labels, share, seed);
  const Shape shape = (*out.training)->get(0).input().shape();
  out.shape = {.task = Task::image_classes,
               .channels = 1,
               .height = shape[1],
               .width = shape[2],
               .classes = static_cast<int64_t>(files.classes.size())};
  if (out.shape.classes < 2) {
    fields.fail("kind", "there is one class alone; expected two or more");
  }
  out.class_names = files.classes;
  if (options.any()) {
    out.transform = [options](data::Example e, data::SampleRandom& random) {
      augment(options, e[0], nullptr, random);
      return e;
    };
  }
  const PixelScale scale = read_pixel_scale(fields, *out.training);
  out.prepare = [scale](const Tensor& x) { return scale(x); };
  out.facts = scale.facts();
  out.facts.add("sound", form.facts());
  Json names = Json::Array();
  for (const std::string& name : files.classes) names.add(Json(name));
  out.facts.add("classes", std::move(names));
  out.text = concat(out.shape.classes, " classes of sounds, ", shape[1], " mels x ", shape[2],
                    " frames at ", rate, " Hz");
  return out;
}

}  // namespace kiln::cli
