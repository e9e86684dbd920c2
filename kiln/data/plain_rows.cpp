#include "kiln/data/plain_rows.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "kiln/core/from_chars.h"
#include "kiln/core/utf8.h"

namespace kiln::data::detail {

namespace {

// Powers of ten that doubles hold exactly.
constexpr double kTens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                            1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr int kMostDigits = 18;  // that surely fit 63 bits
constexpr uint64_t kExact = uint64_t{1} << 53;

struct PlainNumber {
  bool is_whole = false;
  int64_t whole = 0;
  double real = 0.0;
};

bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

class PlainLineReader {
 public:
  PlainLineReader(std::string_view text, size_t begin, size_t end, char delimiter,
                  const std::vector<PlainType>& types)
      : begin_(text.data()),
        at_(begin_ + begin),
        end_(begin_ + end),
        delimiter_(delimiter),
        types_(types) {
    out_.columns.resize(types.size());
    for (size_t i = 0; i < types.size(); ++i) out_.columns[i].type = types[i].type;
  }

  PlainRows read() {
    while (at_ < end_) {
      const char* const line = at_;
      if (end_of_line()) {
        ++out_.lines;
        continue;
      }
      bytes_ = 0;
      widened_.clear();
      if (!row()) {
        at_ = line;
        for (TableColumn& column : out_.columns) cut(column);
        break;
      }
      if (!widened_.empty()) widen();
      ++out_.lines;
      ++out_.rows;
      out_.bytes += bytes_;
    }
    out_.end = static_cast<size_t>(at_ - begin_);
    return std::move(out_);
  }

 private:
  bool end_of_line() {
    if (*at_ != '\r' && *at_ != '\n') return false;
    if (*at_++ == '\r' && at_ < end_ && *at_ == '\n') ++at_;
    return true;
  }

  // Forgets what a row left that was not plain.
  void cut(TableColumn& column) const {
    const auto rows = static_cast<size_t>(out_.rows);
    if (column.reals.size() > rows) column.reals.resize(rows);
    if (column.integers.size() > rows) column.integers.resize(rows);
    if (column.texts.size() > rows) column.texts.resize(rows);
  }

  bool row() {
    const size_t last = out_.columns.size() - 1;
    for (size_t i = 0; i <= last; ++i) {
      if (!field(i)) return false;
      const bool ends = at_ == end_ || *at_ == '\n' || *at_ == '\r';
      if (ends != (i == last)) return false;
      if (!ends) ++at_;  // the delimiter
    }
    if (at_ < end_) end_of_line();
    return true;
  }

  bool is_field_end() const {
    return at_ == end_ || *at_ == delimiter_ || *at_ == '\n' || *at_ == '\r';
  }

  // The rest of the field from `from` on; empty where a quote stands in it.
  std::string_view whole_field(const char* from) {
    while (!is_field_end()) {
      if (*at_++ == '"') return {};
    }
    return {from, static_cast<size_t>(at_ - from)};
  }

  static std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
  }

  bool field(size_t i) {
    TableColumn& column = out_.columns[i];
    bytes_ += 8;
    switch (column.type) {
      case ColumnType::text:
        return text_field(column);
      case ColumnType::boolean:
        return boolean_field(column);
      default:
        return number_field(column, types_[i].widens);
    }
  }

  bool text_field(TableColumn& column) {
    const char* const from = at_;
    const std::string_view text = whole_field(from);
    if (text.empty() && at_ != from) return false;
    if (!is_utf8(text)) return false;
    column.texts.emplace_back(text);
    bytes_ += sizeof(std::string) + text.size();
    return true;
  }

  bool boolean_field(TableColumn& column) {
    const std::string_view word = trimmed(whole_field(at_));
    const bool yes = word == "true" || word == "1";
    if (!yes && word != "false" && word != "0") return false;
    column.integers.push_back(yes ? 1 : 0);
    return true;
  }

  bool number_field(TableColumn& column, bool widens) {
    PlainNumber number;
    const bool real = column.type == ColumnType::real;
    if (!short_number(number) && !long_number(number, real)) return false;
    if (real) {
      column.reals.push_back(number.is_whole ? static_cast<double>(number.whole) : number.real);
      return true;
    }
    if (number.is_whole) {
      column.integers.push_back(number.whole);
      return true;
    }
    if (!widens) return false;
    widened_.emplace_back(&column, number.real);
    return true;
  }

  // What waits until all of the row is known to fit.
  void widen() {
    for (const auto& [column, value] : widened_) {
      column->reals.assign(column->integers.begin(), column->integers.end());
      column->integers = {};
      column->type = ColumnType::real;
      column->reals.push_back(value);
    }
  }

  // Digits with a point among them: their number and the power of ten are exact, so that one
  // division rounds correctly. False, and nothing is read, for anything else.
  bool short_number(PlainNumber& out) {
    const char* p = at_;
    while (p < end_ && (*p == ' ' || *p == '\t')) ++p;
    const bool negative = p < end_ && *p == '-';
    if (p < end_ && (*p == '-' || *p == '+')) ++p;
    uint64_t digits = 0;
    const char* const first = p;
    for (; p < end_ && is_digit(*p); ++p) digits = digits * 10 + static_cast<uint64_t>(*p - '0');
    auto count = p - first;
    int64_t behind = -1;
    if (p < end_ && *p == '.') {
      const char* const point = ++p;
      for (; p < end_ && is_digit(*p); ++p) digits = digits * 10 + static_cast<uint64_t>(*p - '0');
      behind = p - point;
      count += behind;
    }
    if (count < 1 || count > kMostDigits) return false;
    if (p < end_ && *p != delimiter_ && *p != '\n' && *p != '\r') return false;
    if (behind < 0) {
      out.is_whole = true;
      out.whole = negative ? -static_cast<int64_t>(digits) : static_cast<int64_t>(digits);
    } else {
      if (digits > kExact) return false;
      const double value = static_cast<double>(digits) / kTens[behind];
      out.real = negative ? -value : value;
    }
    at_ = p;
    return true;
  }

  // `real`: also integers of more than 64 bits.
  bool long_number(PlainNumber& out, bool real) {
    std::string_view digits = trimmed(whole_field(at_));
    if (digits.starts_with('+')) digits.remove_prefix(1);
    const char* const end = digits.data() + digits.size();
    const auto whole = kiln::detail::from_chars(digits.data(), end, out.whole);
    if (digits.empty()) return false;
    if (whole.ptr == end && (whole.ec == std::errc() || !real)) {
      out.is_whole = true;
      return whole.ec == std::errc();
    }
    const auto number = kiln::detail::from_chars(digits.data(), end, out.real);
    return number.ptr == end && number.ec == std::errc();
  }

  const char* begin_;
  const char* at_;
  const char* end_;
  char delimiter_;
  const std::vector<PlainType>& types_;
  PlainRows out_;
  uint64_t bytes_ = 0;  // of this row
  // Of this row: columns of integers with a number that is none.
  std::vector<std::pair<TableColumn*, double>> widened_;
};

}  // namespace

PlainRows read_plain_rows(std::string_view text, size_t begin, size_t end, char delimiter,
                          const std::vector<PlainType>& types) {
  return PlainLineReader(text, begin, end, delimiter, types).read();
}

}  // namespace kiln::data::detail
