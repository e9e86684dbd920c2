// Everything that the author of a backend needs: the concepts, the defaults, how a backend becomes
// a device, and the suite that it is held to. docs/backends.md says how.
#pragma once

#include "kiln/autodiff/autodiff.h"
#include "kiln/backend/backend.h"
#include "kiln/backend/conformance/conformance.h"
#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/defaults.h"
#include "kiln/backend/dispatch/register.h"
#include "kiln/backend/reference/reference.h"
#include "kiln/backend/replay.h"
