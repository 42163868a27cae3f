//! Which peer an address is behind. No two peers' prefixes overlap, so one look at the last that begins before an address tells.

use core::net::IpAddr;
use std::collections::{BTreeMap, HashMap};

use base::Prefix;

use super::{PeerId, Unfit};

#[derive(Debug, Default)]
pub(super) struct Prefixes {
    /// By first address: the prefix and whose it is.
    by_start: BTreeMap<IpAddr, (Prefix, PeerId)>,
    /// The first addresses of each peer's.
    starts: HashMap<PeerId, Vec<IpAddr>>,
}

impl Prefixes {
    /// Gives `allowed` to a peer, instead of what it had.
    pub(super) fn set(&mut self, id: PeerId, allowed: &[Prefix]) -> Result<(), Unfit> {
        if let Some(unfit) = allowed.iter().find_map(|prefix| self.overlap(id, *prefix)) {
            return Err(unfit);
        }
        self.remove(id);
        // Within one peer's, the widest says all.
        let widest = |prefix: &&Prefix| {
            !allowed.iter().any(|other| other.len < prefix.len && other.contains(prefix.address))
        };
        let starts = self.starts.entry(id).or_default();
        for prefix in allowed.iter().filter(widest) {
            self.by_start.insert(prefix.masked(), (*prefix, id));
            starts.push(prefix.masked());
        }
        Ok(())
    }

    /// What another one has that overlaps `prefix`: what begins within it, or the last that begins before it.
    fn overlap(&self, id: PeerId, prefix: Prefix) -> Option<Unfit> {
        let start = prefix.masked();
        let within =
            self.by_start.range(start..).map_while(|(at, entry)| prefix.contains(*at).then_some(entry));
        let before = self.by_start.range(..start).next_back().map(|(_, entry)| entry);
        let before = before.filter(|(other, _)| other.contains(start));
        let (other, owner) = within.chain(before).find(|(_, owner)| *owner != id)?;
        Some(Unfit::Overlap(prefix, *owner, *other))
    }

    pub(super) fn remove(&mut self, id: PeerId) {
        for start in self.starts.remove(&id).into_iter().flatten() {
            self.by_start.remove(&start);
        }
    }

    /// The peer that `address` is behind.
    pub(super) fn owner(&self, address: IpAddr) -> Option<PeerId> {
        let (_, (prefix, owner)) = self.by_start.range(..=address).next_back()?;
        prefix.contains(address).then_some(*owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    #[test]
    fn overlaps_are_refused_and_change_nothing() {
        let mut prefixes = Prefixes::default();
        let [a, b] = [0, 1].map(PeerId);
        prefixes.set(a, &[prefix("10.1.0.0/16"), prefix("fd01::/32")]).unwrap();
        prefixes.set(b, &[prefix("10.2.0.0/16")]).unwrap();
        for (wanted, theirs) in
            [("10.1.7.0/24", "10.1.0.0/16"), ("10.0.0.0/8", "10.1.0.0/16"), ("::/0", "fd01::/32")]
        {
            let refused = prefixes.set(b, &[prefix("192.0.2.0/24"), prefix(wanted)]);
            assert_eq!(refused, Err(Unfit::Overlap(prefix(wanted), a, prefix(theirs))));
        }
        assert_eq!(prefixes.owner([10, 2, 0, 1].into()), Some(b));
        assert_eq!(prefixes.owner([192, 0, 2, 1].into()), None);
        // Its own may be moved about, and nested.
        prefixes.set(a, &[prefix("10.1.7.0/24"), prefix("10.1.0.0/16")]).unwrap();
        assert_eq!(prefixes.owner([10, 1, 8, 1].into()), Some(a));
        assert_eq!(prefixes.owner("fd01::1".parse().unwrap()), None);
        prefixes.remove(a);
        assert_eq!(prefixes.owner([10, 1, 8, 1].into()), None);
    }

    proptest! {
        /// Against a list that is searched from the front.
        #[test]
        fn an_address_is_behind_whose_prefix_has_it(
            drawn in proptest::collection::vec((any::<[u8; 2]>(), 8_u8..=32), 1..20),
            asked in proptest::collection::vec(any::<[u8; 2]>(), 1..50),
        ) {
            let address = |[a, b]: [u8; 2]| IpAddr::from([10 + (a & 3), b & 7, a >> 4, b >> 5]);
            let (mut prefixes, mut model) = (Prefixes::default(), Vec::<(Prefix, PeerId)>::new());
            for (number, (at, len)) in (0..).zip(drawn) {
                let (wanted, id) = (Prefix { address: address(at), len }, PeerId(number));
                let overlaps = model.iter().any(|(other, _)| other.contains(wanted.masked()) || wanted.contains(other.masked()));
                prop_assert_eq!(prefixes.set(id, &[wanted]).is_err(), overlaps);
                if !overlaps {
                    model.push((wanted, id));
                }
            }
            for asked in asked.into_iter().map(address) {
                let want = model.iter().find(|(prefix, _)| prefix.contains(asked)).map(|(_, id)| *id);
                prop_assert_eq!(prefixes.owner(asked), want);
            }
        }
    }
}
