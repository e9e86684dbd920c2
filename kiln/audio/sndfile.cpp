#include "kiln/audio/sndfile.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include <dlfcn.h>

#include "kiln/core/error.h"
#include "kiln/core/utf8.h"

namespace kiln::audio {

namespace {

constexpr const char* kReadAudio = "read_audio";
constexpr int64_t kMostChannels = 1024;
constexpr int64_t kFramesAtOnce = 65536;

// libsndfile's interface, which has been the same since version 1.0 (sndfile.h).
using Count = int64_t;
struct SndfileInfo {
  Count frames;
  int sample_rate;
  int channels;
  int format;
  int sections;
  int seekable;
};
struct SndfileInput {
  Count (*length)(void*);
  Count (*seek)(Count, int, void*);
  Count (*read)(void*, Count, void*);
  Count (*write)(const void*, Count, void*);
  Count (*tell)(void*);
};
constexpr int kReadMode = 0x10;

struct Sndfile {
  void* (*open_virtual)(SndfileInput*, int, SndfileInfo*, void*) = nullptr;
  Count (*read_floats)(void*, float*, Count) = nullptr;
  Count (*seek)(void*, Count, int) = nullptr;
  int (*error)(void*) = nullptr;
  const char* (*error_text)(void*) = nullptr;
  int (*close)(void*) = nullptr;
  std::string missing;  // why it could not be opened
};

template <class F>
void find(void* library, const char* name, F& function, std::string& missing) {
  void* const found = ::dlsym(library, name);
  if (found == nullptr) {
    missing = concat("it has no ", name);
    return;
  }
  std::memcpy(&function, &found, sizeof found);
}

Sndfile open_library() {
  Sndfile out;
  const char* const named = std::getenv("KILN_SNDFILE");
  void* library = nullptr;
  for (const char* name : {named == nullptr ? "" : named, "libsndfile.so.1", "libsndfile.so"}) {
    if (library == nullptr && *name != 0) library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) {
    out.missing = "libsndfile.so.1 was not found";
    return out;
  }
  find(library, "sf_open_virtual", out.open_virtual, out.missing);
  find(library, "sf_readf_float", out.read_floats, out.missing);
  find(library, "sf_seek", out.seek, out.missing);
  find(library, "sf_error", out.error, out.missing);
  find(library, "sf_strerror", out.error_text, out.missing);
  find(library, "sf_close", out.close, out.missing);
  return out;
}

const Sndfile& library() {
  static const Sndfile found = open_library();
  return found;
}

// The bytes of a file as libsndfile reads them.
struct ByteInput {
  std::string_view bytes;
  Count at = 0;

  static Count length(void* self) {
    return static_cast<Count>(static_cast<ByteInput*>(self)->bytes.size());
  }
  static Count seek(Count to, int whence, void* self) {
    auto& input = *static_cast<ByteInput*>(self);
    const Count size = length(self);
    const Count base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? input.at : size;
    if (to > size - base || to < -base) return -1;
    return input.at = base + to;
  }
  static Count read(void* to, Count count, void* self) {
    auto& input = *static_cast<ByteInput*>(self);
    const Count n = std::clamp<Count>(count, 0, length(self) - input.at);
    std::memcpy(to, input.bytes.data() + input.at, static_cast<size_t>(n));
    input.at += n;
    return n;
  }
  static Count write(const void*, Count, void*) { return 0; }
  static Count tell(void* self) { return static_cast<ByteInput*>(self)->at; }
};

class OpenSound {
 public:
  OpenSound(const std::string& path, std::string_view bytes) : path_(path), input_{bytes} {
    const Sndfile& lib = library();
    if (!lib.missing.empty()) {
      throw_error<IoError>(
          kReadAudio, ": '", path, "' is no WAV file, and others are read by ",
          "libsndfile; got none: ", lib.missing,
          "; expected it installed (Debian: libsndfile1), or KILN_SNDFILE with its path");
    }
    SndfileInput calls{ByteInput::length, ByteInput::seek, ByteInput::read, ByteInput::write,
                       ByteInput::tell};
    file_ = lib.open_virtual(&calls, kReadMode, &info_, &input_);
    if (file_ == nullptr) refuse(lib.error_text(nullptr));
    if (info_.channels < 1 || info_.channels > kMostChannels || info_.sample_rate < 1 ||
        info_.frames < 0) {
      refuse(concat(info_.channels, " channels at ", info_.sample_rate, " Hz"));
    }
  }
  ~OpenSound() {
    if (file_ != nullptr) library().close(file_);
  }
  OpenSound(const OpenSound&) = delete;
  OpenSound& operator=(const OpenSound&) = delete;

  const SndfileInfo& info() const { return info_; }

  void skip(int64_t frames) {
    if (frames > 0 && library().seek(file_, frames, SEEK_SET) != frames) {
      refuse(concat("an end before frame ", frames));
    }
  }

  // The next `most` frames, or all that the header promises.
  void read(int64_t most, std::vector<float>& out, Budget& budget) {
    const auto channels = static_cast<size_t>(info_.channels);
    while (most > 0) {
      const int64_t wanted = std::min(most, kFramesAtOnce);
      const size_t before = out.size(), more = static_cast<size_t>(wanted) * channels;
      budget.grow(out, more, "its samples");
      out.resize(before + more);
      const Count got = library().read_floats(file_, out.data() + before, wanted);
      if (got != wanted || library().error(file_) != 0) {
        refuse(library().error(file_) != 0 ? library().error_text(file_)
                                           : "fewer samples than its header says");
      }
      most -= wanted;
    }
  }

  [[noreturn]] void refuse(const std::string& got) {
    throw_error<IoError>(kReadAudio, ": '", path_, "' is no usable sound; got ", printable(got),
                         "; expected a complete file of a kind that libsndfile reads");
  }

 private:
  const std::string& path_;
  ByteInput input_;
  SndfileInfo info_{};
  void* file_ = nullptr;
};

}  // namespace

bool has_sndfile() { return library().missing.empty(); }

DecodedAudio read_with_sndfile(const std::string& path, std::string_view bytes, int64_t begin,
                               int64_t frames, Budget& budget) {
  OpenSound sound(path, bytes);
  const SndfileInfo& info = sound.info();
  DecodedAudio out{{info.sample_rate, info.channels, info.frames}, {}};
  const int64_t left = std::max<int64_t>(info.frames - begin, 0);
  const int64_t wanted = frames < 0 ? left : std::min(frames, left);
  if (wanted > 0) {
    sound.skip(begin);
    sound.read(wanted, out.values, budget);
  }
  return out;
}

}  // namespace kiln::audio
