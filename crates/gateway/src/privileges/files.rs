//! What the daemon may do to files: read all that its user may, write in one directory, execute nothing (`landlock(7)`).
//!
//! Without capabilities root is still the owner of most files. This takes that away too.

use std::io;
use std::path::Path;

use landlock::{
    ABI, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus,
};

/// From now on this thread, and those that it starts, write, make and remove files in the directory `writable` alone, and execute nothing.
/// What is open stays open. False if the kernel has no such means (Linux before 5.13, or configured without).
///
/// # Errors
/// No such directory, or what the kernel says.
pub fn restrict(writable: Option<&Path>) -> io::Result<bool> {
    let changes = AccessFs::from_write(LAST) | AccessFs::Execute;
    let ruleset = Ruleset::default().handle_access(changes).and_then(Ruleset::create);
    let mut ruleset = ruleset.map_err(io::Error::other)?;
    if let Some(directory) = writable {
        let replaces = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg | AccessFs::RemoveFile;
        let directory = PathFd::new(directory).map_err(io::Error::other)?;
        ruleset = ruleset.add_rule(PathBeneath::new(directory, replaces)).map_err(io::Error::other)?;
    }
    let status = ruleset.restrict_self().map_err(io::Error::other)?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

/// Linux 6.2: the last that brought rights to change files. An older kernel restricts what it knows.
const LAST: ABI = ABI::V3;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;
    use crate::daemon::replace;

    /// On a thread of its own, which the restriction ends with.
    #[test]
    fn one_directory_can_be_written_and_all_can_be_read() {
        let root = std::env::temp_dir().join(format!("longhaul-files-{}", std::process::id()));
        let [own, others] = ["own", "others"].map(|name| root.join(name));
        for directory in [&own, &others] {
            fs::create_dir_all(directory).unwrap();
            fs::write(directory.join("file"), "before").unwrap();
        }
        let result = std::thread::scope(|scope| {
            let restricted = scope.spawn(|| {
                if !restrict(Some(&own)).unwrap() {
                    return None;
                }
                replace(&own.join("file"), b"after").unwrap();
                fs::remove_file(own.join("file")).unwrap();
                assert_eq!(fs::read(others.join("file")).unwrap(), b"before");
                let denied =
                    |result: io::Result<()>| result.unwrap_err().kind() == io::ErrorKind::PermissionDenied;
                Some([
                    denied(fs::write(others.join("file"), "after")),
                    denied(fs::write(others.join("new"), "after")),
                    denied(fs::remove_file(others.join("file"))),
                    denied(fs::rename(others.join("file"), own.join("file"))),
                    denied(fs::create_dir(own.join("directory"))),
                    denied(Command::new("true").status().map(drop)),
                ])
            });
            restricted.join()
        });
        fs::remove_dir_all(&root).unwrap();
        if let Some(denied) = result.unwrap() {
            assert_eq!(denied, [true; 6]);
        }
    }
}
