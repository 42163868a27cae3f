//! What is lost still, where each frame is lost with the same probability.

use super::*;

/// Which part of many packets is lost where a part `loss` of all frames is, and how often a block was sent.
fn residual(text: &str, loss: f64, packets: u32) -> (f64, f64) {
    let mut pair = pair(config(text), 4);
    let mut rng = Rng::named(1, "erasures");
    let mut erasing = |side: usize, line: &mut VecDeque<Option<Vec<u8>>>| {
        if side == 0 && latest(line).is_some() && rng.unit() < loss {
            lose(line);
        }
    };
    let sent = (0..packets).map(|number| packet(1, number, 40));
    let arrived = pair.carry(sent, packets * 14 * 2, &mut erasing).len() as f64;
    let again = pair.count(0, "blocks-retransmitted") as f64;
    let first = (pair.count(0, "blocks-new") + pair.count(0, "blocks-once")) as f64;
    assert_eq!(first, f64::from(packets), "all were sent");
    (1.0 - arrived / f64::from(packets), 1.0 + again / first)
}

/// The probability that so few of `all` fragments come that a packet is lost: the binomial law, term by term.
fn law(all: i32, data: i32, loss: f64) -> f64 {
    let mut term = loss.powi(all);
    let mut sum = 0.0;
    for come in 0..data {
        sum += term;
        term *= f64::from(all - come) / f64::from(come + 1) * (1.0 - loss) / loss;
    }
    sum
}

/// The notes on section IV-C.1: FEC that matches the erasures loses 0.264, 0.322, 0.350, 0.367 and 0.377 of all packets.
#[test]
fn matched_fec_loses_what_the_paper_s_tables_fit_to() {
    for (data, loss, expected) in
        [(9, 0.1, 0.264), (8, 0.2, 0.322), (7, 0.3, 0.350), (6, 0.4, 0.367), (5, 0.5, 0.377)]
    {
        assert!((law(10, data, loss) - expected).abs() < 5e-4);
        let (lost, transmissions) = residual(&format!("data = {data}\ntransmissions = 1"), loss, 20_000);
        assert!((lost - expected).abs() < 0.01, "{loss}: {lost}, not {expected}");
        assert_eq!(transmissions, 1.0);
    }
}

/// Four transmissions that count by themselves: 0.264 to the fourth, and 1.351 transmissions of a block.
#[test]
fn hybrid_loses_what_the_paper_s_tables_fit_to() {
    let (lost, transmissions) = residual("", 0.1, 20_000);
    assert!((lost - 0.00485).abs() < 0.0015, "{lost}");
    assert!((transmissions - 1.351).abs() < 0.02, "{transmissions}");
    let (lost, _) = residual("", 0.2, 4000);
    assert!((lost - law(10, 9, 0.2).powi(4)).abs() < 0.02, "{lost}");
}

/// What the paper's scheme would gain: a second transmission almost always is enough.
#[test]
fn combined_transmissions_lose_next_to_nothing() {
    let (lost, transmissions) = residual("combine = true", 0.1, 20_000);
    assert_eq!(lost, 0.0);
    assert!((transmissions - 1.264).abs() < 0.02, "{transmissions}");
    let (lost, _) = residual("combine = true", 0.4, 2000);
    assert!(lost < 0.01, "{lost}");
}

/// Without redundancy a packet is lost with any of its fragments.
#[test]
fn without_redundancy_every_fragment_counts() {
    let (lost, _) = residual("data = 10\ntransmissions = 1", 0.1, 5000);
    assert!((lost - law(10, 10, 0.1)).abs() < 0.02, "{lost}");
}
