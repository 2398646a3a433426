// What a person's terminal gets, and that it has it back afterwards.

#include "cli/terminal/screen.h"

#include <pty.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "cli/terminal/safe_stream.h"
#include "common/file.h"
#include "common/log.h"

namespace assay::cli {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ScreenTest : public ::testing::Test {
 protected:
  ScreenTest() : safe_(&written_, "") {
    int keys = -1;
    int terminal = -1;
    winsize size{.ws_row = 3, .ws_col = 40, .ws_xpixel = 0, .ws_ypixel = 0};
    CHECK(openpty(&keys, &terminal, nullptr, nullptr, &size) == 0);
    keys_ = UniqueFd(keys);
    terminal_ = UniqueFd(terminal);
    env_.variables["TERM"] = "xterm";
    env_.out = &safe_;
    env_.raw_out = &written_;
  }
  std::unique_ptr<Screen> Open() { return Screen::Open(&env_, terminal_.get(), terminal_.get()); }
  termios Settings() const {
    termios settings{};
    CHECK(tcgetattr(terminal_.get(), &settings) == 0);
    return settings;
  }

  UniqueFd keys_;      // where a person types
  UniqueFd terminal_;  // what the program has
  const UniqueFd wake_{eventfd(0, EFD_CLOEXEC)};
  std::ostringstream written_;
  SafeStream safe_;
  Environment env_;
};

TEST_F(ScreenTest, LeavesTheTerminalAsItWas) {
  const termios before = Settings();
  std::unique_ptr<Screen> screen = Open();
  ASSERT_NE(screen, nullptr);
  EXPECT_EQ(Settings().c_lflag & tcflag_t{ECHO | ICANON}, 0U);
  EXPECT_NE(Settings().c_lflag & tcflag_t{ISIG}, 0U) << "Ctrl-C stays a signal";
  screen.reset();
  EXPECT_EQ(Settings().c_lflag, before.c_lflag);
  EXPECT_EQ(Settings().c_cc[VSUSP], before.c_cc[VSUSP]);
  EXPECT_THAT(written_.str(),
              AllOf(StartsWith("\033[?1049h\033[?25l"), EndsWith("\033[?25h\033[?1049l")));
}

TEST_F(ScreenTest, DrawsNoMoreThanFitsAndOnlyWhatIsHarmless) {
  const std::unique_ptr<Screen> screen = Open();
  EXPECT_EQ(screen->size().width, 40);
  EXPECT_EQ(screen->size().height, 3);
  written_.str("");
  screen->Draw({"one", "a \033]0;name\007 of another's", "three", "four"});
  EXPECT_EQ(written_.str(),
            "\033[Hone\033[K\r\na \\x1b]0;name\\x07 of another's\033[K\r\nthree\033[K\033[J");
}

TEST_F(ScreenTest, WaitsForAKeyOrForNews) {
  const std::unique_ptr<Screen> screen = Open();
  EXPECT_EQ(screen->WaitForKey(wake_.get(), absl::ZeroDuration()), 0);
  ASSERT_EQ(write(keys_.get(), "q", 1), 1);
  EXPECT_EQ(screen->WaitForKey(wake_.get(), absl::Hours(1)), 'q');
  const uint64_t one = 1;
  ASSERT_EQ(write(wake_.get(), &one, sizeof(one)), ssize_t{sizeof(one)});
  EXPECT_EQ(screen->WaitForKey(wake_.get(), absl::Hours(1)), 0);
}

TEST_F(ScreenTest, ATerminalThatIsGoneEndsIt) {
  const std::unique_ptr<Screen> screen = Open();
  keys_.Reset();
  EXPECT_EQ(screen->WaitForKey(wake_.get(), absl::Hours(1)), 'q');
}

TEST_F(ScreenTest, WhereNothingCanBeDrawnThereIsNone) {
  env_.variables["TERM"] = "dumb";
  EXPECT_EQ(Open(), nullptr);
  env_.variables["TERM"] = "xterm";
  EXPECT_EQ(Screen::Open(&env_, terminal_.get(), wake_.get()), nullptr) << "no terminal";
  EXPECT_EQ(written_.str(), "");
}

}  // namespace
}  // namespace assay::cli
