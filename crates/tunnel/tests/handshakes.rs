//! Handshakes between two honest ends, whatever somebody between them does.

use crate::attack::World;
use base::random::Rng;
use proptest::prelude::*;

proptest! {
    /// What is repeated or forged moves nothing, and once the attacker stops the ends find each other.
    #[test]
    fn honest_ends_recover_when_the_attacker_stops(
        both: bool,
        steps in proptest::collection::vec(any::<[u8; 4]>(), 0..300),
    ) {
        let mut world = World::new(both);
        steps.into_iter().for_each(|step| world.step(step));
        world.recovers();
    }

    /// They find each other while he goes on, as long as half of what is genuine passes.
    #[test]
    fn honest_ends_recover_under_fire(
        both: bool,
        steps in proptest::collection::vec(any::<[u8; 4]>(), 0..300),
        seed: u64,
    ) {
        let mut world = World::new(both);
        steps.into_iter().for_each(|step| world.step(step));
        let mut luck = Rng::named(seed, "attacker");
        world.recovers_under_fire(&mut || luck.bits() as u16);
        world.recovers();
    }
}
