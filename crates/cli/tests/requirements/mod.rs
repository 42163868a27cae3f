//! Tests that need more than a toolchain: they skip where something is missing, and fail where nothing may be.

use std::io::Write as _;

/// Whether the test is to be skipped for this reason, and says so past the test runner's capture.
///
/// # Panics
/// With `LONGHAUL_REQUIRE_ROOT=1`, as in CI, if there is a reason.
pub(crate) fn skipped(test: &str, reason: Option<String>) -> bool {
    let Some(reason) = reason else { return false };
    let required = std::env::var_os("LONGHAUL_REQUIRE_ROOT").is_some_and(|value| value == "1");
    assert!(!required, "{test} cannot run: {reason}");
    // The runner hides what a passing test prints with macros; a direct write it does not.
    let _ = writeln!(std::io::stderr(), "skipped {test}: {reason}");
    true
}
