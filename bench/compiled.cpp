#include "bench/compiled.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace kiln::bench {

// A program that answers every line with a line.
class CompiledPeer::Process {
 public:
  explicit Process(std::vector<std::string> command) {
    std::array<int, 2> to{}, from{};
    // Closed in the program, but for the two ends that it gets.
    if (pipe2(to.data(), O_CLOEXEC) != 0 || pipe2(from.data(), O_CLOEXEC) != 0) fail(errno);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
    std::vector<char*> arguments;
    for (std::string& word : command) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const int error =
        posix_spawnp(&id_, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(to[0]);
    close(from[1]);
    requests_ = fdopen(to[1], "w");
    replies_ = fdopen(from[0], "r");
    if (error != 0) fail(error);
    std::signal(SIGPIPE, SIG_IGN);  // a program that has died shows when its answer is read
  }

  ~Process() {
    std::fclose(requests_);  // the program ends with its input
    std::fclose(replies_);
    if (id_ > 0) waitpid(id_, nullptr, 0);
  }

  std::string ask(const std::string& line) {
    std::fprintf(requests_, "%s\n", line.c_str());
    std::fflush(requests_);
    std::string reply;
    for (int c = std::fgetc(replies_); c != '\n'; c = std::fgetc(replies_)) {
      if (c == EOF) throw std::runtime_error("torch.compile: the program that runs it has ended");
      reply += static_cast<char>(c);
    }
    if (reply.starts_with("error ")) throw std::runtime_error("torch.compile: " + reply.substr(6));
    return reply;
  }

 private:
  [[noreturn]] static void fail(int error) {
    throw std::runtime_error(std::string("torch.compile: cannot start Python: ") +
                             std::strerror(error));
  }

  pid_t id_ = 0;
  std::FILE* requests_ = nullptr;
  std::FILE* replies_ = nullptr;
};

class CompiledPeer::Half final : public Workload {
 public:
  Half(Process& process, std::vector<float> values)
      : process_(process), values_(std::move(values)) {}

  void run(int64_t iterations) override { process_.ask("run " + std::to_string(iterations)); }
  std::vector<float> check() override { return values_; }

 private:
  Process& process_;
  std::vector<float> values_;
};

CompiledPeer::CompiledPeer(const std::string& python, int threads)
    : process_(std::make_unique<Process>(std::vector<std::string>{
          python, KILN_BENCH_SOURCE "/python/compiled.py", std::to_string(threads)})) {}

CompiledPeer::~CompiledPeer() = default;

std::unique_ptr<Workload> CompiledPeer::make(const std::string& row) {
  std::istringstream reply(process_->ask("make " + row));
  std::string word;
  reply >> word;
  if (word == "none") return nullptr;
  std::vector<float> values;
  for (float value; reply >> value;) values.push_back(value);
  return std::make_unique<Half>(*process_, std::move(values));
}

}  // namespace kiln::bench
