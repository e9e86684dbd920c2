#include "kiln/data/table.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "kiln/core/error.h"
#include "kiln/core/utf8.h"
#include "kiln/data/table_builder.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::data {

namespace {

std::string name_of(ColumnType type) {
  switch (type) {
    case ColumnType::boolean:
      return "true or false";
    case ColumnType::integer:
      return "an integer";
    case ColumnType::real:
      return "a number";
    default:
      return "a text";
  }
}

std::string describe(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return "'" + printable(*text) + "'";
  if (const auto* truth = std::get_if<bool>(&cell)) return *truth ? "true" : "false";
  if (const auto* whole = std::get_if<int64_t>(&cell)) return concat(*whole);
  if (const auto* real = std::get_if<double>(&cell)) return concat(*real);
  return "nothing";
}

ColumnType type_of(const Cell& cell) {
  if (std::holds_alternative<bool>(cell)) return ColumnType::boolean;
  if (std::holds_alternative<int64_t>(cell)) return ColumnType::integer;
  if (std::holds_alternative<double>(cell)) return ColumnType::real;
  return ColumnType::text;
}

}  // namespace

void TableBuilder::begin(std::vector<std::string> names, int64_t row) {
  for (const std::string& name : names) {
    if (std::count(names.begin(), names.end(), name) > 1)
      fail(row, {"the name occurs twice", name});
  }
  for (const auto& [name, type] : options_.types) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      throw_error<KeyError>(op_, ": '", path_, "' has no column '", name, "'");
    }
  }
  for (const std::string& name : names) types_.push_back(given(name));
  table_.columns_.resize(names.size());
  table_.names_ = std::move(names);
  has_names_ = true;
}

std::optional<ColumnType> TableBuilder::given(const std::string& name) const {
  const auto found = options_.types.find(name);
  if (found == options_.types.end()) return std::nullopt;
  return found->second;
}

void TableBuilder::check(size_t column, const Cell& cell) const {
  const std::string& name = table_.names_[column];
  if (std::holds_alternative<std::monostate>(cell)) throw BadRow{"it is missing", name};
  if (!types_[column]) return;
  const ColumnType wanted = *types_[column], found = type_of(cell);
  const bool widens = wanted == ColumnType::real && found == ColumnType::integer;
  const bool becomes_real =
      wanted == ColumnType::integer && found == ColumnType::real && !given(name);
  if (found != wanted && !widens && !becomes_real) {
    throw BadRow{concat("expected ", name_of(wanted), "; got ", describe(cell)), name};
  }
}

void TableBuilder::add(int64_t row, const std::vector<Cell>& cells) {
  try {
    if (cells.size() != table_.names_.size()) {
      throw BadRow{concat("expected ", table_.names_.size(), " values; got ", cells.size())};
    }
    for (size_t i = 0; i < cells.size(); ++i) check(i, cells[i]);
  } catch (const BadRow& bad) {
    reject(row, bad);
    return;
  }
  uint64_t bytes = 0;
  for (size_t i = 0; i < cells.size(); ++i) {
    TableColumn& column = table_.columns_[i];
    const ColumnType found = type_of(cells[i]);
    if (!types_[i]) types_[i] = found;
    if (types_[i] == ColumnType::integer && found == ColumnType::real) {
      column.reals.assign(column.integers.begin(), column.integers.end());
      column.integers = {};
      types_[i] = ColumnType::real;
    }
    bytes += 8;
    if (const auto* text = std::get_if<std::string>(&cells[i])) {
      bytes += sizeof(std::string) + text->size();
      column.texts.push_back(*text);
    } else if (const auto* truth = std::get_if<bool>(&cells[i])) {
      column.integers.push_back(*truth ? 1 : 0);
    } else if (types_[i] == ColumnType::integer) {
      column.integers.push_back(std::get<int64_t>(cells[i]));
    } else {
      const auto* whole = std::get_if<int64_t>(&cells[i]);
      column.reals.push_back(whole != nullptr ? static_cast<double>(*whole)
                                              : std::get<double>(cells[i]));
    }
  }
  budget_.charge(bytes, "a row");
  ++table_.size_;
}

void TableBuilder::add(detail::PlainRows rows) {
  budget_.charge(rows.bytes, "its rows");
  const auto append = [](auto& to, auto& from) {
    if (to.empty()) {
      to = std::move(from);
    } else {
      to.insert(to.end(), std::make_move_iterator(from.begin()),
                std::make_move_iterator(from.end()));
    }
  };
  const auto widen = [](TableColumn& column) {
    column.reals.assign(column.integers.begin(), column.integers.end());
    column.integers = {};
    column.type = ColumnType::real;
  };
  for (size_t i = 0; i < types_.size(); ++i) {
    TableColumn& to = table_.columns_[i];
    TableColumn& from = rows.columns[i];
    if (from.type == ColumnType::real && types_[i] == ColumnType::integer) {
      widen(to);
      types_[i] = ColumnType::real;
    } else if (from.type == ColumnType::integer && types_[i] == ColumnType::real) {
      widen(from);
    }
    append(to.reals, from.reals);
    append(to.integers, from.integers);
    append(to.texts, from.texts);
  }
  table_.size_ += rows.rows;
}

std::vector<detail::PlainType> TableBuilder::plain_types() const {
  std::vector<detail::PlainType> out;
  for (size_t i = 0; i < types_.size(); ++i) {
    out.push_back({types_[i].value_or(ColumnType::text),
                   types_[i] == ColumnType::integer && !given(table_.names_[i])});
  }
  return out;
}

void TableBuilder::fail(int64_t row, const BadRow& bad) const {
  throw_error<ValueError>(op_, ": '", path_, "', row ", row,
                          bad.column.empty() ? "" : ", column '" + printable(bad.column) + "'",
                          ": ", bad.what);
}

void TableBuilder::reject(int64_t row, const BadRow& bad) {
  if (options_.bad_rows == BadRows::raise) fail(row, bad);
  ++table_.skipped_;
}

Table TableBuilder::finish() {
  for (size_t i = 0; i < types_.size(); ++i) {
    table_.columns_[i].type = types_[i].value_or(ColumnType::text);
  }
  return std::move(table_);
}

const TableColumn& Table::column(const std::string& name) const {
  for (size_t i = 0; i < names_.size(); ++i) {
    if (names_[i] == name) return columns_[i];
  }
  std::string known;
  for (const std::string& n : names_) known += (known.empty() ? "" : ", ") + n;
  throw_error<KeyError>("Table: no column '", name, "'; there are ", known);
}

ColumnType Table::type(const std::string& name) const { return column(name).type; }

Tensor Table::numbers(const std::string& name) const {
  const TableColumn& c = column(name);
  if (c.type == ColumnType::text) {
    throw_error<TypeError>("Table: column '", name, "' holds texts; expected numbers");
  }
  if (c.type == ColumnType::real) return from_vector(c.reals, {size_}, {.dtype = f64});
  const Tensor whole = from_vector(c.integers, {size_}, {.dtype = i64});
  return c.type == ColumnType::boolean ? whole.to(bool_) : whole;
}

const std::vector<std::string>& Table::texts(const std::string& name) const {
  const TableColumn& c = column(name);
  if (c.type != ColumnType::text) {
    throw_error<TypeError>("Table: column '", name, "' holds numbers; expected texts");
  }
  return c.texts;
}

TensorDataset Table::dataset(const std::vector<std::string>& features,
                             const std::string& target) const {
  if (features.empty()) throw_error<ValueError>("Table: a dataset needs features; got none");
  std::vector<Tensor> columns;
  for (const std::string& name : features) columns.push_back(numbers(name).to(f32).unsqueeze(1));
  return TensorDataset(cat(columns, 1), numbers(target));
}

}  // namespace kiln::data
