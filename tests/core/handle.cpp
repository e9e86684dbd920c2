#include "kiln/core/handle.h"

#include <utility>

#include <doctest/doctest.h>

using namespace kiln;

namespace {

struct Counted : RefCounted {
  explicit Counted(int* alive) : alive_(alive) { ++*alive_; }
  ~Counted() override { --*alive_; }
  int* alive_;
};

struct Derived : Counted {
  using Counted::Counted;
};

}  // namespace

TEST_CASE("a handle counts") {
  int alive = 0;
  {
    Handle<Counted> a = make_handle<Counted>(&alive);
    CHECK(alive == 1);
    CHECK(a.unique());
    Handle<Counted> b = a;
    CHECK(a->use_count() == 2);
    CHECK_FALSE(a.unique());
    CHECK(a == b);
    b = Handle<Counted>();
    CHECK(a.unique());
    b = std::move(a);
    CHECK_FALSE(a);
    CHECK(b.unique());
    Handle<Counted>& alias = b;
    b = alias;
    CHECK(b.unique());
    b.reset();
    CHECK(alive == 0);
  }
  CHECK(alive == 0);
}

TEST_CASE("a handle converts to its base and gives up its object") {
  int alive = 0;
  Handle<Counted> base = make_handle<Derived>(&alive);
  CHECK(base.unique());
  Handle<Counted> shared = Handle<Counted>::share(base.get());
  CHECK(base->use_count() == 2);
  Counted* raw = shared.leak();
  CHECK_FALSE(shared);
  CHECK(raw->use_count() == 2);
  raw->release();
  CHECK(base.unique());
  base = nullptr;
  CHECK(alive == 0);
  CHECK_FALSE(Handle<Counted>::share(nullptr));
}
