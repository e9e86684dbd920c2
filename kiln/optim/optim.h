// Everything of kiln::optim.
#pragma once

#include "kiln/optim/adam.h"
#include "kiln/optim/adamw.h"
#include "kiln/optim/clip.h"
#include "kiln/optim/lr_scheduler.h"
#include "kiln/optim/optimizer.h"
#include "kiln/optim/param_groups.h"
#include "kiln/optim/sgd.h"
