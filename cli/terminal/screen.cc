#include "cli/terminal/screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

namespace assay::cli {
namespace {

// The second screen of a terminal, without cursor, and back (xterm's control sequences, which all
// terminals of today know).
constexpr char kEnter[] = "\033[?1049h\033[?25l";
constexpr char kLeave[] = "\033[?25h\033[?1049l";
constexpr char kHome[] = "\033[H";
constexpr char kClearLine[] = "\033[K";
constexpr char kClearBelow[] = "\033[J";

}  // namespace

std::unique_ptr<Screen> Screen::Open(const Environment* env, int in_fd, int out_fd) {
  if (isatty(out_fd) == 0 || env->Variable("TERM") == "dumb") return nullptr;
  std::unique_ptr<Screen> screen(new Screen(env, isatty(in_fd) == 0 ? -1 : in_fd, out_fd));
  if (screen->in_fd_ >= 0 && tcgetattr(in_fd, &screen->before_) == 0) {
    termios quiet = screen->before_;
    quiet.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    quiet.c_cc[VSUSP] = _POSIX_VDISABLE;
    quiet.c_cc[VMIN] = 1;
    quiet.c_cc[VTIME] = 0;
    tcsetattr(in_fd, TCSANOW, &quiet);
  }
  *env->raw_out << kEnter << std::flush;
  return screen;
}

Screen::~Screen() {
  *env_.raw_out << kLeave << std::flush;
  if (in_fd_ >= 0) tcsetattr(in_fd_, TCSAFLUSH, &before_);
}

Screen::Size Screen::size() const {
  winsize size{};
  if (ioctl(out_fd_, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

void Screen::Draw(const std::vector<std::string>& lines) {
  const size_t count = std::min(lines.size(), static_cast<size_t>(size().height));
  *env_.raw_out << kHome;
  for (size_t i = 0; i < count; ++i) {
    *env_.out << lines[i];
    // Not behind the last line, where it would scroll.
    *env_.raw_out << kClearLine << (i + 1 < count ? "\r\n" : "");
  }
  *env_.raw_out << kClearBelow << std::flush;
}

char Screen::WaitForKey(int wake_fd, absl::Duration patience) {
  pollfd entries[] = {{wake_fd, POLLIN, 0}, {in_fd_, POLLIN, 0}};
  const int64_t left_ms = absl::ToInt64Milliseconds(std::max(patience, absl::ZeroDuration()));
  if (poll(entries, 2, static_cast<int>(left_ms)) <= 0 || entries[1].revents == 0) return 0;
  char key = 0;
  // A terminal that is gone has no more keys, and nobody who would look.
  return read(in_fd_, &key, 1) == 1 ? key : 'q';
}

}  // namespace assay::cli
