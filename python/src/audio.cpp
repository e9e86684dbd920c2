// kiln.audio: sound in files.
#include <string>

#include "binding.h"
#include "kiln/audio/audio_file.h"
#include "parts.h"
#include "pickle_objects.h"

namespace kiln::python {

void bind_audio(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("_audio", "Sound in files.");
  m.def(
      "load",
      [](nb::handle path, int64_t frame_offset, int64_t num_frames, uint64_t max_ratio) {
        const std::string name = file_name_of(path);
        audio::Audio sound;
        {
          const Unlocked lock;
          sound = audio::read_audio(name, {frame_offset, num_frames, max_ratio});
        }
        return nb::make_tuple(sound.samples, sound.sample_rate);
      },
      "path"_a, "frame_offset"_a = 0, "num_frames"_a = -1,
      "max_ratio"_a = audio::ReadAudioOptions{}.max_ratio,
      "(samples, sample_rate): float32 [channels, frames] from -1 to 1.\n\n"
      "WAV is read by Kiln; FLAC, Ogg and others by libsndfile, where it is installed. max_ratio "
      "is "
      "how many bytes of memory each byte of the file may take, beside 16 MiB.");
  m.def(
      "_info",
      [](nb::handle path) {
        const std::string name = file_name_of(path);
        const audio::AudioInfo info = [&] {
          const Unlocked lock;
          return audio::audio_info(name);
        }();
        return nb::make_tuple(info.sample_rate, info.channels, info.frames);
      },
      "path"_a);
  m.def(
      "save",
      [](nb::handle path, const Tensor& samples, int64_t sample_rate, bool floats) {
        const std::string name = file_name_of(path);
        const Unlocked lock;
        audio::write_wav(name, samples, sample_rate, floats);
      },
      "path"_a, "samples"_a, "sample_rate"_a, "floats"_a = false,
      "Writes a WAV file of integers of 16 bits, or of floats. samples: [channels, frames] or "
      "[frames], from -1 to 1.");
  m.def("has_sndfile", &audio::has_sndfile, "Whether libsndfile can be opened.");
}

}  // namespace kiln::python
