// What a report says about the machine.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace kiln::cli {

// Kiln's version, processor, instruction set, threads, memory, system, compiler: name, value.
std::vector<std::pair<std::string, std::string>> machine_facts();
// "2026-03-01 14:05", local time.
std::string date_and_time();

}  // namespace kiln::cli
