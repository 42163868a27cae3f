//! How many threads serve peers.

use std::num::NonZero;
use std::thread;

use link::limit::Limit;
use tunnel::config::{Complaint, Place};
use tunnel::worker::MOST_WORKERS;

use super::{Carrier, Config};

/// A number of workers.
pub type Workers = Limit<1, MOST_WORKERS, 1>;

impl Config {
    /// How many workers the gateway has: as many as it says. Else one for each core from three cores up, where there may be several peers
    /// and they share no rate.
    #[must_use]
    pub fn workers(&self) -> u32 {
        self.workers_on(thread::available_parallelism().map_or(1, NonZero::get))
    }

    pub(super) fn workers_on(&self, cores: usize) -> u32 {
        let has_one = self.carriers().iter().any(|carrier| lone(carrier).is_some()) || self.peers.len() == 1;
        match self.workers {
            Some(workers) => workers.get(),
            None if has_one || self.share.rate.is_some() || cores < LEAST_CORES => 1,
            None => u32::try_from(cores).unwrap_or(MOST_WORKERS).min(MOST_WORKERS),
        }
    }

    /// Refuses several workers where only one can be.
    pub(super) fn check_workers(&self, place: Option<&Place>) -> Result<(), Complaint> {
        let Some(several) = self.workers.map(Limit::get).filter(|count| *count > 1) else { return Ok(()) };
        let message = match (self.carriers().iter().find_map(lone), self.share.rate) {
            (Some(reason), _) => format!("{several} workers, but {reason}; allowed is workers = 1"),
            (None, Some(rate)) => format!(
                "{several} workers cannot share a rate, and [share] has rate = \"{rate}\"; allowed is workers = 1, or no rate \
                 in [share]"
            ),
            (None, None) => return Ok(()),
        };
        Err(Complaint::at(place, message))
    }
}

/// Why a carrier serves one worker only, if it does.
fn lone(carrier: &Carrier) -> Option<&'static str> {
    match carrier {
        Carrier::Serial(_) => Some("a serial line has one other end"),
        Carrier::Udp(udp) => {
            udp.interface.as_ref().map(|_| "a carrier with an interface of its own has one socket")
        }
    }
}

/// With fewer, the kernel and the hosts' programs need the others.
const LEAST_CORES: usize = 3;
