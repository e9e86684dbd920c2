// What this machine can do at most, measured: the scale for every row's rate.
#pragma once

namespace kiln::bench {

struct Peaks {
  int threads = 1;
  double flops_one = 0;  // fused multiply-adds of floats, operations a second, on one thread
  double flops = 0;      // and on all
  // Bytes a second, on all threads: a copy of an array, and the sum of two into a third.
  double copy = 0;           // from memory
  double add = 0;            // from memory
  double add_streaming = 0;  // from memory, with stores that pass the cache by
  double add_medium = 0;     // of 32 MiB in all: around the size of the last-level cache
  double add_cached = 0;     // of 12 MiB in all

  // The most that a row moving so many bytes in each iteration could reach.
  double bandwidth(double bytes) const;
};

// `quick` spends about a tenth of the time on it.
Peaks measure_peaks(int threads, bool quick);

}  // namespace kiln::bench
