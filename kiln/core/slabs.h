// Blocks of the middle sizes, side by side in huge pages. Internal.
#pragma once

#include <cstddef>

namespace kiln::detail {

// Note [Slabs]. A processor knows the places of some thousand pages; work on more memory than that
// waits for them to be looked up. In small pages of 4 KiB that is a few megabytes, less than the
// weights of a small model. A block of a few hundred KiB fills no huge page of 2 MiB, so such
// blocks share them: they lie side by side in regions of 32 MiB, which ask the system for huge
// pages. A huge page goes back to the system when no block lies in it.
inline constexpr size_t kLeastSlabBytes = size_t{32} << 10;
inline constexpr size_t kMostSlabBytes = size_t{4} << 20;

// `bytes` from kLeastSlabBytes to kMostSlabBytes, aligned to 4 KiB, or null when the system
// refuses.
void* slab_allocate(size_t bytes) noexcept;
// `bytes` as given to slab_allocate.
void slab_free(void* data, size_t bytes) noexcept;

}  // namespace kiln::detail
