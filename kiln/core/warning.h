// Warnings: what a user should know and that is no error.
#pragma once

#include <functional>
#include <string>

namespace kiln {

// Hands the message to the warning handler. Safe from any thread.
void warn(const std::string& message);

using WarningHandler = std::function<void(const std::string&)>;
// Replaces the handler, and returns the one before. An empty handler restores the first, which
// writes "Warning: ..." to the standard error stream.
WarningHandler set_warning_handler(WarningHandler handler);

}  // namespace kiln
