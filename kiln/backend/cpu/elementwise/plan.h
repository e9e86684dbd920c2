// The operands of an elementwise op over one common shape. Internal to elementwise.cpp.
#pragma once

#include <cstdint>

#include "kiln/backend/cpu/elementwise.h"

namespace kiln::cpu {

struct Operand {
  char* data;
  int64_t item;  // bytes of one element
  Convert convert;
  bool linear;                // walked through without gaps
  bool constant;              // one element stands for all
  int64_t strides[kMaxRank];  // in bytes
};

// The operands over one common shape, with dims merged that all of them walk through evenly.
// Operand 0 is the output.
struct Plan {
  int rank = 0;
  int64_t sizes[kMaxRank];
  int count = 0;
  Operand operands[4];

  int64_t inner() const { return sizes[rank - 1]; }
};

inline void add_operand(Plan& plan, const HostTensor& x, const Shape& shape, bool raw) {
  Operand& o = plan.operands[plan.count++];
  o.data = static_cast<char*>(x.data());
  o.item = static_cast<int64_t>(size_of(x.dtype()));
  o.convert = raw ? Convert::none : convert_of(x.dtype());
  const Strides strides = host::broadcast_strides(x, shape);
  for (int i = 0; i < shape.rank(); ++i) o.strides[i] = strides[i] * o.item;
}

inline bool mergeable(const Plan& plan, int outer, int inner, int64_t inner_size) {
  for (int k = 0; k < plan.count; ++k) {
    const Operand& o = plan.operands[k];
    if (o.strides[outer] != o.strides[inner] * inner_size) return false;
  }
  return true;
}

inline void move_dim(Plan& plan, int from, int to) {
  plan.sizes[to] = plan.sizes[from];
  for (int k = 0; k < plan.count; ++k) {
    plan.operands[k].strides[to] = plan.operands[k].strides[from];
  }
}

inline void merge_dims(Plan& plan, const Shape& shape) {
  int rank = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 1) continue;
    plan.sizes[i] = shape[i];
    if (rank > 0 && mergeable(plan, rank - 1, i, shape[i])) {
      const int64_t merged = plan.sizes[rank - 1] * shape[i];
      move_dim(plan, i, rank - 1);
      plan.sizes[rank - 1] = merged;
    } else {
      move_dim(plan, i, rank);
      ++rank;
    }
  }
  if (rank == 0) {
    plan.sizes[0] = 1;
    for (int k = 0; k < plan.count; ++k) plan.operands[k].strides[0] = plan.operands[k].item;
    rank = 1;
  }
  plan.rank = rank;
  for (int k = 0; k < plan.count; ++k) {
    Operand& o = plan.operands[k];
    o.linear = true;
    o.constant = true;
    int64_t expected = o.item;
    for (int i = rank - 1; i >= 0; --i) {
      o.linear = o.linear && o.strides[i] == expected;
      o.constant = o.constant && o.strides[i] == 0;
      expected *= plan.sizes[i];
    }
  }
}

// An element's place in the plan's shape.
struct Position {
  int64_t index[kMaxRank];

  Position(const Plan& plan, int64_t flat) {
    for (int i = plan.rank - 1; i > 0; --i) {
      index[i] = flat % plan.sizes[i];
      flat /= plan.sizes[i];
    }
    index[0] = flat;
  }
  // Goes on by n elements, at most to the end of the row.
  void advance(const Plan& plan, int64_t n) {
    index[plan.rank - 1] += n;
    for (int i = plan.rank - 1; i > 0 && index[i] == plan.sizes[i]; --i) {
      index[i] = 0;
      ++index[i - 1];
    }
  }
  // Goes on by n elements, over the ends of rows.
  void skip(const Plan& plan, int64_t n) {
    int i = plan.rank - 1;
    index[i] += n;
    for (; i > 0 && index[i] >= plan.sizes[i]; --i) {
      index[i - 1] += index[i] / plan.sizes[i];
      index[i] %= plan.sizes[i];
    }
  }
  int64_t left_in_row(const Plan& plan) const { return plan.inner() - index[plan.rank - 1]; }
  char* address(const Plan& plan, const Operand& o) const {
    int64_t offset = 0;
    for (int i = 0; i < plan.rank; ++i) offset += index[i] * o.strides[i];
    return o.data + offset;
  }
};

}  // namespace kiln::cpu
