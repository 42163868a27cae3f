//! Secrets that are written: to files and outputs that only their owner may read.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::Path;

use gateway::privileges;

use super::outcome::show;

/// Writes to a new file with this mode, whatever the umask; none is overwritten. What was begun and failed is removed.
pub(crate) fn write_new(path: &Path, mode: u32, text: &str) -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let permissions = Permissions::from_mode(mode);
    let written = file.set_permissions(permissions).and_then(|()| file.write_all(text.as_bytes()));
    match written.and_then(|()| file.sync_all()) {
        Ok(()) => Ok(file),
        Err(error) => {
            let _ = std::fs::remove_file(path);
            Err(error)
        }
    }
}

/// Whom services run as, by the units that are packaged, and whose group may read what lies in a directory of theirs.
const SERVICE: &str = "longhaul";

/// Writes to a new file that its owner may read. In a directory that belongs to the service's group, and to nobody else's, that group may
/// read it too: so a service finds its keys in `/etc/longhaul`.
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let file = write_new(path, 0o600, text)?;
    let Some(group) = privileges::group_of(SERVICE) else { return Ok(()) };
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let directory = directory.metadata()?;
    let is_private = directory.mode() & 0o007 == 0;
    if is_private && directory.gid() == group {
        // Who may not give a file to that group keeps it.
        if fchown(&file, None, Some(group)).is_ok() {
            file.set_permissions(Permissions::from_mode(0o640))?;
        }
    }
    Ok(())
}

/// Writes to standard output. Shells make files that everybody may read; whoever redirects a secret to one wants that no
/// more than we do.
///
/// # Errors
/// Others can read it, and nothing is written.
pub(crate) fn print(text: &str) -> Result<(), String> {
    make_output_private().map_err(|error| {
        format!(
            "standard output is a file that others may read: {error}; --out FILE makes one that they may not"
        )
    })?;
    show(format_args!("{text}"));
    Ok(())
}

fn make_output_private() -> io::Result<()> {
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let metadata = output.metadata()?;
    if metadata.is_file() && metadata.mode() & 0o077 != 0 {
        output.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(())
}
