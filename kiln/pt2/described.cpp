// What a file says of itself: whether it is a program, its inputs and their sizes, its operators.
#include "kiln/core/utf8.h"
#include "kiln/io/zip_reader.h"
#include "kiln/pt2/state.h"

namespace kiln::pt2 {

namespace {

// Of the symbols that inputs have.
std::vector<std::string> symbols_of(const Program& program) {
  std::vector<std::string> out;
  for (const Program::Input& input : program.inputs) {
    for (const auto& size : input.shape.free) {
      if (size) out.insert(out.end(), size->symbols().begin(), size->symbols().end());
    }
  }
  return out;
}

}  // namespace

bool is_program(const std::string& path) {
  io::InputFile file("pt2", path);
  char head[4] = {};
  if (file.size() < sizeof head) return false;
  file.read_at(0, head, sizeof head);
  if (std::string_view(head, sizeof head) != "PK\3\4") return false;
  try {
    const io::ZipReader zip(std::move(file));
    for (const io::ZipEntry& entry : zip.entries()) {
      if (!entry.name.ends_with("/archive_format")) continue;
      return entry.size == 3 && zip.read(entry, 3) == "pt2";
    }
  } catch (const IoError&) {  // no whole archive
  }
  return false;
}

std::vector<Described> Model::described_inputs() const {
  std::vector<Described> out;
  for (const Program::Input& input : state_->program.inputs) {
    if (input.slot < 0) continue;
    Described one{.name = input.name, .is_tensor = input.is_tensor, .dtype = input.dtype};
    for (int d = 0; d < input.shape.fixed.rank(); ++d) {
      const auto& free = input.shape.free[static_cast<size_t>(d)];
      one.dims.push_back({free ? -1 : input.shape.fixed[d], free ? free->str() : ""});
    }
    out.push_back(std::move(one));
  }
  return out;
}

std::map<std::string, std::pair<int64_t, int64_t>> Model::free_sizes() const {
  std::map<std::string, std::pair<int64_t, int64_t>> out;
  for (const std::string& name : symbols_of(state_->program)) {
    const auto range = state_->program.ranges.find(name);
    const Range one = range == state_->program.ranges.end() ? Range{} : range->second;
    out[name] = {one.least, one.most};
  }
  return out;
}

std::vector<Shape> Model::shapes_at(const std::map<std::string, int64_t>& sizes) const {
  std::vector<Shape> out;
  for (const Program::Input& input : state_->program.inputs) {
    if (input.slot < 0) continue;
    Shape shape = input.shape.fixed;
    for (int d = 0; d < shape.rank(); ++d) {
      const auto& free = input.shape.free[static_cast<size_t>(d)];
      if (!free) continue;
      const auto size = free->value(sizes);
      if (!size || *size < 0) {
        throw_error<ValueError>("pt2: input '", printable(input.name, 60), "': no size for dim ", d,
                                " follows from the sizes; got ", printable(free->str(), 60),
                                "; expected a size for each symbol");
      }
      shape[d] = *size;
    }
    out.push_back(shape);
  }
  return out;
}

std::vector<std::string> Model::nodes() const {
  std::vector<std::string> out;
  for (const Step& step : state_->program.main.steps) out.push_back(step.target);
  return out;
}

}  // namespace kiln::pt2
