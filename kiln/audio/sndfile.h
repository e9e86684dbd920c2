// libsndfile, opened at run time. Internal to kiln/audio.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/audio/audio_file.h"
#include "kiln/core/budget.h"

namespace kiln::audio {

// Frames of the file, one after another: samples of all channels side by side.
struct DecodedAudio {
  AudioInfo info;
  std::vector<float> values;
};

// Throws IoError, which names `path`, for bytes that it does not know or that are damaged, and
// where there is no libsndfile. With `frames` 0 the header alone is read.
DecodedAudio read_with_sndfile(const std::string& path, std::string_view bytes, int64_t begin,
                               int64_t frames, Budget& budget);

}  // namespace kiln::audio
