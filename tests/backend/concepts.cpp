// The concepts that backends are held to, as predicates.
#include <doctest/doctest.h>

#include "kiln/autodiff/autodiff.h"
#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/defaults.h"
#include "kiln/backend/host_tensor.h"
#include "kiln/backend/reference/reference.h"

using namespace kiln;

namespace {

struct Nothing {};

// All types and facts, and a first op.
struct Partial : BackendDefaults<Partial> {
  using Device = kiln::Device;
  using FloatElem = float;
  using IntElem = int64_t;
  using BoolElem = bool;
  using FloatTensorPrimitive = Handle<HostTensor>;
  using IntTensorPrimitive = Handle<HostTensor>;
  using BoolTensorPrimitive = Handle<HostTensor>;
  using QuantizedTensorPrimitive = Handle<HostTensor>;
  static std::string name(Device) { return "partial"; }
  static void seed(Device, uint64_t) {}
  static void sync(Device) {}
  static Shape shape(const FloatTensorPrimitive& x) { return x->shape(); }
  static DType dtype(const FloatTensorPrimitive& x) { return x->dtype(); }
  static kiln::Device device(const FloatTensorPrimitive& x) { return x->device(); }
  static FloatTensorPrimitive float_from_data(const TensorData&, Device);
};

// Types without facts.
struct Silent {
  using Device = kiln::Device;
  using FloatElem = float;
  using IntElem = int64_t;
  using BoolElem = bool;
  using FloatTensorPrimitive = Handle<HostTensor>;
  using IntTensorPrimitive = Handle<HostTensor>;
  using BoolTensorPrimitive = Handle<HostTensor>;
  using QuantizedTensorPrimitive = Handle<HostTensor>;
};

// One op of Cpu with other parameters.
struct WrongOp : Cpu {
  static FloatTensorPrimitive float_add(const FloatTensorPrimitive& x, int) { return x; }
};

// Autodiff<Cpu> with one thing changed.
struct WrongInner : Autodiff<Cpu> {
  using InnerBackend = Partial;
};
struct NoInner : Autodiff<Cpu> {
  using InnerBackend = Nothing;
};
struct OtherElem : Autodiff<Cpu> {
  struct FloatElem {};
};
struct Pinned : Autodiff<Cpu> {
  struct Gradients : Autodiff<Cpu>::Gradients {
    Gradients() = default;
    Gradients(Gradients&&) = delete;
  };
};

}  // namespace

static_assert(Backend<Cpu> && Backend<Reference> && Backend<Autodiff<Cpu>>);
static_assert(!Backend<Nothing> && !Backend<Silent> && !Backend<Partial> && !Backend<WrongOp>);
static_assert(BackendFacts<Partial> && !BackendFacts<Silent> && BackendTypes<Silent>);
static_assert(AutodiffBackend<Autodiff<Cpu>>);
static_assert(!AutodiffBackend<Nothing> && !AutodiffBackend<Partial> && !AutodiffBackend<Cpu>);
static_assert(!AutodiffBackend<WrongInner> && !AutodiffBackend<NoInner>);
static_assert(!AutodiffBackend<OtherElem> && !AutodiffBackend<Pinned>);

TEST_CASE("Backend is a predicate") {
  CHECK(op::first_missing<Cpu>() == nullptr);
  CHECK(std::string(op::first_missing<Partial>()) == "float_into_data");
  CHECK(std::string(op::first_missing<WrongOp>()) == "float_add");
  check_backend<Cpu>();  // and of others: tests/compile/wrong_backend.cpp
}

TEST_CASE("AutodiffBackend asks for all of its inner backend and gradients") {
  CHECK(AutodiffBackend<Autodiff<Autodiff<Cpu>>>);
  CHECK_FALSE(AutodiffBackend<WrongInner>);
  CHECK_FALSE(AutodiffBackend<Pinned>);
}
