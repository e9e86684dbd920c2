// What a client and the server of a TCPStore say to each other: an operation or an outcome, and
// texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::distributed {

// Both sides send it first, so that each knows that the other speaks the same.
inline constexpr std::string_view kStoreGreeting = "KILNST01";

enum class StoreOp : uint8_t { set, get, add, append, compare_set, check, wait, erase, count };
enum class StoreOutcome : uint8_t { done, late, refused };

struct StoreMessage {
  uint8_t kind = 0;
  std::vector<std::string> texts = {};
};

// The most bytes that a message may have: what a stranger may make a server hold.
inline constexpr size_t kLargestStoreMessage = size_t{64} << 20;

// Throws ValueError for one that is larger.
std::string to_bytes(const StoreMessage& message);
// Takes the first message off `bytes`; nothing while it is not there as a whole. Throws
// DistNetworkError for what is no message.
std::optional<StoreMessage> take_message(std::string& bytes);

}  // namespace kiln::distributed
