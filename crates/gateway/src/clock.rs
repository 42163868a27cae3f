//! The real clock: the one place where monotonic time enters.

use std::time;

use base::{Duration, Instant};

/// A monotonic clock that reads [`Instant::ZERO`] when it is started.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: time::Instant,
}

impl Clock {
    /// Starts the clock.
    #[must_use]
    pub fn start() -> Self {
        Self { origin: read() }
    }

    /// The time since the start.
    #[must_use]
    pub fn now(&self) -> Instant {
        let nanos = read().duration_since(self.origin).as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// Lets `span` pass.
#[expect(clippy::disallowed_methods, reason = "this module is the real clock")]
pub fn sleep(span: Duration) {
    std::thread::sleep(time::Duration::from_nanos(span.as_nanos()));
}

#[expect(clippy::disallowed_methods, reason = "this module is the real clock")]
fn read() -> time::Instant {
    time::Instant::now()
}

/// What the system's clock says: date and time in UTC, to the millisecond (RFC 3339).
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this module is the real clock")]
pub fn time_of_day() -> String {
    humantime::format_rfc3339_millis(time::SystemTime::now()).to_string()
}

/// What the system's clock says: seconds since 1970 in UTC; 0 for an earlier time.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this module is the real clock")]
pub fn seconds_of_day() -> f64 {
    time::SystemTime::now().duration_since(time::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// The system's monotonic clock as it reads: the same for every process of a machine (and of a time namespace).
#[must_use]
pub fn monotonic() -> Instant {
    let reading = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Instant::from_nanos(reading.tv_sec as u64 * 1_000_000_000 + reading.tv_nsec as u64)
}
