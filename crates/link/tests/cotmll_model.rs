//! COTMLL against a model of it, frame by frame and byte by byte, over lines that lose and repeat.
//!
//! Each run ends with an open line, on which everything must arrive that was not given up.

use std::collections::VecDeque;

use base::{Duration, Instant, Packet, Rng};
use longhaul_link::cotmll::{Config, Cotmll, SubProtocol, TRAILER_LEN, ToldBlock, Trailer};
use longhaul_link::{Class, Endpoint};

mod model;

use model::Model;

/// Bytes of a packet in a full frame: small, so that packets of little more take several.
const PAYLOAD: usize = 40;

#[derive(Clone, Copy)]
struct Setting {
    window: u32,
    ordered: bool,
    /// Probability of each frame's loss.
    loss: f64,
    /// Probabilities, at each frame, of entering and of leaving a blockage of both directions.
    blockage: (f64, f64),
    /// Probability of each frame's coming twice.
    repeat: f64,
    /// Frames on the line at once.
    pipe: usize,
    /// Packets of class 010 too.
    once: bool,
    /// Probability, at each frame, that an earlier acknowledgement or message comes once more.
    replay: f64,
    /// Frames' times after which a packet is given up.
    persistence: Option<u64>,
    attempts: Option<u32>,
    block: ToldBlock,
}

const CLEAN: Setting = Setting {
    window: 512,
    ordered: true,
    loss: 0.0,
    blockage: (0.0, 1.0),
    repeat: 0.0,
    pipe: 10,
    once: false,
    replay: 0.0,
    persistence: None,
    attempts: None,
    block: ToldBlock::First,
};

/// Time from one frame to the next.
const FRAME_TIME: u64 = 1_000_000;

/// One end under test, and the same end as modelled.
struct End {
    real: Cotmll,
    model: Model,
    /// Packets offered here that are still to be delivered there.
    owed: VecDeque<Vec<u8>>,
    offers: u64,
    /// Number of the latest packet of class 010 that was delivered here.
    once_seen: u64,
    coming: VecDeque<Option<Vec<u8>>>,
    /// What was lately said here without data, and how far both ends were.
    said: VecDeque<(Vec<u8>, usize, usize)>,
    /// Packets delivered out of those owed, and those that were passed over.
    delivered: u64,
    missing: u64,
}

impl End {
    fn new(setting: &Setting) -> Self {
        let config = Config {
            window: setting.window.try_into().unwrap(),
            ordered: setting.ordered,
            frame_payload: (PAYLOAD as u32).try_into().unwrap(),
            persistence: setting
                .persistence
                .map(|frames| Duration::from_nanos(frames * FRAME_TIME).try_into().unwrap()),
            attempts: setting.attempts.map(|attempts| attempts.try_into().unwrap()),
            block: setting.block,
            ..Config::default()
        };
        let modelled = model::Setting {
            window: setting.window as usize,
            ordered: setting.ordered,
            payload: PAYLOAD,
            persistence: setting.persistence.map(|frames| frames * FRAME_TIME),
            attempts: setting.attempts,
            latest_block: setting.block == ToldBlock::Latest,
        };
        Self {
            real: Cotmll::new(config),
            model: Model::new(modelled),
            owed: VecDeque::new(),
            offers: 0,
            once_seen: 0,
            coming: VecDeque::new(),
            said: VecDeque::new(),
            delivered: 0,
            missing: 0,
        }
    }

    /// Offers a packet, if there is room: its class, its number, and these again and again.
    fn offer(&mut self, len: usize, class: Class) {
        if !self.real.has_room(class) {
            return;
        }
        self.offers += 1;
        let once = class == Class::Unreliable;
        let mark = self.offers | u64::from(once) << 63;
        let packet: Vec<u8> = mark.to_be_bytes().into_iter().cycle().take(len).collect();
        self.model.offer(&packet, once);
        self.real.offer(Instant::ZERO, Packet::from_slice(&packet), class).unwrap();
        if !once {
            self.owed.push_back(packet);
        }
    }

    fn send(&mut self, now: u64) -> Vec<u8> {
        let mut frame = Vec::new();
        let at = Instant::from_nanos(now);
        let info = self.real.poll_frame(at, PAYLOAD + TRAILER_LEN, &mut frame).unwrap();
        self.real.seal_frame(at, &mut frame);
        let (kind, modelled) = self.model.poll(now);
        assert_eq!((info.kind, &frame), (kind, &modelled));
        assert_eq!(self.real.poll_timeout(), None);
        frame
    }

    /// Keeps what a frame said beside its data.
    fn keep_said(&mut self, frame: &[u8]) {
        let (trailer, payload) = Trailer::parse(frame).unwrap();
        let message: &[u8] = if trailer.protocol == SubProtocol::Control { payload } else { &[] };
        let bare =
            Trailer { protocol: SubProtocol::Control, first: false, last: false, tx: 0, ack: trailer.ack };
        let (base, next) = self.model.progress();
        self.said.push_back(([message, &bare.emit()].concat(), base, next));
        if self.said.len() > 200 {
            self.said.pop_front();
        }
    }

    fn count(&self, name: &str) -> u64 {
        self.real.counters().iter().find(|(n, _)| *n == name).unwrap().1
    }

    /// Takes a frame; what goes up must be owed.
    fn receive(&mut self, frame: &[u8], owed: &mut VecDeque<Vec<u8>>, setting: &Setting) {
        let _ = self.real.handle_frame(Instant::ZERO, frame);
        self.model.handle(frame);
        while let Some(packet) = self.real.poll_packet() {
            if packet[0] & 0x80 != 0 {
                self.receive_once(&packet);
                continue;
            }
            assert_eq!(self.model.delivered.pop_front().as_deref(), Some(&*packet));
            let at = owed.iter().position(|sent| **sent == *packet).expect("altered, or delivered twice");
            if setting.ordered {
                let may_miss = setting.persistence.is_some() || setting.attempts.is_some();
                assert!(at == 0 || may_miss, "out of order");
                self.missing += at as u64;
                owed.drain(..=at);
            } else {
                owed.remove(at);
            }
            self.delivered += 1;
        }
        assert!(self.model.delivered.is_empty());
    }

    /// Class 010: whole, in order, and not twice.
    fn receive_once(&mut self, packet: &[u8]) {
        let mark: [u8; 8] = packet[..8].try_into().unwrap();
        assert!(packet.iter().eq(mark.iter().cycle().take(packet.len())));
        let number = u64::from_be_bytes(mark) & !(1 << 63);
        assert!(number > self.once_seen);
        self.once_seen = number;
    }
}

struct Run {
    setting: Setting,
    rng: Rng,
    ends: [End; 2],
    blocked: bool,
    now: u64,
}

impl Run {
    fn new(setting: Setting, seed: u64) -> Self {
        let ends = [End::new(&setting), End::new(&setting)];
        Self { setting, rng: Rng::named(seed, "model"), ends, blocked: false, now: 0 }
    }

    fn steps(&mut self, count: usize, load: f64) {
        for _ in 0..count {
            let side = self.rng.below(2) as usize;
            if self.rng.chance(load) {
                let len = 8 + self.rng.below(150) as usize;
                let once = self.setting.once && self.rng.chance(0.3);
                self.ends[side].offer(len, if once { Class::Unreliable } else { Class::Reliable });
            }
            self.transfer(side);
        }
    }

    /// Sends a frame from `side`, and lets the one arrive that was sent a pipe's length ago.
    fn transfer(&mut self, side: usize) {
        self.now += FRAME_TIME / 2;
        let frame = self.ends[side].send(self.now);
        let (enter, leave) = self.setting.blockage;
        self.blocked = if self.blocked { !self.rng.chance(leave) } else { self.rng.chance(enter) };
        let lost = self.blocked || self.rng.chance(self.setting.loss);
        let repeated = self.rng.chance(self.setting.repeat);
        let replayed = self.rng.chance(self.setting.replay);
        let [a, b] = &mut self.ends;
        let (from, to) = if side == 0 { (a, b) } else { (b, a) };
        from.keep_said(&frame);
        if repeated && !lost {
            to.coming.push_back(Some(frame.clone()));
        }
        to.coming.push_back((!lost).then_some(frame));
        if replayed {
            let (said, base, next) = &from.said[self.rng.below(from.said.len() as u64) as usize];
            // Half the sequence space later, an old number is a new one.
            if from.model.progress().1 - next < 400 && to.model.progress().1.saturating_sub(*base) < 400 {
                to.coming.push_back(Some(said.clone()));
            }
        }
        while to.coming.len() > self.setting.pipe {
            if let Some(frame) = to.coming.pop_front().flatten() {
                to.receive(&frame, &mut from.owed, &self.setting);
            }
        }
    }

    /// Opens the line; within two windows and pipes all that is owed must arrive.
    fn drain(&mut self) {
        self.setting = Setting { loss: 0.0, blockage: (0.0, 1.0), repeat: 0.0, replay: 0.0, ..self.setting };
        let enough = 4 * (512 + 4 + self.setting.pipe);
        for _ in 0..enough {
            self.transfer(0);
            self.transfer(1);
        }
        let [a, b] = &self.ends;
        for (sender, receiver) in [(a, b), (b, a)] {
            let missing = receiver.missing + sender.owed.len() as u64;
            assert!(missing <= sender.count("packets-given-up"), "something was lost for ever");
            assert_eq!(sender.real.in_flight(), 0, "the receiver was not told");
            assert!(receiver.delivered > 0);
        }
    }
}

fn check(setting: Setting, seeds: u64, steps: usize) {
    for seed in 0..seeds {
        let mut run = Run::new(setting, seed);
        for load in [0.9, 0.2, 0.5] {
            run.steps(steps / 3, load);
        }
        run.drain();
    }
}

#[test]
fn a_clean_line() {
    check(CLEAN, 2, 30_000);
    check(Setting { pipe: 300, ..CLEAN }, 2, 30_000);
}

/// On a line that keeps order, nothing is taken for lost that is not, however much is sent twice for want of news.
#[test]
fn without_losses_nothing_is_flagged() {
    for window in [3, 512] {
        let mut run = Run::new(Setting { window, pipe: 100, ..CLEAN }, 1);
        run.steps(20_000, 0.5);
        for end in &run.ends {
            assert_eq!((end.count("frames-flagged"), end.count("frames-retransmitted")), (0, 0));
            assert!(end.count("frames-filler") > 1000);
        }
    }
}

#[test]
fn lost_frames() {
    for (loss, pipe) in [(0.05, 3), (0.2, 40), (0.5, 20), (0.02, 400)] {
        check(Setting { loss, pipe, ..CLEAN }, 4, 10_000);
        check(Setting { loss, pipe, ordered: false, ..CLEAN }, 4, 10_000);
    }
}

#[test]
fn blockages() {
    for (blockage, pipe) in [((0.01, 0.02), 20), ((0.001, 0.001), 60), ((0.002, 0.0005), 10)] {
        check(Setting { blockage, pipe, ..CLEAN }, 4, 20_000);
        check(Setting { blockage, pipe, ordered: false, once: true, ..CLEAN }, 4, 20_000);
    }
}

#[test]
fn repeated_frames() {
    check(Setting { repeat: 0.3, loss: 0.1, once: true, ..CLEAN }, 5, 10_000);
    check(Setting { repeat: 0.3, loss: 0.1, ordered: false, once: true, ..CLEAN }, 5, 10_000);
}

#[test]
fn small_windows() {
    for window in [1, 2, 7, 64, 511] {
        let setting = Setting { window, loss: 0.1, blockage: (0.005, 0.01), once: true, ..CLEAN };
        check(setting, 3, 9_000);
        check(Setting { ordered: false, ..setting }, 3, 9_000);
    }
}

/// Whatever block is told, everything arrives; on a line without losses still nothing is flagged.
#[test]
fn the_latest_block() {
    let latest = Setting { block: ToldBlock::Latest, ..CLEAN };
    for (loss, blockage, pipe) in [(0.1, (0.0, 1.0), 20), (0.02, (0.005, 0.01), 60), (0.5, (0.0, 1.0), 3)] {
        for window in [2, 60, 512] {
            let setting = Setting { window, loss, blockage, pipe, once: true, repeat: 0.1, ..latest };
            check(setting, 3, 9_000);
            check(Setting { ordered: false, replay: 0.2, ..setting }, 3, 9_000);
            check(Setting { attempts: Some(4), persistence: Some(300), ..setting }, 3, 9_000);
        }
    }
    let mut run = Run::new(Setting { pipe: 100, ..latest }, 1);
    run.steps(20_000, 0.5);
    assert!(run.ends.iter().all(|end| end.count("frames-flagged") == 0));
}

/// Old acknowledgements and messages say nothing wrong, as long as their numbers still mean what they meant.
#[test]
fn what_was_said_may_be_said_again() {
    for window in [5, 300, 512] {
        let setting = Setting { window, replay: 0.3, repeat: 0.2, loss: 0.1, pipe: 30, once: true, ..CLEAN };
        check(setting, 3, 10_000);
        check(Setting { ordered: false, ..setting }, 3, 10_000);
        check(Setting { attempts: Some(4), persistence: Some(200), ..setting }, 3, 10_000);
    }
}

/// What is missing was given up and counted, and the line goes on.
#[test]
fn limited_persistence() {
    for (persistence, attempts) in [(Some(50), None), (Some(400), None), (None, Some(1)), (None, Some(5))] {
        for (loss, blockage, pipe) in
            [(0.2, (0.0, 1.0), 10), (0.0, (0.005, 0.01), 30), (0.3, (0.001, 0.003), 2)]
        {
            for window in [1, 9, 512] {
                let setting = Setting { window, loss, blockage, pipe, persistence, attempts, ..CLEAN };
                check(setting, 2, 6_000);
                check(Setting { ordered: false, once: true, repeat: 0.1, ..setting }, 2, 6_000);
            }
        }
    }
}

/// Frames sent by either end of a run that nothing is lost in but by choice.
#[test]
fn a_million_steps_go_by_the_rules() {
    let mut steps = 0;
    for (seed, (window, loss)) in [(512, 0.01), (512, 0.15), (64, 0.05), (300, 0.3)].into_iter().enumerate() {
        let setting = Setting { window, loss, blockage: (0.0005, 0.01), pipe: 25, repeat: 0.01, ..CLEAN };
        for round in 0..13 {
            let mut run = Run::new(setting, 1000 + 100 * seed as u64 + round);
            for load in [0.7, 0.05, 0.3] {
                run.steps(6_500, load);
            }
            steps += 3 * 6_500;
            run.drain();
        }
    }
    assert!(steps >= 1_000_000, "{steps}");
}
