// Parts of tests that run in a process of their own, with the CUDA driver that tests play
// (tests/gpu_host/fake): a driver is opened once in a process.
#pragma once

#include <cstdio>
#include <functional>
#include <string>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kiln/core/error.h"

#ifndef KILN_FAKE_CUDA_FOLDER
#error "the folder of the libcuda.so.1 that tests play"
#endif

namespace kiln::test {

// This program's path, for a process that runs another test case of it.
inline const char* program_path() {
  static const std::string path = [] {
    std::string out(4096, '\0');
    const ssize_t size = readlink("/proc/self/exe", out.data(), out.size());
    out.resize(size > 0 ? static_cast<size_t>(size) : 0);
    return out;
  }();
  return path.c_str();
}

// What a part prints, and how it ends: 0 for a clean end.
struct Ended {
  std::string text;
  int status;
};

// Runs a test case that is skipped otherwise. $KILN_CUDA_PART is `part`, $KILN_FAKE_CUDA is
// `settings` (fake_cuda.h), `more` are other variables: "NAME=value NAME=value".
inline Ended run_part(const char* test_case, const char* part, const std::string& settings,
                      const std::string& more = "") {
  const std::string command =
      concat("env KILN_CUDA_PART=", part, " KILN_FAKE_CUDA='", settings,
             "' LD_LIBRARY_PATH=" KILN_FAKE_CUDA_FOLDER ":$LD_LIBRARY_PATH ", more, " '",
             program_path(), "' --no-intro -ns -tc='", test_case, "' 2>&1");
  FILE* child = popen(command.c_str(), "r");
  REQUIRE(child != nullptr);
  Ended out;
  char piece[4096];
  while (const size_t n = std::fread(piece, 1, sizeof piece, child)) out.text.append(piece, n);
  const int status = pclose(child);
  out.status = WIFEXITED(status) ? WEXITSTATUS(status) : 200;
  return out;
}

inline bool has(const Ended& ended, const char* text) {
  return ended.text.find(text) != std::string::npos;
}

inline void say(const std::string& text) { std::printf("said: %s\n", text.c_str()); }

}  // namespace kiln::test
