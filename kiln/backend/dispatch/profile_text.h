// A profile's rows as text. Internal to dispatch.
#pragma once

#include <string>
#include <vector>

#include "kiln/backend/dispatch/profile.h"

namespace kiln::profiled {

// With a line of totals, and a column of the device's time where a device was used.
std::string table_of(const std::vector<ProfileRow>& rows);

}  // namespace kiln::profiled
