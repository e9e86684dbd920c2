#include <charconv>
#include <cmath>

#include "kiln/core/error.h"
#include "kiln/core/utf8.h"
#include "kiln/data/table_builder.h"
#include "kiln/io/input_file.h"

namespace kiln::data {

namespace {

constexpr const char* kOp = "read_csv";

// The fields of one row after another.
class CsvRows {
 public:
  CsvRows(std::string_view text, char delimiter) : text_(text), delimiter_(delimiter) {
    if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);
  }

  // The last line of the row that next() gave.
  int64_t row() const { return row_; }

  // False at the end. Throws BadRow for quotes that do not fit; the next call then reads the next
  // line. Empty lines are no rows.
  bool next(std::vector<std::string>& fields) {
    while (at_ < text_.size()) {
      fields.clear();
      ++row_;
      if (end_of_line()) continue;
      read_row(fields);
      return true;
    }
    return false;
  }

 private:
  // Goes behind a line's end, if it stands here.
  bool end_of_line() {
    if (at_ < text_.size() && text_[at_] == '\r') {
      ++at_;
      if (at_ < text_.size() && text_[at_] == '\n') ++at_;
      return true;
    }
    if (at_ < text_.size() && text_[at_] == '\n') {
      ++at_;
      return true;
    }
    return false;
  }

  void read_row(std::vector<std::string>& fields) {
    for (;;) {
      fields.push_back(text_[at_] == '"' ? quoted() : plain());
      if (at_ >= text_.size() || end_of_line()) return;
      ++at_;  // the delimiter
      if (at_ >= text_.size() || end_of_line()) {
        fields.emplace_back();
        return;
      }
    }
  }

  std::string plain() {
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != delimiter_ && text_[at_] != '\n' &&
           text_[at_] != '\r') {
      ++at_;
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string quoted() {
    std::string out;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') {
        ++at_;
        if (at_ >= text_.size() || text_[at_] != '"') break;
      } else if (text_[at_] == '\n') {
        ++row_;
      }
      out += text_[at_];
      if (at_ + 1 == text_.size()) {
        ++at_;
        throw BadRow{"a quote has no end"};
      }
    }
    if (at_ < text_.size() && text_[at_] != delimiter_ && text_[at_] != '\n' &&
        text_[at_] != '\r') {
      while (at_ < text_.size() && !end_of_line()) ++at_;
      throw BadRow{"a field goes on behind its quotes"};
    }
    return out;
  }

  std::string_view text_;
  char delimiter_;
  size_t at_ = 0;
  int64_t row_ = 0;
};

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

Cell number_or_text(std::string_view text) {
  std::string_view digits = trimmed(text);
  if (digits.starts_with('+')) digits.remove_prefix(1);
  const char* const end = digits.data() + digits.size();
  int64_t whole = 0;
  if (const auto done = std::from_chars(digits.data(), end, whole); done.ptr == end) {
    if (done.ec == std::errc()) return whole;
    if (done.ec == std::errc::result_out_of_range) {
      throw BadRow{concat("expected an integer of 64 bits; got ", digits)};
    }
  }
  double real = 0;
  if (const auto done = std::from_chars(digits.data(), end, real); done.ptr == end) {
    if (done.ec == std::errc()) return real;
    if (done.ec == std::errc::result_out_of_range) throw BadRow{concat("out of range: ", digits)};
  }
  return std::string(text);
}

Cell cell_of(const std::string& text, const std::optional<ColumnType>& type) {
  if (!is_utf8(text)) throw BadRow{concat("the text is no UTF-8; got '", printable(text), "'")};
  if (type == ColumnType::text) return text;
  const std::string_view word = trimmed(text);
  if (word.empty()) throw BadRow{"it is empty"};
  if (type == ColumnType::boolean) {
    if (word == "true" || word == "1") return true;
    if (word == "false" || word == "0") return false;
    return text;
  }
  return number_or_text(text);
}

std::vector<Cell> cells_of(const std::vector<std::string>& fields, const TableBuilder& build) {
  std::vector<Cell> out(fields.size());
  if (fields.size() != build.names().size()) return out;  // which add() rejects
  for (size_t i = 0; i < fields.size(); ++i) {
    try {
      out[i] = cell_of(fields[i], build.type(i));
    } catch (BadRow& bad) {
      bad.column = build.names()[i];
      throw;
    }
  }
  return out;
}

}  // namespace

Table read_csv(const std::string& path, const TableOptions& options) {
  const io::InputFile file(kOp, path);
  const std::string text = file.read_whole(options.max_bytes);
  TableBuilder build(kOp, path, options, file.budget());
  CsvRows rows(text, options.delimiter);
  std::vector<std::string> fields;
  for (;;) {
    try {
      if (!rows.next(fields)) break;
      if (!build.has_names()) {
        std::vector<std::string> names = fields;
        for (size_t i = 0; i < names.size() && !options.header; ++i) names[i] = concat(i);
        build.begin(std::move(names), rows.row());
        if (options.header) continue;
      }
      build.add(rows.row(), cells_of(fields, build));
    } catch (const BadRow& bad) {
      build.reject(rows.row(), bad);
    }
  }
  return build.finish();
}

}  // namespace kiln::data
