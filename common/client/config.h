// The settings that people keep for Assay's programs, and where they come from: flag > environment
// > ./assay.toml upward to the repository's root > user's file > system's file > built-in. Every
// value remembers its origin.
//
// A file may also name coordinators: [contexts.prod] with server, socket, ca, token, token_file.
// The key `context` chooses one; its settings stand behind what is given beside the choice.

#ifndef COMMON_CLIENT_CONFIG_H_
#define COMMON_CLIENT_CONFIG_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace assay::client {

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

// What a program gives to read its settings from.
struct ConfigSources {
  std::map<std::string, std::string> flags;      // what it was told directly, by key; may be empty
  std::map<std::string, std::string> variables;  // its environment
  std::string working_directory;                 // the search for assay.toml begins here
  std::string user_path;                         // a file that is not there is passed over
  std::string system_path;
  std::vector<Setting> built_in;
};

// Immutable once loaded, so that threads may share it.
class Config {
 public:
  // Reads all sources. INVALID_ARGUMENT with file:line:column if a file is damaged or has an
  // unknown key, or with its origin if the context that is chosen does not exist.
  static absl::StatusOr<Config> Load(const ConfigSources& sources);

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

 private:
  absl::Status ReadFileLevel(const std::string& path, Setting::Level level);
  absl::Status ApplyContext();

  std::vector<Context> contexts_;
  std::vector<Setting> settings_;  // strongest first
};

// The nearest assay.toml from the working directory up to the repository's root; "" if there is
// none.
std::string NearestProjectFile(const std::string& working_directory);

// `text`, a configuration file, with `key` set to `value` outside of any context; everything else,
// comments included, stays as it is.
std::string WithSetting(absl::string_view text, absl::string_view key, absl::string_view value);

}  // namespace assay::client

#endif  // COMMON_CLIENT_CONFIG_H_
