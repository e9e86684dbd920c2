#include "cli/train/sound_files.h"

#include <algorithm>
#include <utility>

#include "kiln/audio/audio.h"
#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::cli {

namespace {

constexpr double kDecibels = 80;

}  // namespace

const FileKind& sound_kind() {
  static const FileKind kind{{".flac", ".ogg", ".wav"}, "WAV or FLAC sounds", "sounds"};
  return kind;
}

Json SoundForm::facts() const {
  Json out = Json::Object();
  out.add("rate", rate);
  out.add("frames", frames);
  out.add("mels", mels);
  out.add("n_fft", n_fft);
  out.add("hop", hop);
  return out;
}

SoundForm SoundForm::from_facts(const Json& facts) {
  SoundForm out;
  const std::pair<const char*, int64_t*> parts[] = {{"rate", &out.rate},
                                                    {"frames", &out.frames},
                                                    {"mels", &out.mels},
                                                    {"n_fft", &out.n_fft},
                                                    {"hop", &out.hop}};
  for (const auto& [name, to] : parts) {
    const Json* found = facts.find(name);
    const int64_t* value = found == nullptr ? nullptr : found->as<int64_t>();
    if (value == nullptr || *value < 1 || *value > int64_t{1} << 32) {
      throw_error<ValueError>("the sounds' ", name, " is malformed; expected an integer from 1 on");
    }
    *to = *value;
  }
  return out;
}

int64_t sound_rate(const std::string& path) { return audio::audio_info(path).sample_rate; }

Tensor read_sound_as(const std::string& path, const SoundForm& form) {
  const audio::Audio sound = audio::read_audio(path, {.begin = 0, .frames = form.frames});
  if (sound.sample_rate != form.rate) {
    throw_error<IoError>("'", path, "' has ", sound.sample_rate, " samples in a second; expected ",
                         form.rate, ", as the others have");
  }
  Tensor wave = sound.samples.mean(0);
  if (wave.size(0) < form.frames) {
    wave = cat({wave, zeros({form.frames - wave.size(0)})}, 0);
  }
  const audio::SpectrogramOptions options{
      .n_fft = form.n_fft, .hop_length = form.hop, .pad_mode = "constant"};
  const audio::MelOptions mel{.n_mels = form.mels, .sample_rate = form.rate};
  const Tensor decibels = audio::power_to_db(audio::mel_spectrogram(wave, options, mel), kDecibels);
  const Tensor above = decibels - (decibels.max() - kDecibels);
  return (above * (255 / kDecibels)).round().clamp(0.0, 255.0).to(u8).unsqueeze(0);
}

}  // namespace kiln::cli
