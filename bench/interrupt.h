// Ctrl-C ends the measurement, and what has been measured is still printed.
#pragma once

namespace kiln::bench {

// From now on the first SIGINT or SIGTERM only makes interrupted() true; the second ends the
// program.
void catch_interrupts();
bool interrupted();

}  // namespace kiln::bench
