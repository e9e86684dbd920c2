#include "kiln/core/storage.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include <doctest/doctest.h>

#include "kiln/core/allocator.h"
#include "kiln/core/error.h"

using namespace kiln;

namespace {

// Freed while the process ends, after this thread's caches are gone: must neither crash nor leak.
Handle<Storage> freed_at_exit_small;
Handle<Storage> freed_at_exit_large;

}  // namespace

TEST_CASE("storage of every size is aligned and writable") {
  const size_t start = memory_stats().bytes_in_use;
  for (size_t bytes : {0, 1, 4, 64, 4095, 4096, 4097, 100000, 1 << 20}) {
    CAPTURE(bytes);
    Handle<Storage> storage = Storage::allocate(bytes);
    CHECK(storage->bytes() == bytes);
    CHECK(storage.unique());
    CHECK(storage->data() != nullptr);
    CHECK(reinterpret_cast<uintptr_t>(storage->data()) % 64 == 0);
    std::memset(storage->data(), 0x5a, bytes);
    CHECK(storage->bytes() == bytes);  // the header lies elsewhere
    CHECK(storage->version() == 0);
    CHECK(memory_stats().bytes_in_use >= start + bytes);
  }
  CHECK(memory_stats().bytes_in_use == start);
}

TEST_CASE("versions count writes in place") {
  const Handle<Storage> storage = Storage::allocate(8);
  storage->bump_version();
  storage->bump_version();
  CHECK(storage->version() == 2);
}

TEST_CASE("borrowed memory is given back once, with its context") {
  char memory[100];
  int released = 0;
  {
    Handle<Storage> a = Storage::borrow(
        memory, 100, [](void* context) { ++*static_cast<int*>(context); }, &released);
    CHECK(a->data() == memory);
    CHECK(a->bytes() == 100);
    Handle<Storage> b = a;
    a.reset();
    CHECK(released == 0);
  }
  CHECK(released == 1);
  Storage::borrow(memory, 1, nullptr, nullptr);  // nothing to call
}

TEST_CASE("sizes that cannot be allocated throw") {
  const size_t start = memory_stats().bytes_in_use;
  CHECK_THROWS_AS(Storage::allocate(SIZE_MAX), ValueError);
  CHECK_THROWS_AS(Storage::allocate(size_t{1} << 50), ValueError);
  CHECK(memory_stats().bytes_in_use == start);
}

TEST_CASE("storages may outlive everything") {
  freed_at_exit_small = Storage::allocate(16);
  freed_at_exit_large = Storage::allocate(1 << 20);
  CHECK(freed_at_exit_small.unique());
}

#ifdef KILN_DEBUG_FILL
TEST_CASE("new memory holds NaN patterns") {
  for (size_t bytes : {4, 100, 10000}) {
    const Handle<Storage> storage = Storage::allocate(bytes);
    int wrong = 0;
    for (size_t i = 0; i < bytes; ++i) {
      wrong += static_cast<unsigned char*>(storage->data())[i] != 0xff;
    }
    CHECK(wrong == 0);
  }
}
#endif

TEST_CASE("an alias has a version of its own, and its writes are counted as such") {
  const size_t start = memory_stats().bytes_in_use;
  for (const size_t bytes : {64, 100000}) {
    Handle<Storage> memory = Storage::allocate(bytes);
    memory->bump_version();
    Handle<Storage> alias = Storage::alias(memory);
    const Handle<Storage> second = Storage::alias(alias);
    CHECK(alias->data() == memory->data());
    CHECK(alias->bytes() == bytes);
    CHECK(&second->root() == memory.get());
    CHECK(&memory->root() == memory.get());
    CHECK(!memory.unique());
    CHECK(!alias->is_own());
    CHECK(alias->version() == 0);
    alias->bump_version();
    second->bump_version();
    second->bump_version();
    CHECK(memory->version() == 1);
    CHECK(alias->version() == 1);
    CHECK(second->version() == 2);
    CHECK(memory->writes() == 4);
    CHECK(second->writes() == 4);
    memory.reset();
    std::memset(alias->data(), 1, bytes);  // the alias holds it
  }
  CHECK(memory_stats().bytes_in_use == start);
}
