#include "kiln/pt2/sizes.h"

#include <algorithm>
#include <charconv>

#include "kiln/core/error.h"
#include "kiln/core/utf8.h"
#include "kiln/pt2/fields.h"

namespace kiln::pt2 {

struct SizeExpression::Node {
  enum class Kind : uint8_t { number, symbol, sum, product } kind = Kind::number;
  int64_t number = 0;
  std::string symbol;
  std::vector<Node> terms;
};

// Reads name(argument, ...), where an argument is such a call, a number, a string or a keyword.
class SizeExpression::Parser {
 public:
  explicit Parser(const std::string& text) : at_(text.data()), end_(at_ + text.size()) {}

  std::optional<Node> read() {
    auto out = call(0);
    return at_ == end_ ? out : std::nullopt;
  }
  std::vector<std::string> names;

 private:
  static constexpr int kDeepest = 32;

  static bool is_part(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
  }
  bool take(char c) {
    while (at_ != end_ && *at_ == ' ') ++at_;
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  std::string name() {
    while (at_ != end_ && *at_ == ' ') ++at_;
    const char* begin = at_;
    while (at_ != end_ && is_part(*at_)) ++at_;
    return {begin, at_};
  }

  std::optional<Node> call(int depth) {
    if (depth > kDeepest) return std::nullopt;
    const std::string what = name();
    if (!take('(')) return std::nullopt;
    if (what == "Integer") return integer();
    if (what == "Symbol") return symbol();
    if (what != "Add" && what != "Mul") return std::nullopt;
    Node out;
    out.kind = what == "Add" ? Node::Kind::sum : Node::Kind::product;
    do {
      auto term = call(depth + 1);
      if (!term) return std::nullopt;
      out.terms.push_back(std::move(*term));
    } while (take(','));
    if (!take(')')) return std::nullopt;
    return out;
  }
  std::optional<Node> integer() {
    Node out;
    const auto [stop, error] = std::from_chars(at_, end_, out.number);
    if (error != std::errc{}) return std::nullopt;
    at_ = stop;
    if (!take(')')) return std::nullopt;
    return out;
  }
  std::optional<Node> symbol() {
    if (!take('\'')) return std::nullopt;
    Node out;
    out.kind = Node::Kind::symbol;
    out.symbol = name();
    if (out.symbol.empty() || !take('\'')) return std::nullopt;
    while (take(',')) {  // "positive=True"
      name();
      if (!take('=')) return std::nullopt;
      name();
    }
    if (!take(')')) return std::nullopt;
    if (std::ranges::find(names, out.symbol) == names.end()) names.push_back(out.symbol);
    return out;
  }

  const char* at_;
  const char* end_;
};

SizeExpression::SizeExpression(const std::string& text) {
  Parser parser(text);
  if (auto root = parser.read()) {
    root_ = std::make_shared<const Node>(std::move(*root));
    names_ = std::move(parser.names);
  }
}

std::optional<int64_t> SizeExpression::value(const Node& node, const Symbols& symbols) const {
  if (node.kind == Node::Kind::number) return node.number;
  if (node.kind == Node::Kind::symbol) {
    const auto found = symbols.find(node.symbol);
    return found == symbols.end() ? std::nullopt : std::optional(found->second);
  }
  const bool sum = node.kind == Node::Kind::sum;
  int64_t out = sum ? 0 : 1;
  for (const Node& term : node.terms) {
    const auto one = value(term, symbols);
    if (!one ||
        (sum ? __builtin_add_overflow(out, *one, &out) : __builtin_mul_overflow(out, *one, &out))) {
      return std::nullopt;
    }
  }
  return out;
}
std::optional<int64_t> SizeExpression::value(const Symbols& symbols) const {
  return root_ == nullptr ? std::nullopt : value(*root_, symbols);
}

std::string SizeExpression::str(const Node& node) {
  if (node.kind == Node::Kind::number) return std::to_string(node.number);
  if (node.kind == Node::Kind::symbol) return node.symbol;
  const bool sum = node.kind == Node::Kind::sum;
  std::string out;
  for (const Node& term : node.terms) {
    const bool inner = !sum && term.kind == Node::Kind::sum;
    out += concat(out.empty() ? ""
                  : sum       ? " + "
                              : "*",
                  inner ? "(" : "", str(term), inner ? ")" : "");
  }
  return out;
}
std::string SizeExpression::str() const { return root_ == nullptr ? "?" : str(*root_); }

bool SizeExpression::solve(int64_t size, Symbols& symbols) const {
  const std::string* open = nullptr;
  for (const std::string& name : names_) {
    if (symbols.contains(name)) continue;
    if (open != nullptr) return true;
    open = &name;
  }
  if (open == nullptr) return true;
  Symbols trial = symbols;
  const auto at = [&](int64_t s) {
    trial[*open] = s;
    return value(trial);
  };
  const auto zero = at(0), one = at(1), two = at(2);
  if (!zero || !one || !two || *one - *zero != *two - *one || *one == *zero) return true;
  const int64_t slope = *one - *zero, rest = size - *zero;
  if (rest % slope != 0) return false;
  symbols[*open] = rest / slope;
  return true;
}

DeclaredShape declared_shape(const Json& sizes) {
  DeclaredShape out;
  const Json::Array& all = list_of(sizes, "sizes");
  if (all.size() > static_cast<size_t>(kMaxRank)) {
    throw_error<ValueError>("a tensor of ", all.size(), " dims; expected at most ", kMaxRank);
  }
  for (const Json& one : all) {
    const auto& [kind, value] = only_member(one, "a size");
    if (kind == "as_int") {
      out.free.emplace_back();
      out.fixed.push_back(integer_of(value, "a size"));
    } else {
      out.free.emplace_back(SizeExpression(text_of(member(value, "expr_str"), "expr_str")));
      out.fixed.push_back(-1);
    }
  }
  return out;
}

std::map<std::string, Range> declared_ranges(const Json& constraints) {
  std::map<std::string, Range> out;
  for (const auto& [name, range] : object_of(constraints, "range_constraints")) {
    Range& one = out[name];
    if (const Json* least = find(range, "min_val")) one.least = integer_of(*least, "min_val");
    if (const Json* most = find(range, "max_val")) one.most = integer_of(*most, "max_val");
  }
  return out;
}

void SizeCheck::add(const std::string& input, const DeclaredShape& declared, const Shape& shape) {
  if (shape.rank() != declared.fixed.rank()) {
    throw_error<ShapeError>("pt2: input '", printable(input, 60), "' has ", shape.rank(),
                            " dims; expected ", declared.fixed.rank());
  }
  for (int d = 0; d < shape.rank(); ++d) {
    const auto& free = declared.free[static_cast<size_t>(d)];
    if (free) {
      pending_.push_back({input, d, shape[d], &*free});
    } else if (shape[d] != declared.fixed[d]) {
      throw_error<ShapeError>("pt2: input '", printable(input, 60), "' has size ", shape[d],
                              " in dim ", d, "; expected ", declared.fixed[d],
                              ", which was fixed when it was exported");
    }
  }
}

void SizeCheck::finish() {
  const auto refuse = [](const Pending& one, const std::string& expected) {
    throw_error<ShapeError>("pt2: input '", printable(one.input, 60), "' has size ", one.size,
                            " in dim ", one.dim, "; expected ", expected);
  };
  // A symbol that one input has in an expression may stand by itself in another.
  for (int round = 0; round < 2; ++round) {
    for (const Pending& one : pending_) {
      if (!one.expression->solve(one.size, symbols_)) refuse(one, "a size that its dim can take");
    }
  }
  for (const Pending& one : pending_) {
    const auto value = one.expression->value(symbols_);
    if (value && *value != one.size) refuse(one, concat(*value, ", as other inputs have it"));
  }
  for (const auto& [name, value] : symbols_) {
    const auto range = ranges_.find(name);
    if (range == ranges_.end()) continue;
    if (value >= range->second.least && value <= range->second.most) continue;
    for (const Pending& one : pending_) {
      Symbols without = symbols_;
      without.erase(name);
      if (one.expression->value(without)) continue;
      const bool open = range->second.most == std::numeric_limits<int64_t>::max();
      refuse(one,
             concat("a size whose '", printable(name, 40), "' is at least ", range->second.least,
                    open ? std::string() : concat(" and at most ", range->second.most), "; it is ",
                    value));
    }
  }
}

}  // namespace kiln::pt2
