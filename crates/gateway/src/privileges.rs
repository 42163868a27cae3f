//! What the daemon may do once its devices are open: little.

pub mod files;

use std::ffi::CString;
use std::io;

/// A user of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct User {
    id: libc::uid_t,
    group: libc::gid_t,
}

/// What is kept of root's rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// `CAP_NET_ADMIN`, to make a TUN device anew, and set its addresses, routes and sizes.
    NetAdmin,
    /// Nothing: a device that is open needs no right.
    Nothing,
}

impl Kept {
    /// In the lower half of a set.
    const fn mask(self) -> u32 {
        match self {
            Self::NetAdmin => 1 << 12,
            Self::Nothing => 0,
        }
    }
}

/// `_LINUX_CAPABILITY_VERSION_3`: 64 capabilities, in two halves.
static CAPABILITIES: Header = Header { version: 0x2008_0522, pid: 0 };

/// `struct __user_cap_header_struct`.
#[repr(C)]
struct Header {
    version: u32,
    pid: libc::c_int,
}

/// `struct __user_cap_data_struct`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Capabilities {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Nothing that this process executes may have more rights than it has, and no core dump shows its keys.
///
/// # Errors
/// What the kernel says.
pub fn confine() -> io::Result<()> {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limits are valid for reading.
    check(unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) })?;
    forbid_new()
}

/// Becomes the user `name`, if one is given, with its group and no others. Keeps of all rights only `kept`, whoever it was before, and
/// nothing that it executes has any. Rights belong to threads: those that are started later have what is left here.
///
/// # Errors
/// No such user, or no right to become it.
pub fn give_up(name: Option<&str>, kept: Kept) -> io::Result<()> {
    let user = name.map(look_up).transpose()?;
    empty_bounding_set()?;
    // SAFETY: it has no arguments and cannot fail.
    if let Some(user) = user.filter(|user| unsafe { libc::geteuid() } != user.id) {
        // SAFETY: the option takes integers.
        check(unsafe { libc::prctl(libc::PR_SET_KEEPCAPS, 1_u64) })?;
        // SAFETY: an empty list is never read.
        check(unsafe { libc::setgroups(0, std::ptr::null()) })?;
        // SAFETY: it takes integers.
        check(unsafe { libc::setresgid(user.group, user.group, user.group) })?;
        // SAFETY: it takes integers.
        check(unsafe { libc::setresuid(user.id, user.id, user.id) })?;
    }
    let clear = libc::PR_CAP_AMBIENT_CLEAR_ALL as libc::c_ulong;
    // SAFETY: the option takes integers.
    check(unsafe { libc::prctl(libc::PR_CAP_AMBIENT, clear, 0_u64, 0_u64, 0_u64) })?;
    keep(kept)?;
    forbid_new()
}

/// What no program that is executed can get, whatever its file says: everything. Who may not change that has few rights already, and
/// `no_new_privs` says the same.
fn empty_bounding_set() -> io::Result<()> {
    for capability in 0.. {
        // SAFETY: the option takes an integer.
        match unsafe { libc::prctl(libc::PR_CAPBSET_READ, capability) } {
            0 => {}
            // SAFETY: as above.
            1 => match check(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability) }) {
                Err(error) if error.raw_os_error() == Some(libc::EPERM) => return Ok(()),
                result => result?,
            },
            // The kernel knows no further ones.
            _ => return Ok(()),
        }
    }
    Ok(())
}

/// Gives up all capabilities but one or none, as far as there are any.
fn keep(kept: Kept) -> io::Result<()> {
    let mut sets = [Capabilities::default(); 2];
    // SAFETY: the header is valid for reading, and the sets have the two halves that its version has.
    let result = unsafe { libc::syscall(libc::SYS_capget, &raw const CAPABILITIES, sets.as_mut_ptr()) };
    check(result as libc::c_int)?;
    let kept = sets[0].permitted & kept.mask();
    sets = [Capabilities { effective: kept, permitted: kept, inheritable: 0 }, Capabilities::default()];
    // SAFETY: as above.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw const CAPABILITIES, sets.as_ptr()) };
    check(result as libc::c_int)
}

fn forbid_new() -> io::Result<()> {
    // SAFETY: the option takes integers.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1_u64, 0_u64, 0_u64, 0_u64) })
}

/// Whether the system knows a user of this name.
#[must_use]
pub fn is_user(name: &str) -> bool {
    look_up(name).is_ok()
}

/// The group of this user, if there is one.
#[must_use]
pub fn group_of(name: &str) -> Option<u32> {
    look_up(name).ok().map(|user| user.group)
}

fn look_up(name: &str) -> io::Result<User> {
    let unknown = || io::Error::new(io::ErrorKind::NotFound, "no such user");
    let name = CString::new(name).map_err(|_| unknown())?;
    let mut buffer = [0; 4096];
    let mut found = std::ptr::null_mut();
    // SAFETY: a passwd is plain old data, for which all zeros is a value.
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    // SAFETY: all pointers are valid for the call, the buffer for its length; only `entry`'s numbers are used after it.
    let error = unsafe {
        libc::getpwnam_r(name.as_ptr(), &raw mut entry, buffer.as_mut_ptr(), buffer.len(), &raw mut found)
    };
    match error {
        0 if found.is_null() => Err(unknown()),
        0 => Ok(User { id: entry.pw_uid, group: entry.pw_gid }),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name() {
        assert_eq!(look_up("root").unwrap(), User { id: 0, group: 0 });
        assert_eq!(look_up("no such user").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(look_up("a\0b").unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
