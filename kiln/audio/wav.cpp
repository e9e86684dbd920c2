#include "kiln/audio/wav.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kiln/core/error.h"

namespace kiln::audio {

namespace {

constexpr const char* kReadWav = "read_audio";
constexpr uint32_t kPcm = 1, kFloat = 3, kExtensible = 0xfffe;
constexpr uint32_t kUnknownSize = 0xffffffff;  // of a file that was written to a pipe

[[noreturn]] void refuse_wav(const std::string& path, const std::string& got) {
  throw_error<IoError>(kReadWav, ": '", path, "' is no usable WAV; got ", got,
                       "; expected a complete WAV file of 1 to 1024 channels");
}

// Little-endian, whatever this machine is.
uint64_t number_at(std::string_view bytes, size_t at, int size) {
  uint64_t out = 0;
  for (int i = size - 1; i >= 0; --i) {
    out = out << 8 | static_cast<unsigned char>(bytes[at + static_cast<size_t>(i)]);
  }
  return out;
}

void put_number(std::string& out, uint64_t value, int size) {
  for (int i = 0; i < size; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

float sample_at(std::string_view bytes, size_t at, const WavLayout& layout) {
  const uint64_t bits = number_at(bytes, at, layout.bytes_per_sample);
  if (layout.floats) {
    return layout.bytes_per_sample == 4 ? std::bit_cast<float>(static_cast<uint32_t>(bits))
                                        : static_cast<float>(std::bit_cast<double>(bits));
  }
  switch (layout.bytes_per_sample) {
    case 1:  // the only one without a sign
      return (static_cast<float>(bits) - 128.0F) / 128.0F;
    case 2:
      return static_cast<float>(static_cast<int16_t>(bits)) / 32768.0F;
    case 3:
      return static_cast<float>(static_cast<int32_t>(static_cast<uint32_t>(bits) << 8) >> 8) /
             8388608.0F;
    default:
      return static_cast<float>(static_cast<double>(static_cast<int32_t>(bits)) / 2147483648.0);
  }
}

}  // namespace

bool is_wav(std::string_view bytes) {
  return bytes.size() >= 12 && bytes.starts_with("RIFF") && bytes.substr(8, 4) == "WAVE";
}

bool find_wav_samples(const std::string& path, std::string_view bytes, WavLayout& out) {
  uint64_t format = 0, channels = 0, rate = 0, bits = 0, block = 0;
  size_t at = 12;
  bool has_format = false;
  for (;;) {
    if (bytes.size() - at < 8) refuse_wav(path, "no samples");
    const std::string_view kind = bytes.substr(at, 4);
    const uint64_t size = number_at(bytes, at + 4, 4);
    at += 8;
    const uint64_t left = bytes.size() - at;
    if (kind == "data") {
      if (!has_format) refuse_wav(path, "samples before their format");
      if (size > left && size != kUnknownSize) {
        refuse_wav(path, concat(left, " bytes of ", size, " of samples"));
      }
      out.begin = at;
      out.info.frames = static_cast<int64_t>(std::min(size, left) / std::max<uint64_t>(block, 1));
      break;
    }
    if (size > left) refuse_wav(path, "a part that is longer than the file");
    if (kind == "fmt ") {
      if (size < 16) refuse_wav(path, concat("a format of ", size, " bytes"));
      format = number_at(bytes, at, 2);
      channels = number_at(bytes, at + 2, 2);
      rate = number_at(bytes, at + 4, 4);
      block = number_at(bytes, at + 12, 2);
      bits = number_at(bytes, at + 14, 2);
      if (format == kExtensible && size >= 40) format = number_at(bytes, at + 24, 2);
      has_format = true;
    }
    at += static_cast<size_t>(std::min(size + (size & 1), left));
  }
  if (channels < 1 || channels > 1024 || rate < 1 || rate > 0x7fffffff) {
    refuse_wav(path, concat(channels, " channels at ", rate, " Hz"));
  }
  const bool whole = format == kPcm && (bits == 8 || bits == 16 || bits == 24 || bits == 32);
  const bool floats = format == kFloat && (bits == 32 || bits == 64);
  if (!whole && !floats) return false;
  if (block != channels * bits / 8) {
    refuse_wav(
        path, concat("frames of ", block, " bytes with ", channels, " samples of ", bits, " bits"));
  }
  out.info.sample_rate = static_cast<int64_t>(rate);
  out.info.channels = static_cast<int64_t>(channels);
  out.bytes_per_sample = static_cast<int>(bits / 8);
  out.floats = floats;
  return true;
}

void decode_wav(std::string_view bytes, const WavLayout& layout, int64_t begin, int64_t frames,
                float* out) {
  const int64_t channels = layout.info.channels;
  size_t at = layout.begin + static_cast<size_t>(begin * channels * layout.bytes_per_sample);
  for (int64_t i = 0; i < frames; ++i) {
    for (int64_t c = 0; c < channels; ++c) {
      out[c * frames + i] = sample_at(bytes, at, layout);
      at += static_cast<size_t>(layout.bytes_per_sample);
    }
  }
}

std::string encode_wav(const float* interleaved, int64_t channels, int64_t frames,
                       int64_t sample_rate, bool floats) {
  const int size = floats ? 4 : 2;
  const auto data = static_cast<uint64_t>(channels * frames * size);
  std::string out = "RIFF";
  put_number(out, 36 + data, 4);
  out += "WAVEfmt ";
  put_number(out, 16, 4);
  put_number(out, floats ? kFloat : kPcm, 2);
  put_number(out, static_cast<uint64_t>(channels), 2);
  put_number(out, static_cast<uint64_t>(sample_rate), 4);
  put_number(out, static_cast<uint64_t>(sample_rate * channels * size), 4);
  put_number(out, static_cast<uint64_t>(channels * size), 2);
  put_number(out, static_cast<uint64_t>(8 * size), 2);
  out += "data";
  put_number(out, data, 4);
  out.reserve(out.size() + data);
  for (int64_t i = 0; i < channels * frames; ++i) {
    const float x = interleaved[i];
    if (floats) {
      put_number(out, std::bit_cast<uint32_t>(x), 4);
      continue;
    }
    const float scaled = std::isnan(x) ? 0.0F : std::clamp(x * 32768.0F, -32768.0F, 32767.0F);
    put_number(out, static_cast<uint16_t>(static_cast<int16_t>(std::lrint(scaled))), 2);
  }
  return out;
}

}  // namespace kiln::audio
