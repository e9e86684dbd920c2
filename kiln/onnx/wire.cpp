#include "kiln/onnx/wire.h"

#include <cstring>
#include <type_traits>

#include "kiln/core/error.h"

namespace kiln::onnx::wire {

namespace {

constexpr int kMostLevels = 64;

// ---- The numbers of the fields

template <class F, class T>
void fields(F&& f, T& m) {
  using M = std::remove_const_t<T>;
  if constexpr (std::is_same_v<M, Entry>) {
    f(1, m.key), f(2, m.value);
  } else if constexpr (std::is_same_v<M, Tensor>) {
    f(1, m.dims), f(2, m.data_type), f(4, m.float_data), f(5, m.int32_data);
    f(6, m.string_data), f(7, m.int64_data), f(8, m.name), f(9, m.raw_data);
    f(10, m.double_data), f(11, m.uint64_data), f(13, m.external_data), f(14, m.data_location);
  } else if constexpr (std::is_same_v<M, Attribute>) {
    f(1, m.name), f(2, m.f), f(3, m.i), f(4, m.s), f(5, m.t), f(6, m.g), f(7, m.floats);
    f(8, m.ints), f(9, m.strings), f(10, m.tensors), f(11, m.graphs), f(20, m.type);
    f(21, m.reference);
  } else if constexpr (std::is_same_v<M, Node>) {
    f(1, m.input), f(2, m.output), f(3, m.name), f(4, m.op_type), f(5, m.attribute);
    f(7, m.domain), f(8, m.overload);
  } else if constexpr (std::is_same_v<M, Dimension>) {
    f(1, m.value), f(2, m.param);
  } else if constexpr (std::is_same_v<M, TensorShape>) {
    f(1, m.dim);
  } else if constexpr (std::is_same_v<M, TensorType>) {
    f(1, m.elem_type), f(2, m.shape);
  } else if constexpr (std::is_same_v<M, Type>) {
    f(1, m.tensor_type);
  } else if constexpr (std::is_same_v<M, ValueInfo>) {
    f(1, m.name), f(2, m.type);
  } else if constexpr (std::is_same_v<M, Graph>) {
    f(1, m.node), f(2, m.name), f(5, m.initializer), f(11, m.input), f(12, m.output);
  } else if constexpr (std::is_same_v<M, OperatorSet>) {
    f(1, m.domain), f(2, m.version);
  } else if constexpr (std::is_same_v<M, Function>) {
    f(1, m.name), f(4, m.input), f(5, m.output), f(6, m.attribute), f(7, m.node);
    f(9, m.opset_import), f(10, m.domain), f(11, m.defaults), f(13, m.overload);
  } else {
    static_assert(std::is_same_v<M, Model>);
    f(1, m.ir_version), f(2, m.producer_name), f(3, m.producer_version), f(7, m.graph);
    f(8, m.opset_import), f(25, m.function);
  }
}

// ---- Writing

enum Kind : uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

class Encoder {
 public:
  template <class T>
  static std::string message(const T& m) {
    Encoder e;
    fields(
        [&](int number, const auto& value) {
          // An attribute has the field of its type alone; the types have the numbers 1 to 3.
          if constexpr (std::is_same_v<T, Attribute>) {
            const bool holds_one = number == 2 || number == 3 || number == 4;
            if (holds_one && m.type != number - 1) return;
          }
          e.field(number, value);
        },
        m);
    return std::move(e.out_);
  }

 private:
  void varint(uint64_t v) {
    for (; v >= 0x80; v >>= 7) out_.push_back(static_cast<char>(v | 0x80));
    out_.push_back(static_cast<char>(v));
  }
  void tag(int number, Kind kind) { varint(static_cast<uint64_t>(number) << 3 | kind); }
  void bytes(int number, std::string_view text) {
    tag(number, kBytes);
    varint(text.size());
    out_ += text;
  }
  void field(int number, int64_t v) {
    tag(number, kVarint);
    varint(static_cast<uint64_t>(v));
  }
  void field(int number, float v) {
    tag(number, kFixed32);
    out_.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  void field(int number, const std::string& v) {
    if (!v.empty()) bytes(number, v);
  }
  void field(int number, const std::vector<int64_t>& v) {
    for (const int64_t one : v) field(number, one);
  }
  void field(int number, const std::vector<float>& v) {
    for (const float one : v) field(number, one);
  }
  void field(int number, const std::vector<double>& v) {
    if (!v.empty()) {
      bytes(number, {reinterpret_cast<const char*>(v.data()), v.size() * sizeof(double)});
    }
  }
  void field(int number, const std::vector<std::string>& v) {
    for (const std::string& one : v) bytes(number, one);  // an empty input is one, too
  }
  template <class T>
  void field(int number, const std::vector<T>& v) {
    for (const T& one : v) bytes(number, message(one));
  }

  std::string out_;
};

// ---- Reading

class Decoder {
 public:
  Decoder(std::string_view bytes, size_t begin, int level)
      : bytes_(bytes), begin_(begin), level_(level) {
    if (level > kMostLevels) refuse("messages nested more than 64 deep");
  }

  template <class T>
  void message(T& m) {
    while (at_ < bytes_.size()) {
      const uint64_t key = varint();
      number_ = key >> 3;
      kind_ = key & 7;
      bool taken = false;
      fields(
          [&](int number, auto& value) {
            if (!taken && static_cast<uint64_t>(number) == number_) taken = field(value);
          },
          m);
      if (!taken) skip();
    }
  }

 private:
  [[noreturn]] void refuse(const char* what) const {
    throw_error<ValueError>(what, " at byte ", begin_ + at_);
  }
  uint64_t varint() {
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == bytes_.size()) refuse("it ends within a number");
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      v |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return v;
    }
    refuse("a number of more than ten bytes");
  }
  std::string_view take(uint64_t count) {
    if (count > bytes_.size() - at_) refuse("a field that is longer than what is left");
    const std::string_view out = bytes_.substr(at_, count);
    at_ += count;
    return out;
  }
  std::string_view text() { return take(varint()); }
  template <class T>
  T fixed() {
    T v;
    std::memcpy(&v, take(sizeof v).data(), sizeof v);
    return v;
  }
  void skip() {
    switch (kind_) {
      case kVarint:
        varint();
        return;
      case kFixed64:
        take(8);
        return;
      case kBytes:
        text();
        return;
      case kFixed32:
        take(4);
        return;
      default:
        refuse("an unknown kind of field");
    }
  }

  bool field(int64_t& v) {
    if (kind_ != kVarint) return false;
    v = static_cast<int64_t>(varint());
    return true;
  }
  bool field(float& v) {
    if (kind_ != kFixed32) return false;
    v = fixed<float>();
    return true;
  }
  bool field(std::string& v) {
    if (kind_ != kBytes) return false;
    v = text();
    return true;
  }
  bool field(std::vector<std::string>& v) {
    if (kind_ != kBytes) return false;
    v.emplace_back(text());
    return true;
  }
  bool field(std::vector<int64_t>& v) {
    if (kind_ == kVarint) {
      v.push_back(static_cast<int64_t>(varint()));
      return true;
    }
    if (kind_ != kBytes) return false;
    const size_t size = varint();
    const size_t begin = at_;
    take(size);
    at_ = begin;
    while (at_ < begin + size) v.push_back(static_cast<int64_t>(varint()));
    return true;
  }
  template <class T>
    requires std::is_floating_point_v<T>
  bool field(std::vector<T>& v) {
    if (kind_ == (sizeof(T) == 4 ? kFixed32 : kFixed64)) {
      v.push_back(fixed<T>());
      return true;
    }
    if (kind_ != kBytes) return false;
    const std::string_view all = text();
    const size_t before = v.size(), count = all.size() / sizeof(T);
    if (all.size() % sizeof(T) != 0) refuse("numbers that are cut off");
    v.resize(before + count);
    if (count != 0) std::memcpy(v.data() + before, all.data(), all.size());
    return true;
  }
  template <class T>
    requires std::is_class_v<T>
  bool field(std::vector<T>& v) {
    if (kind_ != kBytes) return false;
    const std::string_view all = text();
    Decoder inner(all, begin_ + at_ - all.size(), level_ + 1);
    inner.message(v.emplace_back());
    return true;
  }

  std::string_view bytes_;
  size_t begin_;  // in the file
  int level_;
  size_t at_ = 0;
  uint64_t number_ = 0, kind_ = 0;
};

}  // namespace

std::string encode(const Model& model) { return Encoder::message(model); }

Model decode(std::string_view bytes) {
  Model out;
  Decoder(bytes, 0, 0).message(out);
  return out;
}

}  // namespace kiln::onnx::wire
