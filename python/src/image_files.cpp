// kiln.vision: images and IDX files read. C++ checks them before it takes memory.
#include "binding.h"
#include "kiln/data/idx.h"
#include "kiln/io/image.h"
#include "parts.h"

namespace kiln::python {

namespace {

std::string path_of(nb::handle path) {
  const nb::object bytes = nb::module_::import_("os").attr("fsencode")(path);
  return {PyBytes_AS_STRING(bytes.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

bool is_gray(const char* op, const std::string& mode) {
  if (mode != "RGB" && mode != "GRAY") {
    throw_error<ValueError>(op, ": unknown mode; got '", mode, "'; expected RGB or GRAY");
  }
  return mode == "GRAY";
}

template <class F>
Tensor read(F f) {
  const Unlocked lock;
  return from_data(f());
}

}  // namespace

void bind_image_files(nb::module_& m) {
  m.def(
      "read_image",
      [](nb::handle path, const std::string& mode) {
        const std::string name = path_of(path);
        const bool gray = is_gray("read_image", mode);
        return read([&] { return io::read_image(name, gray); });
      },
      "path"_a, "mode"_a = "RGB", "A PNG as uint8 [3, H, W]; with mode='GRAY' [1, H, W].");
  m.def(
      "decode_image",
      [](const nb::bytes& input, const std::string& mode) {
        const bool gray = is_gray("decode_image", mode);
        const std::string_view bytes(input.c_str(), input.size());
        return read([&] { return io::decode_image(bytes, "bytes", gray); });
      },
      "input"_a, "mode"_a = "RGB", "The same from the bytes of a PNG.");
  m.def("_read_idx", [](nb::handle path) {
    const std::string name = path_of(path);
    return read([&] { return data::read_idx(name); });
  });
}

}  // namespace kiln::python
