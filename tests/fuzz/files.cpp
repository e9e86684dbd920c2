// kiln_fuzz_files [--seconds S | --mutants K] [--seed N] [--fixtures FOLDER] [FILE...]: every
// reader of files, on damaged files of every kind. The seed is a random one unless it is given.
//
// A mutant of a good file gives a result or a kiln::Error, nothing else; it takes no more memory
// than 64 times its size and 20 MiB, and no more time than a second for each 100 KB and half a
// second. What breaks the rules stays in the folder that is printed. With files: reads each of them
// with every reader, under the same rules.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <random>

#include <unistd.h>

#include "kiln/core/budget.h"
#include "kiln/core/error.h"
#include "kiln/core/sanitizers.h"
#include "kiln/core/utf8.h"
#include "tests/fuzz/file_mutator.h"
#include "tests/fuzz/file_seeds.h"
#include "tests/support/held_memory.h"
#include "tests/support/temp_dir.h"

namespace kiln::fuzz {
namespace {

// Beside the budget's own: what is no file's fault, such as zlib's windows and rounded sizes.
constexpr size_t kSlack = size_t{4} << 20;
#ifdef KILN_ASAN
constexpr double kTimes = 20;  // of a sanitizer, in a build without optimization
#else
constexpr double kTimes = 1;
#endif

struct Outcome {
  bool good = false;
  std::string wrong;  // what breaks the rules
};

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Outcome read(const FileReader& reader, const std::string& path, size_t size) {
  Outcome out;
  test::reset_peak_memory();
  const double begin = cpu_seconds();
  try {
    reader.read(path);
    out.good = true;
  } catch (const Error& error) {
    const std::string message = error.what();
    if (!is_utf8(message)) out.wrong = "a message that is no UTF-8: " + printable(message, 400);
    if (message.size() > 4000)
      out.wrong = "a message of " + std::to_string(message.size()) + " bytes";
  } catch (const std::exception& error) {
    out.wrong = std::string("an exception that is no kiln::Error: ") + error.what();
  }
  const double seconds = cpu_seconds() - begin;
  const size_t bytes = test::peak_memory();
  const size_t most = size * Budget::kRatio + Budget::kAllowance + kSlack;
  const double longest = kTimes * (0.5 + static_cast<double>(size) / 1e5);
  if (bytes > most) {
    out.wrong = "it took " + std::to_string(bytes) + " bytes of memory; at most " +
                std::to_string(most) + " are allowed";
  }
  if (seconds > longest) {
    out.wrong = "it took " + std::to_string(seconds) + " s; at most " + std::to_string(longest) +
                " are allowed";
  }
  return out;
}

int read_files(const std::vector<std::string>& paths) {
  int status = 0;
  for (const std::string& path : paths) {
    const size_t size = test::read_bytes(path).size();
    for (const FileReader& reader : file_readers()) {
      const std::string link = path + reader.extension;
      const bool linked = link != path && ::symlink(path.c_str(), link.c_str()) == 0;
      const Outcome outcome = read(reader, link, size);
      if (linked) ::unlink(link.c_str());
      if (outcome.wrong.empty()) continue;
      std::printf("fuzz: %s, read as %s: %s\n", path.c_str(), reader.name.c_str(),
                  outcome.wrong.c_str());
      status = 1;
    }
  }
  return status;
}

// Reads so many mutants, or, with 0 of them, as many as the seconds allow.
int run(int64_t mutants, double seconds, uint64_t seed, const std::string& fixtures) {
  char folder[] = "/tmp/kiln-fuzz-XXXXXX";
  if (::mkdtemp(folder) == nullptr) return 2;
  const std::vector<FileSeed> seeds = file_seeds(folder, fixtures);
  std::printf("fuzz: seed %llu, %zu files; a mutant that ends the program stays in %s\n",
              static_cast<unsigned long long>(seed), seeds.size(), folder);
  std::fflush(stdout);
  for (const FileSeed& good : seeds) {
    const FileReader& reader = file_readers()[good.reader];
    const std::string path = std::string(folder) + "/mutant" + reader.extension;
    test::write_bytes(path, good.bytes);
    const Outcome outcome = read(reader, path, good.bytes.size());
    if (outcome.wrong.empty()) continue;
    std::printf("fuzz: a good file, read as %s: %s\n  it is %s\n", reader.name.c_str(),
                outcome.wrong.c_str(), path.c_str());
    return 1;
  }
  FileMutator mutator(seed);
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  int64_t done = 0;
  int64_t results = 0;
  while (mutants > 0 ? done < mutants : elapsed() < seconds) {
    const FileSeed& good = seeds[mutator.below(seeds.size())];
    // Now and then by a reader of another kind.
    const size_t kind = mutator.chance(5) ? mutator.below(file_readers().size()) : good.reader;
    const FileReader& reader = file_readers()[kind];
    const std::string path = std::string(folder) + "/mutant" + reader.extension;
    const std::string mutant =
        mutator.mutated(good.bytes, seeds[mutator.below(seeds.size())].bytes);
    ::unlink(path.c_str());
    test::write_bytes(path, mutant);
    ::alarm(static_cast<unsigned>(kTimes * (30 + static_cast<double>(mutant.size()) / 1e5)));
    const Outcome outcome = read(reader, path, mutant.size());
    ::alarm(0);
    ++done;
    results += outcome.good ? 1 : 0;
    if (outcome.wrong.empty()) continue;
    std::printf("fuzz: mutant %lld of seed %llu, %zu bytes, read as %s: %s\n  it is %s\n",
                static_cast<long long>(done), static_cast<unsigned long long>(seed), mutant.size(),
                reader.name.c_str(), outcome.wrong.c_str(), path.c_str());
    return 1;
  }
  std::filesystem::remove_all(folder);
  std::printf("fuzz: %lld mutants in %.1f s, %lld of them read; the others are errors\n",
              static_cast<long long>(done), elapsed(), static_cast<long long>(results));
  return 0;
}

}  // namespace
}  // namespace kiln::fuzz

int main(int argc, char** argv) {
  double seconds = 5;
  int64_t mutants = 0;
  uint64_t seed = std::random_device()();
  const char* folder = std::getenv("KILN_TEST_FIXTURES");
  std::string fixtures = folder == nullptr ? "" : folder;
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const bool has_value = i + 1 < argc;
    if (option == "--seconds" && has_value) {
      seconds = std::atof(argv[++i]);
    } else if (option == "--mutants" && has_value) {
      mutants = std::atoll(argv[++i]);
    } else if (option == "--seed" && has_value) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (option == "--fixtures" && has_value) {
      fixtures = argv[++i];
    } else if (option.starts_with("--")) {
      std::fprintf(
          stderr,
          "usage: kiln_fuzz_files [--seconds S | --mutants K] [--seed N] [--fixtures FOLDER] "
          "[FILE...]\n");
      return 2;
    } else {
      files.push_back(option);
    }
  }
  if (!files.empty()) return kiln::fuzz::read_files(files);
  return kiln::fuzz::run(mutants, seconds, seed, fixtures);
}
