// BackendDefaults: every op that ops.def marks `fallback`, composed from the required ones.
//
//   struct MyBackend : BackendDefaults<MyBackend> {
//     ... the required ops, and whichever others it does better ...
//   };
//
// The compositions call the backend's own ops (X::...), so each one profits from every op the
// backend overrides. They are templates with X = Bk, since Bk is incomplete while its base is
// instantiated. They borrow their operands and return fresh tensors: donation and in-place forms
// are for a backend that overrides them.
#pragma once

#include "kiln/backend/defaults_complex.h"
#include "kiln/backend/defaults_distance.h"
#include "kiln/backend/defaults_fft.h"
#include "kiln/backend/defaults_float.h"
#include "kiln/backend/defaults_functions.h"
#include "kiln/backend/defaults_images.h"
#include "kiln/backend/defaults_int.h"
#include "kiln/backend/defaults_nn.h"
#include "kiln/backend/defaults_optim.h"
#include "kiln/backend/defaults_scan.h"
#include "kiln/backend/defaults_sort.h"
#include "kiln/backend/defaults_volume.h"
#include "kiln/backend/defaults_window.h"

namespace kiln {

template <class Bk>
struct BackendDefaults : defaults::FloatDefaults<Bk>,
                         defaults::FunctionDefaults<Bk>,
                         defaults::IntDefaults<Bk>,
                         defaults::BoolDefaults<Bk>,
                         defaults::NnDefaults<Bk>,
                         defaults::NormDefaults<Bk>,
                         defaults::ComplexDefaults<Bk>,
                         defaults::ImageDefaults<Bk>,
                         defaults::DistanceDefaults<Bk>,
                         defaults::FftDefaults<Bk>,
                         defaults::ScanDefaults<Bk>,
                         defaults::SortDefaults<Bk>,
                         defaults::WindowDefaults<Bk>,
                         defaults::VolumeDefaults<Bk>,
                         defaults::OptimDefaults<Bk> {};

}  // namespace kiln
