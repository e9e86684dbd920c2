// JPEG, by libjpeg(-turbo).
#include "kiln/io/image_formats.h"
#include "kiln/io/image_resample.h"

#ifdef KILN_HAS_JPEG

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <vector>

// clang-format off
#include <jpeglib.h>
#include <jerror.h>  // after jpeglib.h, whose version tells which messages there are
// clang-format on

#include "kiln/core/error.h"

namespace kiln::io {

namespace {

// Each block of 64 pixels takes a bit at least: arithmetic coding, which takes less, is refused.
constexpr uint64_t kMostPixelsPerJpegByte = 64 * 8;
// A progressive file has about ten scans. Each goes through all blocks, whatever its length.
constexpr int kMostScans = 100;

// libjpeg leaves by longjmp: no frame between setjmp and its calls may hold what has a destructor.
struct Jpeg {
  jpeg_decompress_struct info;
  jpeg_error_mgr errors;
  jpeg_progress_mgr progress;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
  bool created;
};

Jpeg& of(j_common_ptr info) { return *static_cast<Jpeg*>(info->client_data); }

void leave(j_common_ptr info) {
  info->err->format_message(info, of(info).message);
  std::longjmp(of(info).jump, 1);
}

// What libjpeg only warns of, and fills with gray, has lost pixels.
void warned(j_common_ptr info, int level) {
  if (level >= 0) return;
  switch (info->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_MUST_RESYNC:
    case JWRN_BOGUS_PROGRESSION:
      leave(info);
      break;
    default:  // bytes between segments, an unknown colour transform: nothing is lost
      break;
  }
}

void count_scans(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMostScans) return;
  std::snprintf(of(info).message, JMSG_LENGTH_MAX, "more than %d scans", kMostScans);
  std::longjmp(of(info).jump, 1);
}

// Whether `f` came to its end; otherwise the message says why not.
template <class F>
bool guarded(Jpeg& jpeg, F f) {
  if (setjmp(jpeg.jump) != 0) return false;
  f(jpeg.info);
  return true;
}

class Decoder {
 public:
  explicit Decoder(const EncodedImage& image) : image_(image), jpeg_{} {
    jpeg_.info.err = jpeg_std_error(&jpeg_.errors);
    jpeg_.errors.error_exit = leave;
    jpeg_.errors.emit_message = warned;
    jpeg_.errors.output_message = [](j_common_ptr) {};
    jpeg_.progress.progress_monitor = count_scans;
    jpeg_.info.client_data = &jpeg_;
  }
  ~Decoder() {
    if (jpeg_.created) jpeg_destroy_decompress(&jpeg_.info);
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // By the header alone.
  ImageSize size() {
    read_header();
    return {static_cast<int64_t>(jpeg_.info.image_height),
            static_cast<int64_t>(jpeg_.info.image_width)};
  }

  void decode_part(ImageResampler& out) {
    read_header();
    if (reads_parts()) {
      jpeg_.info.out_color_space = JCS_EXT_RGBX;
      start();
      read_part(out);
      return;
    }
    const TensorData all = decode_all();
    const NeededPixels& needed = out.needed();
    const int64_t width = all.shape()[2], plane = all.shape()[1] * width;
    std::vector<uint8_t> line(static_cast<size_t>(needed.columns * 4));
    for (int64_t y = 0; y < needed.rows; ++y) {
      const uint8_t* from = all.as<uint8_t>().data() + (needed.top + y) * width + needed.left;
      for (int64_t x = 0; x < needed.columns; ++x) {
        for (int64_t c = 0; c < 3; ++c) line[static_cast<size_t>(x * 4 + c)] = from[c * plane + x];
      }
      out.take_row(line.data());
    }
  }

  TensorData decode() {
    read_header();
    return decode_all();
  }

 private:
  TensorData decode_all() {
    start();
    const auto width = static_cast<int64_t>(jpeg_.info.output_width);
    const auto height = static_cast<int64_t>(jpeg_.info.output_height);
    const int64_t channels = image_.gray ? 1 : 3;
    const auto parts = static_cast<int64_t>(jpeg_.info.out_color_components);
    image_.budget.charge(static_cast<uint64_t>(width * height * channels), "its pixels");
    TensorData out(Shape{channels, height, width}, DType::u8);
    uint8_t* to = out.as_mutable<uint8_t>().data();
    const int64_t plane = height * width;
    std::vector<uint8_t> line(static_cast<size_t>(width * parts));
    for (int64_t y = 0; y < height; ++y, to += width) {
      // Gray rows need no place of their own.
      uint8_t* row = parts == 1 ? to : line.data();
      run([&row](jpeg_decompress_struct& info) { jpeg_read_scanlines(&info, &row, 1); });
      if (parts != 1) spread(line.data(), to, plane, width);
    }
    run([](jpeg_decompress_struct& info) { jpeg_finish_decompress(&info); });
    return out;
  }

  template <class F>
  void run(F f) {
    if (!guarded(jpeg_, f)) refuse_image(image_, "JPEG", jpeg_.message);
  }

  void read_header() {
    const auto* bytes = reinterpret_cast<const unsigned char*>(image_.bytes.data());
    const auto size = static_cast<unsigned long>(image_.bytes.size());
    Jpeg& jpeg = jpeg_;
    run([&jpeg](jpeg_decompress_struct& info) {
      jpeg_create_decompress(&info);
      jpeg.created = true;
      info.client_data = &jpeg;  // cleared by the line above in old versions
      info.progress = &jpeg.progress;
    });
    run([bytes, size](jpeg_decompress_struct& info) {
      jpeg_mem_src(&info, bytes, size);
      jpeg_read_header(&info, TRUE);
    });
    jpeg_decompress_struct& info = jpeg_.info;
    const uint64_t pixels = static_cast<uint64_t>(info.image_width) * info.image_height;
    check_pixels(image_, "JPEG", info.image_width, info.image_height);
    if (info.arith_code) refuse_image(image_, "JPEG", "arithmetic coding");
    if (pixels > image_.bytes.size() * kMostPixelsPerJpegByte) {
      refuse_image(image_, "JPEG",
                   concat(info.image_width, "x", info.image_height, " pixels in ",
                          image_.bytes.size(), " bytes"));
    }
    if (jpeg_has_multiple_scans(&info)) image_.budget.charge(coefficients(), "its coefficients");
    choose_colours();
  }

  void start() {
    run([](jpeg_decompress_struct& i) { jpeg_start_decompress(&i); });
  }

#ifdef LIBJPEG_TURBO_VERSION
  bool reads_parts() const { return jpeg_.info.out_color_space == JCS_RGB; }

  // The rows above and below the part are passed over, and so are the blocks beside it: their bits
  // are read, so that damage is found, but no pixels are made of them.
  void read_part(ImageResampler& out) {
    const NeededPixels& needed = out.needed();
    const auto all = static_cast<JDIMENSION>(jpeg_.info.output_width);
    // One column more on each side, from which the colours at the edge are made.
    auto left = static_cast<JDIMENSION>(std::max<int64_t>(needed.left - 1, 0));
    auto width =
        static_cast<JDIMENSION>(std::min<int64_t>(needed.left + needed.columns + 1, all) - left);
    if (width < all) {
      run([&](jpeg_decompress_struct& info) { jpeg_crop_scanline(&info, &left, &width); });
    }
    skip(needed.top);
    std::vector<uint8_t> line(static_cast<size_t>(width) * 4);
    const uint8_t* const first = line.data() + (needed.left - static_cast<int64_t>(left)) * 4;
    for (int64_t y = 0; y < needed.rows; ++y) {
      read_row(line.data());
      out.take_row(first);
    }
    // To skip all the rest would be to read none of it.
    const int64_t rest = static_cast<int64_t>(jpeg_.info.output_height) - needed.top - needed.rows;
    if (rest > 0) {
      skip(rest - 1);
      read_row(line.data());
    }
    run([](jpeg_decompress_struct& info) { jpeg_finish_decompress(&info); });
  }

  void read_row(uint8_t* to) {
    uint8_t* row = to;
    run([&row](jpeg_decompress_struct& info) { jpeg_read_scanlines(&info, &row, 1); });
  }

  void skip(int64_t rows) {
    if (rows == 0) return;
    run([rows](jpeg_decompress_struct& info) {
      jpeg_skip_scanlines(&info, static_cast<JDIMENSION>(rows));
    });
  }
#else
  static bool reads_parts() { return false; }
  static void read_part(ImageResampler&) {}
#endif

  // Bytes that libjpeg holds until it has seen all scans.
  uint64_t coefficients() const {
    uint64_t blocks = 0;
    for (int c = 0; c < jpeg_.info.num_components; ++c) {
      const jpeg_component_info& part = jpeg_.info.comp_info[c];
      const auto padded = [](uint64_t n, int factor) { return n + static_cast<uint64_t>(factor); };
      blocks += padded(part.width_in_blocks, part.h_samp_factor) *
                padded(part.height_in_blocks, part.v_samp_factor);
    }
    return blocks * sizeof(JBLOCK);
  }

  void choose_colours() {
    jpeg_decompress_struct& info = jpeg_.info;
    switch (info.jpeg_color_space) {
      case JCS_CMYK:
      case JCS_YCCK:
        info.out_color_space = JCS_CMYK;
        break;
      case JCS_GRAYSCALE:
      case JCS_YCbCr:
        info.out_color_space = image_.gray ? JCS_GRAYSCALE : JCS_RGB;
        break;
      case JCS_RGB:
        info.out_color_space = JCS_RGB;
        break;
      default:
        refuse_image(image_, "JPEG",
                     concat(info.num_components, " components of no known colours"));
    }
  }

  // A line of RGB or CMYK into planes `plane` bytes apart.
  void spread(const uint8_t* from, uint8_t* to, int64_t plane, int64_t width) const {
    if (jpeg_.info.out_color_space == JCS_RGB && !image_.gray) {
      for (int64_t x = 0; x < width; ++x, from += 3) {
        to[x] = from[0];
        to[plane + x] = from[1];
        to[2 * plane + x] = from[2];
      }
      return;
    }
    const bool inks = jpeg_.info.out_color_space == JCS_CMYK;
    for (int64_t x = 0; x < width; ++x, from += inks ? 4 : 3) {
      uint8_t colour[3];
      for (int c = 0; c < 3; ++c) {
        // Files hold 255 minus the ink, as Photoshop began to write them.
        colour[c] = inks ? less_ink(from[c], from[3]) : from[c];
      }
      if (image_.gray) {
        to[x] = luma(colour[0], colour[1], colour[2]);
      } else {
        for (int c = 0; c < 3; ++c) to[c * plane + x] = colour[c];
      }
    }
  }

  // What is left of white under an ink and black: `white` and `light` are 255 minus them.
  static uint8_t less_ink(unsigned white, unsigned light) {
    const unsigned product = (255 - white) * light + 128;
    const unsigned taken = ((product >> 8) + product) >> 8;  // rounded ink * light / 255
    return static_cast<uint8_t>(light > taken ? light - taken : 0);
  }

  const EncodedImage& image_;
  Jpeg jpeg_;
};

}  // namespace

TensorData decode_jpeg(const EncodedImage& image) { return Decoder(image).decode(); }

ImageSize jpeg_size(const EncodedImage& image) { return Decoder(image).size(); }

void decode_jpeg_part(const EncodedImage& image, ImageResampler& out) {
  Decoder(image).decode_part(out);
}

}  // namespace kiln::io

#else

namespace kiln::io {

TensorData decode_jpeg(const EncodedImage& image) { refuse_format(image, "JPEG", "KILN_JPEG"); }

ImageSize jpeg_size(const EncodedImage& image) { refuse_format(image, "JPEG", "KILN_JPEG"); }

void decode_jpeg_part(const EncodedImage& image, ImageResampler&) {
  refuse_format(image, "JPEG", "KILN_JPEG");
}

}  // namespace kiln::io

#endif
