// What is in a bundle for others, and that no secret is.

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>

#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "cli/admin/debug_archive.h"
#include "common/file.h"
#include "common/secret.h"
#include "tests/cli/fake_coordinator.h"
#include "tests/cli/invocation.h"
#include "tests/support/status_matchers.h"

namespace assay::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;

const char* const kFolder = "assay-debug-20240101T000000Z/";

// The texts of a bundle by their names, without the folder.
std::map<std::string, std::string> Open(const std::string& path) {
  std::map<std::string, std::string> files;
  const std::unique_ptr<archive, decltype(&archive_read_free)> from(archive_read_new(),
                                                                    archive_read_free);
  archive_read_support_filter_zstd(from.get());
  archive_read_support_format_tar(from.get());
  CHECK(archive_read_open_filename(from.get(), path.c_str(), 10240) == ARCHIVE_OK);
  archive_entry* entry = nullptr;
  while (archive_read_next_header(from.get(), &entry) == ARCHIVE_OK) {
    std::string text(static_cast<size_t>(archive_entry_size(entry)), '\0');
    CHECK(archive_read_data(from.get(), text.data(), text.size()) ==
          static_cast<la_ssize_t>(text.size()));
    std::string name = archive_entry_pathname(entry);
    EXPECT_EQ(name.substr(0, std::string(kFolder).size()), kFolder);
    files[name.substr(std::string(kFolder).size())] = text;
  }
  return files;
}

class DebugBundleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    coordinator_.diagnostics.set_configuration("data_directory: \"/var/lib/assay\"\n");
    coordinator_.diagnostics.add_left_out("notify.command");
    coordinator_.diagnostics.set_schema_version(15);
    coordinator_.diagnostics.set_is_database_checked(true);
    coordinator_.diagnostics.set_metrics("assay_ready 1\n");
    v1::AuditEntry row;
    row.set_seq(7);
    row.set_principal("alice");
    row.set_type("SubmissionNoted");
    row.set_body_json("{\"text\": \"what alice says in confidence\"}");
    coordinator_.audit.push_back(row);
    coordinator_.Start();
    run_.env.variables["ASSAY_SOCKET"] = coordinator_.socket_path();
    // A journal of the test's.
    const std::string journal =
        run_.Write("bin/journalctl",
                   absl::StrCat("#!/bin/sh\necho \"$@\"\necho 'level=info token=", token_, "'\n"));
    CHECK(chmod(journal.c_str(), 0755) == 0);
    run_.env.variables["PATH"] = run_.home.Path("bin") + ":/usr/bin:/bin";
  }

  const std::string token_ = MakeToken();
  testing::FakeCoordinator coordinator_;
  testing::Invocation run_;
};

TEST_F(DebugBundleTest, HoldsWhatItLists) {
  ASSERT_EQ(run_.Run("admin debug-bundle out.tar.zst"), ExitStatus::kDone) << run_.err;
  const auto files = Open(run_.home.Path("out.tar.zst"));

  EXPECT_THAT(files,
              ElementsAre(Key("README.txt"), Key("allocations.json"), Key("assayd.log"),
                          Key("audit.json"), Key("configuration.textproto"), Key("database.json"),
                          Key("doctor.json"), Key("entries.json"), Key("metrics.txt"),
                          Key("nodes.json"), Key("runs.json"), Key("version.json")));
  for (const auto& [name, text] : files)
    EXPECT_THAT(run_.out, HasSubstr(kFolder + name));
  EXPECT_THAT(files.at("configuration.textproto"),
              AllOf(HasSubstr("# Left out: notify.command"), HasSubstr("/var/lib/assay")));
  EXPECT_THAT(files.at("database.json"), HasSubstr("\"schema_version\": 15"));
  EXPECT_THAT(files.at("nodes.json"), HasSubstr("\"node\": \"w1\""));
  EXPECT_THAT(files.at("entries.json"), HasSubstr("\"entry\": \"e-2\""));
  EXPECT_THAT(files.at("doctor.json"), HasSubstr("node versions"));
  EXPECT_THAT(files.at("audit.json"), HasSubstr("SubmissionNoted"));
  EXPECT_THAT(files.at("assayd.log"), HasSubstr("--unit=assayd"));
  // The fake coordinator does not measure its disk: the rest is there all the same.
  EXPECT_THAT(files.at("README.txt"), HasSubstr("usage.json: "));
  struct stat info = {};
  ASSERT_EQ(stat(run_.home.Path("out.tar.zst").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(DebugBundleTest, NoSecretIsInIt) {
  const std::string key =
      "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIB\n-----END EC PRIVATE KEY-----\n";
  coordinator_.workers[0].set_state_reason("drained, " + token_);
  coordinator_.entries[0].set_state_reason(key);
  coordinator_.diagnostics.set_metrics(token_);
  ASSERT_EQ(run_.Run("admin debug-bundle out.tar.zst"), ExitStatus::kDone) << run_.err;

  for (const auto& [name, text] : Open(run_.home.Path("out.tar.zst")))
    EXPECT_THAT(text, AllOf(Not(HasSubstr(token_)), Not(HasSubstr("MHcCAQEEIB")),
                            Not(HasSubstr("in confidence"))))
        << name;
}

TEST_F(DebugBundleTest, AFileThatIsThereStays) {
  const std::string path = run_.Write("out.tar.zst", "mine");
  EXPECT_NE(run_.Run("admin debug-bundle out.tar.zst"), ExitStatus::kDone);
  EXPECT_THAT(run_.err, HasSubstr("name another file"));
  EXPECT_THAT(ReadFile(path), testing::IsOkAndHolds("mine"));
}

TEST_F(DebugBundleTest, WithoutAJournalTheRestIsThere) {
  run_.Write("bin/journalctl", "#!/bin/sh\nexit 1\n");
  CHECK(chmod(run_.home.Path("bin/journalctl").c_str(), 0755) == 0);
  ASSERT_EQ(run_.Run("admin debug-bundle"), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(Open(run_.home.Path("assay-debug-20240101T000000Z.tar.zst")).at("README.txt"),
              HasSubstr("assayd.log: journalctl --unit=assayd fails"));
}

TEST(WithoutSecretsTest, TokensAndKeysAreFoundWhereverTheyStand) {
  const std::string token = MakeToken();
  EXPECT_EQ(WithoutSecrets(absl::StrCat("a=", token, " b=\"", token, "\"")),
            "a=(token left out) b=\"(token left out)\"");
  EXPECT_EQ(WithoutSecrets("assay_runs assay_ assay_short234"), "assay_runs assay_ assay_short234");
  EXPECT_EQ(WithoutSecrets("x\n-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\ny"),
            "x\n(key left out)\ny");
  EXPECT_EQ(WithoutSecrets("-----BEGIN RSA PRIVATE KEY-----\nabc"), "(key left out)");
  const std::string certificate = "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n";
  EXPECT_EQ(WithoutSecrets(certificate), certificate);
}

}  // namespace
}  // namespace assay::cli
