// `kiln train` and `kiln predict` on the OpenCL device, and a run that goes on there.
#include "tests/support/program.h"

#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/kiln.h"
#include "tests/gpu/device_under_test.h"
#include "tests/support/fixtures.h"
#include "tests/support/temp_dir.h"

using namespace kiln;
using kiln::test::contains;
using kiln::test::ProgramResult;

namespace {

ProgramResult run(std::vector<std::string> arguments) {
  ProgramResult result = test::run_program(arguments);
  INFO(result.err);
  CHECK(result.status == 0);
  return result;
}

// Of a file's weights: settings, which name the device, stand beside them.
std::vector<std::vector<double>> weights_of(const std::string& folder) {
  std::vector<std::vector<double>> out;
  for (const auto& [name, value] : io::load_safetensors(folder + "/model.safetensors").tensors) {
    out.push_back(value.to_doubles());
  }
  return out;
}

// The third of the columns: input, row, class, ...
std::vector<std::string> classes_in(const std::string& csv) {
  std::vector<std::string> out;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string field;
    for (int i = 0; i < 3; ++i) std::getline(fields, field, ',');
    out.push_back(field);
  }
  return out;
}

}  // namespace

TEST_CASE("gpu: kiln train trains there, goes on there, and predict answers as on the cpu") {
  NEEDS_PROGRAM();
  if (!test::has_gpu()) return;
  const test::TempDir dir;
  run({"train", "--example", "csv", "--out", dir.path("csv")});
  const std::string config = dir.path("csv") + "/config.json";
  // A plan of rates would hang on the number of epochs.
  const std::vector<std::string> common = {"train", config, "--quiet", "--set",
                                           "schedule={\"name\": \"constant\"}"};
  const auto train = [&](const char* device, const char* epochs, const std::string& out,
                         bool resume = false) {
    std::vector<std::string> all = common;
    for (const std::string& each :
         {std::string("--device"), std::string(device), std::string("--epochs"),
          std::string(epochs), std::string("--out"), out}) {
      all.push_back(each);
    }
    if (resume) all.push_back("--resume");
    return run(all);
  };
  const std::string there = dir.path("there");
  train(test::gpu().name, "1", there);
  train(test::gpu().name, "2", there, true);
  const ProgramResult whole = train(test::gpu().name, "2", dir.path("whole"));
  const ProgramResult cpu = train("cpu", "2", dir.path("cpu"));
  CHECK(contains(whole.out, "valid: loss"));
  CHECK(contains(cpu.out, "valid: loss"));
  // Taken up again, it is the run that was not cut.
  CHECK(weights_of(there) == weights_of(dir.path("whole")));
  const std::string rows = dir.path("csv") + "/plants.csv";
  const std::vector<std::string> a =
      classes_in(run({"predict", there, rows, "--csv", "--device", test::gpu().name}).out);
  CHECK(a.size() > 100);
  CHECK(a == classes_in(run({"predict", there, rows, "--csv"}).out));
}
