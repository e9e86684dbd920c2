// Sound in files.
#pragma once

#include <cstdint>
#include <string>

#include "kiln/tensor/tensor.h"

namespace kiln::audio {

struct AudioInfo {
  int64_t sample_rate = 0;
  int64_t channels = 0;
  int64_t frames = 0;  // samples of each channel
};

struct Audio {
  Tensor samples;  // f32 [channels, frames], from -1 to 1
  int64_t sample_rate = 0;
};

struct ReadAudioOptions {
  int64_t begin = 0;    // frames that are left out
  int64_t frames = -1;  // the most that are read; -1: all
  // Bytes of memory for each byte of the file, beside 16 Mi (see Budget): silence is short in FLAC.
  uint64_t max_ratio = 2048;
};

// WAV files (RIFF) of integers with 8, 16, 24 and 32 bits and of floats are read by Kiln itself.
// FLAC, Ogg, AIFF and other kinds are read by libsndfile, which is opened at run time: from the
// path in the environment variable KILN_SNDFILE, or as the system's libsndfile.so.1. The bytes say
// which it is, not the name. Integers are divided by 2^(bits - 1).
//
// Throws IoError for a file that is missing, damaged, cut short, of no kind that is known, or that
// wants libsndfile where there is none; ValueError for a negative `begin` or `frames` below -1.
Audio read_audio(const std::string& path, const ReadAudioOptions& options = {});
AudioInfo audio_info(const std::string& path);

// Whether libsndfile can be opened.
bool has_sndfile();

// A WAV file of integers of 16 bits, or of floats; written atomically. `samples` is [channels,
// frames] or [frames], floats from -1 to 1; what is beyond is cut off in integers. Throws
// ShapeError, DTypeError, ValueError for a rate below 1, IoError.
void write_wav(const std::string& path, const Tensor& samples, int64_t sample_rate,
               bool floats = false);

}  // namespace kiln::audio
