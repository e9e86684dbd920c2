// What the program kiln_bench and the module kiln_bench_peer say to each other: plain C, so that
// neither sees the other's library, and either can be built without the other.
#pragma once

#include <cstdint>

extern "C" {

// Changes with every change of the struct below; kiln_bench refuses a module of another version.
inline constexpr uint32_t kKilnBenchPeerVersion = 1;

struct KilnBenchPeer {
  uint32_t version;
  const char* name;  // as in "PyTorch 2.13.0"
  void (*set_num_threads)(int n);

  // The peer's half of a row, ready to run. Null when it has none of that name (then error() is
  // empty), or when making it failed.
  void* (*create)(const char* row);
  // Runs it so many times. Like check(), this returns a negative number after a failure.
  int (*run)(void* row, int64_t iterations);
  // Puts the values that both sides must agree on into `values`, and returns how many there are.
  // Those beyond `capacity` are left out.
  int64_t (*check)(void* row, float* values, int64_t capacity);
  void (*destroy)(void* row);
  // Why the last call failed.
  const char* (*error)();
};

// The module's only symbol.
__attribute__((visibility("default"))) const KilnBenchPeer* kiln_bench_peer();

}  // extern "C"
