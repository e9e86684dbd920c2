// A recording of rows, made by a dispatch table that is put in the place of the backend's as the
// profiler's is, and called again: random numbers are new in each replay, and those of eager.
#include "kiln/backend/replay.h"

#include <functional>
#include <memory>
#include <unordered_map>

#include <doctest/doctest.h>

#include "kiln/backend/dispatch/dispatch.h"
#include "kiln/kiln.h"
#include "kiln/tensor/autograd/checkpoint.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {
namespace {

// What stands for the recorded tensors in a replay. Those that no recorded row made are constants.
struct Replay {
  const RandomTape& tape;
  std::unordered_map<const TensorBase*, ErasedTensor> made = {};

  ErasedTensor of(const ErasedTensor& recorded) const {
    const auto found = made.find(recorded.get());
    return found == made.end() ? recorded : found->second;
  }
  void note(const ErasedTensor& recorded, ErasedTensor now) {
    made.insert_or_assign(recorded.get(), std::move(now));
  }
  template <class A, class C>
  void note(const std::pair<A, C>& recorded, std::pair<A, C> now) {
    note(recorded.first, std::move(now.first));
    note(recorded.second, std::move(now.second));
  }
  template <class... T>
  void note(const std::tuple<T...>& recorded, std::tuple<T...> now) {
    [&]<size_t... i>(std::index_sequence<i...>) {
      (note(std::get<i>(recorded), std::move(std::get<i>(now))), ...);
    }(std::index_sequence_for<T...>{});
  }
  void note(const TensorData&, const TensorData&) {}
  void note(const QuantScheme&, const QuantScheme&) {}
};

// An argument of a recorded row: kept, so that its address stays its name and nothing is given
// away, and what it is in a replay.
template <class T>
struct Word {
  std::decay_t<T> kept;
  std::decay_t<T> now = kept;
  T again(const Replay& r) {
    now = replayed(r.tape, kept);
    return now;
  }
};
template <>
struct Word<Arg<ErasedTensor>> {
  explicit Word(const Arg<ErasedTensor>& x) : kept(x.get()), in_place(x.is_in_place()) {}
  Arg<ErasedTensor> again(const Replay& r) {
    now = r.of(kept);
    return in_place ? Arg<ErasedTensor>::in_place(now) : Arg<ErasedTensor>(now);
  }
  ErasedTensor kept, now;
  bool in_place;
};
template <>
struct Word<const ErasedTensor*> {
  explicit Word(const ErasedTensor* x) {
    if (x != nullptr) kept = *x;
  }
  const ErasedTensor* again(const Replay& r) {
    if (!kept) return nullptr;
    now = r.of(kept);
    return &now;
  }
  ErasedTensor kept, now;
};
template <class E>
struct Word<std::span<E>> {
  explicit Word(std::span<E> xs) : kept(xs.begin(), xs.end()) {}
  std::span<E> again(const Replay& r) {
    now.clear();
    for (const ErasedTensor& x : kept) now.push_back(r.of(x));
    return now;
  }
  std::vector<ErasedTensor> kept, now;
};

struct Recording {
  const BackendTable* backend = nullptr;
  std::vector<std::function<void(Replay&)>> rows;
};
Recording recording;

template <class R, class... P>
struct Row {
  using Result = typename op::Return<DispatchTypes, R>::Type;
  template <auto kMember>
  static Result run(typename op::Param<DispatchTypes, P>::Type... args) {
    using Words = std::tuple<Word<typename op::Param<DispatchTypes, P>::Type>...>;
    const auto function = recording.backend->*kMember;
    const auto words =
        std::make_shared<Words>(Word<typename op::Param<DispatchTypes, P>::Type>{args}...);
    const auto again = [function, words](const Replay& r) {
      return std::apply([&](auto&... word) { return function(word.again(r)...); }, *words);
    };
    if constexpr (std::is_void_v<Result>) {
      function(static_cast<typename op::Param<DispatchTypes, P>::Type>(args)...);
      recording.rows.push_back(again);
    } else {
      Result result = function(static_cast<typename op::Param<DispatchTypes, P>::Type>(args)...);
      recording.rows.push_back([result, again](Replay& r) { r.note(result, again(r)); });
      return result;
    }
  }
};

// Records what the Cpu computes while it is there.
class Recorder {
 public:
  Recorder() {
    auto& entry = detail::backend_tables[Device{}.type];
    recording = {entry.load(), {}};
    table_ = *recording.backend;
#define KILN_OP(level, op_name, ...)                                          \
  {                                                                           \
    using namespace op;                                                       \
    table_.op_name = &Row<__VA_ARGS__>::template run<&BackendTable::op_name>; \
  }
#include "kiln/backend/ops.def"
    entry.store(&table_);
  }
  ~Recorder() { detail::backend_tables[Device{}.type].store(recording.backend); }

 private:
  BackendTable table_;
};

using Values = std::vector<double>;

// The tensors of a step, and what stands for them after a replay.
struct Step {
  std::vector<Tensor> results;
  Values values() const {
    Values all;
    for (const Tensor& x : results) {
      for (const double v : x.to_data().to_doubles()) all.push_back(v);
    }
    return all;
  }
};

Values values_of(const Step& step, const Replay& replay) {
  Step now;
  for (const Tensor& x : step.results) {
    now.results.push_back(detail::wrap(replay.of(detail::value_of("replay", x).inner)));
  }
  return now.values();
}

}  // namespace

TEST_CASE("A recorded step draws new numbers in each replay, those of eager") {
  const Tensor x = randn({6, 8});
  const Tensor w = randn({8, 8}).requires_grad_();
  const Tensor heads = randn({1, 2, 5, 8});
  Generator own(3);
  // Masks in the forward pass, again in the backward pass and in a checkpoint's second one; the
  // stream within attention's options; numbers of ops without gradients, also of a generator apart.
  const auto step = [&] {
    Tensor h = functional::dropout(x.matmul(w), 0.5);
    h = autograd::checkpoint(
        [&](const Tensor& v) { return functional::dropout(v.relu(), 0.25).matmul(w); }, h);
    h = h + rand_like(h) + rand({6, 8}, {}, &own);
    Tensor a = functional::scaled_dot_product_attention(heads, heads, heads, {}, 0.5);
    const Tensor loss = (h * h).mean();
    return Step{{loss, kiln::grad({loss}, {w})[0], a, randint(0, 1000, {7}).to(f64)}};
  };
  const auto begin = [&] {
    manual_seed(11);
    own.manual_seed(12);
  };

  begin();
  std::vector<Values> eager;
  for (int i = 0; i < 4; ++i) eager.push_back(step().values());
  const RandomStream end = default_generator().state();
  CHECK(eager[1] != eager[0]);

  begin();
  RandomTape tape;
  Step recorded;
  {
    const Recorder recorder;
    recorded = step();
  }
  tape.finish();
  CHECK(recorded.values() == eager[0]);
  REQUIRE(recording.rows.size() > 20);
  for (int i = 1; i < 4; ++i) {
    tape.advance();
    Replay replay{tape};
    for (const auto& row : recording.rows) row(replay);
    CHECK(values_of(recorded, replay) == eager[static_cast<size_t>(i)]);
  }
  CHECK(default_generator().state().offset == end.offset);
  CHECK(default_generator().state().seed == end.seed);

  // With another seed it is that of eager too.
  manual_seed(77);
  own.manual_seed(78);
  const Values other = step().values();
  manual_seed(77);
  own.manual_seed(78);
  tape.advance();
  Replay replay{tape};
  for (const auto& row : recording.rows) row(replay);
  CHECK(values_of(recorded, replay) == other);
  recording = {};
}

}  // namespace kiln
