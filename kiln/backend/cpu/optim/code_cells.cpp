#include <bit>
#include <limits>

#include "kiln/backend/cpu/optim/coded_kernels.h"
#include "kiln/backend/dynamic_code.h"

namespace kiln::cpu {

CodeCells::CodeCells(bool with_signs) {
  const DynamicCode& code = dynamic_code(with_signs);
  for (size_t i = 0; i < code.middles.size(); ++i) middles[i] = code.middles[i];
  middles[255] = std::numeric_limits<float>::infinity();
  for (uint32_t cell = 0; cell < 65536; ++cell) {
    // Of negative floats the one with the most bits is the lowest.
    const uint32_t bits = (cell << 16) | (cell >= 0x8000 ? 0xffffu : 0u);
    lowest[cell] = code.code_of(std::bit_cast<float>(bits));
  }
}

uint8_t CodeCells::code_of(float x) const {
  const uint8_t low = lowest[std::bit_cast<uint32_t>(x) >> 16];
  return static_cast<uint8_t>(low + (x >= middles[low] ? 1 : 0));
}

// Never destroyed: a step may be under way at the end of the process.
const CodeCells& code_cells(bool with_signs) {
  static const CodeCells* const cells[] = {new CodeCells(false), new CodeCells(true)};
  return *cells[with_signs ? 1 : 0];
}

}  // namespace kiln::cpu
