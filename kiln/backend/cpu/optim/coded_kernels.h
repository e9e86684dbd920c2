// AdamW on adjacent elements whose state is coded. Internal to the Cpu backend.
#pragma once

#include <cstdint>

#include "kiln/backend/options.h"

namespace kiln::cpu {

// The state of m or of v for some blocks, and memory for one block's numbers.
template <class T>
struct CodedState {
  uint8_t* codes;
  float* largest;
  T* numbers;
};

template <class T>
struct CodedKernels {
  // One step on n elements of p, which begin at a block: codes stand beside p, and one largest
  // magnitude for each block of step.block elements, the last of which may be shorter.
  void (*step)(T* p, const T* g, const CodedState<T>& m, const CodedState<T>& v,
               const AdamW8bitStep& step, int64_t n);
};

// For the best instruction set of this machine.
template <class T>
const CodedKernels<T>& coded_kernels();

// DynamicCode::code_of by tables: a cell for all floats with the same upper 16 bits, in each of
// which at most one of the middles lies.
struct CodeCells {
  explicit CodeCells(bool with_signs);
  uint8_t code_of(float x) const;

  float middles[256];     // the last is infinite
  uint8_t lowest[65536];  // the code of the lowest float of a cell
};
const CodeCells& code_cells(bool with_signs);

}  // namespace kiln::cpu
