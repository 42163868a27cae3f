//! What the kernel gives a gateway: rights, the device, offloads, buffers, and its clock.

use std::fs;
use std::net::UdpSocket;

use socket2::SockRef;

use super::Finding;
use crate::carrier::udp::{SOCKET_BUFFER, UdpCarrier, enlarge};
use crate::config::{Carrier, Config};
use crate::tun::Tun;

/// A name that a device of the doctor's own has for a moment.
const DEVICE: &str = "longhaul-doctor";

/// All of it. A device that `is_running` shows by itself that it can be made.
pub(super) fn examine(config: &Config, is_running: bool) -> Vec<Finding> {
    let mut found = Vec::new();
    if !is_running {
        found.push(device());
    }
    found.extend(no_ipv6(config));
    if matches!(config.carrier, Carrier::Udp(_)) {
        found.push(segmentation());
        found.push(buffers());
    }
    found.push(clock());
    found
}

/// Whether a TUN device can be made, with super-segments.
fn device() -> Finding {
    match Tun::open(DEVICE, true) {
        Ok(_) => Finding::Good("TUN devices can be made, and take super-segments (TSO, USO)".to_owned()),
        Err(error) if Tun::open(DEVICE, false).is_ok() => Finding::Advice(format!(
            "TUN devices take no super-segments ({error}): each packet costs a call of its own, which a fast link feels"
        )),
        Err(error) => Finding::Fault(format!("no TUN device can be made: {error}{}", Tun::remedy(&error))),
    }
}

fn no_ipv6(config: &Config) -> Option<Finding> {
    let wants = config.tun.addresses.iter().chain(&config.tun.routes).any(|prefix| prefix.address.is_ipv6());
    let off = fs::read_to_string("/proc/sys/net/ipv6/conf/all/disable_ipv6")
        .map_or(true, |text| text.trim() == "1");
    (wants && off).then(|| {
        Finding::Fault(
            "IPv6 is off on this host, but [tun] has IPv6 addresses or routes; take them out, or: sysctl -w \
             net.ipv6.conf.all.disable_ipv6=0"
                .to_owned(),
        )
    })
}

fn segmentation() -> Finding {
    let limit =
        UdpCarrier::bind((std::net::Ipv4Addr::UNSPECIFIED, 0).into()).map(|carrier| carrier.batch_limit());
    match limit {
        Ok(limit) if limit > 1 => Finding::Good(format!("one call sends up to {limit} datagrams (UDP segmentation)")),
        Ok(_) => Finding::Advice(
            "the kernel has no UDP segmentation (Linux 4.18 has): each datagram costs a call of its own, which a fast link feels"
                .to_owned(),
        ),
        Err(error) => Finding::Fault(format!("no UDP socket can be had: {error}")),
    }
}

/// Whether sockets get the buffers that they ask for.
fn buffers() -> Finding {
    let got = UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
        enlarge(&socket);
        // The kernel tells twice what it was asked for, since half of it is for its own book-keeping.
        Ok(SockRef::from(&socket).recv_buffer_size()? / 2)
    });
    match got {
        Ok(got) if got < SOCKET_BUFFER => Finding::Advice(format!(
            "sockets get buffers of {got} bytes where the gateway asks for {SOCKET_BUFFER}: bursts of a fast link may be dropped; \
             sysctl -w net.core.rmem_max={SOCKET_BUFFER} net.core.wmem_max={SOCKET_BUFFER}"
        )),
        Ok(got) => Finding::Good(format!("sockets get buffers of {got} bytes")),
        Err(error) => Finding::Fault(format!("no UDP socket can be had: {error}")),
    }
}

/// Sessions do not depend on it; logs and metrics that are compared with another host's do.
fn clock() -> Finding {
    // SAFETY: a structure of integers, for which zero is a value, and means that nothing is to be set.
    let mut asked: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the structure outlives the call, which fills it.
    let state = unsafe { libc::adjtimex(&raw mut asked) };
    if state < 0 || asked.status & libc::STA_UNSYNC != 0 {
        return Finding::Advice(
            "the clock is not known to be right (no NTP): sessions do not mind, but times in logs and metrics may not match the peer's"
                .to_owned(),
        );
    }
    Finding::Good("the clock is synchronised".to_owned())
}
