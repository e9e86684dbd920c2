#include "kiln/distributed/message.h"

#include <array>

#include "kiln/core/error.h"

namespace kiln::distributed {

namespace {

constexpr std::array kOpNames{"barrier", "all_reduce", "reduce",         "broadcast",  "all_gather",
                              "gather",  "scatter",    "reduce_scatter", "all_to_all", "send"};
constexpr std::array kReduceNames{"sum", "avg", "product", "min", "max", "band", "bor", "bxor"};

// Numbers of other processes may be anything.
template <size_t N>
const char* name_at(const std::array<const char*, N>& names, uint32_t i) {
  return i < N ? names[i] : "unknown";
}

bool reduces(OpKind kind) {
  return kind == OpKind::all_reduce || kind == OpKind::reduce || kind == OpKind::reduce_scatter;
}

bool has_root(OpKind kind) {
  return kind == OpKind::reduce || kind == OpKind::broadcast || kind == OpKind::gather ||
         kind == OpKind::scatter;
}

}  // namespace

const char* name_of(OpKind kind) { return name_at(kOpNames, static_cast<uint32_t>(kind)); }
const char* name_of(ReduceOp op) { return name_at(kReduceNames, static_cast<uint32_t>(op)); }

std::string to_string(const Operation& operation) {
  std::string out = name_of(operation.kind);
  if (reduces(operation.kind)) out += concat(" (", name_at(kReduceNames, operation.reduce), ")");
  if (operation.kind != OpKind::barrier) {
    const bool known = operation.dtype < static_cast<uint32_t>(DType::q8) + 1;
    out += concat(" of ", known ? to_string(static_cast<DType>(operation.dtype)) : "unknown");
  }
  if (has_root(operation.kind)) out += concat(" with root ", operation.root);
  return out + (operation.kind == OpKind::send ? ", tag " : ", number ") +
         std::to_string(operation.number);
}

}  // namespace kiln::distributed
