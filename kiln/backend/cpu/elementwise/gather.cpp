#include "kiln/backend/cpu/elementwise/gather.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kiln/backend/cpu/copy/copy_kernels.h"

namespace kiln::cpu {
namespace {

// Rows of at most so many elements that lie apart are gathered together.
constexpr int64_t kFewElements = 16;

template <class U>
void move_row(const char* from, int64_t from_step, char* to, int64_t to_step, int64_t n) {
#pragma GCC unroll 4
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(to + i * to_step, from + i * from_step, sizeof(U));
  }
}

void move_row(int64_t item, const char* from, int64_t from_step, char* to, int64_t to_step,
              int64_t n) {
  if (item >= 4 && from_step == 2 * item && to_step == item) {
    const CopyKernels& kernels = copy_kernels();
    if (item == 4) {
      kernels.every_other32(reinterpret_cast<const uint32_t*>(from),
                            reinterpret_cast<uint32_t*>(to), n);
    } else {
      kernels.every_other64(reinterpret_cast<const uint64_t*>(from),
                            reinterpret_cast<uint64_t*>(to), n);
    }
    return;
  }
  switch (item) {
    case 1:
      return move_row<uint8_t>(from, from_step, to, to_step, n);
    case 2:
      return move_row<uint16_t>(from, from_step, to, to_step, n);
    case 4:
      return move_row<uint32_t>(from, from_step, to, to_step, n);
    default:
      return move_row<uint64_t>(from, from_step, to, to_step, n);
  }
}

// `rows` whole rows, which begin `step` bytes apart.
void gather_rows(const Plan& plan, const Operand& o, char* from, int64_t step, int64_t rows,
                 char* buffer) {
  const CopyKernels& kernels = copy_kernels();
  const bool repeats = o.strides[plan.rank - 1] == 0;
  const int64_t length = plan.inner();
  if (!repeats && step == length * o.item) {
    kernels.copy(from, buffer, rows * step);
  } else if (o.item == 1) {
    kernels.rows8(from, step, repeats, rows, length, reinterpret_cast<uint8_t*>(buffer));
  } else if (o.item == 2) {
    kernels.rows16(from, step, repeats, rows, length, reinterpret_cast<uint16_t*>(buffer));
  } else if (o.item == 4) {
    kernels.rows32(from, step, repeats, rows, length, reinterpret_cast<uint32_t*>(buffer));
  } else {
    kernels.rows64(from, step, repeats, rows, length, reinterpret_cast<uint64_t*>(buffer));
  }
}

// The same of rows whose elements lie apart. Rows of a few elements are read without a loop over
// them.
template <class U, int kLength>
void gather_steps(const char* from, int64_t row_step, int64_t step, int64_t rows, int64_t length,
                  char* buffer) {
  if constexpr (kLength == 0) {
    for (int64_t r = 0; r < rows; ++r, from += row_step) {
      move_row<U>(from, step, buffer, sizeof(U), length);
      buffer += length * static_cast<int64_t>(sizeof(U));
    }
  } else {
    for (int64_t r = 0; r < rows; ++r, from += row_step, buffer += kLength * sizeof(U)) {
      U row[kLength];
#pragma GCC unroll 8
      for (int i = 0; i < kLength; ++i) std::memcpy(row + i, from + i * step, sizeof(U));
      std::memcpy(buffer, row, sizeof row);
    }
  }
}

template <class U, int... kLengths>
void gather_steps(std::integer_sequence<int, kLengths...>, const Plan& plan, const Operand& o,
                  const char* from, int64_t rows, char* buffer) {
  using Gather = void (*)(const char*, int64_t, int64_t, int64_t, int64_t, char*);
  static constexpr Gather kOfLength[] = {gather_steps<U, kLengths>...};
  const int64_t length = plan.inner();
  const auto which = length < static_cast<int64_t>(sizeof...(kLengths)) ? length : 0;
  kOfLength[which](from, o.strides[plan.rank - 2], o.strides[plan.rank - 1], rows, length, buffer);
}

void gather_steps(const Plan& plan, const Operand& o, const char* from, int64_t rows,
                  char* buffer) {
  constexpr std::make_integer_sequence<int, 9> kLengths;
  switch (o.item) {
    case 1:
      return gather_steps<uint8_t>(kLengths, plan, o, from, rows, buffer);
    case 2:
      return gather_steps<uint16_t>(kLengths, plan, o, from, rows, buffer);
    case 4:
      return gather_steps<uint32_t>(kLengths, plan, o, from, rows, buffer);
    default:
      return gather_steps<uint64_t>(kLengths, plan, o, from, rows, buffer);
  }
}

}  // namespace

bool has_whole_rows(const Plan& plan, const Operand& o) {
  const int64_t step = o.strides[plan.rank - 1];
  return step == 0 || step == o.item;
}

void gather(const Plan& plan, const Operand& o, Position at, int64_t n, char* buffer) {
  const int last = plan.rank - 1;
  const bool whole_rows = has_whole_rows(plan, o);
  const bool by_rows = last > 0 && (whole_rows || plan.inner() <= kFewElements);
  while (n > 0) {
    if (by_rows && at.index[last] == 0 && n >= plan.inner()) {
      const int64_t rows = std::min(n / plan.inner(), plan.sizes[last - 1] - at.index[last - 1]);
      char* const from = at.address(plan, o);
      if (whole_rows) {
        gather_rows(plan, o, from, o.strides[last - 1], rows, buffer);
      } else {
        gather_steps(plan, o, from, rows, buffer);
      }
      buffer += rows * plan.inner() * o.item;
      at.skip(plan, rows * plan.inner());
      n -= rows * plan.inner();
      continue;
    }
    const int64_t row = std::min(n, at.left_in_row(plan));
    move_row(o.item, at.address(plan, o), o.strides[last], buffer, o.item, row);
    buffer += row * o.item;
    at.advance(plan, row);
    n -= row;
  }
}

void scatter(const Plan& plan, const Operand& o, Position at, int64_t n, const char* buffer) {
  while (n > 0) {
    const int64_t row = std::min(n, at.left_in_row(plan));
    move_row(o.item, buffer, o.item, at.address(plan, o), o.strides[plan.rank - 1], row);
    buffer += row * o.item;
    at.advance(plan, row);
    n -= row;
  }
}

}  // namespace kiln::cpu
