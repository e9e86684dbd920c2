// Copying rows, and tiles of a matrix while exchanging rows and columns.
#pragma once

#include <cstdint>

namespace kiln::cpu {

struct CopyKernels {
  // memcpy; the library's uses string instructions, which are slow on some processors where the
  // places are not aligned to lines.
  void (*copy)(const void* from, void* to, int64_t bytes);
  // The same for `rows` rows, which begin `from_step` and `to_step` bytes apart. stream: past the
  // caches; rows of the target then begin on lines, and are whole lines.
  void (*copy_rows)(const void* from, int64_t from_step, void* to, int64_t to_step, int64_t bytes,
                    int64_t rows, bool stream);
  // The 8 bytes of `pattern` again and again.
  void (*fill)(uint64_t pattern, void* to, int64_t bytes);
  // to[r * to_step + i] = from[r * from_step - i] for i < n, r < rows.
  void (*reverse8)(const uint8_t* from, int64_t from_step, uint8_t* to, int64_t to_step, int64_t n,
                   int64_t rows);
  void (*reverse16)(const uint16_t* from, int64_t from_step, uint16_t* to, int64_t to_step,
                    int64_t n, int64_t rows);
  void (*reverse32)(const uint32_t* from, int64_t from_step, uint32_t* to, int64_t to_step,
                    int64_t n, int64_t rows);
  void (*reverse64)(const uint64_t* from, int64_t from_step, uint64_t* to, int64_t to_step,
                    int64_t n, int64_t rows);
  // to[i] = from[2 i] for i < n.
  void (*every_other32)(const uint32_t* from, uint32_t* to, int64_t n);
  void (*every_other64)(const uint64_t* from, uint64_t* to, int64_t n);
  // to[j * to_step + i] = from[i * from_step + j] for i < rows, j < columns; steps in elements.
  void (*transpose8)(const uint8_t* from, int64_t from_step, uint8_t* to, int64_t to_step,
                     int64_t rows, int64_t columns, bool stream);
  void (*transpose16)(const uint16_t* from, int64_t from_step, uint16_t* to, int64_t to_step,
                      int64_t rows, int64_t columns, bool stream);
  void (*transpose32)(const uint32_t* from, int64_t from_step, uint32_t* to, int64_t to_step,
                      int64_t rows, int64_t columns, bool stream);
  void (*transpose64)(const uint64_t* from, int64_t from_step, uint64_t* to, int64_t to_step,
                      int64_t rows, int64_t columns, bool stream);
  // to[r * length + i] = row r's element i, for r < rows, i < length; rows begin `step` bytes
  // apart. The row itself, or, where it repeats, its first element. Up to 64 bytes after the end of
  // `to` are overwritten.
  void (*rows8)(const void* from, int64_t step, bool repeats, int64_t rows, int64_t length,
                uint8_t* to);
  void (*rows16)(const void* from, int64_t step, bool repeats, int64_t rows, int64_t length,
                 uint16_t* to);
  void (*rows32)(const void* from, int64_t step, bool repeats, int64_t rows, int64_t length,
                 uint32_t* to);
  void (*rows64)(const void* from, int64_t step, bool repeats, int64_t rows, int64_t length,
                 uint64_t* to);
};

const CopyKernels& copy_kernels();

}  // namespace kiln::cpu
