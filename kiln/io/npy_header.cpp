#include "kiln/io/npy_header.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "kiln/core/error.h"

namespace kiln::io::detail {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr uint64_t kLongestHeader = 64 * 1024;  // of an array of numbers; NumPy reads 10000

struct NumpyType {
  std::string_view code;
  DType dtype;
};
constexpr NumpyType kTypes[] = {{"f8", DType::f64}, {"f4", DType::f32},  {"f2", DType::f16},
                                {"i8", DType::i64}, {"i4", DType::i32},  {"i2", DType::i16},
                                {"i1", DType::i8},  {"u1", DType::u8},   {"b1", DType::boolean},
                                {"c8", DType::c64}, {"c16", DType::c128}};

// The header is a dict as Python writes it: {'descr': '<f4', 'fortran_order': False, 'shape': (3,
// 4), }. Nothing else of Python is understood.
class HeaderParser {
 public:
  HeaderParser(const std::string& op, const std::string& who, std::string_view text)
      : op_(op), who_(who), text_(text) {}

  void parse(NpyHeader& out) {
    int seen = 0;
    expect('{');
    while (!take('}')) {
      const std::string key = string();
      expect(':');
      const int field = key == "descr" ? 1 : key == "fortran_order" ? 2 : key == "shape" ? 4 : 0;
      if (field == 0 || (seen & field) != 0) fail("an unknown or repeated key");
      seen |= field;
      if (field == 1) {
        descr(out);
      } else if (field == 2) {
        out.fortran_order = truth();
      } else {
        out.shape = shape();
      }
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) fail("something after its end");
    if (seen != 7) fail("no descr, fortran_order or shape");
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(concat("no '", c, "' at byte ", at_));
  }

  std::string string() {
    const char quote = take('\'') ? '\'' : '"';
    if (quote == '"') expect('"');
    const size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) fail("a text without end");
    const std::string out(text_.substr(at_, end - at_));
    at_ = end + 1;
    return out;
  }

  bool truth() {
    skip_space();
    for (const std::string_view word : {"True", "False"}) {
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return word == "True";
      }
    }
    fail("a fortran_order that is neither True nor False");
  }

  Shape shape() {
    Shape out;
    expect('(');
    while (!take(')')) {
      skip_space();
      int64_t n = 0;
      const char* begin = text_.data() + at_;
      const auto result = std::from_chars(begin, text_.data() + text_.size(), n);
      if (result.ec != std::errc() || n < 0) fail("a size that is no number");
      at_ += static_cast<size_t>(result.ptr - begin);
      take('L');  // Python 2 wrote 3L
      if (out.rank() == kMaxRank) fail(concat("more than ", kMaxRank, " dims"));
      out.push_back(n);
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return out;
  }

  void descr(NpyHeader& out) {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '[') {
      out.descr = "a structure";
      out.refusal = "Kiln has no arrays of structures";
      skip_list();
      return;
    }
    out.descr = string();
    std::string_view code = out.descr;
    if (!code.empty() && std::string_view("<>|=").find(code[0]) != std::string_view::npos) {
      out.big_endian = code[0] == '>';
      code.remove_prefix(1);
    }
    for (const NumpyType& type : kTypes) {
      if (code == type.code) {
        out.dtype = type.dtype;
        return;
      }
    }
    out.refusal = code.starts_with('O') ? "it holds Python objects, which are never read"
                                        : "Kiln has no such dtype";
  }

  // Over a list of any depth, whose texts may hold brackets.
  void skip_list() {
    int depth = 0;
    do {
      if (at_ == text_.size()) fail("a list without end");
      const char c = text_[at_];
      if (c == '\'' || c == '"') {
        string();
        continue;
      }
      depth += c == '[' || c == '(' ? 1 : c == ']' || c == ')' ? -1 : 0;
      ++at_;
    } while (depth > 0);
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw_error<IoError>(op_, ": ", who_,
                         " is malformed: the header is not as NumPy writes it; got ", what,
                         "; expected descr, fortran_order and shape");
  }

  const std::string& op_;
  const std::string& who_;
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

NpyHeader read_npy_header(const std::string& op, const std::string& who, uint64_t total,
                          const NpyRead& read) {
  const auto malformed = [&](const std::string& what, const std::string& got,
                             const std::string& expected) {
    throw_error<IoError>(op, ": ", who, " is malformed: ", what, "; got ", got, "; expected ",
                         expected);
  };
  if (total < 12) malformed("it is too short", concat(total, " bytes"), "a NumPy array");
  unsigned char head[12];
  read(head, 8);
  if (std::string_view(reinterpret_cast<char*>(head), kMagic.size()) != kMagic) {
    malformed("it does not begin as NumPy's arrays do", "other bytes", "'\\x93NUMPY'");
  }
  const int version = head[6];
  if (version < 1 || version > 3) {
    malformed("its format is unknown", concat("version ", version), "version 1, 2 or 3");
  }
  const size_t length_bytes = version == 1 ? 2 : 4;
  read(head + 8, length_bytes);
  uint64_t length = 0;
  for (size_t i = length_bytes; i-- > 0;) length = length << 8 | head[8 + i];
  NpyHeader out;
  out.bytes = 8 + length_bytes + length;
  if (length > kLongestHeader || out.bytes > total) {
    malformed("its header is too long", concat(length, " bytes"),
              concat("at most ", std::min(kLongestHeader, total - 8 - length_bytes)));
  }
  std::string text(static_cast<size_t>(length), '\0');
  read(text.data(), text.size());
  HeaderParser(op, who, text).parse(out);
  out.data_bytes = total - out.bytes;
  if (!out.refusal.empty()) return out;
  int64_t bytes = static_cast<int64_t>(size_of(out.dtype));
  bool empty = false;
  for (const int64_t n : out.shape) {
    empty = empty || n == 0;
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(n, 1), &bytes)) {
      malformed("its size overflows", concat("shape ", out.shape), "fewer than 2^63 bytes");
    }
  }
  if (static_cast<uint64_t>(empty ? 0 : bytes) != out.data_bytes) {
    malformed(concat("its values have another size than shape ", out.shape, " of ", out.dtype),
              concat(out.data_bytes, " bytes"), concat(empty ? 0 : bytes));
  }
  return out;
}

std::string make_npy_header(DType dtype, const Shape& shape) {
  const auto* type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                  [&](const NumpyType& t) { return t.dtype == dtype; });
  std::string text = concat("{'descr': '", size_of(dtype) == 1 ? '|' : '<', type->code,
                            "', 'fortran_order': False, 'shape': (");
  for (const int64_t n : shape) text += std::to_string(n) + ", ";
  if (shape.rank() > 1) text.resize(text.size() - 2);
  if (shape.rank() == 1) text.pop_back();
  text += "), }";
  const size_t before = kMagic.size() + 4;
  text.append(63 - (before + text.size()) % 64, ' ');
  text += '\n';
  std::string out(kMagic);
  out += std::string("\1\0", 2);
  out += static_cast<char>(text.size() & 0xff);
  out += static_cast<char>(text.size() >> 8);
  return out + text;
}

}  // namespace kiln::io::detail
