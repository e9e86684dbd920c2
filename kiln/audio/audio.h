// kiln::audio: sound in files, spectrograms, mel filters, time stretching.
#pragma once

#include "kiln/audio/audio_file.h"
#include "kiln/audio/spectrogram.h"
