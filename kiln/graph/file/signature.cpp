#include "kiln/graph/file/signature.h"

#include <array>

#include "kiln/backend/backend.h"

namespace kiln::graph {

namespace {

template <class T, class... All>
constexpr size_t place_of(const std::variant<All...>*) {
  size_t at = 0;
  static_cast<void>(((std::is_same_v<T, All> ? true : (++at, false)) || ...));
  return at;
}

template <class P>
constexpr Parameter parameter() {
  using Type = Parameter::Type;
  if constexpr (std::is_same_v<P, op::F>) return {Type::tensor, Kind::floating};
  if constexpr (std::is_same_v<P, op::I>) return {Type::tensor, Kind::integer};
  if constexpr (std::is_same_v<P, op::B>) return {Type::tensor, Kind::boolean};
  if constexpr (std::is_same_v<P, op::Q>) return {Type::tensor, Kind::quantized};
  if constexpr (std::is_same_v<P, op::OptF>) return {Type::optional, Kind::floating};
  if constexpr (std::is_same_v<P, op::FList>) return {Type::list, Kind::floating};
  if constexpr (std::is_same_v<P, op::IList>) return {Type::list, Kind::integer};
  if constexpr (std::is_same_v<P, op::BList>) return {Type::list, Kind::boolean};
  if constexpr (std::is_same_v<P, op::FMut>) return {Type::mutable_list, Kind::floating};
  return {Type::attribute, Kind::floating,
          place_of<std::decay_t<P>>(static_cast<const Attribute*>(nullptr))};
}

template <class R>
constexpr int count_results() {
  if constexpr (std::is_void_v<R>) return 0;
  if constexpr (std::is_same_v<R, op::FI> || std::is_same_v<R, op::FF>) return 2;
  if constexpr (std::is_same_v<R, op::FFF>) return 3;
  return 1;
}

struct Signature {
  std::vector<Parameter> parameters;
  int results = 0;
};

template <class R, class... P>
Signature signature() {
  return {{parameter<P>()...}, count_results<R>()};
}

const Signature& signature_of(int32_t row) {
  using namespace op;
  static const std::vector<Signature> all = {
#define KILN_OP(level, name, ...) signature<__VA_ARGS__>(),
#include "kiln/backend/ops.def"
  };
  return all[static_cast<size_t>(row)];
}

}  // namespace

const std::vector<Parameter>& parameters_of(int32_t row) { return signature_of(row).parameters; }

int results_of(int32_t row) { return signature_of(row).results; }

}  // namespace kiln::graph
