#include "cli/predict/predictor.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "cli/train/image_files.h"
#include "cli/train/sound_files.h"
#include "cli/train/table_features.h"
#include "cli/train/tokens.h"
#include "cli/usage_error.h"
#include "kiln/core/error.h"
#include "kiln/core/utf8.h"
#include "kiln/data/table.h"
#include "kiln/io/image.h"
#include "kiln/io/input_file.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::cli {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostTextBytes = uint64_t{2} << 30;

bool is_json_lines(const std::string& path) {
  const std::string ending = fs::path(path).extension().string();
  return ending == ".jsonl" || ending == ".ndjson" || ending == ".json";
}

bool is_table(const std::string& path) {
  const std::string ending = fs::path(path).extension().string();
  return ending == ".csv" || ending == ".tsv" || is_json_lines(path);
}

std::vector<std::string> lines_in(const std::string& text) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.pop_back();
    out.push_back(std::move(line));
    begin = end + 1;
  }
  return out;
}

bool is_of_images(Task task) { return task == Task::image_classes || task == Task::segmentation; }

}  // namespace

Predictor::Predictor(const TrainedModel& model, PredictOptions options, Take take, Refuse refuse)
    : model_(model),
      options_(std::move(options)),
      take_(std::move(take)),
      refuse_(std::move(refuse)) {
  const bool segments = model_.shape.task == Task::segmentation;
  if (segments && options_.masks.empty()) {
    throw UsageError("this model makes masks; give --masks DIR, where they go");
  }
  if (!segments && !options_.masks.empty()) {
    throw UsageError(concat("--masks: this model is for the ", to_string(model_.shape.task),
                            ", and makes no masks"));
  }
}

void Predictor::predict(const std::vector<std::string>& inputs) {
  if (is_of_images(model_.shape.task)) return images(inputs);
  const bool rows =
      model_.shape.task == Task::table_classes || model_.shape.task == Task::table_numbers;
  for (const std::string& path : inputs) {
    try {
      if (rows || (is_table(path) && model_.shape.task == Task::text_classes)) {
        table(path);
      } else {
        text_file(path);
      }
    } catch (const Error& error) {
      refuse_(error.what());
    }
  }
}

void Predictor::images(const std::vector<std::string>& inputs) {
  const Json* sound = model_.facts.find("sound");
  std::vector<std::string> files;
  for (const std::string& path : inputs) {
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    try {
      const std::vector<std::string> found =
          files_of_kind(path, sound == nullptr ? image_kind() : sound_kind());
      files.insert(files.end(), found.begin(), found.end());
    } catch (const IoError& error) {
      refuse_(error.what());
    }
  }
  const ImageForm form{model_.shape.channels == 1, model_.flag("upright", true),
                       model_.shape.height, model_.shape.width};
  const SoundForm sound_form = sound == nullptr ? SoundForm{} : SoundForm::from_facts(*sound);
  std::vector<Answer> names;
  std::vector<Tensor> batch;
  for (size_t i = 0; i < files.size(); ++i) {
    try {
      batch.push_back(sound == nullptr ? read_image_as(files[i], form)
                                       : read_sound_as(files[i], sound_form));
      names.push_back({.input = files[i]});
    } catch (const Error& error) {
      refuse_(error.what());
    }
    const bool last = i + 1 == files.size();
    if (batch.empty() || (!last && static_cast<int64_t>(batch.size()) < options_.batch)) continue;
    answer(names, stack(batch));
    names.clear();
    batch.clear();
  }
}

void Predictor::table(const std::string& path) {
  data::TableOptions options;
  if (options_.skip) options.bad_rows = data::BadRows::skip;
  const bool json = is_json_lines(path);
  if (!json && !model_.text("delimiter").empty()) options.delimiter = model_.text("delimiter")[0];
  if (!json) options.header = model_.flag("header", true);
  const bool is_text = model_.shape.task == Task::text_classes;
  const std::string column = model_.text("text");
  std::vector<TableFeature> features;
  if (is_text) {
    options.types[column] = data::ColumnType::text;
  } else {
    const Json* found = model_.facts.find("features");
    features = table_features(found == nullptr ? Json() : *found);
    if (width_of(features) != model_.shape.features) {
      throw ValueError("the model's features are malformed");
    }
    for (const TableFeature& f : features) {
      options.types[f.name] = f.words.empty() ? data::ColumnType::real : data::ColumnType::text;
    }
  }
  const data::Table rows =
      json ? data::read_json_lines(path, options) : data::read_csv(path, options);
  skipped_ += rows.skipped();
  if (is_text) return texts(path, rows.texts(column), true);
  const Tensor all = features_of(rows, features);
  for (int64_t begin = 0; begin < rows.size(); begin += options_.batch) {
    const int64_t count = std::min(options_.batch, rows.size() - begin);
    std::vector<Answer> names;
    for (int64_t i = 0; i < count; ++i) names.push_back({.input = path, .row = begin + i + 1});
    answer(names, all.narrow(0, begin, count));
  }
}

// A line is a text; "-" is standard input.
void Predictor::text_file(const std::string& path) {
  std::string all;
  if (path == "-") {
    all.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else {
    all = io::InputFile("predict", path).read_whole(kMostTextBytes);
  }
  if (!is_utf8(all)) throw_error<IoError>("'", path, "' is no UTF-8 text");
  texts(path, lines_in(all), true);
}

void Predictor::predict_texts(const std::vector<std::string>& given) {
  if (model_.shape.task != Task::text_classes && model_.shape.task != Task::language) {
    throw UsageError(concat("--text: this model is for the ", to_string(model_.shape.task)));
  }
  for (const std::string& text : given) texts(text, {text}, false);
}

void Predictor::texts(const std::string& input, const std::vector<std::string>& lines,
                      bool numbered) {
  const Tokens tokens = Tokens::from_facts(model_.facts, options_.tokenizer);
  if (tokens.size() != model_.shape.vocabulary) {
    throw_error<ValueError>("the tokens are not those of the model; got ", tokens.size(),
                            "; expected ", model_.shape.vocabulary);
  }
  const bool continues = model_.shape.task == Task::language;
  std::vector<Answer> names;
  std::vector<int64_t> ids;
  const auto flush = [&] {
    if (names.empty()) return;
    const auto count = static_cast<int64_t>(names.size());
    const auto length = static_cast<int64_t>(ids.size()) / count;
    answer(names, from_vector(ids, {count, length}, {.dtype = i64}));
    names.clear();
    ids.clear();
  };
  for (size_t i = 0; i < lines.size(); ++i) {
    std::vector<int64_t> own;
    if (continues) {  // the last tokens, each line at its own length
      own = tokens.encode(lines[i]);
      const auto length = static_cast<size_t>(model_.shape.length);
      if (own.size() > length) own.erase(own.begin(), own.end() - model_.shape.length);
      if (own.empty()) own.push_back(1);
      flush();
    } else {
      own = tokens.padded(lines[i], model_.shape.length);
    }
    ids.insert(ids.end(), own.begin(), own.end());
    names.push_back({.input = input, .row = numbered ? static_cast<int64_t>(i) + 1 : 0});
    if (static_cast<int64_t>(names.size()) >= options_.batch) flush();
  }
  flush();
}

void Predictor::answer(const std::vector<Answer>& inputs, const Tensor& batch) {
  Tensor out = model_(batch).to(f32);
  if (model_.shape.task == Task::table_numbers) {
    const std::vector<float> values = out.to_vector<float>();
    for (size_t i = 0; i < inputs.size(); ++i) {
      Answer one = inputs[i];
      one.value = values[i];
      take_(one);
    }
    return;
  }
  if (model_.shape.task == Task::segmentation) {
    const Tensor classes = out.argmax(1);
    for (size_t i = 0; i < inputs.size(); ++i) {
      Answer one = inputs[i];
      write_mask(one, classes[static_cast<int64_t>(i)]);
      take_(one);
    }
    return;
  }
  std::optional<Tokens> tokens;
  if (model_.shape.task == Task::language) {
    tokens = Tokens::from_facts(model_.facts, options_.tokenizer);
    out = out.select(1, out.size(1) - 1);
  }
  const Tensor shares = out.softmax(1);
  const int64_t count = std::min(options_.top, shares.size(1));
  const auto [values, indices] = shares.topk(count, 1);
  const std::vector<float> probabilities = values.contiguous().to_vector<float>();
  const std::vector<int64_t> places = indices.contiguous().to_vector<int64_t>();
  for (size_t i = 0; i < inputs.size(); ++i) {
    Answer one = inputs[i];
    for (size_t k = i * static_cast<size_t>(count); k < (i + 1) * static_cast<size_t>(count); ++k) {
      const auto place = static_cast<size_t>(places[k]);
      std::string name = tokens                          ? tokens->decode({places[k]})
                         : place < model_.classes.size() ? model_.classes[place]
                                                         : concat(place);
      one.classes.emplace_back(std::move(name), probabilities[k]);
    }
    take_(one);
  }
}

// A gray PNG at the size that the model works at, as the masks it learned from.
void Predictor::write_mask(Answer& answer, const Tensor& classes) {
  fs::create_directories(options_.masks);
  const fs::path from(answer.input);
  answer.mask = (fs::path(options_.masks) / from.stem()).string() + ".png";
  if (fs::exists(answer.mask) && fs::equivalent(answer.mask, answer.input)) {
    throw UsageError("--masks: '" + answer.mask + "' is an image to be read; give another folder");
  }
  if (!masks_.insert(answer.mask).second) {
    throw UsageError("--masks: two images have the mask '" + answer.mask +
                     "'; expected images of different names");
  }
  const Tensor bytes = classes.to(u8).contiguous();
  io::write_png_gray(answer.mask, bytes.to_data());
  const auto pixels = static_cast<double>(classes.numel());
  const int64_t count = std::min(options_.top, model_.shape.classes);
  std::vector<std::pair<double, size_t>> shares;
  for (int64_t c = 0; c < model_.shape.classes; ++c) {
    shares.emplace_back(-classes.eq(c).sum().item() / pixels, static_cast<size_t>(c));
  }
  std::sort(shares.begin(), shares.end());
  for (int64_t k = 0; k < count; ++k) {
    const auto [share, place] = shares[static_cast<size_t>(k)];
    const std::string name = place < model_.classes.size() ? model_.classes[place] : concat(place);
    answer.classes.emplace_back(name, -share);
  }
}

}  // namespace kiln::cli
