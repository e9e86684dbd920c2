// How one call of a backend computes an op for a batch. Internal to batched_table.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "kiln/backend/batched/batched_tensor.h"
#include "kiln/core/error.h"

namespace kiln::batched {

// ---- Ops on tensors of any kind

inline bool is_quantized(const ErasedTensor& x) { return x->dtype() == DType::q8; }

// f(Dispatch's op of x's kind): by_kind(x, float op, int op, bool op).
#define KILN_BY_KIND(x, name, ...)                                                                 \
  (kind_of((x)->dtype()) == Kind::floating  ? Dispatch::float_##name(x __VA_OPT__(, ) __VA_ARGS__) \
   : kind_of((x)->dtype()) == Kind::integer ? Dispatch::int_##name(x __VA_OPT__(, ) __VA_ARGS__)   \
                                            : Dispatch::bool_##name(x __VA_OPT__(, ) __VA_ARGS__))

inline ErasedTensor reshape(const ErasedTensor& x, const Shape& shape) {
  return x->shape() == shape ? x : KILN_BY_KIND(x, reshape, shape);
}
inline ErasedTensor expand(const ErasedTensor& x, const Shape& shape) {
  return x->shape() == shape ? x : KILN_BY_KIND(x, expand, shape);
}
inline ErasedTensor join(std::span<const ErasedTensor> xs) {
  switch (kind_of(xs[0]->dtype())) {
    case Kind::floating:
      return Dispatch::float_cat(xs, 0);
    case Kind::integer:
      return Dispatch::int_cat(xs, 0);
    default:
      return Dispatch::bool_cat(xs, 0);
  }
}

inline Shape with_front(int64_t first, const Shape& rest) {
  Shape out{first};
  for (const int64_t n : rest) out.push_back(n);
  return out;
}
inline Shape without_front(const Shape& shape) {
  Shape out = shape;
  out.erase(0);
  return out;
}

// ---- Operands of a region

inline uint64_t level_of(const ErasedTensor& x) {
  if (!x) return 0;
  const BatchedTensor* found = as_batched(x);
  return found == nullptr ? 0 : found->level();
}

// The largest level among an op's operands, with its region.
class Highest {
 public:
  void see(const ErasedTensor& x) {
    if (!x) return;
    const BatchedTensor* found = as_batched(x);
    if (found != nullptr && found->level() > region.level) region = found->region();
  }
  void see(const Arg<ErasedTensor>& x) { see(x.get()); }
  void see(const ErasedTensor* x) {
    if (x != nullptr) see(*x);
  }
  void see(std::span<const ErasedTensor> xs) {
    for (const ErasedTensor& x : xs) see(x);
  }
  void see(std::span<ErasedTensor> xs) { see(std::span<const ErasedTensor>(xs)); }
  template <class T>
  void see(const T&) {}

  Region region;
};

// The batch itself, [B, ..]; x as it is when it is not of the batch.
inline const ErasedTensor& inner_of(const ErasedTensor& x, const Region& region) {
  const BatchedTensor* found = as_batched(x, region.level);
  return found == nullptr ? x : found->inner();
}
inline bool is_of(const ErasedTensor& x, const Region& region) {
  return as_batched(x, region.level) != nullptr;
}
inline bool is_of(const ErasedTensor* x, const Region& region) {
  return x != nullptr && is_of(*x, region);
}

// [B, ..], where x is not of the batch too.
inline ErasedTensor full(const ErasedTensor& x, const Region& region) {
  if (const BatchedTensor* found = as_batched(x, region.level)) return found->inner();
  return expand(reshape(x, with_front(1, x->shape())), with_front(region.size, x->shape()));
}

inline ErasedTensor wrapped(ErasedTensor inner, const Region& region) {
  return make_handle<BatchedTensor>(std::move(inner), region);
}
template <class A, class B>
std::pair<A, B> wrapped(std::pair<A, B> both, const Region& region) {
  return {wrapped(std::move(both.first), region), wrapped(std::move(both.second), region)};
}
template <class A, class B, class C>
std::tuple<A, B, C> wrapped(std::tuple<A, B, C> all, const Region& region) {
  auto& [a, b, c] = all;
  return {wrapped(std::move(a), region), wrapped(std::move(b), region),
          wrapped(std::move(c), region)};
}

// ---- Arguments for one call: what a rule's map makes of each is kept while the call runs

struct HeldOptional {
  std::optional<ErasedTensor> value;
  operator const ErasedTensor*() const { return value ? &*value : nullptr; }
};
struct HeldList {
  std::vector<ErasedTensor> values;
  operator std::span<const ErasedTensor>() const { return values; }
};

template <class Map, class T>
auto held(const Map& map, const T& arg) {
  if constexpr (std::is_same_v<T, Arg<ErasedTensor>>) {
    return map.tensor(arg.get());
  } else if constexpr (std::is_same_v<T, const ErasedTensor*>) {
    return arg == nullptr ? HeldOptional{} : HeldOptional{map.tensor(*arg)};
  } else if constexpr (std::is_same_v<T, std::span<const ErasedTensor>>) {
    HeldList out;
    for (const ErasedTensor& x : arg) out.values.push_back(map.tensor(x));
    return out;
  } else if constexpr (std::is_same_v<T, int>) {
    return map.dim(arg);
  } else if constexpr (std::is_same_v<T, Shape>) {
    return map.shape(arg);
  } else {
    return arg;
  }
}

template <class Call, class Map, class... A>
auto call_with(const Map& map, const A&... args) {
  const auto all = std::make_tuple(held(map, args)...);
  return std::apply([](const auto&... each) { return Call::run(each...); }, all);
}

struct PlainMap {
  int dim(int d) const { return d; }
  const Shape& shape(const Shape& s) const { return s; }
};

// ---- Rules

// Ops that broadcast: every operand of the batch gets as many dims behind the batch as the operand
// with the most.
struct Pointwise {
  struct Map : PlainMap {
    const Region& region;
    int rank;
    Map(const Region& r, int n) : region(r), rank(n) {}
    ErasedTensor tensor(const ErasedTensor& x) const {
      const BatchedTensor* found = as_batched(x, region.level);
      if (found == nullptr) return x;
      Shape to{region.size};
      for (int i = x->shape().rank(); i < rank; ++i) to.push_back(1);
      for (const int64_t n : x->shape()) to.push_back(n);
      return reshape(found->inner(), to);
    }
  };
  static int rank_of(const Arg<ErasedTensor>& x) { return x->shape().rank(); }
  static int rank_of(const ErasedTensor* x) { return x == nullptr ? 0 : (*x)->shape().rank(); }
  template <class T>
  static int rank_of(const T&) {
    return 0;
  }
  template <class Call, class... A>
  static auto apply(const Region& region, const A&... args) {
    int rank = 0;
    ((rank = std::max(rank, rank_of(args))), ...);
    return wrapped(call_with<Call>(Map(region, rank), args...), region);
  }
};

// Once for each element.
struct Loop {
  struct Map : PlainMap {
    const Region& region;
    int64_t element;
    Map(const Region& r, int64_t i) : region(r), element(i) {}
    ErasedTensor tensor(const ErasedTensor& x) const {
      const BatchedTensor* found = as_batched(x, region.level);
      if (found == nullptr) return x;
      const ErasedTensor& all = found->inner();
      return reshape(KILN_BY_KIND(all, slice, 0, Range(element, element + 1, 1)), x->shape());
    }
  };
  static ErasedTensor stacked(std::span<const ErasedTensor> xs) {
    if (is_quantized(xs[0])) {
      throw_error<NotImplementedError>("vmap: quantized tensors cannot be results in a batch");
    }
    std::vector<ErasedTensor> parts;
    for (const ErasedTensor& x : xs) parts.push_back(reshape(x, with_front(1, x->shape())));
    return join(parts);
  }
  template <size_t... I, class Result>
  static Result stacked_all(const std::vector<Result>& each, std::index_sequence<I...>) {
    const auto one = [&]<size_t K>(std::integral_constant<size_t, K>) {
      std::vector<ErasedTensor> xs;
      for (const Result& r : each) xs.push_back(std::get<K>(r));
      return stacked(xs);
    };
    return Result{one(std::integral_constant<size_t, I>{})...};
  }
  template <class Call, class... A>
  static auto apply(const Region& region, const A&... args) {
    using Result = decltype(call_with<Call>(Map(region, 0), args...));
    if constexpr (!std::is_same_v<Result, ErasedTensor> &&
                  !requires { std::tuple_size<Result>::value; }) {
      throw_error<NotImplementedError>("vmap: quantized tensors have no batches");
      return Result{};
    } else {
      return of_each<Call, Result>(region, args...);
    }
  }

 private:
  template <class Call, class Result, class... A>
  static Result of_each(const Region& region, const A&... args) {
    if (region.size == 0) throw_error<ValueError>("vmap: this op cannot compute an empty batch");
    std::vector<Result> each;
    for (int64_t i = 0; i < region.size; ++i) {
      each.push_back(call_with<Call>(Map(region, i), args...));
    }
    if constexpr (std::is_same_v<Result, ErasedTensor>) {
      return wrapped(stacked(each), region);
    } else {
      return wrapped(stacked_all(each, std::make_index_sequence<std::tuple_size_v<Result>>()),
                     region);
    }
  }
};

// Ops along dims, which are one further in the batch; operands have one number of dims.
struct Along {
  struct Map {
    const Region& region;
    ErasedTensor tensor(const ErasedTensor& x) const { return full(x, region); }
    int dim(int d) const { return d + 1; }
    Shape shape(const Shape& dims) const {
      Shape out;
      for (const int64_t d : dims) out.push_back(d + 1);
      return out;
    }
  };
  static bool is_scalar(const Arg<ErasedTensor>& x) { return x->shape().rank() == 0; }
  template <class T>
  static bool is_scalar(const T&) {
    return false;
  }
  template <class Call, class... A>
  static auto apply(const Region& region, const A&... args) {
    // A tensor without dims has none to go along.
    if ((is_scalar(args) || ...)) return Loop::apply<Call>(region, args...);
    return wrapped(call_with<Call>(Map{region}, args...), region);
  }
};

// Ops whose operands and results all begin with a batch of their own: both become one.
struct Fold {
  struct Map {
    const Region& region;
    ErasedTensor tensor(const ErasedTensor& x) const {
      return reshape(full(x, region), shape(x->shape()));
    }
    int dim(int d) const { return d; }
    Shape shape(const Shape& s) const {
      Shape out = s;
      out[0] *= region.size;
      return out;
    }
  };
  static ErasedTensor unfolded(const ErasedTensor& x, const Region& region) {
    Shape to = with_front(region.size, x->shape());
    to[1] /= std::max<int64_t>(1, region.size);
    return reshape(x, to);
  }
  template <class A, class B>
  static std::pair<A, B> unfolded(const std::pair<A, B>& both, const Region& region) {
    return {unfolded(both.first, region), unfolded(both.second, region)};
  }
  template <class A, class B, class C>
  static std::tuple<A, B, C> unfolded(const std::tuple<A, B, C>& all, const Region& region) {
    return {unfolded(std::get<0>(all), region), unfolded(std::get<1>(all), region),
            unfolded(std::get<2>(all), region)};
  }
  template <class Call, class... A>
  static auto apply(const Region& region, const A&... args) {
    if (region.size == 0) return Loop::apply<Call>(region, args...);
    return wrapped(unfolded(call_with<Call>(Map{region}, args...), region), region);
  }
};

// Ops for which the first operand may have any dims in front; others than it are not of the batch.
struct Leading {
  struct Map : PlainMap {
    const Region& region;
    explicit Map(const Region& r) : region(r) {}
    ErasedTensor tensor(const ErasedTensor& x) const { return inner_of(x, region); }
  };
};

// The result's shape is an argument.
struct Reshape {
  template <class Call>
  static auto apply(const Region& region, const Arg<ErasedTensor>& x, const Shape& shape) {
    return wrapped(Call::run(inner_of(x, region), with_front(region.size, shape)), region);
  }
};

struct Expand {
  template <class Call>
  static auto apply(const Region& region, const Arg<ErasedTensor>& x, const Shape& shape) {
    const ErasedTensor aligned = Pointwise::Map(region, shape.rank()).tensor(x);
    return wrapped(Call::run(aligned, with_front(region.size, shape)), region);
  }
};

struct Permute {
  template <class Call>
  static auto apply(const Region& region, const Arg<ErasedTensor>& x, const Shape& dims) {
    Shape order{0};
    for (const int64_t d : dims) order.push_back(d + 1);
    return wrapped(Call::run(inner_of(x, region), order), region);
  }
};

// What pads each dim by so much pads the batch by nothing.
struct Pad {
  // With an EdgeMode or a value.
  template <class Call, class Outside>
  static auto apply(const Region& region, const Arg<ErasedTensor>& x, const Shape& before,
                    const Shape& behind, Outside outside) {
    return wrapped(
        Call::run(inner_of(x, region), with_front(0, before), with_front(0, behind), outside),
        region);
  }
};

// Writes.
struct Assign {
  template <class Call>
  static void apply(const Region& region, const Arg<ErasedTensor>& x, const Arg<ErasedTensor>& y) {
    if (!is_of(x, region)) {
      throw_error<RuntimeError>(
          "vmap: a tensor that is the same for the whole batch cannot be given values that differ "
          "in it, in place; got a tensor of shape ",
          x->shape(), "; try an op that gives a new one");
    }
    const ErasedTensor source = Pointwise::Map(region, x->shape().rank()).tensor(y);
    Call::run(inner_of(x, region), source);
  }
};
struct Fill {
  template <class Call>
  static void apply(const Region& region, const Arg<ErasedTensor>& x, Scalar value) {
    Call::run(inner_of(x, region), value);
  }
};

struct NoValues {
  template <class Call, class... A>
  static auto apply(const Region&, const A&... args) -> decltype(Call::run(args...)) {
    throw_error<RuntimeError>(
        "vmap: the values of a tensor of a batch cannot be read as numbers of the program (item(), "
        "tolist(), numpy(), a condition, a printed text, a shape that depends on them); try "
        "where() and other ops on tensors");
  }
};
struct NoOptimizer {
  template <class Call, class... A>
  static void apply(const Region&, const A&...) {
    throw_error<NotImplementedError>("vmap: an optimizer's step cannot be vectorized");
  }
};

}  // namespace kiln::batched
