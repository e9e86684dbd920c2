// A backend that computes as Cpu does, in tensors of a type of its own, and counts what is read
// back from it to the host.
#pragma once

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/dispatch/register.h"

namespace kiln::ops {

// Whole tensors, and single numbers.
struct Transfers {
  int64_t whole = 0;
  int64_t scalars = 0;
};
inline Transfers transfers;

// Not a HostTensor: nobody outside Cpu sees that its memory is the host's.
struct Counted {
  HostHandle x;
};
struct CountedQuantized {
  QuantizedHandle x;
};

struct CountingTypes {
  using Device = kiln::Device;
  using FloatElem = float;
  using IntElem = int64_t;
  using BoolElem = bool;
  using FloatTensorPrimitive = Counted;
  using IntTensorPrimitive = Counted;
  using BoolTensorPrimitive = Counted;
  using QuantizedTensorPrimitive = CountedQuantized;
};

namespace counting {

// Operands on their way to Cpu.
inline Arg<HostHandle> down(const Arg<Counted>& x) {
  return x.is_in_place() ? Arg<HostHandle>::in_place(x->x) : Arg<HostHandle>(x->x);
}
inline Arg<QuantizedHandle> down(const Arg<CountedQuantized>& x) { return {x->x}; }
inline const HostHandle* down(const Counted* x) { return x == nullptr ? nullptr : &x->x; }
template <class T>
struct DownList {
  explicit DownList(std::span<T> xs) {
    for (const Counted& x : xs) handles.push_back(x.x);
  }
  operator std::span<const HostHandle>() { return handles; }
  operator std::span<HostHandle>() { return handles; }
  std::vector<HostHandle> handles;
};
inline DownList<const Counted> down(std::span<const Counted> xs) {
  return DownList<const Counted>(xs);
}
inline DownList<Counted> down(std::span<Counted> xs) { return DownList<Counted>(xs); }
template <class T>
const T& down(const T& x) {
  return x;
}

// Results on their way back.
inline Counted up(HostHandle x) { return {std::move(x)}; }
inline CountedQuantized up(QuantizedHandle x) { return {std::move(x)}; }
template <class A, class B>
auto up(std::pair<A, B> x) {
  return std::pair(up(std::move(x.first)), up(std::move(x.second)));
}
template <class... T>
auto up(std::tuple<T...> x) {
  return std::apply([](T&... each) { return std::tuple(up(std::move(each))...); }, x);
}
inline TensorData up(TensorData x) { return x; }
inline QuantScheme up(const QuantScheme& x) { return x; }

template <class Call, class R, class... P>
struct Forward {
  using Result = typename op::Return<CountingTypes, R>::Type;
  static Result run(typename op::Param<CountingTypes, P>::Type... args) {
    if constexpr (std::is_void_v<Result>) {
      Call{}(down(args)...);
    } else {
      return up(Call{}(down(args)...));
    }
  }
};

inline TensorData counted(TensorData data) {
  (data.shape().numel() > 1 ? transfers.whole : transfers.scalars) += 1;
  return data;
}

}  // namespace counting
}  // namespace kiln::ops

// The words of the table are types of this namespace.
namespace kiln::op {

struct CountingOps {
#define KILN_OP(level, name, ...)                                                                 \
  static constexpr auto name = &ops::counting::Forward<decltype([]<class... A>(A&&... a) {        \
                                                         return Cpu::name(std::forward<A>(a)...); \
                                                       }),                                        \
                                                       __VA_ARGS__>::run;
#include "kiln/backend/ops.def"
};

}  // namespace kiln::op

namespace kiln::ops {

struct Counting : op::CountingOps, CountingTypes {
  using Device = kiln::Device;

  static std::string name(Device) { return "counting"; }
  static void seed(Device, uint64_t) {}
  static void sync(Device) {}

  static Shape shape(const Counted& x) { return x.x->shape(); }
  static DType dtype(const Counted& x) { return x.x->dtype(); }
  static Device device(const Counted& x) { return x.x->device(); }
  static Shape shape(const CountedQuantized& x) { return x.x->shape(); }
  static DType dtype(const CountedQuantized&) { return DType::q8; }
  static Device device(const CountedQuantized& x) { return x.x->device(); }
  static uint32_t version(const Counted& x) { return x.x->version(); }

  static Layout layout(const Counted& x) { return host::layout(x.x); }
  static Counted as_strided(const Counted& x, const Shape& shape, const Strides& strides,
                            int64_t offset) {
    return {host::as_strided(x.x, shape, strides, offset)};
  }

  static TensorData float_into_data(const Arg<Counted>& x) {
    return counting::counted(Cpu::float_into_data(x->x));
  }
  static TensorData int_into_data(const Arg<Counted>& x) {
    return counting::counted(Cpu::int_into_data(x->x));
  }
  static TensorData bool_into_data(const Arg<Counted>& x) {
    return counting::counted(Cpu::bool_into_data(x->x));
  }
};

}  // namespace kiln::ops
