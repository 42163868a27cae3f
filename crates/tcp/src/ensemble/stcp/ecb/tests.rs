//! Any interleaving of what members do keeps the books of the ECB, and never takes the last segment from anybody.

use std::sync::Arc;

use base::Duration;
use proptest::prelude::*;

use super::*;
use crate::config::TcpConfig;
use crate::congestion::samples::{self, MSS};
use crate::congestion::{Cause, Congestion};

#[derive(Clone, Debug)]
enum Step {
    Join,
    Establish { member: usize, mss: u64, syn_lost: bool },
    Send { member: usize, segments: u64 },
    Ack { member: usize, segments: u64, recovering: bool },
    Loss { member: usize },
    Timeout { member: usize },
    RecoveryExit { member: usize, limit: u64 },
    SpuriousTimeout { member: usize, window: u64 },
    Restart { member: usize },
    Leave { member: usize },
    Wait { millis: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let member = 0..8_usize;
    prop_oneof![
        3 => Just(Step::Join),
        3 => (member.clone(), prop_oneof![Just(MSS), Just(536)], any::<bool>())
            .prop_map(|(member, mss, syn_lost)| Step::Establish { member, mss, syn_lost }),
        8 => (member.clone(), 1..40_u64).prop_map(|(member, segments)| Step::Send { member, segments }),
        8 => (member.clone(), 1..40_u64, any::<bool>())
            .prop_map(|(member, segments, recovering)| Step::Ack { member, segments, recovering }),
        2 => member.clone().prop_map(|member| Step::Loss { member }),
        1 => member.clone().prop_map(|member| Step::Timeout { member }),
        1 => (member.clone(), 0..30_000_u64)
            .prop_map(|(member, limit)| Step::RecoveryExit { member, limit }),
        1 => (member.clone(), 0..30_000_u64)
            .prop_map(|(member, window)| Step::SpuriousTimeout { member, window }),
        1 => member.clone().prop_map(|member| Step::Restart { member }),
        2 => member.prop_map(|member| Step::Leave { member }),
        2 => (1..3000_u64).prop_map(|millis| Step::Wait { millis }),
    ]
}

/// A member as the model knows it.
#[derive(Debug)]
struct Member {
    id: Ticket,
    mss: u64,
    established: bool,
    started: bool,
    flight: u64,
}

struct Model {
    ecb: Ecb,
    now: Instant,
    members: Vec<Member>,
    initial_window: u64,
}

impl Model {
    fn new(initial_window: u64, idle_release: bool, decay: bool) -> Self {
        let config = Arc::new(TcpConfig::default());
        let settings = SharingConfig { idle_release, decay, ..SharingConfig::default() };
        let start = start(MSS, initial_window);
        let ecb = Ecb::new("10.0.0.1".parse().unwrap(), settings, RttEstimator::new(&config), &start);
        Self { ecb, now: Instant::ZERO, members: Vec::new(), initial_window }
    }

    fn member(&mut self, at: usize) -> Option<usize> {
        (!self.members.is_empty()).then(|| at % self.members.len())
    }

    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Join => {
                if self.members.len() < 8 {
                    let id = self.ecb.join(self.now, &start(MSS, self.initial_window), false);
                    let (established, started) = (false, false);
                    self.members.push(Member { id, mss: MSS, established, started, flight: 0 });
                }
            }
            Step::Wait { millis } => self.now += Duration::from_millis(millis),
            Step::Establish { member, .. }
            | Step::Send { member, .. }
            | Step::Ack { member, .. }
            | Step::Loss { member }
            | Step::Timeout { member }
            | Step::RecoveryExit { member, .. }
            | Step::SpuriousTimeout { member, .. }
            | Step::Restart { member }
            | Step::Leave { member } => {
                let Some(at) = self.member(member) else { return };
                self.apply_to(at, step);
            }
        }
    }

    fn apply_to(&mut self, at: usize, step: &Step) {
        let (now, ecb, member) = (self.now, &mut self.ecb, &mut self.members[at]);
        let id = member.id;
        match *step {
            Step::Establish { mss, syn_lost, .. } if !member.established => {
                let initial_window = if syn_lost { mss } else { self.initial_window };
                ecb.establish(id, &start(mss, initial_window), syn_lost);
                (member.mss, member.established) = (mss, true);
            }
            Step::Send { segments, .. } if member.established => {
                for _ in 0..segments {
                    ecb.on_send_opportunity(now, id, member.flight);
                    member.started = true;
                    // Liveness: with nothing in the network one segment always goes.
                    assert!(member.flight > 0 || ecb.cwnd(id, member.mss) >= member.mss);
                    if member.flight + member.mss > ecb.cwnd(id, member.mss) {
                        break;
                    }
                    member.flight += member.mss;
                }
            }
            Step::Ack { segments, recovering, .. } if member.flight > 0 => {
                let prior_in_flight = member.flight;
                let bytes = (segments * member.mss).min(prior_in_flight);
                member.flight -= bytes;
                let ack = sample(now, bytes, prior_in_flight, recovering);
                ecb.on_ack(id, &ack, member.mss);
            }
            Step::Loss { .. } if member.flight > 0 => {
                ecb.on_loss(&Congestion { now, ..samples::congestion(member.flight, Cause::Loss) }, id);
            }
            Step::Timeout { .. } if member.flight > 0 => {
                ecb.on_timeout(&Congestion { now, ..samples::congestion(member.flight, Cause::Timeout) }, id);
                member.flight = 0;
            }
            Step::RecoveryExit { limit, .. } if member.started => {
                let cwnd = ecb.cwnd(id, MSS);
                ecb.set_window(id, limit.min(cwnd));
            }
            Step::SpuriousTimeout { window, .. } if member.started => {
                ecb.restore(id, window, 20 * MSS);
            }
            Step::Restart { .. } if member.started && member.flight == 0 => {
                ecb.on_restart(now, id, self.initial_window);
            }
            Step::Leave { .. } => {
                ecb.leave(now, id);
                self.members.swap_remove(at);
            }
            _ => {}
        }
    }

    fn check(&self) {
        let state = self.ecb.state();
        let shares = || self.ecb.shares.iter().flatten().map(|(_, share)| share);
        assert_eq!(state.num_connections as usize, self.members.len());
        assert_eq!(state.used_cwnd, shares().map(|share| share.cwnd).sum::<u64>(), "used_cwnd is the sum");
        assert_eq!(self.ecb.mss_total, self.members.iter().map(|member| member.mss).sum::<u64>());
        assert_eq!(self.ecb.started as usize, self.members.iter().filter(|member| member.started).count());
        assert!(self.ecb.flight_total == shares().map(|share| share.flight).sum::<u64>());
        let excess = state.used_cwnd.saturating_sub(state.n_cwnd);
        assert!(excess <= self.members.len() as u64 * MSS, "{excess} beyond n_cwnd: {state:?}");
        for member in &self.members {
            assert!(self.ecb.cwnd(member.id, member.mss) >= member.mss, "the floor of {member:?}");
            let share = self.ecb.share(member.id).expect("a member has a share");
            assert!(!member.started || share.cwnd >= share.mss, "{share:?}");
        }
    }
}

fn start(mss: u64, initial_window: u64) -> Start {
    Start { mss, initial_window, ..samples::start(1) }
}

fn sample(now: Instant, bytes: u64, prior_in_flight: u64, recovering: bool) -> AckSample {
    let rtt = Duration::from_millis(100);
    AckSample { now, rtt: Some(rtt), rtt_min: rtt, recovering, ..samples::ack(bytes, prior_in_flight) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_books_hold_in_any_interleaving(
        segments in 1..40_u64,
        idle_release: bool,
        decay: bool,
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut model = Model::new(segments * MSS, idle_release, decay);
        for step in &steps {
            model.apply(step);
            model.check();
        }
        // Whoever is left can send, and once all have asked with a share to give back, equation 1 holds again.
        for at in 0..model.members.len() {
            model.apply_to(at, &Step::Establish { member: at, mss: MSS, syn_lost: false });
        }
        for _ in 0..2 {
            for at in 0..model.members.len() {
                model.members[at].flight = 0;
                model.apply_to(at, &Step::Send { member: at, segments: 1 });
                model.check();
            }
        }
        let state = model.ecb.state();
        let floors = model.ecb.mss_total;
        prop_assert!(model.members.is_empty() || state.used_cwnd == state.n_cwnd.max(floors), "{state:?}");
    }
}

/// Peng et al. 2001, 3.3: the ECB's time-out is that of the path as it is: it comes down when the round trip does.
#[test]
fn the_timeout_follows_the_round_trip() {
    for estimator in [crate::config::RtoEstimator::Rfc6298, crate::config::RtoEstimator::Linux] {
        let config = Arc::new(TcpConfig::default().with(|it| it.rto.estimator = estimator));
        let start = start(MSS, 40 * MSS);
        let address = "10.0.0.1".parse().unwrap();
        let mut ecb = Ecb::new(address, SharingConfig::default(), RttEstimator::new(&config), &start);
        let id = ecb.join(Instant::ZERO, &start, false);
        ecb.establish(id, &start, false);
        ecb.on_send_opportunity(Instant::ZERO, id, 0);
        for at in 0..1000 {
            let now = samples::at_ms(10 * at);
            let rtt = Some(Duration::from_millis(if at == 0 { 1000 } else { 100 }));
            ecb.on_ack(id, &AckSample { rtt, ..sample(now, MSS, 40 * MSS, false) }, MSS);
        }
        let rto = ecb.rtt.rto();
        assert!(rto < Duration::from_millis(500), "{estimator:?}: {rto}");
    }
}

/// Beyond Peng et al. 2001: who was released claims its share back when it has used what it kept, and not before.
#[test]
fn nothing_is_claimed_before_what_was_kept_is_used() {
    let mut model = Model::new(40 * MSS, true, false);
    let start = start(MSS, 40 * MSS);
    let [one, other] = [(); 2].map(|()| model.ecb.join(Instant::ZERO, &start, false));
    for id in [one, other] {
        model.ecb.establish(id, &start, false);
        model.ecb.on_send_opportunity(Instant::ZERO, id, 0);
    }
    let cwnd = model.ecb.cwnd(one, MSS);
    model.ecb.share_mut(one).unwrap().released = true;
    model.ecb.on_send_opportunity(Instant::ZERO, one, cwnd - 2 * MSS);
    assert!(model.ecb.share(one).unwrap().released, "two segments are free");
    model.ecb.on_send_opportunity(Instant::ZERO, one, cwnd);
    assert!(!model.ecb.share(one).unwrap().released);
}
