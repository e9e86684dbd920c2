// What a std::vector holds, found in the memory of an object whose class is not known.
#pragma once

namespace kiln::nn::detail {

struct Memory {
  const char* begin = nullptr;
  const char* end = nullptr;
};

// The elements of the std::vector whose three pointers begin at `at`, 64 KiB of them at most; empty
// where no vector stands that holds anything. `at`: aligned as a pointer, with three words to read.
//
// Any three pointers may be in order. Those of a vector have just the memory between them that the
// allocator gave out. What was a vector once and stands in memory that nobody uses any more is
// taken for one.
Memory vector_elements(const char* at);

}  // namespace kiln::nn::detail
