//! Any interleaving of loss, duplication, reordering, delay, stalls and timer expiry delivers both byte streams
//! exactly once, in order, and ends. The model is the stream itself: a byte is a function of its position.

use crate::pair::{Pair, Path};
use base::units::Size;
use base::{Duration, Instant};
use longhaul_tcp::config::{AfterIdle, FastConfig, HyblaConfig, PathMtu, VegasConfig};
use longhaul_tcp::{
    Congestion, CubicConfig, DelayedAcks, EcnUse, Event, InitialWindow, Recovery, ReduceFrom, Sharing,
    SlowStart, State, TcpConfig,
};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Setting {
    seed: u64,
    config: [TcpConfig; 2],
    path: Path,
    bytes: [u64; 2],
    /// After the faults phase the path is only slow.
    faults_end: Duration,
    /// In each half of this period one reader does not read.
    stall: Option<Duration>,
    /// Bytes that a reader takes at each event, so that windows close and open by little.
    appetite: Option<usize>,
    /// Part of the steps before which a timer expires although packets should have come first.
    early_timeouts: f64,
}

fn recovery() -> impl Strategy<Value = TcpConfig> {
    use longhaul_tcp::{ExitWindow, ForwardRto, PartialAcks, Reduction, RtoEstimator, SpuriousResponse};
    let schemes = [Recovery::Reno, Recovery::NewReno, Recovery::Sack, Recovery::Fack, Recovery::Rack];
    let reductions = [Reduction::Immediate, Reduction::Prr, Reduction::RateHalving];
    let detections = [ForwardRto::Off, ForwardRto::Basic, ForwardRto::Sack];
    use SpuriousResponse::{Eifel, Halve, None, Restore, Undo};
    let responses = [Halve, Eifel, Undo, Restore, None];
    let names = (0..schemes.len(), 0..reductions.len(), 0..detections.len(), 0..responses.len());
    (names, any::<[bool; 8]>()).prop_map(move |((scheme, reduction, detection, response), switches)| {
        TcpConfig::default().with(|it| {
            it.recovery.f_rto = detections[detection];
            it.recovery.spurious_response = responses[response];
            it.recovery.eifel_detection = switches[6];
            it.recovery.undo = switches[5];
            it.recovery.fine_grained_expiry = Some(switches[7]);
            it.recovery.scheme = schemes[scheme];
            it.recovery.reduction = reductions[reduction];
            it.recovery.limited_transmit = switches[0];
            it.acknowledgements.dsack = switches[1];
            it.recovery.partial_acks =
                if switches[2] { PartialAcks::Impatient } else { PartialAcks::SlowButSteady };
            it.recovery.exit_window = if switches[3] { ExitWindow::FlightSize } else { ExitWindow::Ssthresh };
            it.recovery.ack_heuristic = switches[4];
            it.rto.estimator = if switches[5] { RtoEstimator::Rfc6298 } else { RtoEstimator::Linux };
        })
    })
}

fn congestion() -> impl Strategy<Value = (Congestion, SlowStart, bool)> {
    let controllers = [
        Congestion::Reno,
        Congestion::Cubic(CubicConfig::default()),
        Congestion::Bbr,
        Congestion::Vegas(VegasConfig::default()),
        Congestion::WestwoodEre,
        Congestion::WestwoodPlus,
        Congestion::Fast(FastConfig::default()),
        Congestion::Hybla(HyblaConfig::default()),
    ];
    let starts = [SlowStart::Standard, SlowStart::HyStartPlusPlus, SlowStart::HyStart];
    (0..controllers.len(), 0..starts.len(), any::<bool>())
        .prop_map(move |(controller, start, pacing)| (controllers[controller].clone(), starts[start], pacing))
}

const SHARING: [Sharing; 4] = [Sharing::None, Sharing::Cache, Sharing::Stcp, Sharing::CarefulResume];
const MARKS: [EcnUse; 4] = [EcnUse::Off, EcnUse::Passive, EcnUse::On, EcnUse::Only];
const AFTER_IDLE: [AfterIdle; 4] =
    [AfterIdle::Restart, AfterIdle::Decay, AfterIdle::Validate, AfterIdle::Keep];
const ACKS: [DelayedAcks; 4] =
    [DelayedAcks::Off, DelayedAcks::On, DelayedAcks::AfterSlowStart, DelayedAcks::QuickAcks];

fn config() -> impl Strategy<Value = TcpConfig> {
    let switches = (any::<[bool; 8]>(), any::<bool>(), 0..SHARING.len());
    let sizes = (64_u16..1500, 200_u64..40_000, 500_u64..60_000, 0_u32..11, 1_u64..200);
    (recovery(), congestion(), switches, sizes).prop_map(|(recovery, control, switches, sizes)| {
        let (mss, receive, send, window, delay) = sizes;
        let (switches, from_flight, sharing) = switches;
        let (congestion, slow_start, pacing) = control;
        recovery.with(|it| {
            it.congestion = congestion;
            it.window.slow_start = slow_start;
            it.pacing = pacing;
            it.timestamps = switches[0];
            it.window.scaling = switches[1];
            it.acknowledgements.delay = ACKS[usize::from(switches[2]) + 2 * usize::from(switches[5])];
            it.ecn = MARKS[usize::from(switches[6]) + 2 * usize::from(switches[7])];
            it.nagle = switches[3];
            it.recovery.reduce_from = if from_flight { ReduceFrom::FlightSize } else { ReduceFrom::Cwnd };
            it.sharing.policy = SHARING[sharing];
            it.window.after_idle = AFTER_IDLE[usize::from(switches[4]) + 2 * usize::from(switches[3])];
            it.mss = Some(mss);
            it.path_mtu = if switches[0] { PathMtu::Probe } else { PathMtu::Icmp };
            it.window.autotuning = switches[5];
            it.window.receive_buffer = Size(if switches[5] { 8 * receive } else { receive });
            it.window.send_buffer = Size(send);
            it.window.initial = match window {
                0 => InitialWindow::Rfc3390,
                segments => InitialWindow::Segments(segments),
            };
            it.acknowledgements.timeout = Duration::from_millis(delay);
            it.limits.data_retries = 100;
            it.limits.syn_retries = 100;
            it.rto.max = Duration::from_secs(4);
        })
    })
}

fn setting() -> impl Strategy<Value = Setting> {
    let path = (1_u64..300, 0_u64..200, 0.0..0.4, 0.0..0.3, 0.0..0.2).prop_map(
        |(latency, jitter, loss, duplication, marks)| Path {
            latency: Duration::from_millis(latency),
            jitter: Duration::from_millis(jitter),
            loss,
            duplication,
            marks,
            bottleneck: None,
        },
    );
    let rest = (0_u64..60_000, 0_u64..60_000, 0_u64..60, any::<Option<u8>>(), 0.0..0.3, any::<Option<u8>>());
    (any::<u64>(), config(), config(), path, rest).prop_map(|(seed, a, b, path, rest)| Setting {
        seed,
        config: [a, b],
        path,
        bytes: [rest.0, rest.1],
        faults_end: Duration::from_secs(rest.2),
        stall: rest.3.map(|tenths| Duration::from_millis(100 * (1 + u64::from(tenths) / 8))),
        early_timeouts: rest.4,
        appetite: rest.5.map(|tens| 1 + 10 * usize::from(tens)),
    })
}

fn states(pair: &Pair) -> String {
    let connections = pair.hosts.iter().flat_map(longhaul_tcp::Host::connections);
    let connections: String = connections.map(|(_, connection)| format!("{connection:#?}\n")).collect();
    format!("{:#?}\n{connections}", pair.ends)
}

fn run(setting: &Setting) -> Result<(), TestCaseError> {
    let mut pair = Pair::new(setting.seed, setting.path, &setting.config[1]);
    pair.connect(&setting.config[0]);
    for side in 0..2 {
        pair.ends[side].to_send = setting.bytes[side];
        pair.ends[side].finish = true;
    }
    pair.drain();
    let faults_end = Instant::ZERO + setting.faults_end;
    let deadline = faults_end + Duration::from_secs(3_000);
    let closed = |pair: &Pair| (0..2).all(|side| pair.saw(side, Event::Closed));
    while !closed(&pair) {
        prop_assert!(pair.now < deadline, "still open at {}\n{}", pair.now, states(&pair));
        if pair.now > faults_end {
            (pair.path.loss, pair.path.duplication) = (0.0, 0.0);
        }
        for side in 0..2 {
            let phase = setting.stall.map(|period| pair.now.as_nanos() / period.as_nanos() % 2);
            pair.ends[side].stalled = pair.now < faults_end && phase == Some(side as u64);
            pair.ends[side].appetite = setting.appetite.filter(|_| pair.now < faults_end);
        }
        // TIME-WAIT is as long as it is so that the peer has closed by its end.
        let lingers = pair.hosts.iter().flat_map(longhaul_tcp::Host::connections);
        let lingers = lingers.filter(|(_, it)| matches!(it.state(), State::Closed | State::TimeWait)).count();
        if pair.now < faults_end && lingers == 0 && pair.rng.chance(setting.early_timeouts) {
            let side = pair.rng.below(2) as usize;
            pair.expire(side);
        }
        prop_assert!(pair.step(), "nothing more happens at {}\n{}", pair.now, states(&pair));
        for side in 0..2 {
            prop_assert!(
                !pair.ends[side].corrupt,
                "end {side} got another byte before {}",
                pair.ends[side].received
            );
            prop_assert!(pair.ends[side].received <= setting.bytes[1 - side]);
        }
    }
    // A reader that stalled until the end still gets what had arrived.
    pair.ends.iter_mut().for_each(|end| (end.stalled, end.appetite) = (false, None));
    pair.drain();
    for side in 0..2 {
        prop_assert!(!pair.ends[side].corrupt);
        prop_assert_eq!(pair.ends[side].received, setting.bytes[1 - side]);
        let connection = pair.connection(side);
        prop_assert!(matches!(connection.state(), State::Closed | State::TimeWait));
        prop_assert_eq!(connection.statistics().bytes_received, setting.bytes[1 - side]);
        prop_assert_eq!(connection.sender_statistics().bytes_acked, setting.bytes[side]);
        prop_assert_eq!((connection.flight_size(), connection.in_flight()), (0, 0));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_streams_arrive_whole_and_the_connection_ends(setting in setting()) {
        run(&setting)?;
    }
}

/// The same seed gives the same packets.
#[test]
fn a_run_repeats_exactly() {
    let trace = || {
        let config = TcpConfig::default();
        let path =
            Path { loss: 0.05, duplication: 0.05, jitter: Duration::from_millis(10), ..Path::clean(30) };
        let mut pair = Pair::new(7, path, &config);
        let hash = std::rc::Rc::new(std::cell::Cell::new(0_u64));
        let seen = std::rc::Rc::clone(&hash);
        pair.drop_if = Box::new(move |side, packet, _| {
            let next = packet.iter().fold(seen.get(), |hash, &byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3) ^ side as u64
            });
            seen.set(next);
            false
        });
        pair.connect(&config);
        pair.ends[0].to_send = 200_000;
        pair.drain();
        pair.run_until(Duration::from_secs(100), |pair| pair.ends[1].received == 200_000);
        (hash.get(), pair.transmitted, pair.now)
    };
    assert_eq!(trace(), trace());
}
