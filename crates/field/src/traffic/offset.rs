//! How the clocks of client and server compare, so that a stamp of the one can be read at the other.
//!
//! On one machine both read the same monotonic clock; they know each other by the boot's identifier. Between
//! machines the client asks a few times and takes the fastest answer (as NTP does, RFC 5905 section 8): the
//! server's reading belongs to the middle of the round trip, give or take half of it. Clocks that drift apart
//! while streams last are not followed.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;

use base::{Duration, Instant};

use gateway::clock::monotonic;

/// Questions of one comparison.
const QUESTIONS: usize = 8;
/// Bytes of a boot's identifier.
const BOOT_LEN: usize = 16;

/// The server's clock relative to this end's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offset {
    /// What is added to this end's clock, in nanoseconds.
    pub nanos: i128,
    /// By how much that may be wrong.
    pub uncertainty: Duration,
    /// Whether both ends read the same clock.
    pub same_clock: bool,
}

impl Offset {
    /// The server's reading when this end reads `now`.
    #[must_use]
    pub fn at_server(&self, now: Instant) -> Instant {
        let nanos = i128::from(now.as_nanos()) + self.nanos;
        Instant::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
    }

    /// Nanoseconds from `stamp`, by the server's clock, to `now`, by this end's.
    #[must_use]
    pub fn age(&self, stamp: Instant, now: Instant) -> i128 {
        i128::from(now.as_nanos()) + self.nanos - i128::from(stamp.as_nanos())
    }

    fn between(asked: Instant, server: Instant, answered: Instant) -> Self {
        let round_trip = answered.saturating_since(asked);
        let middle = i128::from(asked.as_nanos()) + i128::from(round_trip.as_nanos() / 2);
        Self {
            nanos: i128::from(server.as_nanos()) - middle,
            uncertainty: Duration::from_nanos(round_trip.as_nanos().div_ceil(2)),
            same_clock: false,
        }
    }
}

/// The client's part, after the request was accepted.
pub(super) fn ask(mut socket: &TcpStream) -> io::Result<Offset> {
    let mut boot = [0; BOOT_LEN];
    socket.read_exact(&mut boot)?;
    let same_boot = boot != [0; BOOT_LEN] && boot == boot_id();
    let mut best: Option<Offset> = None;
    for _ in 0..QUESTIONS {
        let asked = monotonic();
        socket.write_all(&[0])?;
        let mut reading = [0; 8];
        socket.read_exact(&mut reading)?;
        let server = Instant::from_nanos(u64::from_be_bytes(reading));
        let offset = Offset::between(asked, server, monotonic());
        // In a time namespace the clock of the same machine may be another one.
        if same_boot && offset.nanos.unsigned_abs() <= u128::from(offset.uncertainty.as_nanos()) {
            return Ok(Offset { same_clock: true, ..Offset::default() });
        }
        if best.is_none_or(|best| offset.uncertainty < best.uncertainty) {
            best = Some(offset);
        }
    }
    Ok(best.unwrap_or_default())
}

/// The server's part: as many readings as it is asked for, up to what a client needs.
pub(super) fn answer(mut socket: &TcpStream) -> io::Result<()> {
    socket.write_all(&boot_id())?;
    for _ in 0..QUESTIONS {
        let mut question = [0];
        if socket.read(&mut question)? == 0 {
            return Ok(());
        }
        socket.write_all(&monotonic().as_nanos().to_be_bytes())?;
    }
    Ok(())
}

/// The identifier of this machine's boot; zeros where the system has none.
fn boot_id() -> [u8; BOOT_LEN] {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    u128::from_str_radix(&digits, 16).unwrap_or_default().to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_the_middle_of_the_round_trip_give_or_take_half() {
        let at = Instant::from_nanos;
        // The server is 1000 ahead; 30 there and 70 back.
        let offset = Offset::between(at(500), at(1530), at(600));
        assert_eq!((offset.nanos, offset.uncertainty), (980, Duration::from_nanos(50)));
        assert!((offset.nanos - 1000).unsigned_abs() <= 50);
        // A server that booted later.
        let behind = Offset::between(at(1_000_000), at(5), at(1_000_100));
        assert_eq!(behind.nanos, -1_000_045);
        assert_eq!(behind.at_server(at(1_000_050)), at(5));
        assert_eq!(behind.age(at(5), at(1_000_060)), 10);
        assert_eq!(behind.age(at(50), at(1_000_050)), -45);
    }
}
