// Mailbox: messages from one process to another, matched by their tags.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "kiln/distributed/host_buffer.h"
#include "kiln/distributed/mesh.h"
#include "kiln/distributed/work.h"

namespace kiln::distributed {

// One thread moves all messages, so that any number of sends and receives may be under way in any
// order. The connections are its own: no operation of a whole group uses them.
class Mailbox {
 public:
  struct Send {
    int peer;
    MessageHead head;
    HostBuffer values;
    milliseconds timeout;
    std::shared_ptr<Work::State> state;
  };
  struct Receive {
    int peer;          // -1: any
    MessageHead head;  // that it must have
    HostBuffer values;
    milliseconds timeout;
    std::shared_ptr<Work::State> state;
  };

  explicit Mailbox(Mesh mesh);
  // What is under way ends with an error.
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  void post(Send send);
  void post(Receive receive);

 private:
  struct PostedSend {
    Send send;
    Deadline deadline;
    size_t moved = 0;
  };
  struct PostedReceive {
    Receive receive;
    Deadline deadline;
  };
  struct Arrived {  // before anybody asked for it
    int peer;
    MessageHead head;
    std::vector<std::byte> bytes;
  };
  struct Peer {
    std::deque<PostedSend> sends = {};
    // The message that is arriving.
    MessageHead head = {};
    size_t moved = 0;
    std::optional<PostedReceive> receive = {};  // whose memory it goes to, or
    std::vector<std::byte> bytes = {};          // here
    std::string lost = {};                      // why nothing comes any more
  };

  void serve() noexcept;
  void serve_once();
  bool send_some(int peer);
  bool receive_some(int peer);
  void begin_message(int peer);
  void end_message(int peer);
  void lose(int peer, const std::string& why);
  void end_late();
  // A posted receive for such a message.
  std::optional<PostedReceive> take_match(int peer, const MessageHead& head);
  static bool matches(const Receive& receive, int peer, const MessageHead& head);
  // Tells the thread, which the first message makes.
  void wake();

  Mesh mesh_;
  Socket wake_reader_;
  Socket wake_writer_;
  std::mutex mutex_;
  std::vector<Peer> peers_;
  std::list<PostedReceive> receives_;
  std::list<Arrived> arrived_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace kiln::distributed
