#include "bench/footprint.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <vector>

#include <link.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/peer.h"
#include "bench/row.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::bench {
namespace {

constexpr double kMaxLibraryMb = 16, kMaxStartMs = 30, kMaxMemoryRatio = 0.6;
constexpr int kSteps = 20;

// What is mapped of the file libkiln.so: all of it but the symbols that strip removes. 0 in a
// statically linked program.
double library_mb() {
  double bytes = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* sum) {
        if (std::string(info->dlpi_name).find("libkiln.so") == std::string::npos) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          if (info->dlpi_phdr[i].p_type == PT_LOAD) {
            *static_cast<double*>(sum) += static_cast<double>(info->dlpi_phdr[i].p_filesz);
          }
        }
        return 1;
      },
      &bytes);
  return bytes / 1e6;
}

// Seconds from fork and exec of this program to the first result that it prints.
double first_result_seconds() {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("footprint: no pipe");
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    execl("/proc/self/exe", "kiln_bench", "--first-result", static_cast<char*>(nullptr));
    _exit(127);
  }
  close(ends[1]);
  char byte = 0;
  const bool answered = read(ends[0], &byte, 1) == 1;
  const auto end = std::chrono::steady_clock::now();
  close(ends[0]);
  waitpid(child, nullptr, 0);
  if (!answered) throw std::runtime_error("footprint: the program gave no result");
  return std::chrono::duration<double>(end - start).count();
}

// The peak of the resident memory, in MB, of a process that runs some steps of what `make` makes; 0
// when it fails.
double peak_mb(const std::function<std::unique_ptr<Workload>()>& make) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("footprint: no pipe");
  const pid_t child = fork();
  if (child == 0) {
    double mb = 0;
    try {
      const std::unique_ptr<Workload> workload = make();
      if (workload) {
        workload->run(kSteps);
        rusage usage;
        getrusage(RUSAGE_SELF, &usage);
        mb = static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
      }
    } catch (const std::exception& error) {
      std::fprintf(stderr, "footprint: %s\n", error.what());
    }
    _exit(write(ends[1], &mb, sizeof mb) == sizeof mb ? 0 : 1);
  }
  close(ends[1]);
  double mb = 0;
  if (read(ends[0], &mb, sizeof mb) != sizeof mb) mb = 0;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return mb;
}

const char* verdict(bool well) { return well ? "" : "   ! too much"; }

}  // namespace

int print_first_result() {
  const Tensor x = ones({2, 2});
  std::printf("%g\n", (x + x).sum().item());
  std::fflush(stdout);
  return 0;
}

int print_footprint(const std::string& peer) {
  bool well = true;
  const double mb = library_mb();
  if (mb > 0) {
    well = mb <= kMaxLibraryMb;
    std::printf("libkiln.so, stripped: %.1f MB (at most %.0f)%s\n", mb, kMaxLibraryMb,
                verdict(well));
  }
  std::vector<double> starts;
  for (int i = 0; i < 9; ++i) starts.push_back(first_result_seconds() * 1e3);
  std::sort(starts.begin(), starts.end());
  const bool quick = starts[starts.size() / 2] <= kMaxStartMs;
  std::printf(
      "start of the process to its first result: %.1f ms, at best %.1f (at most %.0f)%s\n\n",
      starts[starts.size() / 2], starts[0], kMaxStartMs, verdict(quick));
  well = well && quick;

  std::printf("peak resident memory of %d steps\n%-16s %10s %10s %7s\n", kSteps, "row", "Kiln",
              peer.empty() ? "" : "peer", peer.empty() ? "" : "ratio");
  std::vector<Row> rows;
  add_training_rows(rows);
  for (const Row& row : rows) {
    const double kiln = peak_mb(row.make);
    std::printf("%-16s %7.1f MB", row.name.c_str(), kiln);
    if (!peer.empty()) {
      const double other = peak_mb([&] {
        static const Peer loaded(peer);  // in the child, until that ends
        return loaded.make(row.name);
      });
      const double ratio = other > 0 ? kiln / other : 0;
      const bool small = ratio <= kMaxMemoryRatio;
      well = well && small;
      std::printf(" %7.1f MB %7.2f%s", other, ratio, verdict(small));
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  return well ? 0 : 1;
}

}  // namespace kiln::bench
