// WAV files. Internal to kiln/audio.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kiln/audio/audio_file.h"

namespace kiln::audio {

// Where the samples of a WAV file lie, and how.
struct WavLayout {
  AudioInfo info;
  int bytes_per_sample = 0;
  bool floats = false;
  size_t begin = 0;  // of the samples, in the file
};

bool is_wav(std::string_view bytes);
// Throws IoError, which names `path`. False for a coding that Kiln does not read.
bool find_wav_samples(const std::string& path, std::string_view bytes, WavLayout& out);
// Frames [begin, begin + frames) as [channels, frames].
void decode_wav(std::string_view bytes, const WavLayout& layout, int64_t begin, int64_t frames,
                float* out);
// The bytes of a file with `frames` of interleaved samples.
std::string encode_wav(const float* interleaved, int64_t channels, int64_t frames,
                       int64_t sample_rate, bool floats);

}  // namespace kiln::audio
