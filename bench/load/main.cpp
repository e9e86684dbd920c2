// kiln_bench_load: how fast a large model file loads into a lazy module, and how much memory beside
// the model's that takes.
//
//   kiln_bench_load [MIB [FOLDER]]   (1024 MiB in the folder for temporary files)
//
// Writes a model of that size in each format, loads it from the page cache, and deletes it. The
// first row is what the machine can do: plain reads of the file into fresh memory, by all threads.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "kiln/core/allocator.h"
#include "kiln/core/parallel.h"
#include "kiln/core/storage.h"
#include "kiln/io/input_file.h"
#include "kiln/io/model_file.h"
#include "kiln/nn/linear.h"
#include "kiln/tensor/creation.h"

namespace kiln::bench {
namespace {

constexpr int64_t kWidth = 2048;  // 16 MiB for each layer
constexpr double kMiB = 1024.0 * 1024.0;

struct Stack : nn::Module {
  explicit Stack(int64_t layers) {
    for (int64_t i = 0; i < layers; ++i) blocks.emplace_back(kWidth, kWidth, false);
  }
  std::vector<nn::Linear> blocks;
  KILN_MODULE(Stack, blocks)
};

// A line of /proc/self/status, in bytes; 0 where there is none.
size_t process_memory(const std::string& field) {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.rfind(field + ":", 0) == 0) {
      return static_cast<size_t>(std::atoll(line.c_str() + field.size() + 1)) * 1024;
    }
  }
  return 0;
}
// Sets the highest mark of the process's memory to what it uses now.
void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

struct Measured {
  double seconds = 1e30;
  size_t extra_memory = 0;   // resident, at its highest, beyond what stays
  size_t extra_tensors = 0;  // the allocator's, beyond what stays
};

// The best time and the most memory of a few runs of f, which returns what stays in memory.
template <class F>
Measured measure(F&& f) {
  Measured out;
  for (int run = 0; run < 5; ++run) {
    empty_cache();
    reset_memory_stats();
    reset_peak();
    const auto start = std::chrono::steady_clock::now();
    const auto kept = f();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    const MemoryStats stats = memory_stats();
    out.seconds = std::min(out.seconds, time.count());
    out.extra_tensors = std::max(out.extra_tensors, stats.peak_bytes_in_use - stats.bytes_in_use);
    const size_t peak = process_memory("VmHWM");
    const size_t now = process_memory("VmRSS");
    out.extra_memory = std::max(out.extra_memory, peak > now ? peak - now : 0);
  }
  return out;
}

void print_row(const char* what, double bytes, const Measured& m) {
  std::printf("%-24s %7.0f ms %8.2f GB/s   %7.1f MiB (%.2f %%)   %7.1f MiB\n", what,
              m.seconds * 1e3, bytes / m.seconds / 1e9, static_cast<double>(m.extra_memory) / kMiB,
              100 * static_cast<double>(m.extra_memory) / bytes,
              static_cast<double>(m.extra_tensors) / kMiB);
}

void run(int64_t mib, const std::filesystem::path& folder) {
  const int64_t layers = std::max<int64_t>(1, mib / 16);
  Stack model(layers);
  for (nn::Linear& layer : model.blocks) {
    layer.weight.replace(full({kWidth, kWidth}, 0.5).to(f32));
  }
  const double bytes = static_cast<double>(layers) * kWidth * kWidth * 4;
  std::printf("%.0f MiB in %lld tensors, %d threads\n\n", bytes / kMiB,
              static_cast<long long>(layers), num_threads());
  std::printf("%-24s %10s %13s   %20s   %s\n", "", "time", "speed", "extra resident",
              "extra tensors");
  for (const char* name :
       {"kiln-bench-load.safetensors", "kiln-bench-load.pt", "kiln-bench-load.npz"}) {
    const std::string path = (folder / name).string();
    struct Remove {
      std::string path;
      ~Remove() { std::filesystem::remove(path); }
    } remove{path};
    io::save_model(model, path);
    if (std::string(name).ends_with("safetensors")) {
      print_row("plain reads", bytes, measure([&] {
                  const io::InputFile file("bench", path);
                  std::vector<Handle<Storage>> kept;
                  for (int64_t i = 0; i < layers; ++i) {
                    kept.push_back(Storage::allocate(size_t{kWidth * kWidth * 4}));
                    file.read_at(static_cast<uint64_t>(i) * kWidth * kWidth * 4,
                                 kept.back()->data(), kept.back()->bytes());
                  }
                  return kept;
                }));
    }
    print_row(to_string(io::format_for_writing(path)).c_str(), bytes, measure([&] {
                auto lazy = std::make_unique<Stack>(layers);
                io::load_model(*lazy, path);
                return lazy;
              }));
  }
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) {
  try {
    const int64_t mib = argc > 1 ? std::atoll(argv[1]) : 1024;
    if (argc > 3 || mib < 1) throw std::runtime_error("usage: kiln_bench_load [MIB [FOLDER]]");
    kiln::bench::run(mib, argc > 2 ? argv[2] : std::filesystem::temp_directory_path());
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "kiln_bench_load: %s\n", e.what());
    return 1;
  }
}
