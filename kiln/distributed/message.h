// What stands before the bytes that processes send one another: which operation they belong to, so
// that a process that does something else finds out.
#pragma once

#include <cstdint>
#include <string>

#include "kiln/core/dtype.h"

namespace kiln::distributed {

enum class OpKind : uint32_t {
  barrier,
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  gather,
  scatter,
  reduce_scatter,
  all_to_all,
  send,
};
const char* name_of(OpKind kind);

enum class ReduceOp : uint32_t { sum, avg, product, min, max, band, bor, bxor };
const char* name_of(ReduceOp op);

// An operation as one process sees it.
struct Operation {
  OpKind kind = OpKind::barrier;
  uint32_t number = 0;  // of the group's operations; of a send its tag
  uint32_t dtype = 0;
  uint32_t reduce = 0;
  uint32_t root = 0;

  friend bool operator==(const Operation&, const Operation&) = default;
};
// "all_reduce (sum) of float32, number 7"
std::string to_string(const Operation& operation);

// Sent as it lies in memory: mesh.cpp asks both sides for the order of their bytes.
struct MessageHead {
  Operation operation;
  uint32_t phase = 0;  // an operation may take several messages
  uint64_t bytes = 0;  // that follow
};
static_assert(sizeof(MessageHead) == 32);

}  // namespace kiln::distributed
