#include "kiln/io/atomic_file.h"

#include <chrono>
#include <csignal>

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kiln/core/error.h"
#include "kiln/io/input_file.h"
#include "kiln/io/safetensors.h"
#include "tests/support/temp_dir.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::io;
using kiln::test::message_of;
using kiln::test::read_bytes;
using kiln::test::TempDir;
using kiln::test::write_bytes;

namespace {

// While it lives, files cannot grow past `bytes`: a full disk for anyone, root included.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    previous_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &previous_);
    const rlimit limit{bytes, previous_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &previous_);
    std::signal(SIGXFSZ, previous_handler_);
  }

 private:
  rlimit previous_{};
  void (*previous_handler_)(int) = nullptr;
};

}  // namespace

TEST_CASE("AtomicFile: new and old content") {
  TempDir dir;
  const std::string path = dir.path("f");
  write_file_atomically("test", path, "first");
  CHECK(read_bytes(path) == "first");
  AtomicFile file("test", path);
  file.write("sec");
  CHECK(read_bytes(path) == "first");
  file.write("ond");
  file.commit();
  CHECK(read_bytes(path) == "second");
  CHECK(dir.names() == std::vector<std::string>{"f"});
  CHECK_THROWS_AS(file.commit(), IoError);
  CHECK_THROWS_AS(file.write("x"), IoError);
  CHECK(read_bytes(path) == "second");
}

TEST_CASE("AtomicFile: without commit nothing happened") {
  TempDir dir;
  write_bytes(dir.path("f"), "old");
  {
    AtomicFile file("test", dir.path("f"));
    file.write("new");
    AtomicFile other("test", dir.path("g"));
  }
  CHECK(read_bytes(dir.path("f")) == "old");
  CHECK(dir.names() == std::vector<std::string>{"f"});
}

TEST_CASE("AtomicFile: a full disk leaves the old file and no remains") {
  TempDir dir;
  const std::string path = dir.path("model.safetensors");
  save_safetensors(path, {{"w", TensorData(std::vector<float>{1, 2}, Shape{2})}});
  const std::string before = read_bytes(path);
  const TensorData large(std::vector<float>(100'000, 1.0f), Shape{100'000});
  {
    const FileSizeLimit limit(4096);
    const std::string message = message_of<IoError>([&] {
      save_safetensors(path, {{"w", large}});
    });
    CHECK(message.find(path) != std::string::npos);
    CHECK(message.find("too large") != std::string::npos);
  }
  CHECK(read_bytes(path) == before);
  CHECK(dir.names().size() == 1);
  save_safetensors(path, {{"w", large}});
  CHECK(load_safetensors(path).tensors[0].second.numel() == 100'000);
}

TEST_CASE("AtomicFile: paths that cannot be written") {
  TempDir dir;
  const NamedTensors tensors{{"w", TensorData(std::vector<float>{1}, Shape{1})}};
  for (const std::string& path :
       {dir.path("none/f"), dir.path(), dir.path("none/"), std::string(), std::string("/proc/f"),
        std::string("/dev/full"), std::string("/dev/null"), dir.path(std::string(300, 'n'))}) {
    CAPTURE(path);
    const std::string message = message_of<IoError>([&] { save_safetensors(path, tensors); });
    CHECK(message.find("save_safetensors: ") == 0);
    CHECK(message.find("'" + path + "'") != std::string::npos);
  }
  struct stat status {};
  REQUIRE(::stat("/dev/full", &status) == 0);
  CHECK(S_ISCHR(status.st_mode));
  CHECK(dir.names().empty());
}

TEST_CASE("AtomicFile: protected folders and files stay as they are") {
  if (::geteuid() == 0) {
    MESSAGE("skipped: nothing is protected from root");
    return;
  }
  TempDir dir;
  write_bytes(dir.path("f"), "old");
  ::chmod(dir.path("f").c_str(), 0444);
  CHECK_THROWS_AS(write_file_atomically("test", dir.path("f"), "new"), IoError);
  ::chmod(dir.path("f").c_str(), 0644);
  ::chmod(dir.path().c_str(), 0555);
  CHECK_THROWS_AS(write_file_atomically("test", dir.path("f"), "new"), IoError);
  CHECK_THROWS_AS(write_file_atomically("test", dir.path("g"), "new"), IoError);
  ::chmod(dir.path().c_str(), 0755);
  CHECK(read_bytes(dir.path("f")) == "old");
}

TEST_CASE("AtomicFile: permissions stay, links are followed, long names fit") {
  TempDir dir;
  write_bytes(dir.path("f"), "old");
  ::chmod(dir.path("f").c_str(), 0640);
  std::filesystem::create_symlink("f", dir.path("link"));
  write_file_atomically("test", dir.path("link"), "new");
  CHECK(std::filesystem::is_symlink(dir.path("link")));
  CHECK(read_bytes(dir.path("f")) == "new");
  struct stat status {};
  ::stat(dir.path("f").c_str(), &status);
  CHECK((status.st_mode & 0777) == 0640);

  const std::string name(255, 'n');
  write_file_atomically("test", dir.path(name), "new");
  CHECK(read_bytes(dir.path(name)) == "new");
}

TEST_CASE("AtomicFile: a name without a folder is in the current one") {
  TempDir dir;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(dir.path());
  write_file_atomically("test", "f", "new");
  std::filesystem::current_path(before);
  CHECK(read_bytes(dir.path("f")) == "new");
}

namespace {

// A child that writes a part of a file and then waits for its end.
class Writer {
 public:
  explicit Writer(const std::string& path) {
    int ready[2];
    REQUIRE(::pipe(ready) == 0);
    child_ = ::fork();
    if (child_ == 0) {
      AtomicFile file("test", path);
      file.write("half of it");
      static_cast<void>(!::write(ready[1], "x", 1));
      ::pause();
      ::_exit(0);
    }
    char byte = 0;
    REQUIRE(::read(ready[0], &byte, 1) == 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  void kill() {
    if (child_ == 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = 0;
  }
  ~Writer() { kill(); }

 private:
  pid_t child_ = 0;
};

}  // namespace

TEST_CASE("AtomicFile: the next save removes what a killed one left, and nothing else") {
  TempDir dir;
  const std::string path = dir.path("m.pt");
  write_bytes(dir.path(".m.pt.notes"), "mine");
  write_bytes(dir.path(".m.pt.99999999-1.tmpx"), "mine");
  write_bytes(dir.path(".other.99999999-1.tmp"), "of another name");
  Writer alive(path);
  Writer dead(path);
  dead.kill();
  CHECK(dir.names().size() == 5);
  write_file_atomically("test", path, "new");
  CHECK(read_bytes(path) == "new");
  // The one that is still being written stays.
  CHECK(dir.names().size() == 5);
  alive.kill();
  write_file_atomically("test", path, "newer");
  CHECK(dir.names().size() == 4);
  CHECK(std::filesystem::exists(dir.path(".other.99999999-1.tmp")));
  write_file_atomically("test", dir.path("other"), "x");
  CHECK(!std::filesystem::exists(dir.path(".other.99999999-1.tmp")));
}

TEST_CASE("AtomicFile: a temporary of a process number that is in use again goes after a day") {
  TempDir dir;
  const std::string old = write_bytes(dir.path(concat(".f.", ::getppid(), "-0.tmp")), "x");
  write_file_atomically("test", dir.path("f"), "a");
  CHECK(std::filesystem::exists(old));
  std::filesystem::last_write_time(
      old, std::filesystem::file_time_type::clock::now() - std::chrono::hours(25));
  write_file_atomically("test", dir.path("f"), "b");
  CHECK(!std::filesystem::exists(old));
}

TEST_CASE("AtomicFile: a save is killed at any step, and the old content or the new is there") {
  static int left;
  for (int step = 0; step < 20; ++step) {
    TempDir dir;
    const std::string path = write_bytes(dir.path("f"), "old");
    const pid_t child = ::fork();
    if (child == 0) {
      left = step;
      io::detail::file_step = [](const char*) {
        if (--left < 0) ::_exit(9);
      };
      write_file_atomically("test", path, "new");
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    const bool whole = WEXITSTATUS(status) == 0;
    CHECK(read_bytes(path) == (whole ? "new" : "old"));
    write_file_atomically("test", path, "next");
    CHECK(dir.names().size() == 1);
    if (whole) {
      CHECK(step == 4);  // open, write, sync, rename
      break;
    }
  }
}

TEST_CASE("AtomicFile: a name with a zero byte is no shorter name") {
  TempDir dir;
  const std::string path = dir.path("f") + std::string("\0g", 2);
  const std::string message =
      message_of<IoError>([&] { write_file_atomically("test", path, "x"); });
  CHECK(message.find("zero byte") != std::string::npos);
  CHECK(message_of<IoError>([&] { InputFile("test", path); }).find("zero byte") !=
        std::string::npos);
  CHECK(dir.names().empty());
}
