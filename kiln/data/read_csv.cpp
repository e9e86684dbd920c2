#include <algorithm>
#include <utility>

#include "kiln/core/error.h"
#include "kiln/core/from_chars.h"
#include "kiln/core/parallel.h"
#include "kiln/core/utf8.h"
#include "kiln/data/table_builder.h"
#include "kiln/io/input_file.h"

namespace kiln::data {

namespace {

constexpr const char* kOp = "read_csv";
constexpr size_t kPiece = size_t{1} << 20;  // of a text, which one thread reads

// The fields of one row after another.
class CsvRows {
 public:
  CsvRows(std::string_view text, char delimiter) : text_(text), delimiter_(delimiter) {
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
  }

  // The last line of the row that next() gave.
  int64_t row() const { return row_; }
  // Where the next one begins.
  size_t at() const { return at_; }
  // Goes on behind so many lines, which end at `at`.
  void pass(size_t at, int64_t lines) {
    at_ = at;
    row_ += lines;
  }

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

// A column of reals takes integers of any length.
Cell number_or_text(std::string_view text, bool real_column) {
  std::string_view digits = trimmed(text);
  if (digits.starts_with('+')) digits.remove_prefix(1);
  const char* const end = digits.data() + digits.size();
  int64_t whole = 0;
  if (const auto done = kiln::detail::from_chars(digits.data(), end, whole); done.ptr == end) {
    if (done.ec == std::errc()) return whole;
    if (done.ec == std::errc::result_out_of_range && !real_column) {
      throw BadRow{concat("expected an integer of 64 bits; got ", digits)};
    }
  }
  double real = 0;
  if (const auto done = kiln::detail::from_chars(digits.data(), end, real); done.ptr == end) {
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
  return number_or_text(text, type == ColumnType::real);
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

// Where pieces of about kPiece bytes end, each with a line; the last is the end of the text.
std::vector<size_t> pieces_of(std::string_view text, size_t begin) {
  std::vector<size_t> ends;
  // With quotes a line's end may stand in a field.
  if (text.find('"', begin) == std::string_view::npos) {
    for (size_t at = begin + kPiece; at < text.size(); at = ends.back() + kPiece) {
      const size_t line = text.find('\n', at);
      if (line == std::string_view::npos || line + 1 == text.size()) break;
      ends.push_back(line + 1);
    }
  }
  ends.push_back(text.size());
  return ends;
}

class CsvReader {
 public:
  CsvReader(const char* op, const std::string& path, const std::string& text,
            const TableOptions& options, Budget& budget)
      : text_(text),
        options_(options),
        build_(op, path, options, budget),
        rows_(text, options.delimiter) {}

  Table read() {
    // Columns have types when there is a row. From then on lines that are plain go straight into
    // columns, pieces of the text side by side; any other line takes the longer way.
    while (!build_.has_rows()) {
      if (!next_row()) return build_.finish();
    }
    const std::vector<size_t> ends = pieces_of(text_, rows_.at());
    const std::vector<detail::PlainType> types = build_.plain_types();
    const size_t start = rows_.at();
    std::vector<detail::PlainRows> parts(ends.size());
    parallel_for(static_cast<int64_t>(ends.size()), 1, [&](int64_t first, int64_t last) {
      for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i) {
        parts[i] = detail::read_plain_rows(text_, i == 0 ? start : ends[i - 1], ends[i],
                                           options_.delimiter, types);
      }
    });
    for (size_t i = 0; i < ends.size(); ++i) {
      add(std::move(parts[i]));
      while (rows_.at() < ends[i]) {
        if (!next_row()) break;
        add(detail::read_plain_rows(text_, rows_.at(), std::max(ends[i], rows_.at()),
                                    options_.delimiter, build_.plain_types()));
      }
    }
    return build_.finish();
  }

 private:
  void add(detail::PlainRows part) {
    rows_.pass(part.end, part.lines);
    build_.add(std::move(part));
  }

  // False at the end.
  bool next_row() {
    try {
      if (!rows_.next(fields_)) return false;
      if (!build_.has_names()) {
        build_.begin(names(), rows_.row());
        if (options_.header) return true;
      }
      build_.add(rows_.row(), cells_of(fields_, build_));
    } catch (const BadRow& bad) {
      build_.reject(rows_.row(), bad);
    }
    return true;
  }

  std::vector<std::string> names() const {
    if (options_.header) return fields_;
    if (!options_.names.empty()) return options_.names;
    std::vector<std::string> out;
    for (size_t i = 0; i < fields_.size(); ++i) out.push_back(concat(i));
    return out;
  }

  std::string_view text_;
  const TableOptions& options_;
  TableBuilder build_;
  CsvRows rows_;
  std::vector<std::string> fields_;
};

}  // namespace

Table detail::read_csv_as(const char* op, const std::string& path, const TableOptions& options) {
  const io::InputFile file(op, path);
  const std::string text = file.read_whole(options.max_bytes);
  return CsvReader(op, path, text, options, file.budget()).read();
}

Table read_csv(const std::string& path, const TableOptions& options) {
  return detail::read_csv_as(kOp, path, options);
}

}  // namespace kiln::data
