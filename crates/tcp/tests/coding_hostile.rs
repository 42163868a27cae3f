//! What the fuzz target `tcp_coding` runs, over random bytes.

use base::Rng;

#[test]
fn no_one_between_breaks_a_coded_connection() {
    for seed in 0..300 {
        let mut rng = Rng::named(seed, "fates");
        let len = 1 + rng.below(6000);
        let bytes: Vec<u8> = (0..len).map(|_| rng.below(256) as u8).collect();
        crate::coded::hostile::run(&bytes);
    }
}
