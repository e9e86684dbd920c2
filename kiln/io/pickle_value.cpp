#include "kiln/io/pickle_value.h"

#include <charconv>

#include "kiln/core/error.h"
#include "kiln/io/input_file.h"

namespace kiln::io {

namespace {

// The shortest text that reads back as the same number, as Python's repr gives it.
std::string number_text(double x) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, x).ptr;
  std::string out(buffer, end);
  if (out.find_first_not_of("0123456789-") == std::string::npos) out += ".0";
  return out;
}

std::string tensor_text(DType dtype, const Shape& shape) {
  return concat("tensor(", dtype, " ", shape, ")");
}

// Appends until `longest` bytes are there, so that a large tree costs no more than what is shown.
class Printer {
 public:
  explicit Printer(size_t longest) : longest_(longest) {}

  bool print(const PickleValue& value) {
    if (out_.size() > longest_) {
      out_ = printable(out_, longest_);
      full_ = true;
    }
    if (full_) return false;
    value.visit([this](const auto& v) { one(v); });
    return !full_;
  }
  std::string take() { return std::move(out_); }

 private:
  void one(std::monostate) { out_ += "None"; }
  void one(bool b) { out_ += b ? "True" : "False"; }
  void one(int64_t i) { out_ += std::to_string(i); }
  void one(const PickleBigInt& i) { out_ += i.decimal; }
  void one(double x) { out_ += number_text(x); }
  void one(std::complex<double> z) {
    out_ += "(" + number_text(z.real()) + (z.imag() < 0 ? "" : "+") + number_text(z.imag()) + "j)";
  }
  void one(const std::string& s) { out_ += "'" + printable(s, longest_) + "'"; }
  void one(const PickleBytes& b) { out_ += concat("bytes(", b.bytes.size(), ")"); }
  void one(DType t) { out_ += "torch." + std::string(name_of(t)); }
  void one(const PickleList& list) { sequence("[", list, "]"); }
  void one(const PickleTuple& tuple) {
    sequence("(", tuple.items, tuple.items.size() == 1 ? ",)" : ")");
  }
  void one(const PickleSet& set) { sequence("{", set.items, "}"); }
  void one(const PickleDict& dict) {
    out_ += "{";
    bool first = true;
    for (const PickleItem& item : dict.items) {
      if (!first) out_ += ", ";
      first = false;
      if (!print(item.key)) return;
      out_ += ": ";
      if (!print(item.value)) return;
    }
    out_ += "}";
  }
  void one(const PickleObject& object) {
    out_ += object.name;
    if (!object.arguments.empty()) sequence("(", object.arguments, ")");
  }
  void one(const StoredTensor& t) {
    out_ += t->refusal.empty() ? tensor_text(t->dtype, t->shape)
                               : concat("tensor(", t->type_name, " ", t->shape, ")");
  }
  void one(const Tensor& t) { out_ += tensor_text(t.dtype(), t.shape()); }

  void sequence(const char* open, const std::vector<PickleValue>& items, const char* close) {
    out_ += open;
    bool first = true;
    for (const PickleValue& item : items) {
      if (!first) out_ += ", ";
      first = false;
      if (!print(item)) return;
    }
    out_ += close;
  }

  size_t longest_;
  std::string out_;
  bool full_ = false;
};

}  // namespace

const PickleValue* PickleDict::find(std::string_view key) const {
  for (const PickleItem& item : items) {
    const auto* name = item.key.get<std::string>();
    if (name != nullptr && *name == key) return &item.value;
  }
  return nullptr;
}

void PickleDict::set(std::string key, PickleValue value) {
  for (PickleItem& item : items) {
    const auto* name = item.key.get<std::string>();
    if (name != nullptr && *name == key) {
      item.value = std::move(value);
      return;
    }
  }
  items.push_back({std::move(key), std::move(value)});
}

const PickleValue& PickleValue::operator[](std::string_view key) const {
  const auto* dict = get<PickleDict>();
  const PickleValue* found = dict == nullptr ? nullptr : dict->find(key);
  if (found == nullptr) {
    throw_error<ValueError>("PickleValue: there is no entry '", printable(std::string(key)),
                            "'; got a ", kind_name(*this), "; expected a dict that has it");
  }
  return *found;
}

std::string kind_name(const PickleValue& value) {
  struct Namer {
    std::string operator()(std::monostate) const { return "NoneType"; }
    std::string operator()(bool) const { return "bool"; }
    std::string operator()(int64_t) const { return "int"; }
    std::string operator()(const PickleBigInt&) const { return "int"; }
    std::string operator()(double) const { return "float"; }
    std::string operator()(std::complex<double>) const { return "complex"; }
    std::string operator()(const std::string&) const { return "str"; }
    std::string operator()(const PickleBytes&) const { return "bytes"; }
    std::string operator()(DType) const { return "torch.dtype"; }
    std::string operator()(const PickleList&) const { return "list"; }
    std::string operator()(const PickleTuple&) const { return "tuple"; }
    std::string operator()(const PickleSet& set) const { return set.frozen ? "frozenset" : "set"; }
    std::string operator()(const PickleDict&) const { return "dict"; }
    std::string operator()(const PickleObject& object) const { return object.name; }
    std::string operator()(const StoredTensor&) const { return "torch.Tensor"; }
    std::string operator()(const Tensor&) const { return "torch.Tensor"; }
  };
  return value.visit(Namer());
}

std::string to_text(const PickleValue& value, size_t longest) {
  Printer printer(longest);
  printer.print(value);
  std::string out = printer.take();
  return out.size() > longest + 3 ? printable(out, longest) : out;
}

std::string scalar_text(const PickleValue& value) {
  if (const auto* text = value.get<std::string>()) return *text;
  if (value.is_none() || value.is<bool>() || value.is<int64_t>() || value.is<PickleBigInt>() ||
      value.is<double>() || value.is<DType>()) {
    return to_text(value, 10'000);
  }
  return "";
}

}  // namespace kiln::io
