// kiln.utils.data: tables and photographs, read by C++.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "binding.h"
#include "kiln/data/photo_batch.h"
#include "kiln/data/table.h"
#include "parts.h"
#include "pickle_objects.h"

namespace kiln::python {

namespace {

data::ColumnType column_type(const std::string& name) {
  if (name == "bool") return data::ColumnType::boolean;
  if (name == "int") return data::ColumnType::integer;
  if (name == "float") return data::ColumnType::real;
  return data::ColumnType::text;
}

void bind_tables(nb::module_& m) {
  m.def(
      "read_csv",
      [](const std::string& op, nb::handle path, const std::map<std::string, std::string>& types,
         const std::string& delimiter, bool header, const std::vector<std::string>& names,
         bool skip) {
        data::TableOptions options;
        for (const auto& [name, type] : types) options.types[name] = column_type(type);
        options.bad_rows = skip ? data::BadRows::skip : data::BadRows::raise;
        options.delimiter = delimiter.at(0);
        options.header = header;
        options.names = names;
        options.max_bytes = uint64_t{1} << 40;
        const std::string file = file_name_of(path);
        const data::Table table = [&] {
          const Unlocked lock;
          return data::detail::read_csv_as(op.c_str(), file, options);
        }();
        nb::dict columns;
        for (const std::string& name : table.names()) {
          const nb::object key = nb::steal(PyUnicode_DecodeUTF8(
              name.data(), static_cast<Py_ssize_t>(name.size()), "surrogateescape"));
          if (table.type(name) == data::ColumnType::text) {
            columns[key] = nb::cast(table.texts(name));
          } else {
            columns[key] = nb::cast(table.numbers(name));
          }
        }
        return nb::make_tuple(columns, table.skipped());
      },
      "op"_a, "path"_a, "types"_a, "delimiter"_a, "header"_a, "names"_a, "skip"_a,
      "({name: tensor or list of texts}, rows that were left out). `op` stands in messages.");
}

using PartNumbers = std::vector<int64_t>;

io::ImagePart part_of(const PartNumbers& n) {
  if (n.size() != 12) {
    throw_error<ValueError>("PhotoBatch: a part has 12 numbers; got ", n.size());
  }
  return {n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10] != 0, n[11] != 0};
}

void bind_photos(nb::module_& m) {
  nb::class_<data::PhotoBatch>(m, "PhotoBatch", "The image files of a batch.")
      .def(
          "__init__",
          [](data::PhotoBatch* self, const nb::list& paths) {
            std::vector<std::string> names;
            for (nb::handle path : paths) names.push_back(file_name_of(path));
            const Unlocked lock;
            new (self) data::PhotoBatch(std::move(names));
          },
          "paths"_a)
      .def(
          "size",
          [](const data::PhotoBatch& self, int64_t i) {
            const io::ImageSize size = self.size(i);
            return nb::make_tuple(size.height, size.width);
          },
          "i"_a, "Rows and columns; zeros for a file that cannot be read.")
      .def("error", &data::PhotoBatch::error, "i"_a,
           "What is wrong with a file; '' where nothing is.")
      .def(
          "read",
          [](data::PhotoBatch& self, const std::vector<PartNumbers>& numbers, DType dtype,
             const std::vector<double>& mean, const std::vector<double>& std, bool shared) {
            std::vector<io::ImagePart> parts;
            for (const PartNumbers& n : numbers) parts.push_back(part_of(n));
            data::PhotoBatchOptions options{.dtype = dtype, .shared = shared};
            for (size_t c = 0; c < 3; ++c) {
              options.scale.mean[c] = static_cast<float>(mean.at(c));
              options.scale.std[c] = static_cast<float>(std.at(c));
            }
            const Unlocked lock;
            return self.read(parts, options);
          },
          "parts"_a, "dtype"_a, "mean"_a, "std"_a, "shared"_a,
          "[N, 3, rows, columns]. A part: top, left, rows, columns of the image; height and width "
          "that it gets; top, left, rows, columns of the window of that; mirrored, upside_down.");
}

}  // namespace

void bind_data(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("_data", "Tables and photographs, read by C++.");
  bind_tables(m);
  bind_photos(m);
}

}  // namespace kiln::python
