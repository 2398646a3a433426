// The Python client, built as a wheel and installed, against a coordinator with the published round
// v0.7: with Debian's packages, by a Unix socket, where its notebook is executed, too; and with
// those that PyPI has now, over TLS with a token. What is asked is in tests/cli/python.

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

#include "tests/e2e/site.h"
#include "tests/support/official_checker.h"

namespace assay::testing {
namespace {

class PythonClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string archive = OraclePath("hpc_results_v0.7.tar.xz");
    if (archive.empty()) GTEST_SKIP() << "the published logs are not in ASSAY_ORACLE_DIR";
    if (const Outcome found = site_.RunProgram({"/usr/bin/python3", "-c", kImports});
        found.exit_code != 0) {
      ASSERT_EQ(std::getenv("CI"), nullptr) << found.Text();
      GTEST_SKIP() << "Debian's packages for Python are missing: " << found.err;
    }
    coordinator_ = std::make_unique<Coordinator>(&site_);
    ProvideBeacons(site_, "small", 32, 8);
    Expect({"/bin/tar", "-xJf", archive, "-C", site_.Path("cache")});
    Expect({site_.Program("assay"), "import", site_.Path("cache/hpc_results_v0.7"), "--round",
            "v0.7"});
  }

  void Expect(const std::vector<std::string>& argv) const {
    const Outcome outcome = site_.RunProgram(argv);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.Text();
  }
  // From a copy, since building leaves files beside the sources.
  void BuildWheel() const {
    const std::string tree = site_.Path("tree");
    Expect({"/bin/mkdir", "-p", absl::StrCat(tree, "/cli")});
    Expect({"/bin/cp", "-r", absl::StrCat(SOURCES, "/proto"), tree});
    Expect({"/bin/cp", "-r", absl::StrCat(SOURCES, "/cli/python"), absl::StrCat(tree, "/cli")});
    Expect({"/usr/bin/python3", "-m", "venv", "--system-site-packages", site_.Path("debian")});
    Expect({site_.Path("debian/bin/pip"), "wheel", "--quiet", "--no-deps", "--no-build-isolation",
            "--wheel-dir", site_.Path("wheel"), absl::StrCat(tree, "/cli/python")});
  }
  void Install(const std::string& python) const {
    Expect({"/bin/sh", "-c",
            absl::StrCat(python, " -m pip install --quiet --no-deps --force-reinstall ",
                         site_.Path("wheel"), "/*.whl")});
  }
  void Test(const std::string& python, const std::vector<std::string>& settings) const {
    std::vector<std::string> argv = {"/usr/bin/env"};
    argv.insert(argv.end(), settings.begin(), settings.end());
    argv.insert(argv.end(), {absl::StrCat("ASSAY=", site_.Program("assay")), python,
                             absl::StrCat(SOURCES, "/tests/cli/python/client_test.py")});
    Expect(argv);
  }

  static constexpr char kImports[] =
      "import cryptography, grpc, pandas, nbclient, ipykernel, matplotlib, wheel";
  Site site_;
  std::unique_ptr<Coordinator> coordinator_;
};

TEST_F(PythonClientTest, SaysWhatTheCommandLineSays) {
  BuildWheel();
  const std::string debian = site_.Path("debian/bin/python3");
  Install(debian);
  // It goes on while it is watched.
  Expect(
      {site_.Program("assay"), "submit", WriteSubmission(site_, "small.toml", {.epochs_max = 2})});
  Test(debian, {absl::StrCat("NOTEBOOK=", SOURCES, "/cli/python/scaling.ipynb"), "WATCHED=e-16"});

  std::string why_not;
  const std::string newest = ProvidePython(
      {.folder = "python_client",
       .import = "grpc",
       .packages = {"grpcio==1.85.1", "protobuf==7.36.2", "pandas==3.1.1", "cryptography==50.0.2"}},
      &why_not);
  if (newest.empty()) GTEST_SKIP() << why_not;
  Install(newest);
  const std::string token = site_.Path("token");
  Expect({"/bin/sh", "-c",
          absl::StrCat(site_.Program("assay"),
                       " admin token create --principal bob --role reviewer > ", token)});
  Test(newest, {"-u", "ASSAY_SOCKET", absl::StrCat("ASSAY_SERVER=", coordinator_->address()),
                absl::StrCat("ASSAY_CA=", site_.Path("etc/ca.crt")),
                absl::StrCat("ASSAY_TOKEN_FILE=", token), "NOTEBOOK=", "WATCHED="});
}

}  // namespace
}  // namespace assay::testing
