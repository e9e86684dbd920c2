#include "cli/train/example_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <numbers>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/train/drawn_shapes.h"
#include "cli/train/examples.h"
#include "cli/usage_error.h"
#include "kiln/audio/audio_file.h"
#include "kiln/core/error.h"
#include "kiln/data/digits.h"
#include "kiln/data/sample_random.h"
#include "kiln/io/atomic_file.h"
#include "kiln/io/image.h"
#include "kiln/tensor/creation.h"
#include "kiln/train/chart.h"

namespace kiln::cli {

namespace {

namespace fs = std::filesystem;
using data::SampleRandom;

void write(const fs::path& path, std::string_view bytes) {
  fs::create_directories(path.parent_path());
  io::write_file_atomically("example", path.string(), bytes);
}

std::string number_name(int64_t number) {
  std::string digits = concat(number);
  return std::string(digits.size() < 4 ? 4 - digits.size() : 0, '0') + digits + ".png";
}

void write_folder(const fs::path& folder) {
  for (int shape = 0; shape < 5; ++shape) {
    for (int64_t i = 0; i < 100; ++i) {
      const fs::path part = folder / (i < 80 ? "train" : "test") / kShapeNames[shape];
      write(part / number_name(i), io::encode_png_rgb(draw_shape(shape, false, 32, i).image));
    }
  }
}

// Ten classes: five shapes, filled and as outlines.
void write_cifar(const fs::path& folder) {
  std::string names;
  for (const char* kind : {"", "empty "}) {
    for (const char* shape : kShapeNames) names += concat(kind, shape, "\n");
  }
  write(folder / "data" / "batches.meta.txt", names);
  for (int batch = 1; batch <= 6; ++batch) {
    std::string bytes;
    for (int64_t i = 0; i < 200; ++i) {
      const int label = static_cast<int>(i % 10);
      const TensorData image = draw_shape(label % 5, label >= 5, 32, 1000 * batch + i / 10).image;
      const auto pixels = image.as<uint8_t>();
      bytes += static_cast<char>(label);
      for (size_t c = 0; c < 3; ++c) {
        for (size_t p = 0; p < 1024; ++p) bytes += static_cast<char>(pixels[3 * p + c]);
      }
    }
    write(folder / "data" / (batch == 6 ? "test_batch.bin" : concat("data_batch_", batch, ".bin")),
          bytes);
  }
}

std::string idx(const TensorData& values, bool images) {
  std::string out{'\0', '\0', '\x08', images ? '\x03' : '\x01'};
  for (const int64_t d : values.shape()) {
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(d >> shift & 255);
  }
  if (images) {
    for (const uint8_t v : values.as<uint8_t>()) out += static_cast<char>(v);
  } else {
    for (const int64_t v : values.as<int64_t>()) out += static_cast<char>(v);
  }
  return out;
}

void write_mnist(const fs::path& folder) {
  const data::ImageSet train = data::make_digits(4000, 1), test = data::make_digits(1000, 3);
  write(folder / "data/train-images-idx3-ubyte", idx(train.images, true));
  write(folder / "data/train-labels-idx1-ubyte", idx(train.labels, false));
  write(folder / "data/t10k-images-idx3-ubyte", idx(test.images, true));
  write(folder / "data/t10k-labels-idx1-ubyte", idx(test.labels, false));
}

void write_scenes(const fs::path& folder) {
  for (int64_t i = 0; i < 240; ++i) {
    const fs::path part = folder / (i < 200 ? "train" : "test");
    const DrawnScene scene = draw_scene(3, 64, i);
    write(part / "images" / number_name(i), io::encode_png_rgb(scene.image));
    write(part / "masks" / number_name(i), io::encode_png_gray(scene.classes));
  }
}

// Three kinds of plants, which overlap a little.
void write_plants(const fs::path& path, bool csv) {
  static constexpr const char* kSpecies[] = {"ash", "birch", "cedar"};
  static constexpr double kMeans[3][4] = {
      {5.0, 3.4, 1.5, 0.3}, {6.0, 2.8, 4.2, 1.3}, {6.6, 3.0, 5.3, 2.0}};
  static constexpr const char* kColumns[] = {"leaf_length", "leaf_width", "stem_length",
                                             "stem_width"};
  std::string text = csv ? "leaf_length,leaf_width,stem_length,stem_width,species\n" : "";
  for (int64_t i = 0; i < 300; ++i) {
    SampleRandom random(9, 0, i);
    const size_t kind = static_cast<size_t>(random.integer(0, 3));
    if (!csv) text += "{";
    for (size_t k = 0; k < 4; ++k) {
      const double value = std::max(0.1, random.normal(kMeans[kind][k], 0.35));
      const std::string number = train::format_number("%.2f", value);
      text += csv ? number + "," : concat("\"", kColumns[k], "\": ", number, ", ");
    }
    text += csv ? concat(kSpecies[kind], "\n") : concat("\"species\": \"", kSpecies[kind], "\"}\n");
  }
  write(path, text);
}

void write_houses(const fs::path& path) {
  static constexpr const char* kTowns[] = {"Aachen", "Bonn", "Kiel", "Ulm"};
  static constexpr double kFactor[] = {1.0, 1.25, 0.85, 1.1};
  std::string text = "rooms,area,age,town,garden,price\n";
  for (int64_t i = 0; i < 800; ++i) {
    SampleRandom random(10, 0, i);
    const int64_t rooms = random.integer(1, 8);
    const double area = static_cast<double>(rooms) * random.uniform(16, 30);
    const int64_t age = random.integer(0, 80);
    const auto town = static_cast<size_t>(random.integer(0, 4));
    const bool garden = random.chance(0.4);
    const double price = kFactor[town] * (40 + 2.4 * area + 8 * static_cast<double>(rooms)) *
                             (1 - 0.004 * static_cast<double>(age)) +
                         (garden ? 25 : 0) + random.normal(0, 8);
    text += concat(rooms, ",", train::format_number("%.1f", area), ",", age, ",", kTowns[town], ",",
                   garden ? "true" : "false", ",", train::format_number("%.1f", price), "\n");
  }
  write(path, text);
}

template <size_t N>
const char* one_of(const std::array<const char*, N>& words, SampleRandom& random) {
  return words[static_cast<size_t>(random.integer(0, static_cast<int64_t>(N)))];
}

// "not" turns a verdict round: the words alone do not tell it.
void write_reviews(const fs::path& path) {
  static constexpr std::array<const char*, 8> kThings{"film", "book",  "meal", "hotel",
                                                      "song", "phone", "game", "tour"};
  static constexpr std::array<const char*, 6> kGood{"good",      "great", "lovely",
                                                    "brilliant", "fine",  "delightful"};
  static constexpr std::array<const char*, 6> kBad{"bad",    "poor",  "dreadful",
                                                   "boring", "awful", "weak"};
  static constexpr std::array<const char*, 5> kHow{"really", "quite", "rather", "truly", "very"};
  static constexpr std::array<const char*, 6> kEnds{
      "I told my friends.", "We went on a Sunday.", "My sister came along.",
      "It took two hours.", "It cost ten euros.",   "I had heard of it before."};
  std::string text = "review,verdict\n";
  for (int64_t i = 0; i < 2000; ++i) {
    SampleRandom random(11, 0, i);
    const bool says_good = random.chance(0.5), negated = random.chance(0.35);
    std::string review = random.chance(0.3) ? concat(one_of(kEnds, random), " ") : "";
    review += concat("The ", one_of(kThings, random), " was ", negated ? "not " : "",
                     one_of(kHow, random), " ", one_of(says_good ? kGood : kBad, random), ".");
    if (random.chance(0.6)) review += concat(" ", one_of(kEnds, random));
    text += concat("\"", review, "\",", says_good != negated ? "good" : "bad", "\n");
  }
  write(path, text);
}

void write_story(const fs::path& path) {
  static constexpr std::array<const char*, 6> kWho{"the fox",     "the miller", "a child",
                                                   "the old owl", "my aunt",    "the king"};
  static constexpr std::array<const char*, 6> kDoes{"looked for", "found", "asked about",
                                                    "carried",    "lost",  "dreamt of"};
  static constexpr std::array<const char*, 6> kWhat{"a golden key", "the moon", "three apples",
                                                    "a quiet song", "the road", "an open door"};
  static constexpr std::array<const char*, 5> kWhere{"in the forest", "by the river", "at night",
                                                     "on the hill", "before the rain"};
  std::string text;
  for (int64_t i = 0; i < 1200; ++i) {
    SampleRandom random(12, 0, i);
    std::string line = concat(one_of(kWho, random), " ", one_of(kDoes, random), " ",
                              one_of(kWhat, random), " ", one_of(kWhere, random), ".");
    line[0] = static_cast<char>(line[0] - 'a' + 'A');
    text += line + (i % 5 == 4 ? "\n" : " ");
  }
  write(path, text);
}

// Tones that rise, fall or stay, at any pitch, in noise.
void write_sounds(const fs::path& folder) {
  constexpr int64_t kRate = 8000;
  const std::pair<const char*, double> kinds[] = {
      {"falling", -1.0}, {"rising", 1.0}, {"steady", 0.0}};
  for (const auto& [part, count, seed] :
       {std::tuple{"train", 60, 21}, std::tuple{"test", 20, 22}}) {
    for (const auto& [name, slope] : kinds) {
      fs::create_directories(folder / part / name);
      for (int64_t i = 0; i < count; ++i) {
        SampleRandom random(static_cast<uint64_t>(seed) + static_cast<uint64_t>(10 * slope + 10), 0,
                            i);
        const double from = random.uniform(900, 1600), loud = random.uniform(0.1, 0.6);
        std::vector<float> wave;
        double phase = 0;
        for (int64_t t = 0; t < kRate; ++t) {
          const double second = static_cast<double>(t) / kRate;
          phase += 2 * std::numbers::pi * from * std::exp2(slope * (second - 0.5)) / kRate;
          wave.push_back(static_cast<float>(loud * std::sin(phase) + random.normal(0, 0.02)));
        }
        char file[32];
        std::snprintf(file, sizeof file, "%04lld.wav", static_cast<long long>(i));
        audio::write_wav((folder / part / name / file).string(), from_vector(wave, {kRate}), kRate);
      }
    }
  }
}

}  // namespace

void write_example(const std::string& kind, const std::string& folder) {
  const std::string config = example_config(kind);
  const fs::path path(folder);
  if (fs::exists(path / "config.json")) {
    throw UsageError("'" + (path / "config.json").string() + "' is there already; give --out " +
                     "another folder");
  }
  if (kind == "image_folder") write_folder(path);
  if (kind == "cifar10") write_cifar(path);
  if (kind == "mnist") write_mnist(path);
  if (kind == "segmentation") write_scenes(path);
  if (kind == "audio_folder") write_sounds(path);
  if (kind == "csv") write_plants(path / "plants.csv", true);
  if (kind == "json_lines") write_plants(path / "plants.jsonl", false);
  if (kind == "regression") write_houses(path / "houses.csv");
  if (kind == "text_csv") write_reviews(path / "reviews.csv");
  if (kind == "text_corpus") write_story(path / "story.txt");
  write(path / "config.json", config);
}

}  // namespace kiln::cli
