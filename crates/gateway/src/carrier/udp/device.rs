//! A carrier that uses one network interface only, which may come and go: a modem that is plugged in, a link that is set up anew.
//!
//! The kernel binds a socket to an interface's number, and an interface that is there again has another. So the number is looked at now and then, and the socket
//! is opened anew when it changes. Nothing is sent meanwhile.

use std::ffi::CString;
use std::io;
use std::net::SocketAddr;

use base::{Duration, Instant};

use super::{UdpCarrier, bound, bound_to, prepared};

/// The interface of a carrier.
#[derive(Debug)]
pub(super) struct Device {
    name: CString,
    local: SocketAddr,
    /// Its number; zero while it is away.
    index: u32,
    /// Whether it was there when that was told last.
    told: bool,
    look_at: Instant,
}

/// Between two looks. Ours: a way that is there again is to be used soon, and a look is two system calls.
const INTERVAL: Duration = Duration::from_millis(500);

impl UdpCarrier {
    /// A carrier that listens at `local` and uses `device` only, if one is named. While there is no such device nothing passes.
    ///
    /// # Errors
    /// As [`UdpCarrier::bind`].
    pub fn bind_at(local: SocketAddr, device: Option<&str>) -> io::Result<Self> {
        let Some(device) = device else { return Self::bind(local) };
        let name = CString::new(device)?;
        let index = index_of(&name);
        let mut carrier = Self::around(opened(local, device, index)?)?;
        carrier.device = Some(Device { name, local, index, told: true, look_at: Instant::ZERO });
        Ok(carrier)
    }

    /// Whether there is no such device as it is to use.
    pub(super) fn is_away(&self) -> bool {
        self.device.as_ref().is_some_and(|device| device.index == 0)
    }

    /// When [`UdpCarrier::tend`] wants to be called.
    pub(in crate::carrier) fn poll_timeout(&self) -> Option<Instant> {
        self.device.as_ref().map(|device| device.look_at)
    }

    /// Looks for the device if it is time; whether it is there now, if that is news.
    pub(in crate::carrier) fn tend(&mut self, now: Instant) -> Option<bool> {
        let device = self.device.as_mut().filter(|device| device.look_at <= now)?;
        device.look_at = now + INTERVAL;
        let index = index_of(&device.name);
        if index != device.index {
            // It may have gone again meanwhile, which the next look tells.
            let socket = opened(device.local, device.name.to_str().unwrap_or_default(), index).ok()?;
            let state = prepared(&socket).ok()?;
            device.index = index;
            (self.socket, self.state) = (socket, state);
        }
        let is_there = index != 0;
        (is_there != core::mem::replace(&mut device.told, is_there)).then_some(is_there)
    }
}

/// A socket on a device; on none while that is away, and at no port of ours.
fn opened(local: SocketAddr, device: &str, index: u32) -> io::Result<std::net::UdpSocket> {
    match index {
        0 => bound(SocketAddr::new(local.ip(), 0), false),
        _ => bound_to(local, Some(device), false),
    }
}

/// The number of a device; zero if there is none of this name.
fn index_of(name: &CString) -> u32 {
    // SAFETY: the name ends with a zero byte and outlives the call.
    unsafe { libc::if_nametoindex(name.as_ptr()) }
}
