// zlib, or what stands in for it in a build without it (-DKILN_ZLIB=OFF). Internal.
#pragma once

#ifdef KILN_HAS_ZLIB

#include <zlib.h>

namespace kiln::io::detail {
// Throws NotImplementedError in a build without zlib.
inline void require_zlib(const char*) {}
}  // namespace kiln::io::detail

#else

#include <cstddef>

#include "kiln/core/error.h"

namespace kiln::io::detail {

[[noreturn]] inline void require_zlib(const char* op) {
  throw_error<NotImplementedError>(
      op,
      ": compressed data needs zlib, which this build of Kiln has not; expected one configured ",
      "with -DKILN_ZLIB=ON");
}

}  // namespace kiln::io::detail

// The names of <zlib.h> that Kiln uses. require_zlib() throws before any of them would be called.
namespace kiln::io {

using Bytef = unsigned char;
using uInt = unsigned;
struct z_stream {
  Bytef* next_in = nullptr;
  uInt avail_in = 0;
  Bytef* next_out = nullptr;
  uInt avail_out = 0;
  const char* msg = nullptr;
};
constexpr int Z_OK = 0, Z_STREAM_END = 1, Z_STREAM_ERROR = -2, Z_BUF_ERROR = -5;
constexpr int Z_NO_FLUSH = 0, Z_FINISH = 4;
constexpr int Z_DEFLATED = 8, Z_DEFAULT_COMPRESSION = -1, Z_DEFAULT_STRATEGY = 0;
inline int inflateInit2(z_stream*, int) { return Z_STREAM_ERROR; }
inline int inflateReset(z_stream*) { return Z_STREAM_ERROR; }
inline int inflate(z_stream*, int) { return Z_STREAM_ERROR; }
inline int inflateEnd(z_stream*) { return Z_STREAM_ERROR; }
inline int deflateInit2(z_stream*, int, int, int, int, int) { return Z_STREAM_ERROR; }
inline int deflateParams(z_stream*, int, int) { return Z_STREAM_ERROR; }
inline int deflate(z_stream*, int) { return Z_STREAM_ERROR; }
inline int deflateEnd(z_stream*) { return Z_STREAM_ERROR; }

}  // namespace kiln::io

#endif
