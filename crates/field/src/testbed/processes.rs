//! Processes that were started: known by pid and start time, so that no other is ever ended.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::process::Child;

use base::{Duration, Instant};
use serde::{Deserialize, Serialize};

use gateway::clock::{Clock, sleep};

/// A process and when it started, in the kernel's ticks since boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its pid.
    pub pid: u32,
    started: u64,
}

/// How long a process may take to end when asked.
const PATIENCE: Duration = Duration::from_secs(5);

impl Process {
    /// A child that was just started.
    ///
    /// # Errors
    /// It has gone already.
    pub fn of_child(child: &Child) -> io::Result<Self> {
        let (started, _) = stat(child.id()).ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { pid: child.id(), started })
    }

    /// The process that has this pid now, if there is one.
    #[must_use]
    pub fn of_pid(pid: u32) -> Option<Self> {
        let (started, state) = stat(pid)?;
        (state != 'Z').then_some(Self { pid, started })
    }

    /// Whether it runs still; one that has ended but was not waited for does not.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        stat(self.pid).is_some_and(|(started, state)| started == self.started && state != 'Z')
    }

    /// Ends it at once, without a chance to tidy up.
    ///
    /// # Errors
    /// No right.
    pub fn kill(&self) -> io::Result<()> {
        self.signal(libc::SIGKILL)
    }

    /// Asks a gateway to read its configuration again.
    ///
    /// # Errors
    /// No right.
    pub(crate) fn reload(&self) -> io::Result<()> {
        self.signal(libc::SIGHUP)
    }

    /// Sends it a signal, if it is alive.
    fn signal(&self, signal: libc::c_int) -> io::Result<()> {
        // SAFETY: the call takes integers only.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, self.pid as libc::pid_t, 0) };
        if fd < 0 {
            return Ok(());
        }
        // SAFETY: the descriptor was just opened and has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
        // The descriptor holds on to one process: if it is ours now, the signal reaches no other.
        if !self.is_alive() {
            return Ok(());
        }
        let none = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: the descriptor is open, and no information about the signal is given.
        let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd.as_raw_fd(), signal, none, 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// Asks all to end, and makes those that do not.
pub(crate) fn end_all(processes: &[Process]) {
    for signal in [libc::SIGTERM, libc::SIGKILL] {
        for process in processes {
            // No right to signal what we started ourselves: nothing can be done about it here.
            let _ = process.signal(signal);
        }
        let clock = Clock::start();
        while processes.iter().any(Process::is_alive) {
            if clock.now().saturating_since(Instant::ZERO) > PATIENCE {
                break;
            }
            sleep(Duration::from_millis(5));
        }
    }
}

/// When the process `pid` started, and its state.
fn stat(pid: u32) -> Option<(u64, char)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command's name, in parentheses, may hold anything: what follows its end is in fixed order.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?.chars().next()?;
    // starttime is field 22; the state was field 3.
    Some((fields.nth(18)?.parse().ok()?, state))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn only_the_process_that_was_started_is_ended() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process::of_child(&child).unwrap();
        assert!(process.is_alive());
        let other = Process { started: process.started + 1, ..process };
        assert!(!other.is_alive());
        other.signal(libc::SIGKILL).unwrap();
        assert!(process.is_alive(), "another process with this pid is left alone");
        end_all(&[process]);
        assert!(!process.is_alive());
        child.wait().unwrap();
    }
}
