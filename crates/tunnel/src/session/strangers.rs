//! What strangers may ask for: so much in sum, and once half of that is taken, so much for each address and each network.
//!
//! While there is enough for everybody nobody is asked where he comes from: a thousand terminals behind one address translator come in
//! as fast as a thousand elsewhere. When it becomes scarce, a source has its own part, and those that have not asked find half of the
//! sum left. Addresses and networks (a /32 and a /24, or a /56 and a /48) have buckets by a keyed hash, so nothing is kept about any, and
//! nobody can choose whose he shares.

use core::fmt;
use core::hash::Hasher as _;
use core::net::IpAddr;

use base::{Duration, Instant};
use siphasher::sip::SipHasher13;

use crate::allowance::Allowance;
use crate::path::{Address, Path};
use crate::random::Random;

/// What all strangers may have of something.
pub(super) struct Strangers {
    sum: Allowance,
    /// Of single addresses.
    hosts: Buckets,
    networks: Buckets,
}

/// How much of something strangers may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// All together.
    pub(super) sum: Allowance,
    /// Each address, when it is scarce.
    pub(super) host: Allowance,
    /// Each network, when it is scarce.
    pub(super) network: Allowance,
}

/// An answer costs four operations on the curve, some 200 us: a tenth of a core in sum.
pub(super) const ANSWERS: Limits = Limits {
    sum: Allowance::new(1000, Duration::from_millis(2)),
    host: Allowance::new(4, Duration::from_millis(500)),
    network: Allowance::new(32, Duration::from_millis(60)),
};
/// A challenge costs a few microseconds, nothing is kept for it, and it is shorter than what asks for it. In sum they take a megabit a
/// second.
pub(super) const CHALLENGES: Limits = Limits {
    sum: Allowance::new(2000, Duration::from_millis(1)),
    host: Allowance::new(4, Duration::from_millis(250)),
    network: Allowance::new(64, Duration::from_millis(20)),
};

impl Strangers {
    pub(super) fn new(limits: Limits, random: &mut Random) -> Self {
        Self {
            sum: limits.sum,
            hosts: Buckets::new(limits.host, 1024, random),
            networks: Buckets::new(limits.network, 512, random),
        }
    }

    /// Whether whoever is at `from` may have one more.
    pub(super) fn take(&mut self, now: Instant, from: Path) -> bool {
        let [host, network] = sources(from);
        let of_host = self.hosts.of(&host);
        let of_network = self.networks.of(&network);
        let has_part = of_host.has(now) && of_network.has(now);
        if !self.sum.has(now) || (self.sum.is_scarce(now) && !has_part) {
            return false;
        }
        if has_part {
            of_host.take(now);
            of_network.take(now);
        }
        self.sum.take(now)
    }
}

impl fmt::Debug for Strangers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Strangers").field("sum", &self.sum).finish_non_exhaustive()
    }
}

/// Allowances that two names share only if their keyed hashes fall together.
#[derive(Debug)]
pub(super) struct Buckets {
    key: [u8; 16],
    each: Allowance,
    count: usize,
    /// None before the first is asked for.
    allowances: Vec<Allowance>,
}

impl Buckets {
    pub(super) fn new(each: Allowance, count: usize, random: &mut Random) -> Self {
        Self { key: random.draw(), each, count, allowances: Vec::new() }
    }

    /// The one for `name`.
    pub(super) fn of(&mut self, name: &[u8]) -> &mut Allowance {
        let mut hasher = SipHasher13::new_with_key(&self.key);
        hasher.write(name);
        self.allowances.resize(self.count, self.each);
        &mut self.allowances[hasher.finish() as usize % self.count]
    }
}

/// An address, as one that can be asked for one by one, and its network.
fn sources(from: Path) -> [Vec<u8>; 2] {
    match from.peer {
        Address::Udp(address) => match address.ip().to_canonical() {
            IpAddr::V4(ip) => [ip.octets().to_vec(), ip.octets()[..3].to_vec()],
            // A site has a /56 or a /48 of its own (RFC 6177).
            IpAddr::V6(ip) => [ip.octets()[..7].to_vec(), ip.octets()[..6].to_vec()],
        },
        Address::Serial => [Vec::new(), Vec::new()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: [u8; 4]) -> Path {
        Address::Udp((host, 1).into()).into()
    }

    fn taken(strangers: &mut Strangers, from: impl Fn(u32) -> [u8; 4], now: Instant) -> usize {
        (0..3000).filter(|number| strangers.take(now, at(from(*number)))).count()
    }

    #[test]
    fn one_address_leaves_half_for_all_others() {
        let mut strangers = Strangers::new(ANSWERS, &mut Random::seeded(1));
        assert_eq!(taken(&mut strangers, |_| [192, 0, 2, 1], Instant::ZERO), 500);
        let elsewhere = |number: u32| [10, (number >> 8) as u8, number as u8, 1];
        assert_eq!(taken(&mut strangers, elsewhere, Instant::ZERO), 500);
    }

    #[test]
    fn scarce_answers_are_divided_among_networks_and_addresses() {
        let mut strangers = Strangers::new(ANSWERS, &mut Random::seeded(1));
        taken(&mut strangers, |_| [192, 0, 2, 1], Instant::ZERO);
        // Its own part is spent.
        assert!(!strangers.take(Instant::ZERO, at([192, 0, 2, 1])));
        let address = (0..100).filter(|_| strangers.take(Instant::ZERO, at([198, 51, 100, 1]))).count();
        assert_eq!(address, 4);
        let network =
            (0..200_u8).filter(|host| strangers.take(Instant::ZERO, at([198, 51, 101, *host]))).count();
        assert!((30..=32).contains(&network), "{network}");
    }

    /// Attackers everywhere take what there is in sum, and no more than that.
    #[test]
    fn the_sum_is_bounded() {
        let mut strangers = Strangers::new(ANSWERS, &mut Random::seeded(1));
        let mut count = 0;
        for millis in 0..10_000_u32 {
            let now = Instant::ZERO + Duration::from_millis(millis.into());
            for number in 0..4 {
                let source = millis * 4 + number;
                count += usize::from(
                    strangers.take(now, at([10, (source >> 16) as u8, (source >> 8) as u8, source as u8])),
                );
            }
        }
        assert!(count <= 1000 + 5000, "{count}");
    }
}
