// `kiln train`, run as a user would run it.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/core/json.h"
#include "kiln/data/table.h"
#include "kiln/io/image.h"
#include "kiln/io/model_file.h"
#include "tests/support/fixtures.h"
#include "tests/support/program.h"
#include "tests/support/temp_dir.h"

using namespace kiln;
using kiln::test::contains;
using kiln::test::ProgramResult;
using kiln::test::TempDir;

namespace {

using Arguments = std::vector<std::string>;

ProgramResult train(Arguments more, const test::SendSignal& send = {}) {
  more.insert(more.begin(), "train");
  return test::run_program(more, send);
}

// One line on stderr, and the status.
void check_train_refused(const ProgramResult& result, int status, const std::string& part) {
  CAPTURE(part);
  CAPTURE(result.out);
  CAPTURE(result.err);
  CHECK(result.status == status);
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  CHECK(contains(result.err, part));
}

// The example of a kind with its data, in the folder "kind" of the test's own.
std::string draw(const TempDir& dir, const std::string& kind) {
  const ProgramResult result = train({"--example", kind, "--out", dir.path(kind)});
  CAPTURE(result.err);
  REQUIRE(result.status == 0);
  return dir.path(kind) + "/config.json";
}

std::string text_of(const Json& json, const char* name) {
  const Json* found = json.find(name);
  return found == nullptr || found->as<std::string>() == nullptr ? "" : *found->as<std::string>();
}

// The files have the same bytes: weights, settings, what goes with them.
bool same_weights(const std::string& a, const std::string& b) {
  return test::read_bytes(a + "/model.safetensors") == test::read_bytes(b + "/model.safetensors");
}

}  // namespace

TEST_CASE("train: each kind of data, from the example that the program writes") {
  NEEDS_PROGRAM();
  struct Case {
    const char* kind;
    Arguments more;
    const char* last;  // what the last line begins with
  };
  const std::vector<Case> cases{
      {"image_folder", {"--set", "model=lenet", "--epochs", "1"}, "test: loss "},
      {"cifar10", {"--set", "model=lenet", "--epochs", "1"}, "test: loss "},
      {"mnist", {"--epochs", "1"}, "test: loss "},
      {"digits", {"--epochs", "1", "--set", "data.samples=500"}, "test: loss "},
      {"codes", {"--epochs", "1", "--set", "data.samples=500"}, "test: loss "},
      {"segmentation",
       {"--epochs", "1", "--set", "model.base_channels=2", "--set", "data.size=[32, 48]"},
       "test: loss "},
      {"audio_folder", {"--set", "model=lenet", "--epochs", "1"}, "test: loss "},
      {"csv", {"--epochs", "3"}, "valid: loss "},
      {"regression", {"--epochs", "3"}, "valid: loss "},
      {"json_lines", {"--epochs", "3"}, "valid: loss "},
      {"text_csv", {"--epochs", "1"}, "valid: loss "},
      {"text_corpus", {"--epochs", "1", "--set", "model.n_layer=1"}, "valid: loss "},
  };
  for (const Case& c : cases) {
    CAPTURE(c.kind);
    const TempDir dir;
    const std::string config = draw(dir, c.kind), run = dir.path("run");
    CHECK(train({"--example", c.kind}).out == test::read_bytes(config));
    Arguments arguments{config, "--out", run};
    arguments.insert(arguments.end(), c.more.begin(), c.more.end());

    // --check says what would be trained, and leaves nothing.
    Arguments checks = arguments;
    checks.push_back("--check");
    const ProgramResult checked = train(checks);
    CAPTURE(checked.err);
    CHECK(checked.status == 0);
    CHECK(contains(checked.out, "multiply-adds"));
    CHECK_FALSE(std::filesystem::exists(run));

    const ProgramResult result = train(arguments);
    CAPTURE(result.out);
    CAPTURE(result.err);
    REQUIRE(result.status == 0);
    CHECK(result.err.empty());
    CHECK(contains(result.out, "epoch 1/"));
    CHECK(result.last_line().starts_with(c.last));
    for (const char* name : {"model.safetensors", "report.html", "config.json", "run.json",
                             "log.jsonl", "log.csv", "checkpoints/checkpoints.json"}) {
      CAPTURE(name);
      CHECK(std::filesystem::exists(run + "/" + name));
    }
    CHECK(text_of(decode_json(test::read_bytes(run + "/run.json")), "state") == "finished");
    CHECK(contains(test::read_bytes(run + "/report.html"), "<svg"));
    // The log is a table that has the epochs' losses.
    const data::Table log = data::read_csv(run + "/log.csv");
    const std::vector<std::string>& names = log.texts("name");
    CHECK(std::count(names.begin(), names.end(), "train/loss") >= 1);
    const io::Metadata facts = io::load_model_file(run + "/model.safetensors").metadata;
    CHECK(decode_json(facts.at("facts")).find("task") != nullptr);
    CHECK(decode_json(facts.at("config")).find("optimizer") != nullptr);
    // The folder holds a run now.
    check_train_refused(train(arguments), 2, "holds a run");
  }
}

TEST_CASE("train: a wrong configuration is one line that names the field and what is legal") {
  NEEDS_PROGRAM();
  const TempDir dir;
  const std::string plants = draw(dir, "csv"), images = draw(dir, "image_folder"),
                    reviews = draw(dir, "text_csv"), scenes = draw(dir, "segmentation");
  const auto refused = [&](const std::string& config, Arguments sets, const std::string& part,
                           int status = 2) {
    Arguments arguments{config, "--check"};
    for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
    check_train_refused(train(arguments), status, part);
  };
  refused(plants, {"optimizr.lr=1"}, "optimizr: no such field; did you mean 'optimizer'?");
  refused(plants, {"optimizer.learning_rate=1"}, "did you mean 'lr'?");
  refused(plants, {"optimizer.name=Adm"}, "there is no 'Adm'; did you mean 'Adam'? (legal: AdamW,");
  refused(plants, {"optimizer.lr=-1"}, "optimizer.lr: expected a number above 0; got -1");
  refused(plants, {"optimizer.lr=fast"}, "optimizer.lr: expected a number; got \"fast\"");
  refused(plants, {"optimizer.betas=[2, 0.9]"},
          "optimizer: AdamW: each of betas must be in [0, 1)");
  refused(plants, {"optimizer.betas=[0.9]"},
          "optimizer.betas: expected a list of 2 numbers; got [0.9]");
  refused(plants, {"schedule.name=step", "schedule.warmpu=0"}, "schedule.warmpu");
  refused(plants, {"schedule=cosin"}, "did you mean 'cosine'?");
  refused(plants, {"model.name=resnet18"}, "is no model for the classification of rows");
  refused(plants, {"model.name=resnet19"}, "there is no 'resnet19'; did you mean 'resnet18'?");
  refused(plants, {"model.hiden=[2]"}, "model.hiden: no such field of 'model'; did you mean");
  refused(plants, {"model.hidden=[0]"}, "model.hidden: expected a list");
  refused(plants, {"model=7"}, "model: expected an object");
  refused(plants, {"data.kind=csvv"}, "data.kind: there is no 'csvv'; did you mean 'csv'?");
  refused(plants, {"data.trian=x"}, "data.trian: no such field of 'data'; did you mean 'train'?");
  refused(plants, {"data.target=speci"},
          "data.target: there is no 'speci'; did you mean 'species'");
  refused(plants, {"data.task=regression"}, "data.task: the target 'species' holds texts");
  refused(plants, {"data.features=[\"species\"]"}, "data.features: 'species' is the target");
  refused(plants, {"data.features=[]"}, "data.features: expected one or more columns");
  refused(plants, {"data.delimiter=ab"}, "data.delimiter: expected one character");
  refused(plants, {"data.train=none.csv"}, "none.csv", 1);
  refused(plants, {"metrics=[\"acc\"]"}, "metrics: there is no 'acc'; did you mean 'accuracy'?");
  refused(plants, {"metrics=[\"f1\", \"f1\"]"}, "metrics: 'f1' stands there twice");
  refused(plants, {"epochs=0"}, "epochs: expected a whole number from 1");
  refused(plants, {"epochs=2.5"}, "epochs: expected a whole number");
  refused(plants, {"precision=f8"}, "precision: there is no 'f8' (legal: f32, bf16, f16)");
  refused(plants, {"ema=2"}, "ema: expected a number from 0 to 1; got 2");
  refused(plants, {"checkpoints.best=valid/f2"}, "did you mean 'valid/f1'?");
  refused(plants, {"checkpoints.keep_best=0", "checkpoints.use=best"}, "needs keep_best");
  refused(plants, {"early_stop.metric=valid/acc"}, "early_stop.metric");
  refused(plants, {"loss.class_weights=[1]"}, "loss.class_weights: expected 3 numbers");
  refused(images, {"model=unet"},
          "model.name: 'unet' is no model for the classification of images");
  refused(images, {"model=lenet", "data.size=20"}, "'lenet' takes images of 28x28 or 32x32");
  refused(images, {"data.mean=[0.5]"}, "data.mean: expected 3 numbers");
  refused(images, {"data.transforms.rotate=400"}, "data.transforms.rotate");
  refused(images, {"data.size=[1, 2, 3]"}, "data.size: expected a number, or [height, width]");
  refused(images, {"data.train=nowhere"}, "nowhere", 1);
  refused(reviews, {"data.text=verdic"}, "data.text: there is no 'verdic'; did you mean 'verdict'");
  refused(reviews, {"data.tokens=bpe"}, "data.tokenizer: is required, and missing");
  refused(reviews, {"model.num_attention_heads=3"}, "model: ");
  refused(reviews, {"model.num_hidden_layers=9223372036854775807"}, "from 1 to 1000");
  refused(scenes, {"data.classes=[\"one\"]"}, "data.classes: expected 2 to 256 names");
  refused(scenes, {"data.classes=[\"a\", \"b\", \"c\"]"}, "is no mask of 3 classes", 1);

  check_train_refused(train({}), 2, "train needs a configuration");
  check_train_refused(train({dir.path("none.json")}), 1, "none.json");
  check_train_refused(train({dir.path()}), 2, "is a folder");
  check_train_refused(train({dir.path(), "--resume"}), 1, "nothing to resume");
  check_train_refused(train({"--example", "csb"}), 2, "did you mean 'csv'?");
  check_train_refused(train({"--example", "csv", "--out", dir.path("csv")}), 2, "is there already");
  check_train_refused(train({plants, "--set", "epochs"}), 2, "--set takes FIELD=VALUE");
  const std::string broken = test::write_bytes(dir.path("broken.json"), "{\"data\": [1,}");
  check_train_refused(train({broken}), 2, "broken.json: no JSON");
  const std::string list = test::write_bytes(dir.path("list.json"), "[1]");
  check_train_refused(train({list}), 2, "expected an object");
  const std::string none = test::write_bytes(dir.path("none.json"), "{\"model\": \"mlp\"}");
  check_train_refused(train({none}), 2, "data: is required, and missing");
}

TEST_CASE("train: interrupted or killed, a run goes on to the same bits") {
  NEEDS_PROGRAM();
  const TempDir dir;
  const std::string config = draw(dir, "digits");
  const auto fit = [&](const std::string& name, Arguments more, const test::SendSignal& send) {
    Arguments arguments{config,
                        "--out",
                        dir.path(name),
                        "--epochs",
                        "6",
                        "--set",
                        "data.samples=1200",
                        "--set",
                        "ema=0.9",
                        "--set",
                        "data.transforms.shift=2",
                        "--set",
                        "metrics=[\"accuracy\", \"f1\"]",
                        "--set",
                        "checkpoints.every_steps=1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return train(arguments, send);
  };
  const ProgramResult whole = fit("whole", {}, {});
  CAPTURE(whole.err);
  REQUIRE(whole.status == 0);

  const ProgramResult stopped = fit("stopped", {}, {SIGINT, "epoch 1/6  loss"});
  CAPTURE(stopped.out);
  CHECK(stopped.status == 130);
  CHECK(contains(stopped.out, "Interrupted in epoch "));
  CHECK(contains(stopped.out, "kiln train " + dir.path("stopped") + " --resume"));
  CHECK(text_of(decode_json(test::read_bytes(dir.path("stopped/run.json"))), "state") ==
        "interrupted");
  // As the line says, from the folder alone.
  const ProgramResult rest = train({dir.path("stopped"), "--resume"});
  CAPTURE(rest.out);
  CAPTURE(rest.err);
  CHECK(rest.status == 0);
  CHECK(contains(rest.out, "Continuing in epoch "));
  CHECK(rest.last_line() == whole.last_line());
  CHECK(same_weights(dir.path("stopped"), dir.path("whole")));

  const ProgramResult killed = fit("killed", {"--resume"}, {SIGKILL, "epoch 3/6  loss"});
  CHECK(killed.status == 128 + SIGKILL);
  const ProgramResult again = fit("killed", {"--resume"}, {});
  CAPTURE(again.err);
  CHECK(again.status == 0);
  CHECK(contains(again.out, "Continuing in epoch "));
  CHECK(again.last_line() == whole.last_line());
  CHECK(same_weights(dir.path("killed"), dir.path("whole")));

  // Other settings are another run; more epochs are the same one.
  check_train_refused(fit("killed", {"--resume", "--set", "batch_size=8"}, {}), 2,
                      "batch_size is not");
  check_train_refused(fit("killed", {"--resume", "--set", "optimizer.lr=1"}, {}), 2,
                      "optimizer.lr is not");
  const ProgramResult further = train({dir.path("killed"), "--resume", "--epochs", "7"});
  CHECK(further.status == 0);
  CHECK(contains(further.out, "epoch 7/7"));
  CHECK_FALSE(contains(further.out, "epoch 6/7"));
}

TEST_CASE("train: bad files name the file and the place, or are left out") {
  NEEDS_PROGRAM();
  const TempDir dir;
  const std::string plants = draw(dir, "csv"), images = draw(dir, "image_folder");
  std::string rows = test::read_bytes(dir.path("csv/plants.csv"));
  test::write_bytes(dir.path("csv/plants.csv"), rows + "1,2,many,4,ash\n");
  check_train_refused(train({plants, "--check"}), 1,
                      "row 302, column 'stem_length': expected a number");
  const ProgramResult skipped =
      train({plants, "--out", dir.path("rows"), "--epochs", "1", "--set", "data.bad_rows=skip"});
  CHECK(skipped.status == 0);
  CHECK(contains(skipped.out, "left out  1 bad sample"));

  const std::string bad = dir.path("image_folder/train/circle/0001.png");
  test::write_bytes(bad, test::read_bytes(bad).substr(0, 100));
  const Arguments few{images,
                      "--out",
                      dir.path("few"),
                      "--epochs",
                      "1",
                      "--set",
                      "model=lenet",
                      "--set",
                      "data.mean=[0.5, 0.5, 0.5]",
                      "--set",
                      "data.std=[1, 1, 1]"};
  check_train_refused(train(few), 1, "0001.png");
  CHECK(text_of(decode_json(test::read_bytes(dir.path("few/run.json"))), "state") == "failed");
  Arguments skips = few;
  skips[2] = dir.path("skips");
  skips.insert(skips.end(), {"--set", "data.bad_images=skip"});
  const ProgramResult without = train(skips);
  CAPTURE(without.err);
  CHECK(without.status == 0);
  CHECK(contains(without.out, "left out  1 bad sample"));
  // A rate that no loss survives.
  const ProgramResult lost =
      train({images, "--out", dir.path("lost"), "--set", "model=lenet", "--set",
             "optimizer.name=SGD", "--set", "optimizer.lr=1e30", "--set", "data.bad_images=skip"});
  check_train_refused(lost, 1, "no finite number");
}

TEST_CASE("train: photographs, mixed with each other") {
  NEEDS_PROGRAM();
  if (!io::reads_image_format("jpeg") || !io::reads_image_format("webp")) return;
  const TempDir dir;
  namespace fs = std::filesystem;
  for (const char* label : {"one", "two"}) {
    fs::create_directories(dir.path(std::string("photos/") + label));
    for (const char* name : {"420.jpg", "gray.jpg", "cmyk.jpg", "turned.jpg", "lossy.webp",
                             "clear.webp", "turned.png"}) {
      fs::copy_file(test::fixture(std::string("images/") + name),
                    dir.path(std::string("photos/") + label + "/" + name));
    }
  }
  const std::string config = test::write_bytes(dir.path("photos.json"), R"({
    "model": {"name": "mlp", "hidden": [8]},
    "data": {"kind": "image_folder", "train": "photos", "size": [16, 20], "valid_share": 0.2,
             "transforms": {"crop": 0.4, "hue": 0.1, "blur": 1.5, "mixup": 0.4, "cutmix": 1.0,
                            "rand_augment": 3, "magnitude": 15}},
    "epochs": 2, "batch_size": 4})");
  const ProgramResult first = train({config, "--out", dir.path("first")});
  CAPTURE(first.err);
  REQUIRE(first.status == 0);
  CHECK(contains(first.out, "12 for training, 2 for validation"));
  // What is drawn for mixing is a function of the seed, too; another plan of rates holds at once.
  CHECK(train({config, "--out", dir.path("again"), "--epochs", "2"}).status == 0);
  CHECK(same_weights(dir.path("first"), dir.path("again")));
  CHECK(train({config, "--out", dir.path("plain"), "--set", "data.transforms.mixup=0", "--set",
               "data.transforms.cutmix=0"})
            .status == 0);
  CHECK_FALSE(same_weights(dir.path("first"), dir.path("plain")));
  check_train_refused(train({config, "--set", "data.transforms.mixup=-1", "--check"}), 2,
                      "data.transforms.mixup: expected a number from 0 to 100");
  check_train_refused(train({config, "--set", "data.transforms.magnitude=31", "--check"}), 2,
                      "data.transforms.magnitude: expected a number from 0 to 30");
  // A picture that was cut short, and one of inks that is none.
  fs::copy_file(test::fixture("images/cut.jpg"), dir.path("photos/one/cut.jpg"));
  const Arguments fixed{config,
                        "--out",
                        dir.path("cut"),
                        "--set",
                        "data.mean=[0.5, 0.5, 0.5]",
                        "--set",
                        "data.std=[1, 1, 1]"};
  check_train_refused(train(fixed), 1, "photos/one/cut.jpg' is no usable JPEG");
  Arguments skips = fixed;
  skips[2] = dir.path("skips");
  skips.insert(skips.end(), {"--set", "data.bad_images=skip"});
  const ProgramResult skipped = train(skips);
  CHECK(skipped.status == 0);
  CHECK(contains(skipped.out, "left out  1 bad sample"));
}

TEST_CASE("train: a run that is taken further has the rates of the longer plan at once") {
  NEEDS_PROGRAM();
  const TempDir dir;
  const std::string config = draw(dir, "csv");
  // One step in each epoch. At the end of the first plan the rate is 0; in the longer one the step
  // behind it has a third of the rate.
  const Arguments fields{config,
                         "--out",
                         dir.path("run"),
                         "--set",
                         "batch_size=1000",
                         "--set",
                         "optimizer.name=SGD",
                         "--set",
                         "schedule.name=linear",
                         "--set",
                         "checkpoints.use=last"};
  Arguments shorter = fields, longer = fields;
  shorter.insert(shorter.end(), {"--epochs", "2"});
  longer.insert(longer.end(), {"--epochs", "3", "--resume"});
  const auto weights = [&] {
    return io::load_model_file(dir.path("run") + "/model.safetensors").tensors;
  };
  REQUIRE(train(shorter).status == 0);
  const nn::StateDict before = weights();
  const ProgramResult result = train(longer);
  CAPTURE(result.err);
  REQUIRE(result.status == 0);
  bool moved = false;
  for (const auto& [name, tensor] : weights()) moved = moved || !tensor.equal(before.at(name));
  CHECK(moved);
}

TEST_CASE("train: sounds are learned, and damaged ones are an error or left out") {
  NEEDS_PROGRAM();
  const TempDir dir;
  const std::string config = draw(dir, "audio_folder"), run = dir.path("run");
  const Arguments small{config, "--set", "model=lenet", "--epochs", "4", "--out", run};
  const ProgramResult result = train(small);
  CAPTURE(result.err);
  REQUIRE(result.status == 0);
  // The classes are told by what pitch does in time, at any pitch.
  const data::Table log =
      data::read_csv(run + "/log.csv", {.types = {{"name", data::ColumnType::text}}});
  double accuracy = 0;
  for (int64_t i = 0; i < log.size(); ++i) {
    if (log.texts("name")[static_cast<size_t>(i)] == "valid/accuracy") {
      accuracy = log.numbers("value")[i].item();
    }
  }
  CHECK(accuracy > 0.8);

  const std::string bad = dir.path("audio_folder/train/steady/0001.wav");
  test::write_bytes(bad, test::read_bytes(bad).substr(0, 4000));
  check_train_refused(train({config, "--out", dir.path("b")}), 1, "0001.wav");
  const ProgramResult skips = train({config, "--set", "model=lenet", "--epochs", "1", "--out",
                                     dir.path("c"), "--set", "data.bad_sounds=skip"});
  CHECK(skips.status == 0);
  check_train_refused(train({config, "--out", dir.path("d"), "--set", "data.rate=16000"}), 1,
                      "has 8000 samples in a second; expected 16000");
  check_train_refused(train({config, "--out", dir.path("e"), "--set", "data.seconds=0.001"}), 2,
                      "data.seconds: too short");
}

TEST_CASE("train: a device that is none is refused in one line") {
  NEEDS_PROGRAM();
  const TempDir dir;
  const std::string config = draw(dir, "csv");
  check_train_refused(train({config, "--device", "abacus"}), 2, "abacus");
  check_train_refused(train({config, "--set", "device=7"}), 2, "device");
}
