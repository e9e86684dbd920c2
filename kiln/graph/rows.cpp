#include "kiln/graph/rows.h"

#include <algorithm>

#include "kiln/backend/dispatch/views.h"
#include "kiln/backend/replay.h"
#include "kiln/core/cached_vector.h"
#include "kiln/graph/file/rules.h"

namespace kiln::graph {

namespace {

// How a parameter of a row is made of a node's argument.
template <class T>
class Given {
 public:
  Given(const Argument& argument, Frame& frame)
      : value_(std::get<std::decay_t<T>>(argument.attribute)), tape_(frame.tape) {}
  T get() {
    if constexpr (requires { replayed_.emplace(replayed(*tape_, value_)); } &&
                  (std::is_same_v<std::decay_t<T>, RandomStream> ||
                   std::is_same_v<std::decay_t<T>, AttentionOptions>)) {
      if (tape_ == nullptr) return value_;
      return replayed_.emplace(replayed(*tape_, value_));
    } else {
      return value_;
    }
  }

 private:
  const std::decay_t<T>& value_;
  const RandomTape* tape_;
  std::optional<std::decay_t<T>> replayed_;
};

template <>
class Given<Arg<ErasedTensor>> {
 public:
  Given(const Argument& argument, Frame& frame)
      : operand_(argument.operands[0]), slot_(frame[operand_.value]) {}
  Arg<ErasedTensor> get() {
    if (operand_.in_place) return Arg<ErasedTensor>::in_place(slot_);
    if (operand_.last) return Arg<ErasedTensor>(std::move(slot_));
    return Arg<ErasedTensor>(slot_);
  }

 private:
  const Operand& operand_;
  ErasedTensor& slot_;
};

template <>
class Given<const ErasedTensor*> {
 public:
  Given(const Argument& argument, Frame& frame) {
    const ValueId id = argument.operands[0].value;
    if (id != kNoValue) slot_ = &frame[id];
  }
  const ErasedTensor* get() { return slot_; }

 private:
  const ErasedTensor* slot_ = nullptr;
};

template <class E>
class Given<std::span<E>> {
 public:
  Given(const Argument& argument, Frame& frame) {
    all_.reserve(argument.operands.size());
    for (const Operand& o : argument.operands) all_.push_back(frame[o.value]);
  }
  std::span<E> get() { return all_; }

 private:
  kiln::detail::CachedVector<ErasedTensor> all_;
};

void store(const Node& node, Frame& frame, ErasedTensor result) {
  frame[node.results[0]] = std::move(result);
}
template <class A, class B>
void store(const Node& node, Frame& frame, std::pair<A, B> result) {
  frame[node.results[0]] = std::move(result.first);
  frame[node.results[1]] = std::move(result.second);
}
template <class... T>
void store(const Node& node, Frame& frame, std::tuple<T...> result) {
  size_t i = 0;
  std::apply([&](auto&... part) { ((frame[node.results[i++]] = std::move(part)), ...); }, result);
}

// One for each signature; a row only says which member of the table it is.
template <class Result, class... A>
[[gnu::noinline]] void run_signature(Result (*BackendTable::*member)(A...), const Node& node,
                                     Frame& frame) {
  if constexpr (std::is_same_v<Result, TensorData> || std::is_same_v<Result, QuantScheme>) {
    throw_error<ValueError>("graph: ", node.name, " gives no tensor");
  } else {
    [&]<size_t... i>(std::index_sequence<i...>) {
      std::tuple<Given<A>...> given{Given<A>(node.arguments[i], frame)...};
      const auto call = [&](A... args) {
        const auto function = kiln::detail::pick_table(args...).*member;
        if constexpr (std::is_void_v<Result>) {
          function(static_cast<A>(args)...);
        } else {
          store(node, frame, function(static_cast<A>(args)...));
        }
      };
      call(std::get<i>(given).get()...);
    }(std::index_sequence_for<A...>{});
  }
}

template <class Result, class... A>
[[gnu::noinline]] TensorData read_signature(Result (*BackendTable::*member)(A...),
                                            const ErasedTensor& x) {
  if constexpr (std::is_same_v<Result, TensorData> &&
                std::is_same_v<std::tuple<A...>, std::tuple<Arg<ErasedTensor>>>) {
    return (kiln::detail::table_of(x->device()).*member)(x);
  } else {
    throw_error<ValueError>("graph: the row reads no values");
  }
}

struct Info {
  const char* name;
  void (*run)(const Node&, Frame&);
  TensorData (*read)(const ErasedTensor&);
};

constexpr Info kInfos[] = {
#define KILN_OP(level, op_name, ...)                                                           \
  {#op_name,                                                                                   \
   [](const Node& node, Frame& frame) { run_signature(&BackendTable::op_name, node, frame); }, \
   [](const ErasedTensor& x) -> TensorData { return read_signature(&BackendTable::op_name, x); }},
#include "kiln/backend/ops.def"
};

}  // namespace

const char* row_name(int32_t row) { return kInfos[row].name; }

int32_t row_of(std::string_view name) {
  const auto found = std::find_if(std::begin(kInfos), std::end(kInfos),
                                  [&](const Info& info) { return info.name == name; });
  return found == std::end(kInfos) ? -1 : static_cast<int32_t>(found - kInfos);
}

void run_row(const Node& node, Frame& frame) { kInfos[node.row].run(node, frame); }

TensorData read_values(int32_t row, const ErasedTensor& x) { return kInfos[row].read(x); }

void check_window(const Shape& shape, const Strides& strides, int64_t offset,
                  const ErasedTensor& x) {
  const int64_t capacity = layout_of(x).capacity;
  bool fits = shape.rank() == strides.rank() && offset >= 0 && checked_numel(shape) >= 0;
  int64_t last = offset;
  for (int d = 0; fits && d < shape.rank(); ++d) {
    fits = strides[d] >= 0 &&
           (shape[d] <= 1 || strides[d] <= (capacity - std::min(last, capacity)) / (shape[d] - 1));
    if (fits && shape[d] > 1) last += (shape[d] - 1) * strides[d];
  }
  if (!fits || (shape.numel() > 0 && last >= capacity)) {
    throw_error<ValueError>("as_strided: got shape ", shape, ", strides ", strides, " and offset ",
                            offset, " of memory for ", capacity,
                            " elements; expected a window of it");
  }
}

}  // namespace kiln::graph
