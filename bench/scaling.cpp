#include "bench/scaling.h"

#include <cstdio>

#include "bench/interrupt.h"
#include "bench/text.h"
#include "kiln/core/parallel.h"

namespace kiln::bench {
namespace {

constexpr double kLongEnough = 1e7;  // multiply-adds and additions of an iteration

using SetThreads = std::function<void(int)>;

// A workload that sets its side's number of threads before it runs.
class AtThreads final : public Workload {
 public:
  AtThreads(std::unique_ptr<Workload> workload, const SetThreads& set_threads, int threads)
      : workload_(std::move(workload)), set_threads_(set_threads), threads_(threads) {}

  void run(int64_t iterations) override {
    set_threads_(threads_);
    workload_->run(iterations);
  }
  std::vector<float> check() override {
    set_threads_(threads_);
    return workload_->check();
  }

 private:
  std::unique_ptr<Workload> workload_;
  SetThreads set_threads_;
  int threads_;
};

// The row on all threads beside the same on one. Its values must be the same.
Result measure(const Row& row, const WorkloadFactory& make, const SetThreads& set_threads,
               const Peaks& peaks, const Effort& effort) {
  const auto at = [&](int threads) -> WorkloadFactory {
    return [=, &make, &set_threads]() -> std::unique_ptr<Workload> {
      std::unique_ptr<Workload> workload = make();
      if (!workload) return nullptr;
      return std::make_unique<AtThreads>(std::move(workload), set_threads, threads);
    };
  };
  Row on_all = row;
  on_all.make = at(peaks.threads);
  on_all.floors.clear();
  Result result = run_row_beside(on_all, at(1), peaks, effort);
  set_threads(peaks.threads);
  return result;
}

std::string columns(const Result& result) {
  if (!result.is_measured()) return format("  %10s  %10s  %7s", "-", "-", "-");
  return format("  %10s  %10s  %6sx", format_time(result.peer->median).c_str(),
                format_time(result.kiln.median).c_str(),
                three_digits(result.ratio->median).c_str());
}

}  // namespace

std::vector<Result> run_scaling(const std::vector<Row>& rows, const Peer* peer, const Peaks& peaks,
                                const Effort& effort) {
  const std::string all = format("%d threads", peaks.threads);
  std::string head = format("%-16s  %10s  %10s  %7s", "Kiln", "1 thread", all.c_str(), "faster");
  if (peer != nullptr) {
    head +=
        format("  %s: %10s  %10s  %7s", peer->name().c_str(), "1 thread", all.c_str(), "faster");
  }
  std::printf("%s\n%s\n", head.c_str(), std::string(head.size(), '-').c_str());
  std::vector<Result> results;
  for (const Row& row : rows) {
    if (interrupted()) break;
    if (row.flops < kLongEnough) continue;
    results.push_back(measure(row, row.make, set_num_threads, peaks, effort));
    std::string line = format("%-16s", row.name.c_str()) + columns(results.back());
    if (peer != nullptr) {
      const Result of_peer = measure(
          row, [&] { return peer->make(row.name); },
          [&](int threads) { peer->set_num_threads(threads); }, peaks, effort);
      line += std::string(peer->name().size() + 1, ' ') + columns(of_peer);
    }
    if (!results.back().problem.empty()) line += "\n  ! " + results.back().problem;
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }
  return results;
}

}  // namespace kiln::bench
