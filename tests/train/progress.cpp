#include "kiln/train/progress.h"

#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

#include "kiln/train/text.h"

using namespace kiln::train;

namespace {

ProgressState half() {
  ProgressState state;
  state.label = "epoch 2/5";
  state.done = 50;
  state.total = 100;
  state.values = {{"loss", "0.1235"}, {"accuracy", "98.76 %"}};
  state.samples_per_second = 4321.4;
  state.seconds_left = 65.2;
  return state;
}

// What a Progress writes to a file, of which nobody is the terminal.
template <class F>
std::string written(ProgressStyle style, F&& f) {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  {
    Progress progress(style, file);
    f(progress);
  }
  std::string text(static_cast<size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  const size_t got = std::fread(text.data(), 1, text.size(), file);
  CHECK(got == text.size());
  std::fclose(file);
  return text;
}

}  // namespace

TEST_CASE("a progress line says it all when there is room") {
  CHECK(format_progress(half(), 120, true) ==
        "epoch 2/5 ████████████████████░░░░░░░░░░░░░░░░░░░░  50 %  loss 0.1235  accuracy 98.76 %  "
        "4,321 samples/s  1:06 left");
  CHECK(format_progress(half(), 100, false) ==
        "epoch 2/5 [###########............]  50 %  loss 0.1235  accuracy 98.76 %  4,321 samples/s"
        "  1:06 left");
}

TEST_CASE("a progress line fits any width") {
  for (int width = 0; width < 130; ++width) {
    CHECK(static_cast<int>(text_width(format_progress(half(), width, true))) <= width);
    CHECK(static_cast<int>(text_width(format_progress(half(), width, false))) <= width);
  }
  const std::string narrow = format_progress(half(), 50, true);
  CHECK(narrow.find("1:06 left") != std::string::npos);
  CHECK(narrow.find("samples/s") == std::string::npos);
  CHECK(format_progress(half(), 20, true) == "epoch 2/5   50 %");
}

TEST_CASE("a progress line before anything is known, and for no batches") {
  ProgressState state;
  state.label = "epoch 1/1";
  state.total = 10;
  CHECK(format_progress(state, 40, false) == "epoch 1/1 [......................]   0 %");
  state.total = 0;
  CHECK(format_progress(state, 40, false) == "epoch 1/1 [......................]   0 %");
}

TEST_CASE("styles: plain where there is no terminal, nothing when quiet") {
  const auto epoch = [](Progress& progress) {
    progress.start("epoch 1/1", 2);
    for (const char* loss : {"0.5", "0.4"}) {
      if (progress.advance(8)) progress.show({{"loss", loss}});
    }
    progress.finish();
    progress.print("done");
  };
  // Two batches take no seconds: no line of their own.
  CHECK(written(ProgressStyle::automatic, epoch) == "done\n");
  CHECK(written(ProgressStyle::plain, epoch) == "done\n");
  CHECK(written(ProgressStyle::quiet, epoch).empty());
  const std::string bar = written(ProgressStyle::bar, epoch);
  CHECK(bar.starts_with("\repoch 1/1 "));
  CHECK(bar.ends_with("\r\x1b[Kdone\n"));
}

TEST_CASE("a bar that nobody finished is removed") {
  const std::string text =
      written(ProgressStyle::bar, [](Progress& p) { p.start("epoch 1/1", 2); });
  CHECK(text.ends_with("\r\x1b[K"));
}

TEST_CASE("a line printed while a bar stands comes above it") {
  const std::string text = written(ProgressStyle::bar, [](Progress& p) {
    p.start("epoch 1/1", 2);
    p.print("note");
    p.finish();
  });
  const auto note = text.find("\r\x1b[Knote\n\repoch 1/1 ");
  CHECK(note != std::string::npos);
}

TEST_CASE("a log line") {
  CHECK(format_progress_plain(half()) ==
        "epoch 2/5  50 %  loss 0.1235  accuracy 98.76 %  4,321 samples/s  1:06 left");
}
