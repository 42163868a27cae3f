//! What the daemon may do once its devices are open: little.

use std::ffi::CString;
use std::io;

/// A user of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct User {
    id: libc::uid_t,
    group: libc::gid_t,
}

/// `CAP_NET_ADMIN`: sets addresses and routes.
const NET_ADMIN: u32 = 1 << 12;
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
    // SAFETY: the option takes integers.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1_u64, 0_u64, 0_u64, 0_u64) })
}

/// Becomes the user `name`, with its group and no others, and keeps of all rights only that to set addresses and routes.
///
/// # Errors
/// No such user, or no right to become it.
pub fn drop_to(name: &str) -> io::Result<()> {
    let user = look_up(name)?;
    // SAFETY: it has no arguments and cannot fail.
    if unsafe { libc::geteuid() } != user.id {
        // SAFETY: the option takes integers.
        check(unsafe { libc::prctl(libc::PR_SET_KEEPCAPS, 1_u64) })?;
        // SAFETY: an empty list is never read.
        check(unsafe { libc::setgroups(0, std::ptr::null()) })?;
        // SAFETY: it takes integers.
        check(unsafe { libc::setresgid(user.group, user.group, user.group) })?;
        // SAFETY: it takes integers.
        check(unsafe { libc::setresuid(user.id, user.id, user.id) })?;
    }
    keep_net_admin()
}

/// Gives up all capabilities but one, as far as there are any.
fn keep_net_admin() -> io::Result<()> {
    let mut sets = [Capabilities::default(); 2];
    // SAFETY: the header is valid for reading, and the sets have the two halves that its version has.
    let result = unsafe { libc::syscall(libc::SYS_capget, &raw const CAPABILITIES, sets.as_mut_ptr()) };
    check(result as libc::c_int)?;
    let kept = sets[0].permitted & NET_ADMIN;
    sets = [Capabilities { effective: kept, permitted: kept, inheritable: 0 }, Capabilities::default()];
    // SAFETY: as above.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw const CAPABILITIES, sets.as_ptr()) };
    check(result as libc::c_int)
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
