//! What the daemon may do once its devices are open: little.

pub mod files;

use std::ffi::CString;
use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, geteuid, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_keep_capabilities, set_no_new_privs,
};

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
    const fn capabilities(self) -> CapabilitySet {
        match self {
            Self::NetAdmin => CapabilitySet::NET_ADMIN,
            Self::Nothing => CapabilitySet::empty(),
        }
    }
}

/// Nothing that this process executes may have more rights than it has, and no core dump shows its keys.
///
/// # Errors
/// What the kernel says.
pub fn confine() -> io::Result<()> {
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    Ok(set_no_new_privs(true)?)
}

/// Becomes the user `name`, if one is given, with its group and no others. Keeps of all rights only `kept`, whoever it was before, and
/// nothing that it executes has any. Rights belong to threads: those that are started later have what is left here.
///
/// # Errors
/// No such user, or no right to become it.
pub fn give_up(name: Option<&str>, kept: Kept) -> io::Result<()> {
    let user = name.map(look_up).transpose()?;
    empty_bounding_set()?;
    if let Some(user) = user.filter(|user| geteuid().as_raw() != user.id) {
        set_keep_capabilities(true)?;
        // These change all threads that there are; the system calls alone would change one.
        // SAFETY: an empty list is never read.
        check(unsafe { libc::setgroups(0, std::ptr::null()) })?;
        // SAFETY: it takes integers.
        check(unsafe { libc::setresgid(user.group, user.group, user.group) })?;
        // SAFETY: it takes integers.
        check(unsafe { libc::setresuid(user.id, user.id, user.id) })?;
    }
    clear_ambient_capability_set()?;
    keep(kept)?;
    Ok(set_no_new_privs(true)?)
}

/// What no program that is executed can get, whatever its file says: everything. Who may not change that has few rights already, and
/// `no_new_privs` says the same.
fn empty_bounding_set() -> io::Result<()> {
    // Those that the kernel does not know are in no set.
    for capability in (0..u64::BITS).map(|place| CapabilitySet::from_bits_retain(1 << place)) {
        if capability_is_in_bounding_set(capability).unwrap_or(false) {
            match remove_capability_from_bounding_set(capability) {
                Err(Errno::PERM) => return Ok(()),
                result => result?,
            }
        }
    }
    Ok(())
}

/// Gives up all capabilities but one or none, as far as there are any.
fn keep(kept: Kept) -> io::Result<()> {
    let kept = capabilities(None)?.permitted & kept.capabilities();
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    Ok(set_capabilities(None, sets)?)
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
