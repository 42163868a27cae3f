//! A hub with many terminals: who gets which packets, who may come in, who has which part of the carrier, and what one who is a peer can
//! do to the others.

use crate::star::{Star, host, key, network, packet, path};
#[allow(dead_code, reason = "the star has more to it than these tests ask for")]
use base::wire::ip::Ecn;
use base::{Duration, Instant, Rate};
use longhaul_tunnel::Sent;
use longhaul_tunnel::config::Link;
use longhaul_tunnel::hub::Unfit;
use longhaul_tunnel::key::PublicKey;
use longhaul_tunnel::path::Path;
use longhaul_tunnel::session::Rejection;

const LINK: &str = "rate = \"2 Mbit/s\"\nqueue = { drop-tail = { packets = 50 } }";

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn counter(star: &mut Star, end: usize, name: &str) -> u64 {
    let counters = star.end(end).counters();
    counters.into_iter().find(|(known, _)| known == name).map_or(0, |(_, count)| count)
}

fn denials(star: &mut Star) -> u64 {
    star.end(0).status()["traffic"]["denials_sent"].as_u64().unwrap()
}

#[test]
fn packets_go_to_whom_they_are_for_and_come_from_whom_they_say() {
    let mut star = Star::new(3, LINK, None);
    star.pass(millis(3000));
    assert!((1..=3).all(|end| star.is_connected(end)));
    for end in 1..=3 {
        star.send(0, end, 100 + end);
        star.send(end, 0, 200 + end);
    }
    // From one terminal to another: by the hub's host, which is a router.
    star.send(1, 2, 300);
    star.pass(millis(1000));
    for end in 1..=3 {
        let got: Vec<_> = star.delivered[end].iter().map(|(_, len, from)| (*len, *from)).collect();
        assert_eq!(got, [(100 + end, 0)]);
    }
    let mut got: Vec<_> = star.delivered[0].iter().map(|(_, len, from)| (*len, *from)).collect();
    got.sort_unstable();
    assert_eq!(got, [(201, 1), (202, 2), (203, 3), (300, 1)]);
    // Nobody has the address; and one says to be somebody else, or nobody that there is.
    star.offer(0, packet(0, 9, 100));
    star.offer(1, packet(2, 0, 100));
    star.offer(1, packet(9, 0, 100));
    star.pass(millis(1000));
    assert_eq!(star.delivered[0].len(), 4);
    assert_eq!(counter(&mut star, 0, "packets-without-peer"), 1);
    assert_eq!(counter(&mut star, 0, "packets-from-elsewhere"), 2);
}

#[test]
fn who_cannot_be_a_peer_changes_nothing() {
    let mut star = Star::new(2, LINK, None);
    let first = star.peer(1);
    let wanted = |star: &Star, key: PublicKey, end: usize| star.member(key, network(end), 1, None);
    let known = wanted(&star, key(1).public(), 9);
    assert_eq!(star.end(0).add(known), Err(Unfit::Known(first)));
    let own = wanted(&star, key(0).public(), 9);
    assert_eq!(star.end(0).add(own), Err(Unfit::Own));
    let overlapping = wanted(&star, key(9).public(), 1);
    assert_eq!(star.end(0).add(overlapping), Err(Unfit::Overlap(network(1), first, network(1))));
    assert_eq!(star.end(0).len(), 2);
    let fit = wanted(&star, key(9).public(), 9);
    assert!(star.end(0).add(fit).is_ok());
}

/// Whoever is taken out is heard no more, from that moment on, and comes in again only when he is taken in.
#[test]
fn who_is_removed_is_refused_at_once_and_others_notice_nothing() {
    let mut star = Star::new(3, LINK, None);
    star.pass(millis(3000));
    for _ in 0..20 {
        (1..=3).for_each(|end| star.send(end, 0, 500));
        star.pass(millis(10));
    }
    let removed = star.peer(2);
    let on_way = star.seen(0).len();
    assert!(on_way >= 3, "data are in flight");
    let before = star.delivered[0].iter().filter(|(.., from)| *from == 2).count();
    star.end(0).remove(removed);
    let from = star.now;
    for _ in 0..500 {
        (1..=3).for_each(|end| star.send(end, 0, 500));
        star.pass(millis(10));
    }
    let after = star.delivered[0].iter().filter(|(.., from)| *from == 2).count();
    assert_eq!(before, after, "nothing of it comes in any more");
    assert!(star.end(0).find(&key(2).public()).is_none());
    for end in [1, 3] {
        assert!(star.is_connected(end));
        let theirs: Vec<_> =
            star.delivered[0].iter().filter(|(at, _, who)| *at >= from && *who == end).collect();
        assert!(theirs.len() >= 490, "{}", theirs.len());
    }
    assert!(counter(&mut star, 0, "refused-dropped-unknown-session") > 0);
    assert!(counter(&mut star, 0, "refused-dropped-unknown-peer") > 0, "it asks for a session");
    // Its place is somebody else's now; it has its own again.
    let other = star.member(key(7).public(), network(7), 1, None);
    let again = star.member(key(2).public(), network(2), 1, None);
    assert_eq!(star.end(0).add(other), Ok(removed));
    star.end(0).add(again).unwrap();
    star.pass(millis(5000));
    assert!(star.is_connected(2));
}

/// While more packets are about to come, only the tunnel that the latest was for is asked, so that those that wait are not looked at for each packet of
/// another. Where all share a rate, turns are turns.
#[test]
fn while_packets_come_only_whose_they_are_is_asked() {
    for (share, first) in [(None, None), (Some(Rate::from_bps(1_000_000_000)), Some(path(1)))] {
        let mut star = Star::new(2, "rate = \"max\"", share);
        star.pass(millis(3000));
        assert!((1..=2).all(|end| star.is_connected(end)));
        let now = star.now;
        let hub = star.end(0);
        while hub.poll_transmit(now, 64, false).is_some() {
            hub.on_sent(now, Sent::Yes);
        }
        // Three fill a batch of two.
        for to in [1, 1, 1, 2] {
            let _ = hub.handle_packet(now, packet(0, to, 1000));
        }
        assert_eq!(hub.poll_transmit(now, 2, true).map(|transmit| transmit.to), first, "{share:?}");
        hub.on_sent(now, Sent::Yes);
        let mut others = Vec::new();
        while let Some(transmit) = hub.poll_transmit(now, 64, false) {
            others.push(transmit.to);
            hub.on_sent(now, Sent::Yes);
        }
        assert!(others.contains(&path(1)) && others.contains(&path(2)), "{others:?}");
    }
}

/// Jain's index: one if all are equal.
fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = (shares.iter().sum::<f64>(), shares.iter().map(|x| x * x).sum::<f64>());
    sum * sum / (squares * shares.len() as f64)
}

/// Keeps the queues of the hub's tunnels to these terminals full for so long; bytes that came out at each.
fn backlogged(star: &mut Star, ends: &[usize], seconds: u64) -> Vec<f64> {
    let from = star.now;
    for _ in 0..seconds * 50 {
        for end in ends {
            (0..8).for_each(|_| star.send(0, *end, 1400));
        }
        star.pass(millis(20));
    }
    ends.iter().map(|end| star.received(*end, from) as f64).collect()
}

#[test]
fn the_carrier_is_shared_by_weights_and_who_asks_for_little_does_not_wait() {
    let share = Rate::from_bps(3_000_000);
    let mut star = Star::new(6, LINK, Some(share));
    star.pass(millis(1000));
    let all = backlogged(&mut star, &[1, 2, 3, 4, 5], 10);
    assert!(jain(&all) > 0.99, "{all:?}");
    let sum = all.iter().sum::<f64>() * 8.0 / 10.0;
    assert!((2_400_000.0..3_000_000.0).contains(&sum), "{sum} bit/s of packets");
    for (end, weight) in [(1, 1), (2, 2), (3, 4)] {
        let id = star.peer(end);
        star.end(0).set_weight(id, weight);
    }
    let weighted = backlogged(&mut star, &[1, 2, 3], 10);
    let unit = weighted.iter().sum::<f64>() / 7.0;
    for (bytes, weight) in weighted.iter().zip([1.0, 2.0, 4.0]) {
        // One may have no more than its own link, which is two thirds of the carrier.
        assert!((bytes / unit - weight).abs() < 0.05 * weight, "{weighted:?}");
    }
    // While the others fill the carrier, a single packet passes them.
    for _ in 0..50 {
        (1..=5).for_each(|end| (0..4).for_each(|_| star.send(0, end, 1400)));
        star.pass(millis(20));
    }
    let sent = star.now;
    star.send(0, 6, 100);
    star.pass(millis(200));
    let (arrived, ..) = *star.delivered[6].last().unwrap();
    assert!(arrived.saturating_since(sent) < millis(20 + 15), "{arrived:?} after {sent:?}");
}

#[test]
fn the_rate_of_all_together_may_change() {
    let mut star = Star::new(2, LINK, None);
    star.pass(millis(1000));
    for (rate, sums) in [(Some(1_000_000), 800_000.0..1_000_000.0), (None, 3_200_000.0..4_000_000.0)] {
        let now = star.now;
        star.end(0).set_rate(now, rate.map(Rate::from_bps));
        let sum = backlogged(&mut star, &[1, 2], 5).iter().sum::<f64>() * 8.0 / 5.0;
        assert!(sums.contains(&sum), "{sum} bit/s of packets");
    }
}

/// The device hands over what all of them take whole.
#[test]
fn the_shortest_super_segment_of_all_counts() {
    let clean = "protocol = \"plain\"\nclean = true\nrate = ";
    let mut star = Star::new(0, "", None);
    assert!(star.end(0).is_empty() && star.end(0).super_segment().is_none());
    let add = |star: &mut Star, end, link: String| {
        let mut member = star.member(key(end).public(), network(end), 1, None);
        member.config.link = Link::parse("link.toml", &link).unwrap();
        star.end(0).add(member).unwrap()
    };
    add(&mut star, 1, format!("{clean}\"40 Mbit/s\""));
    assert_eq!((star.end(0).super_segment(), star.end(0).is_empty()), (Some(20_000), false));
    let slower = add(&mut star, 2, format!("{clean}\"20 Mbit/s\""));
    assert_eq!(star.end(0).super_segment(), Some(10_000));
    let single = add(&mut star, 3, "rate = \"1 Mbit/s\"".to_owned());
    assert_eq!(star.end(0).super_segment(), None);
    star.end(0).remove(single);
    star.end(0).remove(slower);
    assert_eq!(star.end(0).super_segment(), Some(20_000));
}

#[test]
fn a_peer_s_networks_may_be_others_if_they_are_nobody_s() {
    let mut star = Star::new(2, LINK, None);
    star.pass(millis(1000));
    let (first, second) = (star.peer(1), star.peer(2));
    let taken = star.end(0).set_allowed(first, &[network(2)]);
    assert_eq!(taken, Err(Unfit::Overlap(network(2), second, network(2))));
    assert_eq!(star.end(0).set_allowed(first, &[network(5)]), Ok(()));
    star.send(0, 5, 100);
    star.send(0, 1, 200);
    star.pass(millis(1000));
    let got: Vec<_> = star.delivered[1].iter().map(|(_, len, _)| *len).collect();
    assert_eq!(got, [100], "what is for its former network is nobody's");
}

/// What a caller holds, or waits with, is somebody's: it ends with him, and with nobody else.
#[test]
fn a_peer_that_goes_takes_along_what_it_has_offered() {
    for goes in [1, 2] {
        let mut star = Star::new(2, "rate = \"max\"", None);
        star.pass(millis(1000));
        let (now, id) = (star.now, star.peer(goes));
        let hub = star.end(0);
        let _ = hub.handle_packet(now, packet(0, 1, 1000));
        assert!(hub.poll_transmit(now, 1, false).is_some_and(|transmit| transmit.to == path(1)));
        hub.on_sent(now, Sent::Full);
        assert!(hub.is_blocked());
        hub.remove(id);
        assert_eq!(hub.is_blocked(), goes == 2, "{goes} went");
    }
}

/// A hub restarts with all terminals at once, in networks of their own. It denies what they send to its former life, so they call.
#[test]
fn a_thousand_terminals_come_back_after_a_restart() {
    const TERMINALS: usize = 1000;
    let mut star = Star::new(TERMINALS, "protocol = \"plain\"\nrate = \"max\"", None);
    star.pass(millis(3000));
    let connected = |star: &Star| (1..=TERMINALS).filter(|end| star.is_connected(*end)).count();
    assert_eq!(connected(&star), TERMINALS);
    star.restart(0, None);
    (1..=TERMINALS).for_each(|end| star.send(end, 0, 100));
    star.pass(millis(500));
    let (back, denials) = (connected(&star), denials(&mut star));
    // A few may share an allowance with others.
    assert!(back >= TERMINALS * 95 / 100 && denials >= back as u64, "{back} after {denials} denials");
    star.pass(millis(1500));
    assert_eq!(connected(&star), TERMINALS);
}

/// A gateway that was started a minute ago denies nothing: strangers get no answer.
#[test]
fn denials_end_a_minute_after_the_start() {
    for (seconds, told) in [(59, 1), (61, 0)] {
        let mut star = Star::new(1, LINK, None);
        star.pass(millis(3000));
        star.send(1, 0, 100);
        let seen = star.seen(0).remove(0);
        star.restart(0, None);
        let (start, mut hub) = (star.now, star.take_hub());
        hub.handle_timeout(start);
        let now = start + Duration::from_secs(seconds);
        let taken = hub.handle_datagram(now, path(1), Ecn::NotEct, &mut seen.clone());
        assert_eq!(taken, Err(Rejection::UnknownSession));
        let mut replies = 0;
        while let Some(transmit) = hub.poll_transmit(now, 16, false) {
            assert_eq!((transmit.to, transmit.bytes.len()), (path(1), 48));
            replies += 1;
            hub.on_sent(now, Sent::Yes);
        }
        assert_eq!(replies, told, "after {seconds} s");
    }
}

/// Who floods a hub with datagrams of a former life, or with junk, gets four denials a second at one place, and a thousand in sum.
#[test]
fn denials_are_few() {
    let mut star = Star::new(1, LINK, None);
    star.pass(millis(3000));
    star.send(1, 0, 100);
    let seen = star.seen(0).remove(0);
    star.restart(0, None);
    let (mut now, mut hub) = (star.now, star.take_hub());
    for (places, most) in [(1, 12), (10_000, 4001)] {
        let sent = |hub: &longhaul_tunnel::Hub| hub.status()["traffic"]["denials_sent"].as_u64().unwrap();
        let before = sent(&hub);
        for number in 0..20_000_u32 {
            now += Duration::from_micros(100);
            let mut datagram = seen.clone();
            datagram[4..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9).to_le_bytes());
            let from = path(9000 + number as usize % places);
            let _ = hub.handle_datagram(now, from, Ecn::NotEct, &mut datagram);
            while hub.poll_transmit(now, 16, false).is_some() {
                hub.on_sent(now, Sent::Yes);
            }
        }
        let denials = sent(&hub) - before;
        assert!((most / 2..=most).contains(&denials), "{denials} to {places} places");
    }
}

/// A denial that nobody could have made does nothing; one that somebody on the path has forged, who knows the hub's public key, makes a
/// terminal renew its keys more often than it would, a little. The session goes on all the time.
#[test]
fn denials_by_others_end_no_session() {
    let mut star = Star::new(1, LINK, None);
    star.pass(millis(3000));
    star.send(1, 0, 100);
    let seen = star.seen(0).remove(0);
    // Somebody has a gateway of his own with the hub's seal, to which he shows all that he sees.
    let mut forger = Star::new(1, LINK, None);
    forger.inject(0, path(1), &seen);
    let forged = forger.seen(1).remove(0);
    assert_eq!((forged[0], forged.len()), (5, 48));
    let established = |star: &mut Star| {
        let tunnel = star.end(1).peers().map(|(_, tunnel)| tunnel).next().unwrap();
        tunnel.session().established.get()
    };
    for place in 0..48 {
        let mut altered = forged.clone();
        altered[place] ^= 1;
        star.inject(1, path(0), &altered);
        star.pass(millis(50));
    }
    star.inject(1, path(7), &forged);
    star.inject(1, path(0), &forged[..47]);
    star.pass(millis(1000));
    assert_eq!(established(&mut star), 1, "nothing follows from those");
    let mut newest = seen;
    for _ in 0..300 {
        star.send(1, 0, 100);
        newest = star.seen(0).into_iter().find(|datagram| datagram[0] == 4).unwrap_or(newest);
        forger.inject(0, path(1), &newest);
        forger.pass(millis(10));
        let forged = forger.seen(1).pop();
        forged.into_iter().for_each(|forged| star.inject(1, path(0), &forged));
        star.pass(millis(100));
        forger.pass(millis(90));
        assert!(star.is_connected(1));
    }
    let calls = established(&mut star) - 1;
    assert!((1..=9).contains(&calls), "{calls} in 30 s");
    assert_eq!(star.delivered[0].len(), 301, "and nothing is lost");
}

/// One of a hundred has its own key and a link that is made to harm: frames without end ahead of a gap, short sums of frames that nobody
/// has, acknowledgements of what was never sent. Nobody else notices, and what it may cost the hub is bounded.
#[test]
fn a_hostile_link_among_a_hundred_harms_nobody() {
    const TERMINALS: usize = 100;
    const HOSTILE: usize = 13;
    /// Without it the hub would hold six times as much.
    const BUDGET: usize = 16 << 20;
    let mut star = Star::new(TERMINALS, LINK, None);
    star.end(0).set_memory(BUDGET);
    star.turn_hostile(HOSTILE, "rate = \"8 Mbit/s\"");
    star.pass(millis(2000));
    let honest: Vec<usize> = (1..=TERMINALS).filter(|end| *end != HOSTILE).collect();
    let from = star.now;
    for _ in 0..250 {
        for end in &honest {
            star.send(*end, 0, 300);
            star.send(0, *end, 300);
        }
        (0..5).for_each(|_| star.send(0, HOSTILE, 1400));
        star.pass(millis(20));
        let held = star.end(0).status()["memory_bytes"].as_u64().unwrap();
        assert!(held <= BUDGET as u64, "{held} bytes");
    }
    star.pass(millis(500));
    for end in &honest {
        let down = star.delivered[*end].iter().filter(|(at, ..)| *at >= from).count();
        let up = star.delivered[0].iter().filter(|(at, _, who)| *at >= from && *who == *end).count();
        assert_eq!((down, up), (250, 250), "terminal {end}");
        assert!(star.longest_pause(*end, from) <= millis(600), "the last pause is the wait at the end");
    }
    // Its frames did come, and sums beyond what their bytes pay for are not computed.
    let hostile = star.peer(HOSTILE);
    let status = serde_json::to_value(star.end(0).tunnel(hostile).unwrap().status(Instant::ZERO)).unwrap();
    let count = |name| status["link"][name].as_u64().unwrap();
    assert!(count("frames-malformed") > 1000 && count("sums-refused") > 1000, "{}", status["link"]);
}

/// One of a hundred is hostile and holds its own key. It sends what it likes, as fast as it can, in the name of others and in its own; it
/// records what the hub sends to others and repeats it. Nobody loses more than its flood takes of the hub's time, which is none here.
#[test]
fn a_hostile_peer_among_a_hundred_harms_nobody() {
    const TERMINALS: usize = 100;
    const HOSTILE: usize = 13;
    let mut star = Star::new(TERMINALS, LINK, Some(Rate::from_bps(50_000_000)));
    star.pass(millis(2000));
    let honest: Vec<usize> = (1..=TERMINALS).filter(|end| *end != HOSTILE).collect();
    assert!(honest.iter().all(|end| star.is_connected(*end)));
    let from = star.now;
    let mut recorded: Vec<(usize, Vec<u8>)> = Vec::new();
    for round in 0..500_usize {
        for end in &honest {
            star.send(*end, 0, 300);
            star.send(0, *end, 300);
        }
        // He is on the path of one of the others, and keeps what he sees.
        let victim = honest[round % honest.len()];
        recorded.extend(star.seen(victim).into_iter().take(3).map(|bytes| (victim, bytes)));
        // In his own name: packets with the addresses of others, and more than he is entitled to.
        star.offer(HOSTILE, packet(victim, 0, 400));
        (0..5).for_each(|_| star.send(HOSTILE, 0, 1400));
        (0..5).for_each(|_| star.send(0, HOSTILE, 1400));
        for (at, (to, bytes)) in recorded.iter().rev().take(20).enumerate() {
            // Repeated to whom it was for and to the hub, from where it came, from his own place, and bent.
            star.inject(*to, path(HOSTILE), bytes);
            star.inject(*to, path(0), bytes);
            star.inject(0, path(*to), bytes);
            let mut bent = bytes.clone();
            let place = at % bent.len();
            bent[place] ^= 1;
            star.inject(0, path(*to), &bent);
            // What is for others he cannot read: his own gateway refuses it.
            let before = star.delivered[HOSTILE].len();
            star.inject(HOSTILE, path(0), bytes);
            assert_eq!(star.delivered[HOSTILE].len(), before);
        }
        recorded.truncate(1000);
        star.pass(millis(20));
    }
    star.pass(millis(500));
    for end in &honest {
        assert!(star.is_connected(*end), "terminal {end} is lost");
        let down = star.delivered[*end].iter().filter(|(at, ..)| *at >= from).count();
        let up = star.delivered[0].iter().filter(|(at, _, who)| *at >= from && *who == *end).count();
        assert_eq!((down, up), (500, 500), "terminal {end}");
        assert!(star.longest_pause(*end, from) <= millis(600), "the last pause is the wait at the end");
    }
    assert!(counter(&mut star, 0, "packets-from-elsewhere") >= 400);
    assert!(star.is_connected(HOSTILE), "he has done nothing that a peer may not");
}

/// Strangers with keys of their own, from everywhere, take nothing from peers who renew their sessions.
#[test]
fn strangers_keep_no_peer_out() {
    let mut star = Star::new(20, LINK, None);
    star.pass(millis(1000));
    let mut stranger = Star::new(1, LINK, None);
    // It calls this hub with a key that no peer has.
    stranger.restart(1, None);
    stranger.pass(millis(10));
    let initiation = stranger.seen(0).remove(0);
    for round in 0..300_u32 {
        for source in 0..40 {
            let at = 200 + (round * 40 + source) as usize % 50_000;
            star.inject(0, path(at), &initiation);
        }
        (1..=20).for_each(|end| star.send(end, 0, 200));
        star.pass(millis(1000));
    }
    let from = star.now;
    (1..=20).for_each(|end| star.send(end, 0, 200));
    star.pass(millis(1000));
    assert_eq!(star.delivered[0].iter().filter(|(at, ..)| *at >= from).count(), 20);
    // Sessions were renewed meanwhile: each has been established more than once.
    for end in 1..=20 {
        let id = star.peer(end);
        let renewed = star.end(0).tunnel(id).unwrap().session().established.get();
        assert!(renewed >= 3, "terminal {end}: {renewed} sessions");
    }
}

/// While a hundred transfer, others are added, changed and removed.
#[test]
fn changes_among_peers_do_not_stop_the_others() {
    let mut star = Star::new(100, LINK, Some(Rate::from_bps(100_000_000)));
    star.pass(millis(1000));
    let from = star.now;
    for round in 0..200_usize {
        (1..=100).for_each(|end| star.send(0, end, 300));
        let end = 200 + round;
        let membership = star.member(key(end).public(), network(end), 1, None);
        let id = star.end(0).add(membership).unwrap();
        star.end(0).set_weight(id, 7);
        star.end(0).set_allowed(id, &[network(end), network(end + 500)]).unwrap();
        if round >= 10 {
            let old = star.end(0).find(&key(end - 10).public()).unwrap();
            star.end(0).remove(old);
        }
        star.pass(millis(10));
    }
    for end in 1..=100 {
        assert!(star.longest_pause(end, from + millis(50)) < millis(50), "terminal {end}");
    }
    assert_eq!(star.end(0).len(), 110);
}

/// Each part of the star has an address of its own; the helpers above rely on it.
#[test]
fn ends_are_apart() {
    let paths: Vec<Path> = (0..2000).map(path).collect();
    assert!(paths.windows(2).all(|pair| pair[0] != pair[1]));
    assert_eq!(host(300), [10, 1, 44, 1]);
    assert_eq!(Instant::ZERO + millis(1000), Instant::ZERO + Duration::from_secs(1));
}
