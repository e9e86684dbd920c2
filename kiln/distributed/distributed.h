// Training in several processes: <kiln/distributed/distributed.h>, in the library
// kiln::distributed.
#pragma once

#include "kiln/distributed/data_parallel.h"
#include "kiln/distributed/differentiable.h"
#include "kiln/distributed/environment.h"
#include "kiln/distributed/error.h"
#include "kiln/distributed/file_store.h"
#include "kiln/distributed/gradient_reducer.h"
#include "kiln/distributed/launch.h"
#include "kiln/distributed/process_group.h"
#include "kiln/distributed/store.h"
#include "kiln/distributed/sync_batch_norm.h"
#include "kiln/distributed/tcp_store.h"
