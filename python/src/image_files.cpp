// kiln.vision: images and IDX files read. C++ checks them before it takes memory.
#include "binding.h"
#include "kiln/data/idx.h"
#include "kiln/io/image.h"
#include "parts.h"

namespace kiln::python {

namespace {

std::string path_of(nb::handle path) {
  const nb::object bytes = nb::module_::import_("os").attr("fsencode")(path);
  return bytes_value(bytes.ptr());
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
      [](nb::handle path, const std::string& mode, bool apply_exif_orientation,
         uint64_t max_ratio) {
        const std::string name = path_of(path);
        const io::ReadImageOptions options{is_gray("read_image", mode), apply_exif_orientation,
                                           max_ratio};
        return read([&] { return io::read_image(name, options); });
      },
      "path"_a, "mode"_a = "RGB", "apply_exif_orientation"_a = false,
      "max_ratio"_a = Budget::kRatio,
      "A PNG, JPEG or WebP as uint8 [3, H, W]; with mode='GRAY' [1, H, W].\n\n"
      "apply_exif_orientation turns the picture as its camera was held; max_ratio is how many "
      "bytes of memory each byte of the file may take, beside 16 MiB.");
  m.def(
      "decode_image",
      [](const nb::bytes& input, const std::string& mode, bool apply_exif_orientation,
         uint64_t max_ratio) {
        const io::ReadImageOptions options{is_gray("decode_image", mode), apply_exif_orientation,
                                           max_ratio};
        const std::string_view bytes(input.c_str(), input.size());
        return read([&] { return io::decode_image(bytes, "bytes", options); });
      },
      "input"_a, "mode"_a = "RGB", "apply_exif_orientation"_a = false,
      "max_ratio"_a = Budget::kRatio, "The same from the bytes of a file.");
  m.def("_image_formats", [] {
    std::vector<std::string> out;
    for (const char* format : {"png", "jpeg", "webp"}) {
      if (io::reads_image_format(format)) out.emplace_back(format);
    }
    return out;
  });
  m.def("_read_idx", [](nb::handle path) {
    const std::string name = path_of(path);
    return read([&] { return data::read_idx(name); });
  });
}

}  // namespace kiln::python
