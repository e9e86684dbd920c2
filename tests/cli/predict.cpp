// `kiln predict`: what it says of files equals what `kiln train` measured on them.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/core/json.h"
#include "kiln/data/table.h"
#include "kiln/io/image.h"
#include "kiln/tensor/ops.h"
#include "tests/support/program.h"
#include "tests/support/temp_dir.h"

using namespace kiln;
using kiln::test::ProgramResult;
using kiln::test::TempDir;

namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

// The example of a kind, trained for a moment in the folder "run"; its own data is the test set
// where `test` names a file of it.
void train_example(const TempDir& dir, const std::string& kind, Arguments more,
                   const std::string& test = "") {
  const std::string folder = dir.path(kind);
  REQUIRE(test::run_program({"train", "--example", kind, "--out", folder}).status == 0);
  more.insert(more.begin(), {"train", folder + "/config.json", "--out", dir.path("run")});
  if (!test.empty()) more.insert(more.end(), {"--set", "data.test=" + test});
  const ProgramResult result = test::run_program(more);
  CAPTURE(result.err);
  REQUIRE(result.status == 0);
}

ProgramResult predict(const TempDir& dir, Arguments more) {
  more.insert(more.begin(), {"predict", dir.path("run")});
  return test::run_program(more);
}

// What the run measured on its test set.
double measured(const TempDir& dir, const std::string& metric) {
  const Json json = decode_json(test::read_bytes(dir.path("run") + "/run.json"));
  const Json* found = json.find("test") == nullptr ? nullptr : json.find("test")->find(metric);
  REQUIRE(found != nullptr);
  REQUIRE(found->as<double>() != nullptr);
  return *found->as<double>();
}

data::Table csv(const TempDir& dir, const ProgramResult& result) {
  CAPTURE(result.err);
  CHECK(result.status == 0);
  return data::read_csv(test::write_bytes(dir.path("answers.csv"), result.out),
                        {.types = {{"input", data::ColumnType::text}}});
}

double share_of(int64_t right, int64_t all) {
  return static_cast<double>(right) / static_cast<double>(all);
}

}  // namespace

TEST_CASE("predict: images, in a folder or by name; top classes; JSON") {
  NEEDS_PROGRAM();
  const TempDir dir;
  train_example(dir, "image_folder", {"--set", "model=lenet", "--epochs", "2"});
  const std::string folder = dir.path("image_folder/test");
  const data::Table answers = csv(dir, predict(dir, {folder, "--csv", "--top", "2"}));
  CHECK(answers.names() ==
        std::vector<std::string>{"input", "class", "probability", "class_2", "probability_2"});
  int64_t right = 0;
  for (int64_t i = 0; i < answers.size(); ++i) {
    const auto at = static_cast<size_t>(i);
    right +=
        fs::path(answers.texts("input")[at]).parent_path().filename() == answers.texts("class")[at];
  }
  CHECK(answers.size() > 50);
  CHECK(share_of(right, answers.size()) == doctest::Approx(measured(dir, "test/accuracy")));
  const Tensor first = answers.numbers("probability"), second = answers.numbers("probability_2");
  CHECK(first.ge(second).all().item<bool>());
  CHECK((first + second).max().item() <= 1 + 1e-6);

  const std::string one = answers.texts("input")[0];
  const ProgramResult json = predict(dir, {one, "--json", "--top", "3", "--batch", "1"});
  const Json document = decode_json(json.out);
  const Json* list = document.find("predictions");
  REQUIRE(list != nullptr);
  const Json& answer = list->as<Json::Array>()->at(0);
  CHECK(*answer.find("class")->as<std::string>() == answers.texts("class")[0]);
  CHECK(answer.find("top")->as<Json::Array>()->size() == 3);
  CHECK(*answer.find("probability")->as<double>() ==
        doctest::Approx(first.to_vector<double>()[0]).epsilon(1e-4));
  // A line for each; the model by its file.
  const ProgramResult line =
      test::run_program({"predict", dir.path("run") + "/model.safetensors", one});
  CHECK(test::contains(line.out, one + ":  " + answers.texts("class")[0] + " "));

  // What cannot be read is one line, and the others are answered all the same.
  const std::string bad = test::write_bytes(dir.path("bad.png"), "no image");
  const ProgramResult some = predict(dir, {bad, one});
  CHECK(some.status == 1);
  CHECK(test::contains(some.err, "bad.png' is no image"));
  CHECK(test::contains(some.out, one));
  const ProgramResult left = predict(dir, {bad, one, "--skip-bad"});
  CHECK(left.status == 0);
  CHECK(left.err == "kiln: left out 1 bad input\n");
  CHECK(decode_json(predict(dir, {bad, "--json"}).out).find("predictions") != nullptr);
  const ProgramResult text = predict(dir, {"--text", "x"});
  CHECK(text.status == 2);
  CHECK(test::contains(text.err, "this model is for the classification of images"));
  CHECK(predict(dir, {}).status == 2);
  CHECK(predict(dir, {one, "--masks", dir.path("m")}).status == 2);
}

TEST_CASE("predict: rows of a table, as classes and as numbers") {
  NEEDS_PROGRAM();
  {
    const TempDir dir;
    train_example(dir, "csv", {"--epochs", "4"}, "plants.csv");
    const std::string file = dir.path("csv/plants.csv");
    const data::Table answers = csv(dir, predict(dir, {file, "--csv"}));
    const data::Table rows = data::read_csv(file);
    REQUIRE(answers.size() == rows.size());
    int64_t right = 0;
    for (size_t i = 0; i < static_cast<size_t>(rows.size()); ++i) {
      right += answers.texts("class")[i] == rows.texts("species")[i];
    }
    CHECK(share_of(right, rows.size()) == doctest::Approx(measured(dir, "test/accuracy")));
    CHECK(answers.numbers("row").to_vector<int64_t>()[9] == 10);
    // A bad row names file, row and column, or is left out.
    test::write_bytes(file, test::read_bytes(file) + "1,2,many,4,ash\n");
    const ProgramResult bad = predict(dir, {file});
    CHECK(bad.status == 1);
    CHECK(test::contains(bad.err, "row 302, column 'stem_length': expected a number"));
    const ProgramResult skipped = predict(dir, {file, "--csv", "--skip-bad"});
    CHECK(skipped.err == "kiln: left out 1 bad input\n");
    CHECK(csv(dir, skipped).size() == rows.size());
  }
  const TempDir dir;
  train_example(dir, "regression", {"--epochs", "4"}, "houses.csv");
  const std::string file = dir.path("regression/houses.csv");
  const data::Table answers = csv(dir, predict(dir, {file, "--csv", "--batch", "7"}));
  CHECK(answers.names() == std::vector<std::string>{"input", "row", "value"});
  const Tensor truth = data::read_csv(file).numbers("price").to(f64);
  const double error = (answers.numbers("value").to(f64) - truth).abs().mean().item();
  CHECK(error == doctest::Approx(measured(dir, "test/mae")).epsilon(1e-4));
}

TEST_CASE("predict: texts by line, by column and from the command line") {
  NEEDS_PROGRAM();
  {
    const TempDir dir;
    train_example(dir, "text_csv", {"--epochs", "1"}, "reviews.csv");
    const std::string file = dir.path("text_csv/reviews.csv");
    const data::Table answers = csv(dir, predict(dir, {file, "--csv"}));
    const data::Table rows = data::read_csv(file);
    REQUIRE(answers.size() == rows.size());
    int64_t right = 0;
    std::string lines;
    for (size_t i = 0; i < static_cast<size_t>(rows.size()); ++i) {
      right += answers.texts("class")[i] == rows.texts("verdict")[i];
      lines += rows.texts("review")[i] + "\n";
    }
    CHECK(share_of(right, rows.size()) == doctest::Approx(measured(dir, "test/accuracy")));
    const std::string plain = test::write_bytes(dir.path("lines.txt"), lines);
    CHECK(csv(dir, predict(dir, {plain, "--csv"})).texts("class") == answers.texts("class"));
    const ProgramResult one = predict(dir, {"--text", rows.texts("review")[0]});
    CHECK(test::contains(one.out, ":  " + answers.texts("class")[0] + " "));
    const ProgramResult bad = predict(dir, {test::write_bytes(dir.path("b.txt"), "\xff\xfe\n")});
    CHECK(bad.status == 1);
    CHECK(test::contains(bad.err, "b.txt' is no UTF-8 text"));
  }
  const TempDir dir;
  train_example(dir, "text_corpus", {"--epochs", "1", "--set", "model.n_layer=1"});
  const ProgramResult next = predict(dir, {"--text", "the ca", "--json", "--top", "5"});
  CAPTURE(next.err);
  const Json document = decode_json(next.out);
  const Json* list = document.find("predictions");
  REQUIRE(list != nullptr);
  CHECK(list->as<Json::Array>()->at(0).find("token") != nullptr);
}

TEST_CASE("predict: masks of a segmentation") {
  NEEDS_PROGRAM();
  const TempDir dir;
  train_example(dir, "segmentation", {"--epochs", "1", "--set", "model.base_channels=2"});
  const std::string images = dir.path("segmentation/test/images"), masks = dir.path("masks");
  CHECK(predict(dir, {images}).status == 2);  // --masks is missing
  const data::Table answers = csv(dir, predict(dir, {images, "--masks", masks, "--csv"}));
  double right = 0, all = 0;
  for (const std::string& mask : answers.texts("mask")) {
    const Tensor found(io::read_gray_image(mask));
    const Tensor truth(io::read_gray_image(
        (fs::path(dir.path("segmentation/test/masks")) / fs::path(mask).filename()).string()));
    REQUIRE(found.shape() == truth.shape());
    right += found.eq(truth).sum().item();
    all += static_cast<double>(found.numel());
  }
  CHECK(all > 0);
  CHECK(right / all == doctest::Approx(measured(dir, "test/accuracy")).epsilon(1e-4));
  const ProgramResult over = predict(dir, {images, "--masks", images});
  CHECK(over.status == 2);
  CHECK(test::contains(over.err, "is an image to be read"));
}

TEST_CASE("predict: files that are no model of kiln train") {
  NEEDS_PROGRAM();
  const TempDir dir;
  const auto refused = [&](const std::string& path, const std::string& part) {
    const ProgramResult result = test::run_program({"predict", path, "x.png"});
    CAPTURE(result.err);
    CHECK(result.status == 1);
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
    CHECK(test::contains(result.err, part));
  };
  refused(dir.path("none"), "none");
  refused(dir.path(), "holds no model.safetensors");
  refused(test::write_bytes(dir.path("a.safetensors"), "x"), "a.safetensors");
  train_example(dir, "csv", {"--epochs", "1"});
  const std::string good = test::read_bytes(dir.path("run") + "/model.safetensors");
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string bytes = good;
    const size_t at = bytes.rfind(from);
    REQUIRE(at != std::string::npos);
    REQUIRE(from.size() == to.size());
    return test::write_bytes(dir.path("changed.safetensors"), bytes.replace(at, from.size(), to));
  };
  refused(changed("\"facts\"", "\"facto\""), "does not say what it was trained for");
  refused(changed("classification of rows", "classification of cows"), "task is not known");
  refused(changed("\\\"features\\\":4", "\\\"features\\\":7"), "changed.safetensors'");
}

TEST_CASE("predict: sounds") {
  NEEDS_PROGRAM();
  const TempDir dir;
  train_example(dir, "audio_folder", {"--set", "model=lenet", "--epochs", "3"});
  const data::Table answers = csv(dir, predict(dir, {dir.path("audio_folder/test"), "--csv"}));
  CHECK(answers.size() == 60);
  int64_t right = 0;
  for (int64_t i = 0; i < answers.size(); ++i) {
    const auto at = static_cast<size_t>(i);
    right +=
        fs::path(answers.texts("input")[at]).parent_path().filename() == answers.texts("class")[at];
  }
  CHECK(share_of(right, answers.size()) == doctest::Approx(measured(dir, "test/accuracy")));
  const std::string bad = test::write_bytes(dir.path("bad.wav"), "no sound");
  const ProgramResult refused = predict(dir, {bad});
  CHECK(refused.status == 1);
  CHECK(test::contains(refused.err, "bad.wav"));
}
