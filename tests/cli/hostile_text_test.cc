// Every text that a coordinator can send holds what would take over a terminal; no command may pass
// any of it on, in whatever shape it prints.

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "google/protobuf/message.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "common/printable.h"
#include "tests/cli/fake_coordinator.h"
#include "tests/cli/invocation.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

// A colour, a clear screen, the clipboard, a bell, a carriage return, a forged line, DEL, an 8-bit
// control sequence and a change of direction.
constexpr char kHostile[] =
    "x\x1b[31m\x1b[2J\x1b]52;c;QQ==\x07\rvalid\nforged\x7f\xC2\x9B"
    "1m\u202E\u2067";

constexpr char kNoUtf8[] =
    "\xFF"
    "b\x9B"
    "2J";

// Fields that the fake or the commands take apart: they keep their values.
bool IsTakenApart(const std::string& name) {
  static const auto* const kNames = new std::set<std::string>{
      "name",      "submission",   "runs",       "workers",
      "run",       "sha256",       "json_value", "system_description_json",
      "body_json", "rules_digest", "digest",     "round",
      "benchmark", "division"};
  return kNames->count(name) > 0;
}

// Puts kHostile behind every other text in `message`.
void Poison(google::protobuf::Message* message) {
  const google::protobuf::Descriptor* type = message->GetDescriptor();
  const google::protobuf::Reflection* reflection = message->GetReflection();
  using Field = google::protobuf::FieldDescriptor;
  for (int i = 0; i < type->field_count(); ++i) {
    const Field* field = type->field(i);
    if (field->is_map()) continue;
    if (field->cpp_type() == Field::CPPTYPE_MESSAGE) {
      if (!field->is_repeated() && reflection->HasField(*message, field))
        Poison(reflection->MutableMessage(message, field));
      for (int k = 0; field->is_repeated() && k < reflection->FieldSize(*message, field); ++k)
        Poison(reflection->MutableRepeatedMessage(message, field, k));
    }
    if (field->cpp_type() != Field::CPPTYPE_STRING || IsTakenApart(field->name())) continue;
    const std::string hostile =
        field->type() == Field::TYPE_BYTES ? absl::StrCat(kHostile, kNoUtf8) : kHostile;
    if (!field->is_repeated()) {
      reflection->SetString(message, field,
                            absl::StrCat(reflection->GetString(*message, field), hostile));
    }
    for (int k = 0; field->is_repeated() && k < reflection->FieldSize(*message, field); ++k) {
      reflection->SetRepeatedString(
          message, field, k,
          absl::StrCat(reflection->GetRepeatedString(*message, field, k), hostile));
    }
  }
}

template <typename T>
void PoisonAll(std::vector<T>* resources) {
  for (T& resource : *resources)
    Poison(&resource);
}

// The escape sequences that our own styling uses.
std::string WithoutColours(const std::string& text) {
  return absl::StrReplaceAll(text, {{"\033[0m", ""},
                                    {"\033[1m", ""},
                                    {"\033[2m", ""},
                                    {"\033[31m", ""},
                                    {"\033[32m", ""},
                                    {"\033[33m", ""}});
}

bool IsHarmless(absl::string_view text) {
  return Printable(absl::StrReplaceAll(text, {{"\n", ""}, {"\t", ""}})) ==
         absl::StrReplaceAll(text, {{"\n", ""}, {"\t", ""}});
}

class HostileTextTest : public ::testing::Test {
 protected:
  void SetUp() override {
    PoisonAll(&coordinator_.entries);
    PoisonAll(&coordinator_.workers);
    PoisonAll(&coordinator_.allocations);
    PoisonAll(&coordinator_.datasets);
    PoisonAll(&coordinator_.tokens);
    v1::Finding finding;
    for (v1::Run& run : coordinator_.runs) {
      *run.add_findings() = finding;
      Poison(&run);
    }
    coordinator_.plan_findings.emplace_back();
    PoisonAll(&coordinator_.plan_findings);
    for (const auto kind : {v1::RunEvent::LOG_LINE, v1::RunEvent::FIRST_TOUCH,
                            v1::RunEvent::PROGRESS, v1::RunEvent::FINDING}) {
      v1::RunEvent event;
      event.set_seq(static_cast<int64_t>(coordinator_.run_events.size()) + 1);
      event.set_kind(kind);
      event.mutable_finding();
      Poison(&event);
      coordinator_.run_events.push_back(event);
    }
    coordinator_.Start();
    run_.env.variables["ASSAY_SOCKET"] = coordinator_.socket_path();
  }

  testing::FakeCoordinator coordinator_;
  testing::Invocation run_;
};

constexpr const char* kCommands[] = {"entry list",
                                     "entry show e-1",
                                     "set list",
                                     "set show s-1",
                                     "run list",
                                     "run show r-1",
                                     "node list",
                                     "node show w0",
                                     "allocation list --all",
                                     "allocation show a-2",
                                     "dataset list",
                                     "dataset show cosmo32",
                                     "score e-1",
                                     "status e-1",
                                     "admin token list",
                                     "why e-2",
                                     "run logs r-1",
                                     "run events r-1",
                                     "run logs r-1 --events",
                                     "compare r-1 r-2 --all",
                                     "entry show e-9",
                                     "run show r-99",
                                     "node show w9",
                                     "dataset remove cosmo32",
                                     "doctor",
                                     "cancel e-1",
                                     "plan hostile.toml",
                                     "submit hostile.toml"};

TEST_F(HostileTextTest, NoCommandPassesItOn) {
  run_.Write(
      "hostile.toml",
      absl::StrCat("round = \"\x1b[31m\nr\xFF\"\n# \u202E\nsystem = \"\\u009b\\u001b[2J\"\n"));
  run_.env.is_out_tty = true;
  for (const char* command : kCommands) {
    for (const char* output : {"table", "wide", "plain", "name", "csv", "json", "ndjson", "yaml"}) {
      for (const char* color : {"never", "always"}) {
        run_.Run(absl::StrCat(command, " -o ", output, " --color ", color));

        EXPECT_TRUE(IsHarmless(WithoutColours(run_.out))) << command << " -o " << output << "\n"
                                                          << Printable(run_.out);
        EXPECT_TRUE(IsHarmless(WithoutColours(run_.err))) << command << " -o " << output << "\n"
                                                          << Printable(run_.err);
        EXPECT_TRUE(color == std::string("always") || IsHarmless(run_.out)) << command;
        EXPECT_FALSE(run_.out.empty() && run_.err.empty()) << command;
      }
    }
  }
}

TEST_F(HostileTextTest, DocumentsHoldItExactly) {
  const std::string system = absl::StrCat("cluster-a", kHostile);

  run_.Run("entry show e-1 -o json");
  EXPECT_EQ(nlohmann::json::parse(run_.out)["system"], system);

  run_.Run("entry show e-1 -o yaml");
  EXPECT_THAT(run_.out, HasSubstr("system: \"cluster-a"));
  EXPECT_TRUE(IsHarmless(run_.out)) << Printable(run_.out);
}

TEST_F(HostileTextTest, ProgramsGetLogsByteForByteAndPeopleDoNot) {
  const std::string line = absl::StrCat(kHostile, kNoUtf8, "\n");

  run_.Run("run logs r-1");
  EXPECT_EQ(run_.out, line);

  run_.env.is_out_tty = true;
  run_.Run("run logs r-1");
  EXPECT_TRUE(IsHarmless(run_.out));
}

TEST_F(HostileTextTest, LinesOfATableCannotBeForged) {
  run_.env.is_out_tty = true;
  run_.Run("entry list -o table");
  EXPECT_EQ(std::count(run_.out.begin(), run_.out.end(), '\n'), 3) << run_.out;

  run_.Run("entry show e-1 -o table");
  EXPECT_EQ(run_.out.find("\nforged"), std::string::npos) << run_.out;
}

}  // namespace
}  // namespace assay
