// register_backend: the one line that makes a backend available as a device.
//
//   const kiln::DeviceType mine = kiln::register_backend<MyBackend>("mine");
//   auto x = kiln::randn({2, 3}, {.device = mine});
#pragma once

#include <string_view>
#include <vector>

#include "kiln/backend/dispatch/dispatch.h"
#include "kiln/backend/dispatch/views.h"
#include "kiln/backend/host_layout.h"

namespace kiln {

namespace detail {

DeviceType add_backend(std::string_view name, const BackendTable* table, const ViewTable* views);

// A primitive of a type that Kiln does not know, with the facts that Dispatch asks for.
template <class P>
class Boxed final : public TensorBase {
 public:
  Boxed(P value, const Shape& shape, DType dtype, Device device)
      : TensorBase(shape, dtype, device), value_(std::move(value)) {}
  const P& value() const { return value_; }

 private:
  P value_;
};

template <class P>
struct IsTensorHandle : std::false_type {};
template <class T>
struct IsTensorHandle<Handle<T>> : std::is_base_of<TensorBase, T> {};

// Erasing a handle on a TensorBase costs nothing, since all handles have one representation; other
// primitives travel in a box.
template <class Bk, class P>
ErasedTensor erase(P value) {
  if constexpr (IsTensorHandle<P>::value) {
    return ErasedTensor(std::move(value));
  } else {
    const Shape shape = Bk::shape(value);
    const DType dtype = Bk::dtype(value);
    const Device device = Bk::device(value);
    return make_handle<Boxed<P>>(std::move(value), shape, dtype, device);
  }
}

template <class P>
const P& unerase(const ErasedTensor& x) {
  if constexpr (IsTensorHandle<P>::value) {
    return static_cast<const P&>(static_cast<const HandleBase&>(x));
  } else {
    return static_cast<const Boxed<P>*>(x.get())->value();
  }
}

template <class P>
Arg<P> unerase_arg(const Arg<ErasedTensor>& x) {
  if constexpr (IsTensorHandle<P>::value) {
    return x.template with<P>(unerase<P>(x.get()));
  } else {
    return Arg<P>(unerase<P>(x.get()));
  }
}

template <class P>
const P* unerase_optional(const ErasedTensor* x) {
  return x == nullptr ? nullptr : &unerase<P>(*x);
}

// A span of primitives: the same memory for handles, a copy of the primitives otherwise.
template <class P, class Erased>
struct UnerasedList {
  explicit UnerasedList(std::span<Erased> xs) : xs_(xs) {
    if constexpr (!IsTensorHandle<P>::value) {
      copies_.reserve(xs.size());
      for (const ErasedTensor& x : xs) copies_.push_back(unerase<P>(x));
    }
  }
  using Element = std::conditional_t<std::is_const_v<Erased>, const P, P>;
  operator std::span<Element>() {
    if constexpr (IsTensorHandle<P>::value) {
      return {reinterpret_cast<Element*>(xs_.data()), xs_.size()};
    } else {
      return copies_;
    }
  }

  std::span<Erased> xs_;
  std::vector<P> copies_;
};

// How an argument for the word T of the op table reaches backend Bk. Anything that is no tensor
// passes as it is.
template <class Bk, class T>
struct Unerase {
  template <class V>
  static V&& pass(V&& value) {
    return static_cast<V&&>(value);
  }
};
template <class Bk, class P>
struct UneraseTensor {
  static Arg<P> pass(const Arg<ErasedTensor>& x) { return unerase_arg<P>(x); }
};
template <class Bk>
struct Unerase<Bk, op::F> : UneraseTensor<Bk, typename Bk::FloatTensorPrimitive> {};
template <class Bk>
struct Unerase<Bk, op::I> : UneraseTensor<Bk, typename Bk::IntTensorPrimitive> {};
template <class Bk>
struct Unerase<Bk, op::B> : UneraseTensor<Bk, typename Bk::BoolTensorPrimitive> {};
template <class Bk>
struct Unerase<Bk, op::Q> : UneraseTensor<Bk, typename Bk::QuantizedTensorPrimitive> {};
template <class Bk>
struct Unerase<Bk, op::OptF> {
  static const typename Bk::FloatTensorPrimitive* pass(const ErasedTensor* x) {
    return unerase_optional<typename Bk::FloatTensorPrimitive>(x);
  }
};
template <class P>
struct UneraseSpan {
  static UnerasedList<P, const ErasedTensor> pass(std::span<const ErasedTensor> xs) {
    return UnerasedList<P, const ErasedTensor>(xs);
  }
};
template <class Bk>
struct Unerase<Bk, op::FList> : UneraseSpan<typename Bk::FloatTensorPrimitive> {};
template <class Bk>
struct Unerase<Bk, op::IList> : UneraseSpan<typename Bk::IntTensorPrimitive> {};
template <class Bk>
struct Unerase<Bk, op::BList> : UneraseSpan<typename Bk::BoolTensorPrimitive> {};
template <class Bk>
struct Unerase<Bk, op::FMut> {
  static UnerasedList<typename Bk::FloatTensorPrimitive, ErasedTensor> pass(
      std::span<ErasedTensor> xs) {
    return UnerasedList<typename Bk::FloatTensorPrimitive, ErasedTensor>(xs);
  }
};

template <class Bk, class R>
struct EraseResult {
  template <class V>
  static auto pass(V value) {
    return erase<Bk>(std::move(value));
  }
};
template <class Bk>
struct EraseResult<Bk, TensorData> {
  static TensorData pass(TensorData value) { return value; }
};
template <class Bk>
struct EraseResult<Bk, QuantScheme> {
  static QuantScheme pass(const QuantScheme& value) { return value; }
};
template <class Bk>
struct ErasePair {
  template <class A, class C>
  static std::pair<ErasedTensor, ErasedTensor> pass(std::pair<A, C> value) {
    return {erase<Bk>(std::move(value.first)), erase<Bk>(std::move(value.second))};
  }
};
template <class Bk>
struct EraseResult<Bk, op::FI> : ErasePair<Bk> {};
template <class Bk>
struct EraseResult<Bk, op::FF> : ErasePair<Bk> {};
template <class Bk>
struct EraseResult<Bk, op::FFF> {
  template <class P>
  static std::tuple<ErasedTensor, ErasedTensor, ErasedTensor> pass(std::tuple<P, P, P> value) {
    return {erase<Bk>(std::move(std::get<0>(value))), erase<Bk>(std::move(std::get<1>(value))),
            erase<Bk>(std::move(std::get<2>(value)))};
  }
};

// The function that a table entry points to. `Call` forwards to one op of Bk.
template <class Bk, class R, class... P>
struct Entry {
  using Result = typename op::Return<DispatchTypes, R>::Type;

  template <class Call>
  static Result run(typename op::Param<DispatchTypes, P>::Type... args) {
    if constexpr (std::is_void_v<Result>) {
      Call{}(Unerase<Bk, P>::pass(args)...);
    } else {
      return EraseResult<Bk, R>::pass(Call{}(Unerase<Bk, P>::pass(args)...));
    }
  }
};

template <class Bk>
uint32_t version_of(const ErasedTensor& x) {
  // All primitives of one backend answer alike; without an answer nothing is ever seen to change.
  using P = typename Bk::FloatTensorPrimitive;
  if constexpr (!requires(const P& p) { Bk::version(p); }) {
    return 0;
  } else if constexpr (IsTensorHandle<P>::value) {
    return Bk::version(unerase<P>(x));
  } else {
    const auto* box =
        dynamic_cast<const Boxed<P>*>(x.get());  // int primitives may be of another type
    return box == nullptr ? 0 : Bk::version(box->value());
  }
}

template <class Bk>
ErasedTensor own_version_of(const ErasedTensor& x) {
  using P = typename Bk::FloatTensorPrimitive;
  if constexpr (IsTensorHandle<P>::value && requires(const P& p) { Bk::own_version(p); }) {
    if (kind_of(x->dtype()) != Kind::quantized) return Bk::own_version(unerase<P>(x));
  }
  return x;
}

// Of a float tensor; false (then it is copied before it is given away) where the backend does not
// say.
template <class Bk>
bool owns_memory(const ErasedTensor& x) {
  using P = typename Bk::FloatTensorPrimitive;
  if constexpr (requires(const P& p) { Bk::owns_memory(p); }) {
    return Bk::owns_memory(unerase<P>(x));
  } else {
    return false;
  }
}

// Backends over HostTensor have its layouts, unless they declare their own.
template <class Bk, class P>
Layout layout_of_primitive(const P& x) {
  if constexpr (op::HasLayout<Bk, P>) {
    return Bk::layout(x);
  } else if constexpr (std::is_same_v<P, HostHandle>) {
    return host::layout(x);
  } else {
    return {};
  }
}

// Calls fn with x as the primitive of its kind.
template <class Bk, class Fn>
auto with_primitive(const ErasedTensor& x, Fn&& fn) {
  switch (kind_of(x->dtype())) {
    case Kind::integer:
      return fn(unerase<typename Bk::IntTensorPrimitive>(x));
    case Kind::boolean:
      return fn(unerase<typename Bk::BoolTensorPrimitive>(x));
    default:
      return fn(unerase<typename Bk::FloatTensorPrimitive>(x));
  }
}

template <class Bk>
Layout erased_layout(const ErasedTensor& x) {
  return with_primitive<Bk>(
      x, []<class P>(const P& primitive) { return layout_of_primitive<Bk, P>(primitive); });
}

template <class Bk, class P>
ErasedTensor as_strided_primitive(const P& x, const Shape& shape, const Strides& strides,
                                  int64_t offset) {
  if constexpr (op::HasAsStrided<Bk, P>) {
    return erase<Bk, P>(Bk::as_strided(x, shape, strides, offset));
  } else {
    return host::as_strided(x, shape, strides, offset);
  }
}

template <class Bk>
ErasedTensor erased_as_strided(const ErasedTensor& x, const Shape& shape, const Strides& strides,
                               int64_t offset) {
  return with_primitive<Bk>(x, [&]<class P>(const P& primitive) {
    return as_strided_primitive<Bk, P>(primitive, shape, strides, offset);
  });
}

// Only where one type serves all kinds.
template <class Bk>
ErasedTensor erased_reinterpret(const ErasedTensor& x, DType dtype, const Shape& shape,
                                const Strides& strides, int64_t offset) {
  using P = typename Bk::FloatTensorPrimitive;
  if constexpr (std::is_same_v<P, HostHandle>) {
    return host::reinterpret(unerase<P>(x), dtype, shape, strides, offset);
  } else {
    return erase<Bk, P>(Bk::reinterpret(unerase<P>(x), dtype, shape, strides, offset));
  }
}

}  // namespace detail

namespace op {

template <class Bk>
inline constexpr bool is_over_host =
    std::is_same_v<typename Bk::FloatTensorPrimitive, HostHandle> &&
    std::is_same_v<typename Bk::IntTensorPrimitive, HostHandle> &&
    std::is_same_v<typename Bk::BoolTensorPrimitive, HostHandle>;

template <class Bk>
consteval ViewTable make_views() {
  using P = typename Bk::FloatTensorPrimitive;
  constexpr int parts = layout_parts<Bk>();
  static_assert(parts == 6 || parts == 0 || is_over_host<Bk>,
                "register_backend: layout(x) and as_strided(x, shape, strides, offset) belong "
                "together, for the float, int and bool tensors of a backend; declare all or none "
                "(kiln/backend/layout.h)");
  ViewTable views{&detail::erased_layout<Bk>, nullptr, nullptr};
  if constexpr (parts == 6 || is_over_host<Bk>) views.as_strided = &detail::erased_as_strided<Bk>;
  if constexpr (is_over_host<Bk> || requires(const P& x, const Shape& shape) {
                  Bk::reinterpret(x, DType{}, shape, shape, int64_t{});
                }) {
    views.reinterpret = &detail::erased_reinterpret<Bk>;
  }
  return views;
}

template <class Bk>
consteval BackendTable make_table() {
  BackendTable table{};
  table.name = [](Device device) -> std::string { return Bk::name(device); };
  table.seed = [](Device device, uint64_t seed) { Bk::seed(device, seed); };
  table.sync = [](Device device) { Bk::sync(device); };
  table.version = &detail::version_of<Bk>;
  table.own_version = &detail::own_version_of<Bk>;
  table.owns_memory = &detail::owns_memory<Bk>;
#define KILN_OP(level, op_name, ...)                                                           \
  {                                                                                            \
    auto call = []<class... A>(A&&... args) { return Bk::op_name(std::forward<A>(args)...); }; \
    table.op_name = &detail::Entry<Bk, __VA_ARGS__>::template run<decltype(call)>;             \
  }
#include "kiln/backend/ops.def"
  return table;
}

}  // namespace op

namespace detail {
using op::make_table;
using op::make_views;
}  // namespace detail

// Makes backend Bk available under `name` and returns its device type. Its primitives may be of any
// type: handles on a TensorBase travel as they are, others in a box. Throws DeviceError when the
// name is taken.
template <class Bk>
DeviceType register_backend(std::string_view name) {
  check_backend<Bk>();
  if constexpr (!Backend<Bk>) {
    return {};  // one message is enough
  } else {
    static constinit const BackendTable table = detail::make_table<Bk>();
    static constinit const ViewTable views = detail::make_views<Bk>();
    return detail::add_backend(name, &table, &views);
  }
}

}  // namespace kiln
