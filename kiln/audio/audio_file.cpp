#include "kiln/audio/audio_file.h"

#include <algorithm>
#include <utility>

#include "kiln/audio/sndfile.h"
#include "kiln/audio/wav.h"
#include "kiln/core/error.h"
#include "kiln/io/atomic_file.h"
#include "kiln/io/input_file.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::audio {

namespace {

constexpr const char* kRead = "read_audio";
constexpr const char* kWrite = "write_wav";
constexpr uint64_t kMostAudioBytes = uint64_t{4} << 30;

void check_range(const ReadAudioOptions& options) {
  if (options.begin < 0 || options.frames < -1) {
    throw_error<ValueError>(kRead, ": expected begin >= 0 and frames >= -1; got ", options.begin,
                            " and ", options.frames);
  }
}

// [frames, channels] as [channels, frames].
Tensor channels_first(const DecodedAudio& decoded) {
  const int64_t channels = decoded.info.channels;
  const auto frames = static_cast<int64_t>(decoded.values.size()) / channels;
  return from_vector(decoded.values, {frames, channels}, {.dtype = f32})
      .transpose(0, 1)
      .contiguous();
}

}  // namespace

Audio read_audio(const std::string& path, const ReadAudioOptions& options) {
  check_range(options);
  const io::InputFile file(kRead, path, options.max_ratio);
  const std::string bytes = file.read_whole(kMostAudioBytes);
  WavLayout layout;
  if (!is_wav(bytes) || !find_wav_samples(path, bytes, layout)) {
    const DecodedAudio decoded =
        read_with_sndfile(path, bytes, options.begin, options.frames, file.budget());
    return {channels_first(decoded), decoded.info.sample_rate};
  }
  const int64_t left = std::max<int64_t>(layout.info.frames - options.begin, 0);
  const int64_t frames = options.frames < 0 ? left : std::min(options.frames, left);
  file.budget().charge(static_cast<uint64_t>(layout.info.channels * frames) * sizeof(float),
                       "its samples");
  Tensor samples = empty({layout.info.channels, frames}, {.dtype = f32});
  if (frames > 0) {
    decode_wav(bytes, layout, options.begin, frames, samples.data_ptr<float>());
  }
  return {std::move(samples), layout.info.sample_rate};
}

AudioInfo audio_info(const std::string& path) {
  const io::InputFile file(kRead, path);
  const std::string bytes = file.read_whole(kMostAudioBytes);
  WavLayout layout;
  if (is_wav(bytes) && find_wav_samples(path, bytes, layout)) return layout.info;
  return read_with_sndfile(path, bytes, 0, 0, file.budget()).info;
}

void write_wav(const std::string& path, const Tensor& samples, int64_t sample_rate, bool floats) {
  if (!samples.is_floating_point()) {
    throw_error<DTypeError>(kWrite, ": expected floats; got ", samples.dtype());
  }
  if (samples.dim() < 1 || samples.dim() > 2 || (samples.dim() == 2 && samples.size(0) < 1) ||
      (samples.dim() == 2 && samples.size(0) > 1024)) {
    throw_error<ShapeError>(kWrite, ": expected [frames], or [channels, frames] with 1 to 1024 ",
                            "channels; got ", samples.shape());
  }
  if (sample_rate < 1 || sample_rate > 0x7fffffff) {
    throw_error<ValueError>(kWrite, ": the rate is out of range; got ", sample_rate,
                            "; expected 1 to 2147483647 samples in a second");
  }
  const Tensor planes = samples.dim() == 1 ? samples.unsqueeze(0) : samples;
  const int64_t channels = planes.size(0), frames = planes.size(1);
  if (frames > 0x7fff0000 / (channels * 4)) {
    throw_error<ValueError>(kWrite, ": a WAV file holds less than 2 GiB; got ", frames,
                            " frames of ", channels, " channels");
  }
  const auto values =
      planes.detach().to(Device("cpu")).to(f32).transpose(0, 1).contiguous().to_vector<float>();
  io::write_file_atomically(kWrite, path,
                            encode_wav(values.data(), channels, frames, sample_rate, floats));
}

}  // namespace kiln::audio
