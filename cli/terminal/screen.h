// The whole terminal for a display that is drawn again and again, and the keys pressed meanwhile.

#ifndef CLI_TERMINAL_SCREEN_H_
#define CLI_TERMINAL_SCREEN_H_

#include <termios.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "cli/terminal/environment.h"

namespace assay::cli {

// From Open to its end the terminal shows this alone, without cursor and without what is typed;
// then it is as it was. Ctrl-C stays a signal; Ctrl-Z does nothing. Not thread-safe.
class Screen {
 public:
  struct Size {
    int width = 80;  // columns
    int height = 24;
  };

  // On the terminal that is open at `out_fd` and that `env` writes to; keys come from `in_fd`.
  // Null if `out_fd` is no terminal, or one that cannot be drawn on (TERM=dumb). Where `in_fd` is
  // none there are no keys. `env` must outlive the screen.
  static std::unique_ptr<Screen> Open(const Environment* env, int in_fd, int out_fd);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // As it is now.
  Size size() const;

  // Shows these lines from the top and nothing else; what is too high is left out. Each is text for
  // a SafeStream, not wider than the screen.
  void Draw(const std::vector<std::string>& lines);

  // Waits for a key, until `wake_fd` is readable, or for `patience`: the key, or 0.
  char WaitForKey(int wake_fd, absl::Duration patience);

 private:
  Screen(const Environment* env, int in_fd, int out_fd)
      : env_(*env), in_fd_(in_fd), out_fd_(out_fd) {}

  const Environment& env_;
  const int in_fd_;  // -1: no keys
  const int out_fd_;
  termios before_{};
};

}  // namespace assay::cli

#endif  // CLI_TERMINAL_SCREEN_H_
