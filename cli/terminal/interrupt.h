// Ctrl-C while a command waits: the wait ends, what was submitted goes on.

#ifndef CLI_TERMINAL_INTERRUPT_H_
#define CLI_TERMINAL_INTERRUPT_H_

#include <thread>

#include "common/client/cancellation.h"

namespace assay::cli {

// Signals are taken over only between Listen and the end, so that all other commands die of Ctrl-C
// as any program does.
class Interrupt : public client::Cancellation {
 public:
  Interrupt() = default;
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // Takes over SIGINT and SIGTERM: the first raises this, the second ends the program. Call before
  // any other thread starts: they inherit the mask.
  void Listen();

 private:
  std::thread listener_;
  int stop_fd_ = -1;
};

}  // namespace assay::cli

#endif  // CLI_TERMINAL_INTERRUPT_H_
