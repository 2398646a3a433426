// What a running command works with: surroundings, settings, printer and, once asked for, the
// coordinator.

#ifndef CLI_COMMAND_CONTEXT_H_
#define CLI_COMMAND_CONTEXT_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "cli/terminal/environment.h"
#include "cli/terminal/print.h"
#include "common/client/client.h"
#include "common/client/config.h"

namespace assay::cli {

class Context {
 public:
  Context(Environment* environment, client::Config config, PrintOptions print, bool is_quiet)
      : env_(environment),
        config_(std::move(config)),
        printer_(environment, std::move(print)),
        is_quiet_(is_quiet) {}

  Environment& env() const { return *env_; }
  const client::Config& config() const { return config_; }
  const Printer& printer() const { return printer_; }
  const Style& style() const { return printer_.style(); }
  std::ostream& out() const { return *env_->out; }
  bool is_quiet() const { return is_quiet_; }

  // What changed and what to do next: to stderr, unless -q.
  void Note(absl::string_view text) const;
  // Always to stderr.
  void Warn(absl::string_view text) const;

  // True if a line may be redrawn on stderr: a terminal, and not -q.
  bool CanRedraw() const {
    return env_->is_err_tty && !is_quiet_ && env_->Variable("TERM") != "dumb";
  }

  // The coordinator; resolved and opened on the first call.
  absl::StatusOr<client::Client*> Connect();

 private:
  Environment* const env_;
  const client::Config config_;
  const Printer printer_;
  const bool is_quiet_;
  std::unique_ptr<client::Client> client_;
};

// One line on stderr that is redrawn in place; nothing at all where the context cannot redraw.
class ProgressLine {
 public:
  explicit ProgressLine(const Context* context) : context_(context) {}
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void Draw(absl::string_view text);
  void Clear();

 private:
  const Context* const context_;
  bool is_drawn_ = false;
};

// "[#####.....]": `done` of `total`.
std::string ProgressBar(int64_t done, int64_t total, int width, bool is_utf8);

}  // namespace assay::cli

#endif  // CLI_COMMAND_CONTEXT_H_
