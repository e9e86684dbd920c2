#include "kiln/distributed/mailbox.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>
#include <utility>

#include "kiln/distributed/error.h"

namespace kiln::distributed {

namespace {

// A message that nobody asked for yet grows by as much at a time: memory is taken for what has
// come, not for what its head says.
constexpr size_t kStep = size_t{1} << 20;

std::exception_ptr backend_error(const std::string& text) {
  return std::make_exception_ptr(DistBackendError(text));
}

std::string lost_text(const char* op, int peer, const std::string& why) {
  return concat(op, ": lost the process of rank ", peer, ": ", why);
}

// Gives a receive what came, or says why it does not fit.
void finish(const Mailbox::Receive& receive, int peer, const MessageHead& head,
            std::span<const std::byte> bytes) {
  try {
    if (head.operation.dtype != receive.head.operation.dtype ||
        bytes.size() != receive.values.bytes().size()) {
      throw_error<DistBackendError>("recv: rank ", peer, " sent ", bytes.size(), " bytes (",
                                    head.operation, "); expected ", receive.values.bytes().size(),
                                    " bytes (", receive.head.operation, ")");
    }
    if (bytes.data() != receive.values.bytes().data())
      std::ranges::copy(bytes, receive.values.bytes().begin());
    receive.values.written();
    receive.state->finish(nullptr, peer);
  } catch (...) {
    receive.state->finish(std::current_exception(), peer);
  }
}

}  // namespace

Mailbox::Mailbox(Mesh mesh) : mesh_(std::move(mesh)), peers_(static_cast<size_t>(mesh_.size())) {
  std::tie(wake_reader_, wake_writer_) = socket_pair();
}

Mailbox::~Mailbox() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
  for (int peer = 0; peer < mesh_.size(); ++peer) lose(peer, "the group was destroyed");
  for (const PostedReceive& posted : receives_) {
    posted.receive.state->finish(backend_error("recv: the group was destroyed"));
  }
}

void Mailbox::wake() {
  if (!stop_ && !thread_.joinable()) thread_ = std::thread([this] { serve(); });
  const std::byte one{1};
  wake_writer_.try_send({&one, 1});
}

void Mailbox::post(Send send) {
  const std::lock_guard lock(mutex_);
  Peer& peer = peers_[static_cast<size_t>(send.peer)];
  if (!peer.lost.empty()) {
    send.state->finish(backend_error(lost_text("send", send.peer, peer.lost)));
    return;
  }
  const Deadline deadline(send.timeout);
  peer.sends.push_back({std::move(send), deadline});
  wake();
}

void Mailbox::post(Receive receive) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(arrived_, [&](const Arrived& message) {
    return matches(receive, message.peer, message.head);
  });
  if (found != arrived_.end()) {
    finish(receive, found->peer, found->head, found->bytes);
    arrived_.erase(found);
    return;
  }
  if (receive.peer >= 0) {
    if (const std::string& lost = peers_[static_cast<size_t>(receive.peer)].lost; !lost.empty()) {
      receive.state->finish(backend_error(lost_text("recv", receive.peer, lost)));
      return;
    }
  }
  const Deadline deadline(receive.timeout);
  receives_.push_back({std::move(receive), deadline});
  wake();
}

bool Mailbox::matches(const Receive& receive, int peer, const MessageHead& head) {
  return (receive.peer < 0 || receive.peer == peer) &&
         receive.head.operation.number == head.operation.number;
}

std::optional<Mailbox::PostedReceive> Mailbox::take_match(int peer, const MessageHead& head) {
  const auto found = std::ranges::find_if(
      receives_, [&](const PostedReceive& posted) { return matches(posted.receive, peer, head); });
  if (found == receives_.end()) return std::nullopt;
  PostedReceive out = std::move(*found);
  receives_.erase(found);
  return out;
}

void Mailbox::serve() noexcept {
  for (;;) {
    try {
      serve_once();
    } catch (const std::exception&) {
      std::this_thread::sleep_for(milliseconds(10));  // no memory for a moment
    }
    const std::lock_guard lock(mutex_);
    if (stop_) return;
  }
}

void Mailbox::serve_once() {
  std::vector<pollfd> sockets{{wake_reader_.fd(), POLLIN, 0}};
  auto until = Clock::now() + std::chrono::minutes(10);
  {
    const std::lock_guard lock(mutex_);
    bool moved = true;
    while (moved) {
      moved = false;
      for (int peer = 0; peer < mesh_.size(); ++peer) {
        if (peer == mesh_.rank() || !peers_[static_cast<size_t>(peer)].lost.empty()) continue;
        try {
          moved = send_some(peer) || moved;
          moved = receive_some(peer) || moved;
        } catch (const DistNetworkError& e) {
          lose(peer, e.what());
        }
      }
    }
    end_late();
    for (int peer = 0; peer < mesh_.size(); ++peer) {
      const Peer& p = peers_[static_cast<size_t>(peer)];
      if (peer == mesh_.rank() || !p.lost.empty()) continue;
      const short events = p.sends.empty() ? POLLIN : POLLIN | POLLOUT;
      sockets.push_back({mesh_.socket(peer).fd(), events, 0});
      if (p.receive) until = std::min(until, p.receive->deadline.end());
      for (const PostedSend& posted : p.sends) until = std::min(until, posted.deadline.end());
    }
    for (const PostedReceive& posted : receives_) until = std::min(until, posted.deadline.end());
  }
  wait_for_events(sockets, Deadline(std::chrono::ceil<milliseconds>(until - Clock::now())));
  std::array<std::byte, 256> woken;
  while (wake_reader_.try_receive(woken) == woken.size()) {
  }
}

bool Mailbox::send_some(int peer) {
  std::deque<PostedSend>& sends = peers_[static_cast<size_t>(peer)].sends;
  bool moved = false;
  while (!sends.empty()) {
    PostedSend& posted = sends.front();
    const size_t whole = sizeof(MessageHead) + posted.send.values.bytes().size();
    const size_t sent = mesh_.socket(peer).try_send_after(
        std::as_bytes(std::span(&posted.send.head, 1)), posted.send.values.bytes(), posted.moved);
    posted.moved += sent;
    moved = moved || sent > 0;
    if (posted.moved < whole) break;
    posted.send.state->finish(nullptr);
    sends.pop_front();
  }
  return moved;
}

bool Mailbox::receive_some(int peer) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  const auto head = std::as_writable_bytes(std::span(&p.head, 1));
  bool any = false;
  for (;;) {
    size_t got = 0;
    if (p.moved < head.size()) {
      got = mesh_.socket(peer).try_receive(head.subspan(p.moved));
      p.moved += got;
      if (p.moved == head.size()) begin_message(peer);
    } else {
      const size_t have = p.moved - head.size();
      if (p.receive) {
        got = mesh_.socket(peer).try_receive(p.receive->receive.values.bytes().subspan(have));
      } else {
        const size_t left = static_cast<size_t>(p.head.bytes) - have;
        p.bytes.resize(have + std::min(left, kStep));
        got = mesh_.socket(peer).try_receive(std::span(p.bytes).subspan(have));
        p.bytes.resize(have + got);
      }
      p.moved += got;
    }
    any = any || got > 0;
    if (p.moved >= head.size() && p.moved - head.size() == p.head.bytes) {
      end_message(peer);
      any = true;
    } else if (got == 0) {
      return any;
    }
  }
}

// Where the bytes of a message go, whose head has come.
void Mailbox::begin_message(int peer) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  if (p.head.operation.kind != OpKind::send) {
    throw_error<DistNetworkError>("it sent what is no message");
  }
  const auto found = std::ranges::find_if(receives_, [&](const PostedReceive& posted) {
    return matches(posted.receive, peer, p.head);
  });
  if (found != receives_.end() && found->receive.values.bytes().size() == p.head.bytes) {
    p.receive = take_match(peer, p.head);
  }
}

void Mailbox::end_message(int peer) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  std::vector<std::byte> bytes = std::exchange(p.bytes, {});
  std::optional<PostedReceive> posted = std::exchange(p.receive, std::nullopt);
  p.moved = 0;
  if (posted) {
    finish(posted->receive, peer, p.head, posted->receive.values.bytes());
  } else if ((posted = take_match(peer, p.head))) {  // it was asked for meanwhile
    finish(posted->receive, peer, p.head, bytes);
  } else {
    arrived_.push_back({peer, p.head, std::move(bytes)});
  }
}

void Mailbox::lose(int peer, const std::string& why) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  p.lost = why;
  for (const PostedSend& posted : p.sends) {
    posted.send.state->finish(backend_error(lost_text("send", peer, why)));
  }
  p.sends.clear();
  const std::exception_ptr error = backend_error(lost_text("recv", peer, why));
  if (p.receive) p.receive->receive.state->finish(error);
  p.receive.reset();
  receives_.remove_if([&](const PostedReceive& posted) {
    if (posted.receive.peer != peer) return false;
    posted.receive.state->finish(error);
    return true;
  });
}

void Mailbox::end_late() {
  receives_.remove_if([](const PostedReceive& posted) {
    if (!posted.deadline.is_over()) return false;
    posted.receive.state->finish(
        backend_error(concat("recv: nothing came within ", text_of(posted.receive.timeout), " (",
                             posted.receive.head.operation, ")")));
    return true;
  });
  for (int peer = 0; peer < mesh_.size(); ++peer) {
    Peer& p = peers_[static_cast<size_t>(peer)];
    const bool send_is_late = !p.sends.empty() && p.sends.front().deadline.is_over();
    if (send_is_late || (p.receive && p.receive->deadline.is_over())) {
      mesh_.socket(peer).shut_down();  // half a message went over it
      lose(peer, "a message was under way for too long");
    }
  }
}

}  // namespace kiln::distributed
