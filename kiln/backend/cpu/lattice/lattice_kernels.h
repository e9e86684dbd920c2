// Steps along a lattice of log probabilities.
#pragma once

#include <cstdint>

namespace kiln::cpu {

// Vectors are whole: `count` is a multiple of kLatticeVector, and operands have as many elements
// from where they begin.
inline constexpr int64_t kLatticeVector = 8;

struct LatticeKernels {
  // out = add + log(e^a + e^b + e^(c + skip)). No sum of operands may be infinite.
  void (*step)(const double* a, const double* b, const double* c, const double* skip,
               const double* add, double* out, int64_t count);
  // out = e^(a + b + shift).
  void (*weights)(const double* a, const double* b, double shift, double* out, int64_t count);
};

const LatticeKernels& lattice_kernels();

}  // namespace kiln::cpu
