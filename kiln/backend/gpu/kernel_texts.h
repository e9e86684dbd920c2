// The texts of kernels/, which the build embeds. Internal.
#pragma once

#include <string_view>

namespace kiln::gpu {

// Of kernels/<name>.k.
std::string_view kernel_text(std::string_view name);

}  // namespace kiln::gpu
