// KILN_GUARD=1: an allocator that finds who writes or reads where nothing is lent. Internal; for
// what it does see docs/memory.md.
#pragma once

#include <cstddef>

namespace kiln::detail {

// Whether the environment asks for it; the answer stays the same until the process ends.
bool guard_enabled();

// Memory of at least `bytes` (a multiple of 64), aligned to 64, that ends at a page nobody may
// touch. `asked` of these bytes are lent; the rest holds a pattern. Null without memory.
void* guard_allocate_block(size_t bytes, size_t asked) noexcept;
// Ends the process, with a message, when the pattern around the block was written over, or when no
// such block is in use.
void guard_free_block(void* block) noexcept;

// Plain memory. What is freed is filled, kept for a while and looked at again before it goes.
void* guard_allocate_object(size_t bytes);
void guard_free_object(void* object, size_t bytes) noexcept;

}  // namespace kiln::detail
