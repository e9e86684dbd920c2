// Sounds in files, as pictures of their spectra.
#pragma once

#include <cstdint>
#include <string>

#include "cli/train/image_files.h"
#include "kiln/core/json.h"
#include "kiln/tensor/tensor.h"

namespace kiln::cli {

// A sound's first `frames` samples at `rate`, the mean of its channels, as decibels of a mel
// spectrogram: the loudest is 255, what is 80 dB below it 0.
struct SoundForm {
  int64_t rate = 16000;
  int64_t frames = 16000;
  int64_t mels = 64;
  int64_t n_fft = 512;
  int64_t hop = 256;

  Json facts() const;
  // Throws ValueError.
  static SoundForm from_facts(const Json& facts);
};

// u8 [1, mels, frames / hop + 1]. Throws IoError, also for a file of another rate.
Tensor read_sound_as(const std::string& path, const SoundForm& form);
int64_t sound_rate(const std::string& path);
const FileKind& sound_kind();

}  // namespace kiln::cli
