#include "kiln/distributed/launch.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kiln/core/error.h"
#include "kiln/distributed/socket.h"
#include "kiln/distributed/wait.h"

extern char** environ;

namespace kiln::distributed {

namespace {

constexpr milliseconds kGentle = std::chrono::seconds(5);
constexpr milliseconds kLook{20};
// How long the others have to end by themselves after one failed with status 1: it may have lost
// the one whose failure is the reason.
constexpr milliseconds kReason = std::chrono::seconds(2);

volatile std::sig_atomic_t asked_to_end = 0;

// Notes SIGINT and SIGTERM while it lives.
class Signals {
 public:
  Signals() {
    asked_to_end = 0;
    struct sigaction note {};
    note.sa_handler = [](int signal) { asked_to_end = signal; };
    ::sigaction(SIGINT, &note, &interrupt_);
    ::sigaction(SIGTERM, &note, &terminate_);
  }
  ~Signals() {
    ::sigaction(SIGINT, &interrupt_, nullptr);
    ::sigaction(SIGTERM, &terminate_, nullptr);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

 private:
  struct sigaction interrupt_ {};
  struct sigaction terminate_ {};
};

using Variables = std::map<std::string, std::string>;

Variables own_variables() {
  Variables out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) out[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return out;
}

// Pointers into texts, with a null at the end, as the system wants them.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

class FileActions {
 public:
  FileActions() { ::posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;

  void write_to(const std::string& path) {
    ::posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, path.c_str(),
                                       O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ::posix_spawn_file_actions_adddup2(&actions_, STDOUT_FILENO, STDERR_FILENO);
  }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

pid_t start(const std::vector<std::string>& command, const Variables& variables,
            const std::string& log) {
  std::vector<std::string> arguments = command;
  std::vector<std::string> entries;
  for (const auto& [name, value] : variables) entries.push_back(concat(name, "=", value));
  FileActions actions;
  if (!log.empty()) actions.write_to(log);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, arguments[0].c_str(), actions.get(), nullptr,
                                   pointers(arguments).data(), pointers(entries).data());
  if (error != 0) {
    throw_error<IoError>("launch: cannot start ", command[0],
                         log.empty() ? "" : " with its output in " + log, ": ",
                         std::strerror(error));
  }
  return pid;
}

int status_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

void signal_all(const std::vector<pid_t>& running, int signal) {
  for (const pid_t pid : running) ::kill(pid, signal);
}

// Until all have ended: the status of the first that failed, or 0. One that says more than 1 comes
// before.
int wait_for_all(std::vector<pid_t>& running) {
  int status = 0;
  bool ending = false;
  Deadline gentle(milliseconds(0)), reason(milliseconds(0));
  const auto end = [&](int signal) {
    if (ending) return;
    ending = true;
    gentle = Deadline(kGentle);
    signal_all(running, signal);
  };
  while (!running.empty()) {
    for (size_t i = 0; i < running.size();) {
      int wait_status = 0;
      const pid_t got = ::waitpid(running[i], &wait_status, WNOHANG);
      if (got == 0 || (got < 0 && errno == EINTR)) {
        ++i;
        continue;
      }
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
      const int own = got < 0 ? 1 : status_of(wait_status);
      if (own == 0 || ending) continue;
      if (status == 0) reason = Deadline(kReason);
      if (status <= 1) status = own;
    }
    if (status > 1 || (status == 1 && reason.is_over())) end(SIGTERM);
    if (asked_to_end != 0) {
      if (status == 0) status = 128 + asked_to_end;
      end(asked_to_end);
    }
    if (ending && gentle.is_over()) signal_all(running, SIGKILL);
    if (!running.empty()) std::this_thread::sleep_for(kLook);
  }
  return status;
}

void check(const std::vector<std::string>& command, const LaunchOptions& options) {
  if (command.empty() || command[0].empty()) throw_error<ValueError>("launch: there is no program");
  const auto expect = [](bool fits, const char* what, int value) {
    if (!fits) throw_error<ValueError>("launch: ", what, "; got ", value);
  };
  expect(options.processes >= 1 && options.processes <= 4096,
         "the number of processes must be in [1, 4096]", options.processes);
  expect(options.nodes >= 1, "the number of machines must be positive", options.nodes);
  expect(options.node_rank >= 0 && options.node_rank < options.nodes,
         "the number of this machine must be in [0, nodes)", options.node_rank);
  expect(options.max_restarts >= 0, "max_restarts must not be negative", options.max_restarts);
  if (options.nodes > 1 && options.master_port == 0) {
    throw_error<ValueError>("launch: with several machines the master's port must be given");
  }
}

uint16_t free_port(const std::string& host) { return Listener({host, 0}).port(); }

int launch_once(const std::vector<std::string>& command, const LaunchOptions& options,
                int restarts) {
  const uint16_t port =
      options.master_port != 0 ? options.master_port : free_port(options.master_host);
  Variables variables = own_variables();
  variables["WORLD_SIZE"] = std::to_string(options.processes * options.nodes);
  variables["LOCAL_WORLD_SIZE"] = std::to_string(options.processes);
  variables["GROUP_RANK"] = std::to_string(options.node_rank);
  variables["MASTER_ADDR"] = options.master_host;
  variables["MASTER_PORT"] = std::to_string(port);
  variables["TORCHELASTIC_RESTART_COUNT"] = std::to_string(restarts);
  variables["TORCHELASTIC_RUN_ID"] = "kiln";
  const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
  const unsigned threads = std::max(1u, processors / static_cast<unsigned>(options.processes));
  variables.try_emplace("OMP_NUM_THREADS", std::to_string(threads));
  std::vector<pid_t> running;
  try {
    for (int i = 0; i < options.processes; ++i) {
      const std::string rank = std::to_string(options.node_rank * options.processes + i);
      variables["RANK"] = rank;
      variables["LOCAL_RANK"] = std::to_string(i);
      const std::string log =
          options.log_folder.empty() ? "" : options.log_folder + "/" + rank + ".log";
      running.push_back(start(command, variables, log));
    }
  } catch (...) {
    signal_all(running, SIGKILL);
    for (const pid_t pid : running) ::waitpid(pid, nullptr, 0);
    throw;
  }
  return wait_for_all(running);
}

}  // namespace

int launch(const std::vector<std::string>& command, const LaunchOptions& options) {
  check(command, options);
  const Signals signals;
  int status = 0;
  for (int restarts = 0; restarts <= options.max_restarts; ++restarts) {
    status = launch_once(command, options, restarts);
    if (status == 0 || asked_to_end != 0) break;
  }
  return status;
}

}  // namespace kiln::distributed
