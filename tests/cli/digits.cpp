// The program `kiln`, run as a user would run it.
#include "kiln/data/digits.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/io/image.h"
#include "kiln/io/safetensors.h"
#include "tests/support/program.h"
#include "tests/support/temp_dir.h"

using namespace kiln;
using kiln::test::check_error;
using kiln::test::contains;
using kiln::test::ProgramResult;
using kiln::test::TempDir;

namespace {

using Arguments = std::vector<std::string>;

ProgramResult digits(const char* command, Arguments more, const test::SendSignal& send = {}) {
  Arguments all{"digits", command};
  all.insert(all.end(), more.begin(), more.end());
  return test::run_program(all, send);
}

size_t lines(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

void append_number(std::string& bytes, uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 255);
}

void write_idx(const std::string& path, const TensorData& images, const TensorData& labels) {
  std::string bytes("\0\0\x08\x03", 4);
  for (const int64_t d : images.shape()) append_number(bytes, static_cast<uint32_t>(d));
  bytes.append(reinterpret_cast<const char*>(images.data()), images.bytes());
  test::write_bytes(path + "-images-idx3-ubyte", bytes);
  bytes.assign("\0\0\x08\x01", 4);
  append_number(bytes, static_cast<uint32_t>(labels.numel()));
  for (const int64_t label : labels.as<int64_t>()) bytes += static_cast<char>(label);
  test::write_bytes(path + "-labels-idx1-ubyte", bytes);
}

// A folder in MNIST's form with few digits, so that a whole run takes a moment.
struct SmallSet {
  explicit SmallSet(int64_t samples = 240) {
    const data::ImageSet train = data::make_digits(samples, 100);
    write_idx(dir.path("train"), train.images, train.labels);
    const data::ImageSet test = data::make_digits(100, 101);
    write_idx(dir.path("t10k"), test.images, test.labels);
  }
  std::string path() const { return dir.path(); }
  TempDir dir;
};

std::string image_file(const TempDir& dir, const TensorData& image, const char* name) {
  io::write_png_gray(dir.path(name), image);
  return dir.path(name);
}

TensorData digit_image(uint64_t seed) {
  return TensorData(Shape{28, 28}, DType::u8, data::make_digits(1, seed).images.storage());
}

}  // namespace

TEST_CASE("help and version") {
  NEEDS_PROGRAM();
  const ProgramResult version = test::run_program({"--version"});
  CHECK(version.status == 0);
  CHECK(version.out.starts_with("kiln "));
  for (const Arguments& arguments :
       {Arguments{"--help"}, Arguments{"digits", "--help"}, Arguments{"digits", "train", "--help"},
        Arguments{"digits", "eval", "-h"}, Arguments{"digits", "predict", "--help"},
        Arguments{"digits", "sample", "--help"}}) {
    const ProgramResult help = test::run_program(arguments);
    CHECK(help.status == 0);
    CHECK(contains(help.out, "Usage: kiln"));
    CHECK(help.err.empty());
  }
  // A command that needs another one prints what there is.
  for (const Arguments& arguments : {Arguments{}, Arguments{"digits"}}) {
    const ProgramResult help = test::run_program(arguments);
    CHECK(help.status == 0);
    CHECK(contains(help.out, arguments.empty() ? "Usage: kiln " : "Usage: kiln digits "));
    CHECK(contains(help.out, arguments.empty() ? "inspect" : "predict"));
  }
  const std::string train = digits("train", {"--help"}).out;
  CHECK(contains(train, "(default: 0.002)"));
  CHECK(contains(train, "--resume"));
}

TEST_CASE("what is typed wrongly ends with one line and status 2") {
  NEEDS_PROGRAM();
  check_error(test::run_program({"--frobnicate"}), 2, "unknown argument '--frobnicate'");
  check_error(test::run_program({"digit"}), 2, "unknown argument 'digit'; did you mean 'digits'?");
  check_error(test::run_program({"digits", "trian"}), 2, "did you mean 'train'?");
  check_error(digits("train", {"--epoch", "2"}), 2, "did you mean '--epochs'?");
  check_error(test::run_program({"digits", "paint"}), 2, "unknown argument 'paint'");
  check_error(digits("train", {"--frobnicate"}), 2, "try kiln digits train --help");
  check_error(digits("train", {"--epochs", "0"}), 2, "--epochs");
  check_error(digits("train", {"--epochs", "many"}), 2, "--epochs");
  check_error(digits("train", {"--lr", "-1"}), 2, "--lr: expected a number above 0; got -1");
  check_error(digits("train", {"--lr", "abc"}), 2, "--lr: 'abc' is not a number");
  check_error(digits("train", {"--seed", "1.5"}), 2, "--seed: '1.5' is not a whole number");
  check_error(digits("train", {"--batch-size"}), 2, "--batch-size");
  check_error(digits("predict", {"x.png"}), 2, "--model");
  check_error(digits("predict", {"--model", "m"}), 2, "IMAGE");
  check_error(digits("predict", {"--model", "m", "--invert", "perhaps", "x"}), 2, "--invert");
  check_error(digits("sample", {"--digit", "10"}), 2, "--digit");
}

TEST_CASE("train: what it prints and leaves behind") {
  NEEDS_PROGRAM();
  const SmallSet set;
  const TempDir dir;
  const std::string out = dir.path("deep/er");
  const ProgramResult result =
      digits("train", {"--data", set.path(), "--out", out, "--epochs", "2"});
  CAPTURE(result.out);
  REQUIRE(result.status == 0);
  CHECK(result.err.empty());
  CHECK(contains(result.out, "on 220 digits of "));
  CHECK(contains(result.out, "epoch 1/2  loss "));
  CHECK(contains(result.out, "epoch 2/2  loss "));
  CHECK(contains(result.out, "true \\ taken for"));
  // No terminal: no bar and no control characters.
  CHECK_FALSE(contains(result.out, "\r"));
  CHECK_FALSE(contains(result.out, "\x1b"));
  CHECK(result.last_line().starts_with("test accuracy "));
  CHECK(result.last_line().ends_with(" %"));
  for (const char* name : {"model.safetensors", "checkpoints/checkpoints.json", "report.html",
                           "log.csv", "run.json"}) {
    CHECK(std::filesystem::exists(out + "/" + name));
  }
  CHECK(contains(test::read_bytes(out + "/report.html"), "<svg"));
  const io::SafetensorsReader model(out + "/model.safetensors");
  CHECK(model.metadata().contains("mean"));
  CHECK(model.metadata().at("training_samples") == "220");
  CHECK(model.contains("conv1.weight"));

  SUBCASE("eval finds the same accuracy") {
    const ProgramResult eval =
        digits("eval", {"--model", out + "/model.safetensors", "--data", set.path()});
    CHECK(eval.status == 0);
    CHECK(eval.last_line() == result.last_line());
  }
  SUBCASE("quiet prints the last line only") {
    const ProgramResult quiet =
        digits("train", {"--data", set.path(), "--out", out, "--epochs", "2", "--quiet"});
    CHECK(quiet.out == result.last_line() + "\n");
  }
  SUBCASE("a finished run can be resumed: it only tests") {
    const std::string before = test::read_bytes(out + "/model.safetensors");
    const ProgramResult again = digits("train", {"--resume", "--out", out});
    CHECK(again.status == 0);
    CHECK(contains(again.out, "Training is complete: 2 epochs"));
    CHECK(again.last_line() == result.last_line());
    CHECK(test::read_bytes(out + "/model.safetensors") == before);
  }
  SUBCASE("and be taken further") {
    const ProgramResult more = digits("train", {"--resume", "--out", out, "--epochs", "3"});
    CHECK(more.status == 0);
    CHECK(contains(more.out, "epoch 3/3"));
    CHECK_FALSE(contains(more.out, "epoch 2/3"));
  }
}

TEST_CASE("the same seed gives the same bits, at one and at two threads") {
  NEEDS_PROGRAM();
  const SmallSet set;
  const TempDir dir;
  const auto model = [&](const char* name, const char* seed, const char* threads) {
    const ProgramResult result =
        digits("train", {"--data", set.path(), "--out", dir.path(name), "--epochs", "1", "--seed",
                         seed, "--threads", threads, "--quiet"});
    REQUIRE(result.status == 0);
    return test::read_bytes(dir.path(name) + "/model.safetensors");
  };
  const std::string one = model("one", "7", "1");
  CHECK(model("two", "7", "2") == one);
  CHECK(model("again", "7", "2") == one);
  CHECK(model("other", "8", "2") != one);
}

TEST_CASE("Ctrl-C saves, and what is resumed equals what was never interrupted") {
  NEEDS_PROGRAM();
  const SmallSet set(2400);
  const TempDir dir;
  const Arguments settings{"--data", set.path(), "--epochs", "3", "--batch-size", "16"};
  const auto train = [&](const char* name, const test::SendSignal& send) {
    Arguments arguments = settings;
    arguments.insert(arguments.end(), {"--out", dir.path(name)});
    return digits("train", arguments, send);
  };
  const ProgramResult whole = train("whole", {});
  REQUIRE(whole.status == 0);
  const ProgramResult stopped = train("part", {SIGINT, "epoch 1/3  loss"});
  CAPTURE(stopped.out);
  CHECK(stopped.status == 130);
  CHECK(stopped.err.empty());
  CHECK(contains(stopped.out, "Interrupted in epoch 2 of 3, after batch "));
  CHECK(contains(stopped.out, "kiln digits train --resume --out " + dir.path("part")));
  CHECK(std::filesystem::exists(dir.path("part/model.safetensors")));

  const ProgramResult rest = digits("train", {"--resume", "--out", dir.path("part")});
  CAPTURE(rest.out);
  CHECK(rest.status == 0);
  CHECK(contains(rest.out, "Continuing in epoch 2 after batch "));
  CHECK(rest.last_line() == whole.last_line());
  CHECK(test::read_bytes(dir.path("part/model.safetensors")) ==
        test::read_bytes(dir.path("whole/model.safetensors")));
}

TEST_CASE("a closed terminal and a file that may not grow save as Ctrl-C does") {
  NEEDS_PROGRAM();
  const SmallSet set(2400);
  for (const int number : {SIGHUP, SIGXFSZ}) {
    CAPTURE(number);
    const TempDir dir;
    const ProgramResult stopped = digits(
        "train", {"--data", set.path(), "--epochs", "9", "--batch-size", "16", "--out", dir.path()},
        {number, "epoch 1/9  loss"});
    CAPTURE(stopped.out);
    CHECK(stopped.status == 128 + number);
    CHECK(contains(stopped.out, "Interrupted in epoch "));
    CHECK(std::filesystem::exists(dir.path("model.safetensors")));
    CHECK(std::filesystem::exists(dir.path("checkpoints/checkpoints.json")));
  }
}

TEST_CASE("--resume keeps to what training began with") {
  NEEDS_PROGRAM();
  const SmallSet set;
  const TempDir dir;
  check_error(digits("train", {"--resume", "--out", dir.path()}), 1, "nothing to resume");
  REQUIRE(digits("train", {"--data", set.path(), "--out", dir.path(), "--epochs", "1"}).status ==
          0);
  check_error(digits("train", {"--resume", "--out", dir.path(), "--lr", "0.5"}), 2,
              "--lr 0.5 is not what this training began with (0.002)");
  CHECK(digits("train", {"--resume", "--out", dir.path(), "--lr", "0.002"}).status == 0);
  const std::string checkpoint = dir.path("checkpoints/step-000000004.pt");
  const std::string bytes = test::read_bytes(checkpoint);
  test::write_bytes(checkpoint, bytes.substr(0, bytes.size() / 2));
  check_error(digits("train", {"--resume", "--out", dir.path()}), 1, "step-000000004.pt");
  test::write_bytes(dir.path("config.json"), "{}");
  check_error(digits("train", {"--resume", "--out", dir.path()}), 1, "is none of `kiln digits");
  // What another program trained is not replaced.
  check_error(digits("train", {"--data", set.path(), "--out", dir.path()}), 2,
              "holds a run of another");
}

TEST_CASE("places that cannot be written or read end with one line and status 1") {
  NEEDS_PROGRAM();
  const TempDir dir;
  const std::string file = test::write_bytes(dir.path("file"), "x");
  // Found before any training: the default set alone would take seconds.
  check_error(digits("train", {"--out", file}), 1, file);
  check_error(digits("train", {"--out", file + "/below"}), 1, file);
  std::filesystem::create_directory(dir.path("model.safetensors"));
  check_error(digits("train", {"--out", dir.path()}), 1, "model.safetensors");
  check_error(digits("train", {"--out", dir.path("a"), "--data", dir.path("none")}), 1, "none");
  check_error(digits("sample", {"--out", dir.path("none/a.png")}), 1, "none");
  check_error(digits("eval", {"--model", dir.path("none")}), 1, "none");
  check_error(digits("eval", {"--model", file}), 1, file);
  const SmallSet set;
  check_error(digits("train", {"--out", dir.path("b"), "--data", set.path(), "--samples", "500"}),
              1, "too few images");
}

TEST_CASE("predict and sample") {
  NEEDS_PROGRAM();
  const SmallSet set(1200);
  const TempDir dir;
  REQUIRE(digits("train", {"--data", set.path(), "--out", dir.path(), "--quiet"}).status == 0);
  const std::string model = dir.path("model.safetensors");
  const auto predict = [&](Arguments more) {
    more.insert(more.begin(), {"--model", model});
    return digits("predict", more);
  };
  const std::string drawn = dir.path("drawn.png");
  CHECK(digits("sample", {"--out", drawn, "--digit", "7"}).out == "wrote " + drawn + "\n");
  CHECK(io::read_gray_image(drawn).shape() == Shape{28, 28});
  CHECK(digits("sample", {"--out", dir.path("s.png"), "--grid", "12", "--scale", "2"}).status == 0);
  CHECK(io::read_gray_image(dir.path("s.png")).shape() == Shape{716, 716});

  const ProgramResult one = predict({drawn});
  CHECK(one.status == 0);
  CHECK(one.out.starts_with(drawn + ": "));
  CHECK(lines(one.out) == 4);
  CHECK(lines(predict({"--top", "10", drawn}).out) == 11);

  // The same digit as raw bytes, and in black on white.
  const TensorData image = digit_image(5);
  const auto pixels = image.as<uint8_t>();
  const std::string png = image_file(dir, image, "a");
  const std::string raw =
      test::write_bytes(dir.path("b"), std::string(pixels.begin(), pixels.end()));
  TensorData negative(Shape{28, 28}, DType::u8);
  for (size_t i = 0; i < pixels.size(); ++i) {
    negative.as_mutable<uint8_t>()[i] = static_cast<uint8_t>(255 - pixels[i]);
  }
  const std::string black = image_file(dir, negative, "c");
  const auto answer = [&](const ProgramResult& r) { return r.out.substr(r.out.find('\n')); };
  const ProgramResult first = predict({png});
  CHECK(answer(predict({raw})) == answer(first));
  const ProgramResult inverted = predict({black});
  CHECK(answer(inverted) == answer(first));
  CHECK(contains(inverted.out, "(dark on light: inverted)"));
  CHECK(answer(predict({"--invert", "yes", black})) == answer(first));
  CHECK_FALSE(contains(predict({"--invert", "no", black}).out, "inverted"));

  // Another size: a large white page with the digit in a corner.
  const std::string large = image_file(dir, io::resize_gray(negative, 200, 200), "d");
  const ProgramResult fitted = predict({large});
  CHECK(contains(fitted.out, "fitted from 200x200"));
  CHECK(fitted.out[large.size() + 2] == first.out[png.size() + 2]);

  // Bad ones are named, the others read.
  const std::string bad = test::write_bytes(dir.path("bad.png"), "no image");
  const ProgramResult mixed = predict({bad, png});
  check_error(mixed, 1, "bad.png");
  CHECK(contains(mixed.out, answer(first)));
  check_error(predict({dir.path("missing.png")}), 1, "missing.png");
  TensorData blank(Shape{40, 40}, DType::u8);
  std::fill_n(blank.as_mutable<uint8_t>().begin(), 1600, uint8_t{255});
  check_error(predict({image_file(dir, blank, "blank.png")}), 1, "shows nothing");
}

TEST_CASE("model files that are none") {
  NEEDS_PROGRAM();
  const TempDir dir;
  const std::string path = dir.path("m.safetensors");
  io::save_safetensors(path, {{"x", TensorData(Shape{1}, DType::f32)}});
  check_error(digits("eval", {"--model", path}), 1, "holds no digit network");
  io::save_safetensors(
      path, {{"x", TensorData(Shape{1}, DType::f32)}},
      {{"architecture", "kiln-digits-conv32-conv64-fc128"}, {"mean", "0.1"}, {"std", "0.3"}});
  check_error(digits("eval", {"--model", path}), 1, "parameters");
  io::save_safetensors(path, {},
                       {{"architecture", "kiln-digits-conv32-conv64-fc128"}, {"mean", "nan"}});
  check_error(digits("eval", {"--model", path}), 1, "is damaged");
}
