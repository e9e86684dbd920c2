// Checks the kind and the text of an error.
#pragma once

#include <string>

namespace kiln::test {

// The message of the error E that f throws; "" when it throws none. Another kind of exception
// passes through and fails the test. Use: CHECK(message_of<IoError>([&] { load(path);
// }).find("gap") != std::string::npos).
template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

}  // namespace kiln::test
