// What every hostile file must lead to: an IoError that names the file, before memory is spent.
#pragma once

#include <random>
#include <string>

#include <doctest/doctest.h>

#include "kiln/core/allocator.h"
#include "kiln/core/error.h"
#include "tests/support/temp_dir.h"
#include "tests/support/throws.h"

namespace kiln::test {

// write_bytes to a new file: truncating an old one makes some file systems wait for the disk.
inline std::string rewrite(const std::string& path, const std::string& bytes) {
  std::filesystem::remove(path);
  return write_bytes(path, bytes);
}

// Runs open(path) on a file of these bytes and checks that it throws an IoError whose message holds
// `words`, without taking tensor memory.
template <class F>
void check_refused(const TempDir& dir, const std::string& what, const std::string& bytes,
                   const std::string& words, F&& open) {
  CAPTURE(what);
  const std::string path = rewrite(dir.path("f"), bytes);
  reset_memory_stats();
  const size_t before = memory_stats().peak_bytes_in_use;
  const std::string message = message_of<IoError>([&] { open(path); });
  CAPTURE(message);
  CHECK(message.find(words) != std::string::npos);
  CHECK(message.find(path) != std::string::npos);
  CHECK(message.size() < 900);
  CHECK(memory_stats().peak_bytes_in_use - before < 256 * 1024);
}

// A file with some of its bytes changed, added, removed, repeated or cut off.
inline std::string mutated(const std::string& good, std::mt19937& random) {
  const auto below = [&](size_t n) { return static_cast<size_t>(random()) % n; };
  static const char kValues[] = {0, 1, 2, 8, 0x20, 0x7f, '\x80', '\xff', '.', 'R', '(', 't', 'c'};
  std::string bytes = good;
  for (size_t edits = 1 + below(3); edits > 0 && !bytes.empty(); --edits) {
    const size_t at = below(bytes.size());
    switch (below(8)) {
      case 0:
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 2:
      case 3:
        bytes[at] = kValues[below(sizeof kValues)];
        break;
      case 4:
        bytes.insert(at, 1 + below(4), kValues[below(sizeof kValues)]);
        break;
      case 5:
        bytes.erase(at, 1 + below(4));
        break;
      case 6:
        bytes.insert(at, bytes.substr(below(bytes.size()), below(60)));
        break;
      default:
        bytes.resize(at + 1);
    }
  }
  return bytes;
}

struct FuzzCount {
  int results = 0;
  int errors = 0;
};

// Opens `count` mutations of a good file: each gives a result or an IoError, nothing else, and
// never takes much more memory than the good one.
template <class F>
FuzzCount fuzz(const TempDir& dir, const std::string& good, int count, unsigned seed, F&& open) {
  std::mt19937 random(seed);
  FuzzCount out;
  const std::string path = dir.path("fuzz");
  reset_memory_stats();
  const size_t before = memory_stats().peak_bytes_in_use;
  for (int i = 0; i < count; ++i) {
    rewrite(path, mutated(good, random));
    try {
      open(path);
      ++out.results;
    } catch (const IoError&) {
      ++out.errors;
    }
  }
  CHECK(memory_stats().peak_bytes_in_use - before < size_t{80} << 20);
  return out;
}

}  // namespace kiln::test
