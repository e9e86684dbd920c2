// PartMark: how a part of a module is known by the memory that it lies in.
//
// Note [Marks]
// C++ cannot list a class's members, so KILN_MODULE has to be told them, and a part that it is not
// told of would be neither trained nor saved. Every Param, Buffer and Module therefore holds a word
// that depends on its own address. When a module is first visited, its memory is searched for such
// words outside of the parts that were named (kiln/nn/module_check.cpp). That costs a word for each
// part, and nothing for a call.
#pragma once

#include <cstdint>

namespace kiln::nn::detail {

enum class PartKind : uint8_t { module, parameter, other_parameter, buffer };

// No address looks like them.
inline constexpr uint64_t kPartMarks[] = {0x9d3f5a87c1e64b29u, 0xb7214ce86f9a03d5u,
                                          0xe5608b1d374fa9c3u, 0xc84e92f6a05b7d17u};

template <PartKind kind>
class PartMark {
 public:
  PartMark() noexcept { set(); }
  PartMark(const PartMark&) noexcept { set(); }
  PartMark& operator=(const PartMark&) noexcept { return *this; }
  ~PartMark() { word_ = 0; }

 private:
  void set() noexcept {
    word_ = reinterpret_cast<uintptr_t>(this) ^ kPartMarks[static_cast<int>(kind)];
  }

  // Volatile: what nobody reads as such must be written all the same, and cleared at the end.
  volatile uint64_t word_;
};

}  // namespace kiln::nn::detail
