#include "cli/terminal/interrupt.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdint>

namespace assay::cli {
namespace {

sigset_t Signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

}  // namespace

Interrupt::~Interrupt() {
  if (!listener_.joinable()) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(stop_fd_, &one, sizeof(one));
  listener_.join();
  close(stop_fd_);
}

void Interrupt::Listen() {
  if (listener_.joinable()) return;
  const sigset_t signals = Signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const int signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
  stop_fd_ = eventfd(0, EFD_CLOEXEC);
  listener_ = std::thread([this, signal_fd] {
    pollfd fds[] = {{signal_fd, POLLIN, 0}, {stop_fd_, POLLIN, 0}};
    while (poll(fds, 2, -1) >= 0 && (fds[1].revents & POLLIN) == 0) {
      signalfd_siginfo info;
      if (read(signal_fd, &info, sizeof(info)) != sizeof(info)) continue;
      // The second Ctrl-C of an impatient user ends the program.
      if (IsRaised()) _exit(128 + SIGINT);
      Raise();
    }
    close(signal_fd);
  });
}

}  // namespace assay::cli
