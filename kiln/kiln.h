// Everything that a user of Kiln needs.
#pragma once

#include "kiln/backend/dispatch/profile.h"
#include "kiln/core/allocator.h"
#include "kiln/core/parallel.h"
#include "kiln/core/random.h"
#include "kiln/data/data_loader.h"
#include "kiln/data/digits.h"
#include "kiln/data/idx.h"
#include "kiln/io/model_file.h"
#include "kiln/io/model_store.h"
#include "kiln/io/recorder.h"
#include "kiln/nn/nn.h"
#include "kiln/optim/optim.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/grad_mode.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/tensor.h"
