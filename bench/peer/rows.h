// The peer's half of every row, by the row's name.
#pragma once

#include "bench/workload.h"

namespace kiln::bench::peer {

void add_op_rows(WorkloadTable& rows);
void add_model_rows(WorkloadTable& rows);

}  // namespace kiln::bench::peer
