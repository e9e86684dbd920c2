// Compiled kernels on disk, as processes see them: each part below is a process of its own, which
// opens the device anew.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kiln/kiln.h"
#include "tests/gpu/device_under_test.h"

using namespace kiln;
namespace fs = std::filesystem;

namespace {

constexpr int kWrong = 100;

struct Outcome {
  int compiled = -1;
  int loaded = -1;
};

// A computation with two kernels in a fresh process with this folder.
Outcome compute_in_child(const fs::path& folder) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    Outcome outcome;
    int status = kWrong;
    try {
      setenv("KILN_KERNEL_CACHE", folder.c_str(), 1);
      const Tensor x = tensor({1.0, 2.0, 3.0}, {.dtype = f32, .device = test::gpu_device()});
      if ((x + x).to_vector<float>() == std::vector<float>{2, 4, 6} && x.sum().item<float>() == 6) {
        const accelerator::Counters counters = test::gpu().counters(0);
        outcome = {static_cast<int>(counters.kernels_compiled),
                   static_cast<int>(counters.kernels_loaded)};
        status = 0;
      }
    } catch (...) {
      status = kWrong + 1;
    }
    static_cast<void>(!write(ends[1], &outcome, sizeof outcome));
    _exit(status);
  }
  close(ends[1]);
  Outcome outcome;
  CHECK(read(ends[0], &outcome, sizeof outcome) == sizeof outcome);
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  return outcome;
}

bool child_has_device() {
  const pid_t child = fork();
  if (child == 0) _exit(test::gpu().is_available() ? 0 : 1);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void for_each_file(const fs::path& folder, const std::function<void(const fs::path&)>& fn) {
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    fn(entry.path());
    ++files;
  }
  CHECK(files == 2);
}

}  // namespace

TEST_CASE("gpu: compiled kernels are kept on disk, and broken ones compiled anew") {
  // This process must not open a driver: those that it forks do.
  if (!child_has_device()) {
    static_cast<void>(test::has_gpu());
    return;
  }
  const fs::path folder = fs::temp_directory_path() / ("kiln_kernels_" + std::to_string(getpid()));
  fs::remove_all(folder);
  const Outcome cold = compute_in_child(folder);
  CHECK(cold.compiled == 2);
  CHECK(cold.loaded == 0);
  const Outcome warm = compute_in_child(folder);
  CHECK(warm.compiled == 0);
  CHECK(warm.loaded == 2);

  SUBCASE("cut short") {
    for_each_file(folder,
                  [](const fs::path& file) { fs::resize_file(file, fs::file_size(file) / 2); });
  }
  SUBCASE("empty") {
    for_each_file(folder, [](const fs::path& file) { fs::resize_file(file, 0); });
  }
  SUBCASE("another byte") {
    for_each_file(folder, [](const fs::path& file) {
      std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
      stream.seekg(-100, std::ios::end);
      const int byte = stream.get();
      stream.seekp(-100, std::ios::end);
      stream.put(static_cast<char>(byte ^ 1));
    });
  }
  SUBCASE("sizes that do not add up") {
    for_each_file(folder, [](const fs::path& file) {
      std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
      stream.seekp(8);
      for (int i = 0; i < 16; ++i) stream.put(static_cast<char>(0xff));
    });
  }
  CHECK(compute_in_child(folder).compiled == 2);
  // What was written anew is whole, and nothing else is left.
  CHECK(compute_in_child(folder).loaded == 2);
  for_each_file(folder, [](const fs::path& file) { CHECK(file.extension() == ".kernel"); });
  fs::remove_all(folder);
}

TEST_CASE("gpu: without a folder for compiled kernels everything is computed") {
  if (!child_has_device()) return;
  const fs::path file = fs::temp_directory_path() / ("kiln_no_folder_" + std::to_string(getpid()));
  std::ofstream(file) << "a file, no folder";
  const Outcome outcome = compute_in_child(file / "kernels");
  CHECK(outcome.compiled == 2);
  CHECK(outcome.loaded == 0);
  CHECK(compute_in_child("").compiled == 2);
  fs::remove(file);
}

TEST_CASE("gpu: a forked process says why it cannot use its parent's device") {
  if (!child_has_device()) return;
  const pid_t opener = fork();
  if (opener == 0) {
    const Tensor x = ones({3}, {.device = test::gpu_device()});
    static_cast<void>(x.to_vector<float>());
    const pid_t child = fork();
    if (child == 0) {
      int status = 1;
      try {
        static_cast<void>(x + x);
      } catch (const DeviceError&) {
        status = 0;
      } catch (...) {
        status = 2;
      }
      _exit(status);
    }
    int status = 0;
    waitpid(child, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 3);
  }
  int status = 0;
  REQUIRE(waitpid(opener, &status, 0) == opener);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
