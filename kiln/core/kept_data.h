// Data that is computed from the contents of a storage and kept beside it, until something writes
// there: packed weights. Internal.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "kiln/core/storage.h"

namespace kiln::detail {

// Note [Kept data]. A product packs its weights, and a convolution transforms them, each time
// anew; for few rows or pixels that is a fifth of the work. While nothing is recorded, as in
// inference, weights rarely change: what a thread meets for the third time without a write between
// is computed once more and kept. The storage's writes say whether it still holds; the next use, or
// the storage's end, drops it, and so does a lack of memory. Memory that others may write to unseen
// (borrowed, shared between processes, shown to other libraries or through a raw pointer) keeps
// nothing. What is kept gives the bits that computing it anew would give.

// Smaller storages keep nothing: their weights are packed in no time.
inline constexpr size_t kLeastKeptFrom = 16 * 1024;

// Which data of a storage: what it is for, and the numbers that its form depends on.
struct KeptKey {
  enum Kind : uint8_t { matrix, convolution, winograd };
  Kind kind;
  std::array<int64_t, 8> numbers{};
  bool operator==(const KeptKey&) const = default;
};

// Whether this thread's ops keep data; not at start. set_grad_enabled() sets it.
bool keeps_data();
void set_keeps_data(bool keeps);

// The storage's data of that key, by make() where it is to be kept from now on; null where none is
// kept. The caller holds the storage.
std::shared_ptr<const void> kept_data(const Storage& storage, const KeptKey& key,
                                      const std::function<std::shared_ptr<const void>()>& make);

// Others may write to the storage's memory, now or later: nothing is kept beside it any more.
void stop_keeping(const Storage& storage);

// The storage ends.
void drop_kept(const Storage& storage) noexcept;

// Gives back all that is kept; it is made anew when it is used next. empty_cache() calls it, and so
// does an allocation that would fail otherwise.
void drop_all_kept() noexcept;

// Off, nothing is kept, and what is kept is not used. On at start, unless KILN_KEEP_WEIGHTS=0 is in
// the environment.
void set_keeping_enabled(bool enabled);

}  // namespace kiln::detail
