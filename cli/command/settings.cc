#include "cli/command/settings.h"

#include <optional>

#include "absl/strings/string_view.h"

#include "common/file.h"

namespace assay::cli {
namespace {

std::optional<client::EndpointSetting> SettingOf(const client::Config& config,
                                                 absl::string_view key) {
  const std::optional<client::Setting> setting = config.Find(key);
  if (!setting.has_value()) return std::nullopt;
  return client::EndpointSetting{setting->value, setting->origin, static_cast<int>(setting->level)};
}

std::optional<client::EndpointSetting> PathSettingOf(const Environment& env,
                                                     const client::Config& config,
                                                     absl::string_view key) {
  std::optional<client::EndpointSetting> setting = SettingOf(config, key);
  if (setting.has_value() && setting->value != "-")
    setting->value = env.AbsolutePath(setting->value);
  return setting;
}

}  // namespace

absl::StatusOr<client::Config> LoadConfig(const Environment& environment,
                                          const std::map<std::string, std::string>& flags) {
  constexpr auto kBuiltIn = client::Setting::Level::kBuiltIn;
  const bool is_tty = environment.is_out_tty;
  return client::Config::Load(
      {.flags = flags,
       .variables = environment.variables,
       .working_directory = environment.working_directory,
       .user_path = UserConfigPath(environment),
       .system_path = environment.system_config_path,
       .built_in = {{"color", "auto", "built-in", kBuiltIn},
                    {"output", is_tty ? "table" : "plain",
                     is_tty ? "built-in (terminal)" : "built-in (pipe)", kBuiltIn}}});
}

std::string UserConfigPath(const Environment& environment) {
  return JoinPath(environment.UserConfigDirectory(), "config.toml");
}

std::string ProjectConfigPath(const Environment& environment) {
  const std::string nearest = client::NearestProjectFile(environment.working_directory);
  return nearest.empty() ? JoinPath(environment.working_directory, "assay.toml") : nearest;
}

client::EndpointSettings EndpointSettingsOf(const Environment& environment,
                                            const client::Config& config) {
  return {.server = SettingOf(config, "server"),
          .socket = PathSettingOf(environment, config, "socket"),
          .ca = PathSettingOf(environment, config, "ca"),
          .token = SettingOf(config, "token"),
          .token_file = PathSettingOf(environment, config, "token_file"),
          .standard_input = environment.in,
          .default_sockets = {JoinPath(environment.RuntimeDirectory(), "assayd.sock"),
                              environment.system_socket_path}};
}

}  // namespace assay::cli
