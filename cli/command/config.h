// Where settings come from: flag > environment > ./assay.toml upward to the repository's root >
// user's file > system's file > built-in. Every value remembers its origin.
//
// A file may also name coordinators: [contexts.prod] with server, socket, ca, token, token_file.
// The key `context` chooses one; its settings stand behind what is given beside the choice.

#ifndef CLI_COMMAND_CONFIG_H_
#define CLI_COMMAND_CONFIG_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "cli/terminal/environment.h"

namespace assay::cli {

struct SettingKey {
  const char* name;      // "server"
  const char* variable;  // "ASSAY_SERVER"
  const char* help;
  bool is_secret;  // may not stand in a project's file, and is never printed
};

// Every key, in the order in which `config list` shows them.
const std::vector<SettingKey>& SettingKeys();

struct Setting {
  enum class Level { kFlag, kEnvironment, kProject, kUser, kSystem, kBuiltIn };
  std::string key;
  std::string value;
  std::string origin;  // "--server", "ASSAY_SERVER", "/home/a/.config/assay/config.toml:3"
  Level level = Level::kBuiltIn;
};

class Config {
 public:
  // Reads all sources. `flags`: what the command line gave, by key. INVALID_ARGUMENT with
  // file:line:column if a file is damaged or has an unknown key.
  static absl::StatusOr<Config> Load(const Environment& environment,
                                     const std::map<std::string, std::string>& flags);

  // The value that counts, or nullopt.
  std::optional<Setting> Find(absl::string_view key) const;

  // The winning setting of every key that is set anywhere.
  std::vector<Setting> All() const;

  struct Context {
    std::string name;
    std::vector<Setting> settings;
  };
  // All that the files define, strongest file first; of the same name only the strongest.
  const std::vector<Context>& contexts() const { return contexts_; }

  // Where `config set` writes: the user's file, or the project's (the nearest assay.toml, else one
  // in the working directory).
  static std::string UserPath(const Environment& environment);
  static std::string ProjectPath(const Environment& environment);

 private:
  absl::Status ReadFileLevel(const std::string& path, Setting::Level level);
  absl::Status ApplyContext();

  std::vector<Context> contexts_;
  std::vector<Setting> settings_;  // strongest first
};

// `text`, a configuration file, with `key` set to `value` outside of any context; everything else,
// comments included, stays as it is.
std::string WithSetting(absl::string_view text, absl::string_view key, absl::string_view value);

}  // namespace assay::cli

#endif  // CLI_COMMAND_CONFIG_H_
